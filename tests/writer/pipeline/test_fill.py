"""Writes fill small files, or not, by their operation and the table; what they then give to readers and services."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hoodie_py import Delete, HoodieTable, Insert, Update
from hoodie_py.reader.merge.merger import RecordMerger
from hoodie_py.writer.handles.data_file import DataFile
from tests.writer.compaction_tables import QUICK
from tests.writer.written_tables import KINDS, SCHEMA, Kind, contents, data_files, row

FLAT = [each for each in KINDS if not each.partitioned]
COMPACT = {**QUICK, "hoodie.compact.inline.max.delta.commits": "1"}
FILL = {**QUICK, "hoodie.parquet.small.file.limit": "104857600"}
INDEXED = {**FILL, "hoodie.metadata.enable": "true", "hoodie.metadata.global.record.level.index.enable": "true"}


def made(base: Path, kind: Kind, options: dict[str, Any] | None = None) -> HoodieTable:
    """A table of one file group with four rows."""
    table = HoodieTable.open(kind.create(base))
    table.insert([row(i) for i in range(4)], options=options or QUICK)
    assert len(table.file_slices()) == 1
    return table


def last_instant(table: HoodieTable) -> str:
    last = table.refresh().timeline.select_completed().last
    assert last is not None
    return last.request_time


@pytest.mark.parametrize(("limit", "groups"), [({}, 1), ({"hoodie.parquet.small.file.limit": "0"}, 2)])
def test_inserts_fill_by_default(tmp_path: Path, limit: dict[str, str], groups: int) -> None:
    table = made(tmp_path, Kind(9, True, False))
    table.insert([row(0), row(4)], options={**QUICK, **limit})
    assert len(table.file_slices()) == groups
    assert table.scan().count() == 6, "inserts do not look for their keys"


@pytest.mark.parametrize("operation", ["bulk_insert", "insert_overwrite", "insert_overwrite_table"])
def test_other_operations_make_new_files(tmp_path: Path, operation: str) -> None:
    table = made(tmp_path, Kind(9, True, False))
    [before] = {each.file_id for each in table.file_slices()}
    getattr(table, operation)([row(4)], options=QUICK)
    left = {each.file_id for each in table.file_slices()}
    assert len(left) == (2 if operation == "bulk_insert" else 1)
    assert (before in left) == (operation == "bulk_insert")


def test_buckets_are_not_filled(tmp_path: Path) -> None:
    options = {**QUICK, "hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
    table = made(tmp_path, Kind(9, True, False), options)
    table.insert([row(4)], options=options)
    [only] = table.file_slices()
    assert len(only.log_files) == 1


@pytest.mark.parametrize("merge_on_read", [True, False])
def test_inserts_make_new_files_where_changes_are_captured(tmp_path: Path, merge_on_read: bool) -> None:
    table = made(tmp_path, Kind(9, merge_on_read, False, captures=True))
    done = table.insert([row(4)], options=FILL)
    assert len(table.file_slices()) == 2
    table.upsert([row(0, 2, "b"), row(5)], options=QUICK)
    assert len(table.file_slices()) == 2, "an upsert writes change data"
    changed = table.changes(done.completion_time).to_arrow().to_pylist()
    assert sorted(each["op"] for each in changed) == ["i", "u"]


class Summing(RecordMerger):
    """Decides about new records, too."""

    name = "summing"

    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        return newer

    def insert_batch(self, batch: Any, context: Any, props: Any) -> Any:
        return batch


def test_inserts_make_new_files_where_a_merger_decides_about_them(tmp_path: Path) -> None:
    table = made(tmp_path, Kind(9, True, False))
    table.insert([row(4)], options=FILL, merger=Summing)
    assert len(table.file_slices()) == 2


@pytest.mark.parametrize("kind", FLAT, ids=str)
def test_an_upsert_that_fills_merges_updates_and_deletes(tmp_path: Path, kind: Kind) -> None:
    table = made(tmp_path, kind)
    before = last_instant(table)
    table.upsert([row(0, 2, "b"), row(1, 0, "late"), row(4)], options=QUICK)
    [only] = table.file_slices()
    assert only.log_files == ()
    assert contents(tmp_path) == {"k0": (2, "b"), **{f"k{i}": (1, "a") for i in range(1, 5)}}
    assert len(contents(tmp_path, as_of=before)) == 4
    found = table.timeline.find(before, "deltacommit" if kind.merge_on_read else "commit")
    assert found is not None
    start = before if kind.version == 6 else found.completion_time
    rows = table.incremental(start, columns=["id"]).to_arrow().to_pylist()
    assert sorted(each["id"] for each in rows) == ["k0", "k4"], "a range has the rows that the commit changed"


@pytest.mark.parametrize("operation", ["upsert", "insert"])
@pytest.mark.parametrize("kind", FLAT, ids=str)
def test_a_failed_write_leaves_the_file_that_it_filled(
    tmp_path: Path, kind: Kind, operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(tmp_path, kind)
    files = data_files(tmp_path)
    publish = DataFile.publish

    def fail(self: DataFile) -> int:
        publish(self)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(DataFile, "publish", fail)
        with pytest.raises(KeyboardInterrupt):
            getattr(table, operation)([row(4)], options=FILL)
    table.refresh()
    assert len(contents(tmp_path)) == 4
    table.insert([row(5)], options=FILL)
    assert len(data_files(tmp_path) - files) == 1, "the next writer removes what the failed one wrote"
    assert sorted(contents(tmp_path)) == ["k0", "k1", "k2", "k3", "k5"]


@pytest.mark.parametrize("kind", FLAT, ids=str)
def test_a_restore_takes_a_filling_back(tmp_path: Path, kind: Kind) -> None:
    table = made(tmp_path, kind)
    instant = last_instant(table)
    table.savepoint(instant, options=QUICK)
    table.insert([row(4)], options=FILL)
    table.upsert([row(0, 2, "b"), row(5)], options=QUICK)
    assert len(contents(tmp_path)) == 6
    table.restore(instant, options=QUICK)
    assert contents(tmp_path) == {f"k{i}": (1, "a") for i in range(4)}
    table.insert([row(6)], options=FILL)
    assert len(contents(tmp_path)) == 5
    assert len(table.file_slices()) == 1


@pytest.mark.parametrize("kind", [Kind(9, True, False), Kind(6, True, False), Kind(9, False, False)], ids=str)
def test_indexes_and_services_follow(tmp_path: Path, kind: Kind) -> None:
    options = {**INDEXED, "hoodie.metadata.index.column.stats.enable": "true"} if kind.version > 6 else FILL
    table = made(tmp_path, kind, options)
    table.insert([row(4), row(5)], options=options)
    table.upsert([row(0, 2, "b"), row(6)], options=options)
    report = table.verify()
    assert report.is_right, str(report)
    table.upsert([row(i, 3, "c") for i in (0, 4, 6)], options=options)
    if kind.merge_on_read:
        assert table.file_slices()[0].log_files
        table.compact(options={**options, **COMPACT})
    table.clean(1, options=options)
    table.delete(["k5"], options=options)
    report = table.verify()
    assert report.is_right, str(report)
    assert contents(tmp_path) == {
        **{f"k{i}": (1, "a") for i in (1, 2, 3)},
        **{f"k{i}": (3, "c") for i in (0, 4, 6)},
    }


def test_a_merge_fills_beside_partial_rows(tmp_path: Path) -> None:
    table = HoodieTable.open(Kind(9, True, False).create(tmp_path, merge_mode="COMMIT_TIME_ORDERING"))
    table.insert([row(i) for i in range(4)], options=QUICK)
    table.upsert([row(0, 2)], options=QUICK)  # this slice has a log now
    table.insert([row(8)], options=QUICK)
    source = pa.Table.from_pylist([row(0, 5, "m"), row(9, 5, "n")], SCHEMA)
    table.merge(source, on="id", when_matched=Update({"name": "source.name"}), when_not_matched=Insert(), options=QUICK)
    assert contents(tmp_path)["k0"] == (2, "m")
    assert contents(tmp_path)["k9"] == (5, "n")
    assert sorted(len(each.log_files) for each in table.file_slices()) == [0, 2]
    more = pa.Table.from_pylist([row(8, 6, "o"), row(9, 6, "p"), row(10, 6, "q")], SCHEMA)
    table.merge(
        more,
        on="id",
        when_matched=[Delete(where="source.id = 'k9'"), Update({"name": "source.name"})],
        when_not_matched=Insert(),
        options=QUICK,
    )
    assert sorted(len(each.log_files) for each in table.file_slices()) == [0, 2], "the small file is rewritten"
    left = contents(tmp_path)
    assert (left["k8"], left["k10"], "k9" in left) == ((1, "o"), (6, "q"), False)


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(KINDS), st.sampled_from(["1", "3"]), st.randoms(use_true_random=False))
def test_random_writes_and_services_keep_all_rows(
    tmp_path_factory: pytest.TempPathFactory, kind: Kind, candidates: str, dice: random.Random
) -> None:
    base = kind.create(tmp_path_factory.mktemp("lake") / "t", merge_mode="COMMIT_TIME_ORDERING")
    table = HoodieTable.open(base)
    options = {**QUICK, "hoodie.merge.small.file.group.candidates.limit": candidates}
    want: dict[str, tuple[int, str]] = {}
    states: list[tuple[str, dict[str, tuple[int, str]]]] = []
    for step in range(9):
        limit = {"hoodie.parquet.small.file.limit": "0" if dice.random() < 0.3 else "104857600"}
        known = [int(key[1:]) for key in want]
        some = dice.sample(known, min(len(known), dice.randrange(4)))
        new = [100 + step * 10 + each for each in range(dice.randrange(1, 4))]
        match dice.choice(["upsert", "upsert", "insert", "insert", "delete", "compact", "plan", "cluster"]):
            case "upsert":
                rows = [row(each, 1, f"n{step}") for each in (*some, *new)]
                table.upsert(rows, options={**options, **limit})
                want |= {each["id"]: (each["ts"], each["name"]) for each in rows}
            case "insert":
                rows = [row(each, 1, f"n{step}") for each in new]
                table.insert(rows, options={**options, **limit})
                want |= {each["id"]: (each["ts"], each["name"]) for each in rows}
            case "delete" if some:
                table.delete([f"k{each}" for each in some], options=options)
                want = {key: each for key, each in want.items() if int(key[1:]) not in some}
            case "compact" if kind.merge_on_read:
                table.compact(options={**options, **COMPACT})
            case "plan" if kind.merge_on_read:
                table.schedule_compaction(options={**options, **COMPACT})
            case "cluster" if want:
                table.cluster(options=options)
        if table.refresh().timeline.select_completed().last is not None:
            states.append((last_instant(table), dict(want)))
        assert contents(base) == want
    for instant, then in dict(states).items():
        assert contents(base, as_of=instant) == then
