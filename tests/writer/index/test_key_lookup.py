"""Keys in base files and in logs, which of them are alive, and files that a metadata table excludes."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie_py import HoodieTable
from hoodie_py.reader.base.key_filter import KeyFilter
from hoodie_py.table.snapshot import Snapshot, open_snapshot
from hoodie_py.writer.index import key_lookup
from hoodie_py.writer.index.key_lookup import SEVERAL_ROWS, UNKNOWN_ROW, KeyLookup, KeyLookupRequest, StoredKeyFacts
from hoodie_py.writer.settings import WriteSettings
from tests.corpus import unpack
from tests.watched_requests import Request, asks

SETTINGS = WriteSettings.from_options({})


def _keys(base: Path, query_type: str = "snapshot") -> list[str]:
    found = HoodieTable.open(base).scan(columns=["_hoodie_record_key"], query_type=query_type).to_arrow()
    return sorted(set(found.column(0).to_pylist()))


def test_keys_that_only_a_log_has_are_found(tmp_path: Path) -> None:
    base = unpack("logonly_bucket_mor_v9", tmp_path)
    snapshot = open_snapshot(base)
    stored, in_base = _keys(base), _keys(base, "read_optimized")
    assert set(stored) - set(in_base)
    slices = snapshot.view.list_slices()
    found = KeyLookup(snapshot, SETTINGS).find([KeyLookupRequest(pa.array(stored), slices)])
    assert sorted(set(found.keys.tolist())) == list(range(len(stored)))
    only_logs = {stored[key] for key, row in zip(found.keys.tolist(), found.rows.tolist(), strict=True) if row < 0}
    assert only_logs >= set(stored) - set(in_base)
    assert all(
        row != UNKNOWN_ROW for row in found.rows[[key in in_base for key in map(stored.__getitem__, found.keys)]]
    )


def test_logs_without_inserts_are_not_read(tmp_path: Path) -> None:
    base = unpack("event_time_updates_mor_v9", tmp_path)
    snapshot = open_snapshot(base)
    lookup = KeyLookup(snapshot, SETTINGS)
    logged = [each for each in snapshot.view.list_slices() if each.log_files]
    assert logged
    assert not any(lookup._may_add_keys(each) for each in logged)


def test_a_key_that_a_base_file_holds_twice_has_both_rows(tmp_path: Path) -> None:
    base = unpack("duplicate_keys_in_base_mor_v9", tmp_path)
    snapshot = open_snapshot(base)
    slices = snapshot.view.list_slices()
    stored = _keys(base, "read_optimized")
    found = KeyLookup(snapshot, SETTINGS).find([KeyLookupRequest(pa.array(stored), slices)])
    for number, file_slice in enumerate(slices):
        assert file_slice.base_file is not None
        path = snapshot.files.local_path(file_slice.base_file.path)
        rows = pq.read_table(path, columns=["_hoodie_record_key"]).column(0).to_pylist()
        here = found.take((found.slices == number).nonzero()[0])
        assert sorted(here.rows.tolist()) == list(range(len(rows)))
        assert [stored[key] for key in here.keys] == [rows[row] for row in here.rows]
        expected = {key: rows.index(key) if rows.count(key) == 1 else SEVERAL_ROWS for key in set(rows)}
        once = here.deduplicate_by_slice()
        assert {stored[key]: row for key, row in zip(once.keys, once.rows, strict=True)} == expected
        assert len(once.keys) == len(expected) < len(rows)


def test_deleted_keys_are_not_alive(tmp_path: Path) -> None:
    base = unpack("event_time_deletes_mor_v6", tmp_path)
    snapshot = open_snapshot(base)
    lookup = KeyLookup(snapshot, SETTINGS)
    alive, stored = set(_keys(base)), _keys(base, "read_optimized")
    assert set(stored) - alive
    slices = snapshot.view.list_slices()
    keys = pa.array(stored)
    found = lookup.find([KeyLookupRequest(keys, slices)])
    for number, file_slice in enumerate(slices):
        own = keys.take(pa.array(found.keys[found.slices == number]))
        expected = [key in alive for key in own.to_pylist()]
        assert lookup.find_alive(file_slice, own).tolist() == expected
        rows, numbers = lookup.read_rows(file_slice, own)
        assert own.take(pa.array(numbers)).to_pylist() == rows.column("_hoodie_record_key").to_pylist()
        assert len(numbers) == sum(expected)


Indexed = Callable[[str], Path]
TABLES = ("global_sql_mor_v9", "partitioned_mor_v9")


@pytest.fixture(autouse=True)
def _not_even_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_lookup, "_FEW", 0)


@pytest.fixture(params=TABLES)
def table(request: pytest.FixtureRequest, indexed: Indexed) -> Path:
    return indexed(request.param)


def find_holders(snapshot: Snapshot, *keys: str) -> list[str]:
    slices = snapshot.view.list_slices()
    holders = StoredKeyFacts(snapshot, {}).find_holders(KeyFilter(pa.array(keys)), slices)
    return [each.file_id for each, holds in zip(slices, holders, strict=True) if holds]


def read_keys(table: Path, snapshot: Snapshot) -> dict[str, set[str]]:
    return {
        each.file_id: set(pq.read_table(table / each.base_file.path, columns=["_hoodie_record_key"])[0].to_pylist())
        for each in snapshot.view.list_slices()
        if each.base_file is not None
    }


def test_files_with_a_key_are_never_excluded(table: Path) -> None:
    snapshot = open_snapshot(str(table))
    held = read_keys(table, snapshot)
    for key in sorted(set().union(*held.values())):
        assert set(find_holders(snapshot, key, "zzz")) >= {file_id for file_id, keys in held.items() if key in keys}


@pytest.mark.parametrize("by", ["ranges", "blooms", "both"])
def test_files_without_the_key_are_excluded(table: Path, by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    unchanged = "_check_blooms" if by == "ranges" else "_check_ranges" if by == "blooms" else None
    if unchanged is not None:
        monkeypatch.setattr(StoredKeyFacts, unchanged, lambda *given: given[-1])
    snapshot = open_snapshot(str(table))
    held = read_keys(table, snapshot)
    kept = find_holders(snapshot, "zzz", "a")
    assert not any(held[file_id] for file_id in kept)  # Java writes no statistics of files without rows
    first = min(set().union(*held.values()))
    assert len(find_holders(snapshot, first)) < len(held)


def test_other_keys_of_the_range_are_left_to_the_bloom_filter(table: Path) -> None:
    snapshot = open_snapshot(str(table))
    assert find_holders(snapshot, "k0000") == []


def test_a_table_without_statistics_excludes_nothing(corpus: Indexed) -> None:
    snapshot = open_snapshot(str(corpus("mdt_files_mor_v9")))
    assert len(find_holders(snapshot, "zzz")) == len(read_keys(corpus("mdt_files_mor_v9"), snapshot))


def test_a_disabled_metadata_table_excludes_nothing(table: Path) -> None:
    """With ``hoodie.metadata.enable=false`` footers tell."""
    snapshot = open_snapshot(str(table))
    options = {"hoodie.metadata.enable": "false"}
    holders = StoredKeyFacts(snapshot, options).find_holders(KeyFilter(pa.array(["zzz"])), snapshot.view.list_slices())
    assert holders.sum() == len(read_keys(table, snapshot))


def test_a_look_up_opens_only_files_that_may_hold_the_key(
    indexed: Indexed, tmp_path: Path, requests_made: list[Request]
) -> None:
    table = tmp_path / "table"
    shutil.copytree(indexed("global_sql_mor_v9"), table)
    snapshot = open_snapshot(str(table))
    wanted = [KeyLookupRequest(pa.array(["k001", "zzz"]), snapshot.view.list_slices())]
    requests_made.clear()
    found = KeyLookup(snapshot, WriteSettings.from_options({})).find(wanted)
    opened = [Path(each.path).name for each in filter(asks(r"/p\d[^/]*/[^/]+\.parquet$"), requests_made)]
    held = {file_id for file_id, keys in read_keys(table, snapshot).items() if "k001" in keys}
    assert {wanted[0].slices[at].file_id for at in found.slices} == held
    assert {name.partition("_")[0] for name in opened} == held
