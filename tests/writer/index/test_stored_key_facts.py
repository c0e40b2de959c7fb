"""Base files that a metadata table excludes have none of the keys, and it excludes what it can."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie_py.reader.base.key_filter import KeyFilter
from hoodie_py.table.snapshot import Snapshot, open_snapshot
from hoodie_py.writer.index import key_lookup
from hoodie_py.writer.index.key_lookup import KeyLookup, KeyLookupRequest, StoredKeyFacts
from hoodie_py.writer.settings import WriteSettings
from tests.watched_requests import Request, asks

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
