"""HoodieTable writes what users hand over, and shows it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hoodie_py import (
    BufferedRecord,
    ConflictError,
    HoodieTable,
    HoodieWarning,
    InvalidQueryError,
    RecordContext,
    RecordMerger,
)
from hoodie_py.errors import StorageError
from hoodie_py.files import TableFiles
from hoodie_py.table.snapshot import open_snapshot
from hoodie_py.writer import table_writes
from hoodie_py.writer.pipeline.write import Write
from hoodie_py.writer.records import WriteOperation
from hoodie_py.writer.services.compaction import Compaction
from hoodie_py.writer.timeline.session import WriteSession
from tests.writer.compaction_tables import QUICK, leftovers, writable
from tests.writer.written_tables import KINDS, SCHEMA, Kind, contents, held, placed, records, row, schema_of, session

MOR = Kind(9, True)
every_kind = pytest.mark.parametrize("kind", KINDS, ids=str)


def opened(base: Path, kind: Kind = MOR, rows: int = 10, **more: Any) -> HoodieTable:
    table = HoodieTable.open(kind.create(base, **more))
    table.upsert([row(i) for i in range(rows)], options=QUICK)
    return table


@every_kind
def test_a_life(kind: Kind, tmp_path: Path) -> None:
    table = opened(tmp_path, kind)
    result = table.upsert([row(1, 2, "b"), row(1, 3, "c"), row(2, 0, "late"), row(11)], options=QUICK)
    assert (result.rows_inserted, result.rows_updated >= 1) == (1, True)
    assert table.timeline.find(result.instant or "") is not None
    want = {f"k{i}": (1, "a") for i in (*range(10), 11)} | {"k1": (3, "c")}
    assert contents(table) == contents(tmp_path) == want
    table.delete(["k3", "nobody"], options=QUICK)
    deleted = table.delete([row(4, 2), row(5, 0), row(4, 0)], options=QUICK)
    assert deleted.rows_deleted == 2, "an ordering value that comes with a key to delete does not count"
    for key in ("k3", "k4", "k5"):
        del want[key]
    assert contents(table) == want
    assert table.delete("ts = 1 and id >= 'k8'", options=QUICK).rows_deleted == 2
    assert table.delete(pc.field("id") == "k11", options=QUICK).rows_deleted == 1
    for key in ("k8", "k9", "k11"):
        del want[key]
    assert contents(table) == want
    table.insert([row(20)], options=QUICK)
    table.bulk_insert([row(30), row(31)], options={**QUICK, "hoodie.bulkinsert.sort.mode": "PARTITION_SORT"})
    want |= dict.fromkeys(("k20", "k30", "k31"), (1, "a"))
    assert contents(table) == want
    table.insert_overwrite([row(50)], options=QUICK)
    want = {"k50": (1, "a")} | {key: each for key, each in want.items() if kind.partitioned and int(key[1:]) % 2}
    assert contents(table) == want
    table.insert_overwrite_table([row(1)], options=QUICK)
    assert contents(table) == contents(tmp_path) == {"k1": (1, "a")}
    assert leftovers(tmp_path) == []


@every_kind
def test_the_first_write_may_be_any(kind: Kind, tmp_path: Path) -> None:
    for operation in ("insert", "bulk_insert", "upsert", "insert_overwrite", "insert_overwrite_table"):
        table = HoodieTable.open(kind.create(tmp_path / operation))
        assert table.delete("ts > 0", options=QUICK).instant is None
        getattr(table, operation)([row(1), row(2)], options=QUICK)
        assert contents(table) == {"k1": (1, "a"), "k2": (1, "a")}


def test_nothing_to_write_commits_nothing(tmp_path: Path) -> None:
    table = opened(tmp_path)
    before = len(table.timeline)
    empty = SCHEMA.empty_table()
    for operation in ("upsert", "insert", "bulk_insert", "insert_overwrite"):
        result = getattr(table, operation)(empty, options=QUICK)
        assert result.instant is None
        assert "nothing to write" in str(result)
    assert table.delete([], options=QUICK).instant is None
    assert table.delete(["nobody"], options=QUICK).instant is None
    assert table.delete("id = 'nobody'", options=QUICK).instant is None
    assert len(table.refresh().timeline) == before
    table.insert_overwrite_table(empty, options=QUICK)
    assert contents(table) == {}


def test_a_commit_that_cannot_be_looked_at_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise StorageError("not now")

    table = opened(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(table_writes, "open_snapshot", fail)
        with pytest.warns(HoodieWarning, match="The change is committed"):
            table.insert_overwrite([row(1, 2, "b")], options=QUICK)
    assert contents(tmp_path)["k1"] == (2, "b")
    assert contents(table.refresh())["k1"] == (2, "b")


def test_inserts_of_known_keys_follow_the_policy(tmp_path: Path) -> None:
    table = opened(tmp_path)
    policy = "hoodie.datasource.insert.dup.policy"
    with pytest.raises(InvalidQueryError, match="2 of the keys to insert are in the table already, such as 'k1', 'k2'"):
        table.insert([row(1), row(40), row(2)], options={**QUICK, policy: "fail"})
    assert table.insert([row(1), row(40)], options={**QUICK, policy: "drop"}).rows_inserted == 1
    assert contents(table)["k1"] == (1, "a")
    table.insert([row(1)], options=QUICK)
    assert table.scan().count() == 12, "as in Java, where nobody asks"
    with pytest.raises(InvalidQueryError, match="cannot be 'never'"):
        table.insert([row(1)], options={**QUICK, policy: "never"})


@every_kind
@pytest.mark.parametrize("operation", ["insert", "bulk_insert", "upsert", "insert_overwrite_table"])
def test_buckets(kind: Kind, operation: str, tmp_path: Path) -> None:
    options = {**QUICK, "hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "3"}
    table = HoodieTable.open(kind.create(tmp_path))
    getattr(table, operation)([row(i) for i in range(20)], options=options)
    getattr(table, operation)([row(i, 2, "b") for i in range(20, 30)], options=options)
    table.upsert([row(i, 3, "c") for i in range(0, 40, 3)], options=options)
    known = range(20, 30) if operation.startswith("insert_overwrite") else range(30)
    want = {f"k{i}": (2, "b") if i >= 20 else (1, "a") for i in known}
    assert contents(table) == want | {f"k{i}": (3, "c") for i in range(0, 40, 3)}
    ids = {(each.partition_path, each.file_id[:8]) for each in table.file_slices()}
    assert ids <= {(path, f"0000000{bucket}") for path in ("", "p0", "p1") for bucket in range(3)}
    assert len(ids) == len(table.file_slices())


def test_of_two_inserts_into_a_new_bucket_one_is_a_conflict(tmp_path: Path) -> None:
    base = MOR.create(tmp_path)
    options = {"hoodie.index.type": "BUCKET", "hoodie.clean.failed.writes.policy": "LAZY"}
    snapshot = open_snapshot(TableFiles.open(base))
    new = held(placed(snapshot, records([row(1)]), WriteOperation.INSERT))

    def looks_up(doing: WriteSession) -> bool:
        write = Write(doing, snapshot, WriteOperation.INSERT)
        return write._make_intent(new, schema_of(snapshot), None, None).claims.looked_up

    assert looks_up(session(base, options))
    assert not looks_up(session(base))


def test_a_row_that_moves_between_partitions(tmp_path: Path) -> None:
    for kind in (MOR, Kind(6, False)):
        table = opened(tmp_path / str(kind), kind)
        moved = {**row(2, 5, "moved"), "part": "p1"}
        table.upsert([moved], options={**QUICK, "hoodie.index.type": "GLOBAL_SIMPLE"})
        found = [each for each in table.scan().to_arrow().to_pylist() if each["id"] == "k2"]
        assert [(each["part"], each["name"], each["_hoodie_partition_path"]) for each in found] == [
            ("p1", "moved", "p1")
        ]


# Mergers -------------------------------------------------------------------------------------------------------------


class Total(RecordMerger):
    """Keeps the older row with the sum of both; a delete counts if it is as new."""

    strategy_id = "0f0c4f3a-8a4d-4c0e-8a63-d8a1c9f9a3b7"

    def merge(
        self,
        older: BufferedRecord[Any],
        newer: BufferedRecord[Any],
        context: RecordContext[Any],
        props: Mapping[str, str],
    ) -> BufferedRecord[Any]:
        if newer.is_delete:
            return newer
        if older.is_delete:
            return newer
        name = f"{context.get_value(older, 'name')}+{context.get_value(newer, 'name')}"
        return context.replace(newer, name=name)


@every_kind
def test_a_custom_merger_gives_one_result_everywhere(kind: Kind, tmp_path: Path) -> None:
    merger = {"merger": Total}
    table = HoodieTable.open(kind.create(tmp_path, merge_mode="CUSTOM", merger=Total))
    table.upsert([row(i, 1, "a") for i in range(6)], options=QUICK, **merger)
    table.upsert([row(i, 2, "b") for i in (1, 2, 3)], options=QUICK, **merger)
    table.upsert([row(2, 3, "c"), row(2, 4, "d"), row(9, 1, "n")], options=QUICK, **merger)
    table.delete(["k3"], options=QUICK, **merger)
    names = {key: name for key, (_, name) in contents(table, **merger).items()}
    want = {"k0": "a", "k1": "a+b", "k2": "a+b+c+d", "k4": "a", "k5": "a", "k9": "n"}
    assert names == want
    if kind.merge_on_read:
        table.compact(options=QUICK, **merger)
        table = table.refresh()
        assert {key: name for key, (_, name) in contents(table, **merger).items()} == want
        assert len(contents(table, query_type="read_optimized", **merger)) == len(want)


# Services, settings, refusals ----------------------------------------------------------------------------------------


def test_inline_compaction_and_clean(tmp_path: Path) -> None:
    table = opened(tmp_path)
    inline = {**QUICK, "hoodie.compact.inline": True, "hoodie.compact.inline.max.delta.commits": 3}
    first = table.upsert([row(1, 2)], options=inline)
    assert (first.scheduled, first.compaction) == (None, None)
    second = table.upsert([row(1, 3)], options=inline)
    assert second.compaction is not None
    assert second.compaction.instant == second.scheduled is not None
    assert contents(table)["k1"] == contents(table, query_type="read_optimized")["k1"] == (3, "a")
    planning = {"hoodie.compact.schedule.inline": True, "hoodie.compact.inline.max.delta.commits": 1}
    planned = table.upsert([row(1, 4)], options={**QUICK, **planning})
    assert planned.compaction is None
    assert [each.request_time for each in table.timeline.select_pending_compactions()] == [planned.scheduled]
    table.run_compaction(options=QUICK)
    cleaning = {"hoodie.clean.automatic": True, "hoodie.clean.commits.retained": 1}
    cleaned = table.upsert([row(1, 5)], options={**QUICK, **cleaning})
    assert cleaned.clean is not None
    assert cleaned.clean.files_deleted > 0
    assert contents(table)["k1"] == (5, "a")


def test_a_service_that_fails_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise StorageError("not now")

    monkeypatch.setattr(Compaction, "run", fail)
    table = opened(tmp_path)
    inline = {**QUICK, "hoodie.compact.inline": True, "hoodie.compact.inline.max.delta.commits": 1}
    with pytest.warns(HoodieWarning, match="The write is committed"):
        result = table.upsert([row(1, 2, "b")], options=inline)
    assert result.scheduled is not None
    assert contents(table)["k1"] == (2, "b")


def test_the_sentence_says_what_happened(tmp_path: Path) -> None:
    table = opened(tmp_path)
    text = str(table.upsert([row(1, 2), row(50)], options={**QUICK, "hoodie.parquet.small.file.limit": "0"}))
    assert "1 rows inserted, 1 updated, 0 deleted" in text
    assert "Replaced: 2 file groups." in str(table.insert_overwrite([row(0)], options=QUICK))


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("mdt_files_mor_v9", "auto"),
        ("mdt_all_mor_v9", "disable"),
        ("mdt_all_mor_v6", "auto"),
        ("mdt_all_cow_v9", "auto"),
    ],
)
def test_metadata_tables(name: str, mode: str, tmp_path: Path) -> None:
    base = writable(name, tmp_path)
    table = HoodieTable.open(base)
    rows = table.scan(columns=[each for each in table.schema.names if not each.startswith("_hoodie")]).to_arrow()
    keys = set(table.scan(columns=["_hoodie_record_key"]).to_arrow()[0].to_pylist())
    options = {**QUICK, "hoodie.metadata.mode": mode}
    parts = set(table.config.metadata_partitions)
    table.upsert(rows, options=options)
    left = set(table.config.metadata_partitions)
    assert left == (set() if mode == "disable" else parts)
    assert set(table.scan(columns=["_hoodie_record_key"]).to_arrow()[0].to_pylist()) == keys
    new = rows.slice(0, 1)
    name_of_key = table.config.record_key_fields[0]
    at = new.schema.get_field_index(name_of_key)
    key = pa.array(["1000001"]).cast(new.schema.field(at).type)
    table.upsert(new.set_column(at, name_of_key, key), options=options)
    assert table.scan().count() == len(keys) + 1


def test_another_machine_holds_the_lock(tmp_path: Path) -> None:
    table = opened(tmp_path)

    class Held:
        renew_every = None

        def acquire(self, timeout: float) -> None:
            raise ConflictError("Another writer has the table.")

        def renew(self) -> None: ...

        def release(self) -> None: ...

    with pytest.raises(ConflictError, match="has the table"):
        table.upsert([row(1, 2, "b")], options=QUICK, lock=Held())
    assert contents(tmp_path)["k1"] == (1, "a")


def test_inspect_shows_what_was_written(tmp_path: Path) -> None:
    table = opened(tmp_path)
    before = table.inspect.timeline().num_rows
    table.upsert([row(1, 2)], options=QUICK)
    assert table.inspect.timeline().num_rows > before
    assert open_snapshot(table.files).instant == table.timeline.last.request_time  # type: ignore[union-attr]
