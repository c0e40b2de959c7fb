"""Tagging by the record index: the same groups as by the table's files, and no data file is opened."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import InvalidTableError
from hoodie_py.table.indexes.keys import LOCATIONS
from hoodie_py.table.snapshot import Snapshot, open_snapshot
from hoodie_py.writer.index import record_index_lookup
from hoodie_py.writer.index.record_index_lookup import has_record_index
from hoodie_py.writer.index.table_index import resolve_table_index
from hoodie_py.writer.index.tagging import tag
from hoodie_py.writer.index_settings import IndexSettings, IndexType
from hoodie_py.writer.records import TaggedRecords, WriteOperation, WriteRecords
from hoodie_py.writer.timeline.session import WriteSession
from tests.watched_requests import Request, asks
from tests.writer.compaction_tables import QUICK, writable
from tests.writer.indexes.indexed_rows import read_index, read_places

NAMES = ["mdt_all_mor_v9", "mdt_all_mor_v6", "mdt_all_cow_v9"]
COLUMNS = ["id", "name", "price", "qty", "ts", "part"]


def row(number: int, ts: int, part: str = "p0") -> dict[str, Any]:
    return {"id": f"k{number}", "name": f"n{number}", "price": 1.0, "qty": number, "ts": ts, "part": part}


def records(keys: list[str], paths: list[str] | None) -> WriteRecords:
    rows = pa.table({"id": pa.array(keys, pa.string())})
    partitions = None if paths is None else pa.chunked_array([paths], pa.string())
    deletes = pa.chunked_array([pa.array([True] * len(keys))])
    return WriteRecords(rows, pa.chunked_array([keys], pa.string()), partitions, deletes)


def tagged(snapshot: Snapshot, type_: str, some: WriteRecords) -> list[tuple[Any, ...]]:
    settings = WriteSession.open(snapshot, options={"hoodie.index.type": type_}).settings
    found: TaggedRecords = tag(snapshot, some, settings)
    assert found.records.partition_paths is not None
    paths = found.records.partition_paths.to_pylist()
    return sorted(zip(found.records.keys.to_pylist(), paths, found.file_ids.to_pylist(), strict=True), key=repr)


IS_BASE_FILE = asks(r"/p\d[^/]*/[^/]+\.parquet$")


@pytest.mark.parametrize("name", NAMES)
def test_the_index_tells_what_the_files_tell(
    corpus: Callable[[str], Path], name: str, requests_made: list[Request]
) -> None:
    snapshot = open_snapshot(str(corpus(name)))
    keys = [f"k{i}" for i in range(12)] * 2
    paths = ["p0"] * 12 + ["p1"] * 12
    for some in (records(keys[:12], paths[:12]), records(keys[:12], paths[12:]), records(keys[:12], None)):
        expected = tagged(snapshot, "GLOBAL_SIMPLE", some)
        assert any(file_id is not None for _, _, file_id in expected)
        assert any(map(IS_BASE_FILE, requests_made))
        requests_made.clear()
        assert tagged(snapshot, "GLOBAL_RECORD_LEVEL_INDEX", some) == expected
        assert tagged(snapshot, "RECORD_INDEX", some) == expected
        assert not any(map(IS_BASE_FILE, requests_made))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("moves", [False, True])
def test_an_upsert_by_the_index_makes_no_duplicates(name: str, moves: bool, tmp_path: Path) -> None:
    base = writable(name, tmp_path)
    options = {**QUICK, "hoodie.index.type": "RECORD_INDEX", "hoodie.record.index.update.partition.path": str(moves)}
    table = HoodieTable.open(base)
    before = {key: path for key, path, _ in read_places(base)}
    table.upsert([row(1, 10**6), row(3, 10**6, "p9"), row(77, 1, "p9")], options=options)
    table.refresh().upsert([row(77, 2), row(78, 2)], options=options)
    table.refresh().delete(["k78"], options=options)
    after = read_places(base)
    assert {key: path for key, path, _ in after} == {
        **before,
        "k1": "p0" if moves else before["k1"],
        "k3": "p9" if moves else before["k3"],
        "k77": "p0" if moves else "p9",
    }
    assert len(after) == len(before) + 1
    assert read_index(base) == after


def choose(base: Path, type_: str) -> IndexSettings:
    snapshot = open_snapshot(str(base))
    session = WriteSession.open(snapshot, options={"hoodie.index.type": type_})
    return resolve_table_index(session, snapshot, WriteOperation.UPSERT).settings.index


def test_a_table_without_that_index_is_searched(corpus: Callable[[str], Path]) -> None:
    indexed, plain = corpus("mdt_all_mor_v9"), corpus("mdt_files_mor_v9")
    assert choose(indexed, "RECORD_INDEX").type is IndexType.RECORD_INDEX
    assert choose(indexed, "RECORD_LEVEL_INDEX").type is IndexType.SIMPLE  # its index is a global one
    assert choose(plain, "RECORD_LEVEL_INDEX").type is IndexType.SIMPLE
    chosen = choose(plain, "GLOBAL_RECORD_LEVEL_INDEX")
    assert chosen.type is IndexType.GLOBAL_SIMPLE
    assert chosen.update_partition  # by the option of that index
    assert not has_record_index(open_snapshot(str(plain)), chosen)


def test_an_index_that_names_other_file_groups_is_refused(
    corpus: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = open_snapshot(str(corpus("mdt_all_mor_v9")))
    lie = pa.table([["k0"], ["p0"], ["nowhere-0"], [1]], schema=LOCATIONS)
    found = [lie]
    monkeypatch.setattr(record_index_lookup, "find_record_locations", lambda *_: pa.concat_tables(found))
    with pytest.raises(InvalidTableError, match="not there"):
        tagged(snapshot, "RECORD_INDEX", records(["k0"], ["p0"]))
    found.append(lie)
    monkeypatch.setattr(snapshot.view, "list_slices", lambda *_: [])
    with pytest.raises(InvalidTableError, match="not there"):
        tagged(snapshot, "RECORD_INDEX", records(["k0"], ["p0"]))


def test_a_partitioned_index_is_asked_for_each_partition(
    indexed: Callable[[str], Path], requests_made: list[Request]
) -> None:
    snapshot = open_snapshot(str(indexed("partitioned_mor_v9")))
    numbers = [i for i in range(12) if i != 8]  # the log deleted k008, whose place the files still tell
    keys = [f"k{i:03}" for i in numbers] * 2
    paths = [f"p{i % 4}" for i in numbers] + ["p1"] * len(numbers)
    for some in (records(keys, paths), records(keys[: len(numbers)], None)):
        expected = tagged(snapshot, "SIMPLE", some)
        assert any(file_id is not None for _, _, file_id in expected)
        assert any(map(IS_BASE_FILE, requests_made))
        requests_made.clear()
        assert tagged(snapshot, "RECORD_LEVEL_INDEX", some) == expected
        assert not any(map(IS_BASE_FILE, requests_made))
    assert choose(indexed("partitioned_mor_v9"), "RECORD_INDEX").type is IndexType.GLOBAL_SIMPLE
