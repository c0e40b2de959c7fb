"""The record index follows every write: keys that come, go, come back, move and are replaced."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import UTC
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py import HoodieTable
from hoodie_py.errors import InvalidTableError
from hoodie_py.formats.names import parse_log_file_name
from hoodie_py.writer.indexes.record_keys import KeyChanges, find_epoch_millis, settle_keys
from tests.writer.compaction_tables import QUICK, writable
from tests.writer.indexes.indexed_rows import read_index, read_places

THREE_GROUPS = {**QUICK, "hoodie.metadata.record.level.index.min.filegroup.count": "3"}
RECORD_LEVEL = {**QUICK, "hoodie.index.type": "RECORD_LEVEL_INDEX"}
GLOBAL = {**QUICK, "hoodie.index.type": "GLOBAL_SIMPLE"}


def row(number: int, ts: int, part: str = "p0", **values: Any) -> dict[str, Any]:
    return {"id": f"k{number}", "name": f"n{number}", "price": 1.0, "qty": number, "ts": ts, "part": part} | values


def logs_of(base: Path, instant: str) -> list[str]:
    """Names of the log files that an instant wrote to the record index."""
    names = [path.name for path in (base / ".hoodie/metadata/record_index").iterdir() if ".log." in path.name]
    return [name for name in names if (parse_log_file_name(name) or pytest.fail(name)).instant == instant]


@pytest.mark.parametrize(
    "name", ["mdt_all_mor_v9", pytest.param("mdt_all_mor_v6", marks=pytest.mark.thorough), "mdt_all_cow_v9"]
)
def test_the_index_follows_every_write(name: str, tmp_path: Path) -> None:
    base = writable(name, tmp_path)
    table = HoodieTable.open(base)
    assert read_index(base) == read_places(base)
    steps: list[Callable[[HoodieTable], object]] = [
        lambda table: table.upsert([row(0, 100), row(1, 100, "p1"), row(50, 100), row(51, 100, "p7")], options=QUICK),
        lambda table: table.delete(["k0", "k51", "nothing"], options=QUICK),
        lambda table: table.upsert([row(0, 200), row(51, 200, "p7")], options=QUICK),  # back again
        lambda table: table.upsert([row(50, 300, "p7")], options=GLOBAL),  # moves to another partition
        lambda table: table.insert([row(60, 1), row(61, 1)], options=QUICK),
        lambda table: table.insert_overwrite([row(61, 2), row(62, 2)], options=QUICK),
        lambda table: table.delete("part = 'p7'", options=QUICK),
    ]
    if table.config.is_merge_on_read:
        steps.insert(3, lambda table: table.compact(options=QUICK))
    for step in steps:
        step(table.refresh())
        assert read_index(base) == read_places(base)
    assert len(read_index(base)) > 5


def test_a_partitioned_index_has_keys_by_partition(indexed: Callable[[str], Path], tmp_path: Path) -> None:
    base = tmp_path / "table"
    shutil.copytree(indexed("partitioned_mor_v9"), base)
    table = HoodieTable.open(base)
    assert read_index(base) == read_places(base)
    rows = table.scan(columns=["id", "part", "ts", "name", "price", "day"]).to_arrow()
    late = rows.set_column(2, "ts", pc.add(rows["ts"], 10**6))
    moved = late.slice(0, 4).set_column(1, "part", pa.array(["new-part_1", "p1", "new-part_1", "p2"]))
    steps: list[Callable[[HoodieTable], object]] = [
        lambda table: table.upsert(moved, options=THREE_GROUPS),  # keys of two partitions, two of them new
        lambda table: table.upsert(late, options=RECORD_LEVEL),
        lambda table: table.delete([rows["id"][0].as_py(), "nothing"], options=RECORD_LEVEL),  # everywhere
        lambda table: table.insert_overwrite(moved.slice(1, 1), options=QUICK),
    ]
    for step in steps:
        step(table.refresh())
        assert read_index(base) == read_places(base)
    names = {path.name.partition("_")[0] for path in (base / ".hoodie/metadata/record_index").iterdir()}
    assert {f".record-index-new%2Dpart%5F1-000{number}-0" for number in range(3)} <= names


def test_updates_write_nothing_to_the_index(tmp_path: Path) -> None:
    base = writable("mdt_all_mor_v9", tmp_path)
    table = HoodieTable.open(base)
    rows = table.scan(columns=["id", "name", "price", "qty", "ts", "part"]).to_arrow()
    result = table.upsert(rows, options=QUICK)
    assert result.instant is not None
    assert logs_of(base, result.instant) == []
    result = table.refresh().upsert([row(70, 1)], options=QUICK)
    assert result.instant is not None
    assert len(logs_of(base, result.instant)) == 1


@pytest.mark.parametrize("version", [8, 9])
def test_keys_that_come_back_to_a_bucket_are_in_the_index(version: int, tmp_path: Path) -> None:
    """In a bucket each row counts as an update; once compacted, the file group does not have the deleted key."""
    options = {**QUICK, "hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
    schema = pa.schema([("id", pa.string()), ("ts", pa.int64())])
    table = HoodieTable.create(tmp_path, schema, record_key="id", ordering="ts", table_version=version)
    table.index.build("record_index", options=options)
    table.upsert([{"id": "a", "ts": 1}, {"id": "b", "ts": 1}], options)
    table.delete(["a"], options)
    table.compact(options=options)
    table.upsert([{"id": "a", "ts": 2}, {"id": "c", "ts": 2}], options)
    for key in ("a", "b", "c"):
        assert table.scan(["id"], filter=f"id = '{key}'").to_arrow()["id"].to_pylist() == [key]
    assert table.verify(data=False).is_right


def test_a_delete_that_loses_against_the_row_leaves_the_key(tmp_path: Path) -> None:
    base = writable("mdt_all_mor_v9", tmp_path)
    table = HoodieTable.open(base)
    before = read_places(base)
    late = table.scan(columns=["id", "name", "price", "qty", "ts", "part"], filter="id = 'k1'").to_arrow()
    deletes = late.set_column(4, "ts", pa.array([0], late.schema.field("ts").type))
    deletes = deletes.append_column("_hoodie_is_deleted", pa.array([True]))
    table.upsert(deletes, options=QUICK)
    assert read_places(base) == before
    assert read_index(base) == before


PATHS = ("a", "b", "c")
CHANGES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.booleans()))


@given(CHANGES, st.booleans())
def test_each_key_is_settled_once(changes: list[tuple[int, int, bool]], by_partition: bool) -> None:
    groups = [("a", "f0"), ("a", "f1"), ("b", "f2"), ("c", "f3")]
    found: list[tuple[list[str], list[str]]] = [([], []) for _ in groups]
    for key, group, is_new in changes:
        found[group][not is_new].append(f"k{key}")
    collected = KeyChanges.collect(
        groups, [(pa.array(new, pa.string()), pa.array(gone, pa.string())) for new, gone in found]
    )
    (keys, numbers), (deleted, deleted_numbers) = settle_keys(collected, by_partition=by_partition)

    def owner(group: int) -> str:
        return groups[group][0] if by_partition else ""

    expected = {
        (f"k{key}", owner(group)): group for group in range(4) for key, at, new in changes if new and at == group
    }
    gone = {(f"k{key}", owner(group)) for key, group, new in changes if not new} - expected.keys()
    places = zip(keys.to_pylist(), map(owner, numbers), strict=True)
    assert dict(zip(places, numbers.tolist(), strict=True)) == expected
    assert len(keys) == len(expected)
    assert sorted(zip(deleted.to_pylist(), map(owner, deleted_numbers), strict=True)) == sorted(gone)


def test_instants_become_milliseconds() -> None:
    assert find_epoch_millis("20261121100609480", UTC) == 1795255569480
    assert find_epoch_millis("20261121100609480", ZoneInfo("Asia/Tokyo")) == 1795255569480 - 9 * 3_600_000
    assert find_epoch_millis("20261121100609", UTC) == 1795255569999
    with pytest.raises(InvalidTableError, match="no time"):
        find_epoch_millis("00000000000000010", UTC)
