from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from hoodie_py import HoodieTable, RecordMerger
from hoodie_py.errors import ConflictError, InvalidQueryError, MergeError, UnsupportedFeatureError
from hoodie_py.writer.services.log_compaction import LogCompaction
from tests.corpus import unpack
from tests.writer.compaction_tables import QUICK, copied, leftovers, orphans
from tests.writer.transaction.test_second_look import before_the_completed_file
from tests.writer.written_tables import Kind, row

SMALL = {**QUICK, "hoodie.log.compaction.blocks.threshold": "3", "hoodie.parquet.small.file.limit": "0"}
KINDS = [Kind(version, merge_on_read=True) for version in (6, 8, 9)]


def filled(base: Path, kind: Kind, rounds: int = 5, seed: int = 1, **more: Any) -> HoodieTable:
    """A table with updates that come late, deletes, and records that come back."""
    chance = random.Random(seed)
    table = HoodieTable.open(kind.create(base, **more))
    table.insert([row(number, 5) for number in range(12)], SMALL)
    for turn in range(rounds):
        some = chance.sample(range(12), 6)
        table.upsert([row(number, chance.choice([1, 5, turn + 4]), f"t{turn}") for number in some], SMALL)
        if turn % 2:
            table.delete([row(number)["id"] for number in chance.sample(range(12), 2)], SMALL)
    return table


def data(table: HoodieTable) -> list[dict[str, Any]]:
    return sorted(table.scan(columns=["id", "part", "ts", "name"]).to_arrow().to_pylist(), key=lambda each: each["id"])


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_rows_stay_and_later_changes_still_count(kind: Kind, seed: int, tmp_path: Path) -> None:
    table = filled(tmp_path / "t", kind, seed=seed)
    before = data(table)
    result = table.log_compact(options=SMALL)
    assert result.instant is not None
    assert result.bytes_written < result.bytes_read
    last = table.timeline.instants[-1]
    assert (last.request_time, last.action, last.state) == (result.instant, "deltacommit", "completed")
    assert data(table) == before == data(HoodieTable.open(tmp_path / "t"))
    assert table.log_compact(options=SMALL).instant is None
    twin = tmp_path / "twin"
    other = filled(twin, kind, seed=seed)
    chance = random.Random(seed)
    for turn in range(4):
        changes = [row(number, chance.choice([1, 4, 9]), f"late {turn}") for number in chance.sample(range(12), 5)]
        gone = [row(chance.randrange(12))["id"]]
        for each in (table, other):
            each.upsert(changes, SMALL)
            each.delete(gone, SMALL)
        assert data(table) == data(other)
    assert table.log_compact(options=SMALL).instant is not None  # of a log-compacted block, too
    assert data(table) == data(other)
    for each in (table, other):
        each.compact(options=QUICK)
    assert data(table) == data(other)
    table.clean(1, QUICK)
    assert (orphans(tmp_path / "t"), leftovers(tmp_path / "t")) == ([], [])


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_what_a_plan_names_is_not_replaced(kind: Kind, tmp_path: Path) -> None:
    table = filled(tmp_path / "t", kind)
    instant = LogCompaction().schedule(table._open_session(SMALL, None))
    before = data(table)
    with pytest.raises(ConflictError, match="is about to rewrite a file group"):
        table.insert_overwrite_table([row(40, 9)], SMALL)
    assert table.log_compact(options=SMALL).instant == instant
    assert data(table) == before
    table.insert_overwrite_table([row(40, 9)], SMALL)
    assert [each["id"] for each in data(table)] == [row(40)["id"]]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_writers_go_on_while_a_plan_is_pending(kind: Kind, tmp_path: Path) -> None:
    table = filled(tmp_path / "t", kind)
    session = table._open_session(SMALL, None)
    instant = LogCompaction().schedule(session)
    assert LogCompaction().schedule(session) is None
    table = table.refresh()
    assert table.schedule_compaction(options=QUICK) is None
    table.upsert([row(number, 9, "while") for number in range(0, 12, 2)], SMALL)
    before = data(table)
    assert LogCompaction().run(table._open_session(SMALL, None)).instant == instant
    assert data(table.refresh()) == before


def test_a_range_of_the_log_compaction_alone_has_no_rows(tmp_path: Path) -> None:
    """As in Java: readers put what it wrote in the place of a block that it stands for."""
    table = filled(tmp_path / "t", KINDS[2])
    before = table.timeline.select_writes().instants[-1].completion_time
    assert table.log_compact(options=SMALL).instant is not None
    assert table.incremental(before).to_arrow().num_rows == 0
    assert table.incremental().to_arrow().num_rows == len(data(table))


@pytest.mark.parametrize("kind", [KINDS[0], KINDS[2]], ids=str)
def test_a_plan_can_be_rolled_back(kind: Kind, tmp_path: Path) -> None:
    table = filled(tmp_path / "t", kind)
    assert table.log_compact(options=SMALL).instant is not None
    for ts in range(9, 12):
        table.upsert([row(number, ts, "new") for number in range(12)], SMALL)
    second = LogCompaction().schedule(table._open_session(SMALL, None))
    table.rollback(str(second), QUICK)
    assert list(table.timeline.select_pending()) == []
    assert len(data(table)) == 12


def test_indexes_of_the_metadata_table_stay_right(tmp_path: Path) -> None:
    table = filled(tmp_path / "t", KINDS[2])
    for part in ("files", "column_stats", "record_index"):
        table.index.build(part)
    assert table.log_compact(options=SMALL).instant is not None
    report = table.verify()
    assert report.is_right, str(report)


def test_inline_after_a_write(tmp_path: Path) -> None:
    table = filled(tmp_path / "t", KINDS[2], 1)
    for ts in range(20, 24):
        table.upsert([row(number, ts) for number in range(12)], {**SMALL, "hoodie.log.compaction.inline": "true"})
    operations = [
        table._snapshot.timeline.read_metadata(each).operation_type
        for each in table._snapshot.timeline.list_completed_writes()
    ]
    assert "LOG_COMPACT" in operations


def test_what_cannot_be_joined_is_refused_or_left_out(tmp_path: Path) -> None:
    table = HoodieTable.open(unpack("merge_into_partial_mor_v9", tmp_path))
    assert table.log_compact(options={**QUICK, "hoodie.log.compaction.blocks.threshold": "1"}).instant is None
    captures = HoodieTable.open(Kind(9, merge_on_read=True, captures=True).create(tmp_path / "c"))
    with pytest.raises(UnsupportedFeatureError, match="change data"):
        captures.log_compact()
    with pytest.raises(UnsupportedFeatureError, match="COPY_ON_WRITE"):
        HoodieTable.open(Kind(9, merge_on_read=False).create(tmp_path / "w")).log_compact()


def test_a_base_file_that_came_while_it_completed_is_a_conflict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer without the lock compacted a slice of the plan between the last look and the completed file."""
    base = tmp_path / "t"
    table = filled(base, KINDS[2])
    other = copied(base, tmp_path / "other")
    HoodieTable.open(other).compact(options=QUICK)
    before = data(table)

    def compact_beside(_: Any) -> None:
        for path in other.rglob("*"):
            target = base / path.relative_to(other)
            if path.is_file() and not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(path.read_bytes())

    before_the_completed_file(monkeypatch, "deltacommit", compact_beside)
    with pytest.raises(ConflictError, match="has another base file now"):
        table.log_compact(options=SMALL)
    assert data(HoodieTable.open(base)) == before


@pytest.mark.parametrize("damage", ["cut", "removed"])
def test_a_new_log_file_that_changed_before_the_commit_is_a_conflict(damage: str, tmp_path: Path) -> None:
    table = filled(tmp_path / "t", KINDS[2])
    before = data(table)

    class Damaging:
        def run(self, tasks: Any, on_rows: Any) -> Any:
            results = [task.run(on_rows) for task in tasks]
            [path, *_] = results[0].sizes
            file = tmp_path / "t" / path
            file.write_bytes(file.read_bytes()[:-1]) if damage == "cut" else file.unlink()
            return iter(results)

    with pytest.raises(ConflictError, match="was removed or changed"):
        table.log_compact(Damaging(), SMALL)
    table = HoodieTable.open(tmp_path / "t")
    assert data(table) == before
    assert table.log_compact(options=SMALL).instant is not None
    assert data(table) == before


class _Adds(RecordMerger):
    """Adds the times up."""

    strategy_id = "c4000000-0000-4000-8000-000000000000"

    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        if older.record is None or newer.record is None:
            return newer
        return context.replace(newer, ts=context.get_value(older, "ts") + context.get_value(newer, "ts"))


class _Buries(_Adds):
    """The same; a sum above a limit is a delete that keeps its data."""

    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        merged = super().merge(older, newer, context, props)
        return context.delete(merged) if (context.get_value(merged, "ts") or 0) > 25 else merged


class _Narrows(_Adds):
    """Makes a row of some columns."""

    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        if newer.record is None:
            return newer
        names = ("_hoodie_record_key", "id", "part")
        return context.buffered({name: context.get_value(newer, name) for name in names})


def custom(base: Path, kind: Kind, merger: type[RecordMerger], turns: int = 4) -> HoodieTable:
    table = HoodieTable.open(kind.create(base, merger=merger))
    table.insert([row(number, 1) for number in range(4)], SMALL, merger=merger)
    for turn in range(turns):
        table.upsert([row(number, 10, f"t{turn}") for number in range(3)], SMALL, merger=merger)
    return table


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_merger_folds_the_log_as_readers_do(kind: Kind, tmp_path: Path) -> None:
    table = custom(tmp_path / "t", kind, _Adds)
    table.delete([row(2)["id"]], SMALL, merger=_Adds)
    assert table.log_compact(options=SMALL, merger=_Adds).file_groups > 0
    rows = table.scan(["ts"], merger=_Adds).to_arrow()["ts"].to_pylist()
    assert sorted(rows) == [1, 41, 41]
    table.upsert([row(number, 10) for number in range(3)], SMALL, merger=_Adds)
    rows = table.scan(["ts"], merger=_Adds).to_arrow()["ts"].to_pylist()
    assert sorted(rows) == [1, 11, 51, 51]


def test_the_merger_of_a_log_compaction_is_the_tables(tmp_path: Path) -> None:
    table = custom(tmp_path / "t", KINDS[2], _Adds)
    with pytest.raises(MergeError, match="needs a merger"):
        table.log_compact(options=SMALL)
    with pytest.raises(InvalidQueryError, match="not the merger of this table"):
        filled(tmp_path / "other", KINDS[2]).log_compact(options=SMALL, merger=_Adds)
    assert list(table.timeline.select_pending()) == []


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize(("merger", "text"), [(_Buries, "a delete with data"), (_Narrows, "lacks a column")])
def test_what_no_log_block_can_say_is_refused_and_the_plan_goes(
    kind: Kind, merger: type[RecordMerger], text: str, tmp_path: Path
) -> None:
    table = custom(tmp_path / "t", kind, merger)
    before = table.scan(merger=merger).to_arrow().sort_by("id")
    with pytest.raises(UnsupportedFeatureError, match=text) as caught:
        table.log_compact(options=SMALL, merger=merger)
    assert caught.value.where["key"]
    table = HoodieTable.open(tmp_path / "t")
    assert list(table.timeline.select_pending()) == []
    assert table.scan(merger=merger).to_arrow().sort_by("id").equals(before)
    assert orphans(tmp_path / "t") == []
    assert table.compact(merger=merger, options=QUICK).file_groups > 0
