"""Keys in base files and in logs, and which of them are alive."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from hoodie_py import HoodieTable
from hoodie_py.table.snapshot import open_snapshot
from hoodie_py.writer.index.key_lookup import SEVERAL_ROWS, UNKNOWN_ROW, KeyLookup, KeyLookupRequest
from hoodie_py.writer.settings import WriteSettings
from tests.corpus import unpack

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
