"""Locations in the record index are those of the rows, in tables that Java wrote."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable, InvalidTableError
from hoodie_py.table.indexes.keys import LOCATIONS, find_record_locations
from hoodie_py.table.indexes.source import open_metadata_view
from hoodie_py.table.indexes.view import MetadataView
from hoodie_py.table.snapshot import open_snapshot

Indexed = Callable[[str], Path]
TABLES = ("global_sql_mor_v9", "partitioned_mor_v9")
Location = tuple[str, str, str]


def open_view(table: Path) -> MetadataView:
    view = open_metadata_view(open_snapshot(str(table)))
    assert view is not None
    return view


def list_rows(table: Path) -> set[Location]:
    columns = ["_hoodie_record_key", "_hoodie_partition_path", "_hoodie_file_name"]
    rows = HoodieTable.open(table).scan(columns=columns).to_arrow().to_pylist()
    return {(key, path, name.partition("_")[0]) for key, path, name in (row.values() for row in rows)}


def as_set(found: pa.Table) -> set[Location]:
    assert found.schema == LOCATIONS
    rows = [(row["key"], row["partition_path"], row["file_id"]) for row in found.to_pylist()]
    assert len(set(rows)) == len(rows)
    return set(rows)


@pytest.fixture(params=TABLES)
def table(request: pytest.FixtureRequest, indexed: Indexed) -> Path:
    return indexed(request.param)


@pytest.fixture(params=["few keys", "many keys"])
def others(request: pytest.FixtureRequest) -> list[str]:
    """Keys that the table does not have: none, so that keys are looked up one by one, or so many for each file group
    that it is read whole.
    """
    return [f"other-{number}" for number in range(30_000)] if request.param == "many keys" else []


def test_all_rows_are_located_and_no_others(table: Path, others: list[str]) -> None:
    view, rows = open_view(table), list_rows(table)
    keys = sorted({key for key, _, _ in rows})
    assert as_set(find_record_locations(view, [*keys, "k003", "k999", "", *keys, *others])) == rows
    assert as_set(find_record_locations(view, pa.array([*keys[:2], *others]))) == {
        row for row in rows if row[0] in keys[:2]
    }


def test_only_some_partitions(table: Path, others: list[str]) -> None:
    view, rows = open_view(table), list_rows(table)
    found = find_record_locations(view, [*(key for key, _, _ in rows), *others], ["p1", "no such"])
    assert as_set(found) == {row for row in rows if row[1] == "p1"}


def test_no_keys_have_no_locations(table: Path) -> None:
    assert find_record_locations(open_view(table), []).num_rows == 0


def test_the_time_is_that_of_the_commit_that_added_the_key(indexed: Indexed) -> None:
    table = indexed("global_sql_mor_v9")
    first = HoodieTable.open(table).timeline.select_writes().instants[0].request_time
    moments = find_record_locations(open_view(table), ["k001"])["instant"].cast(pa.timestamp("ms"))
    assert re.sub(r"\D", "", str(moments[0].as_py()))[: len(first)].startswith(first[:14])


def test_tables_without_a_record_index_say_so(corpus: Indexed) -> None:
    with pytest.raises(InvalidTableError, match="no record index"):
        find_record_locations(open_view(corpus("mdt_files_mor_v9")), ["a"])


@pytest.mark.parametrize("lost", [0, 1])
def test_a_missing_file_group_is_an_error(indexed: Indexed, lost: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one group fewer each key would be looked up in another one."""
    view = open_view(indexed("global_sql_mor_v9"))
    groups = view.list_groups("record_index")
    assert len(groups) == 2
    kept = [group for number, group in enumerate(groups) if number != lost]
    monkeypatch.setattr(view, "list_groups", lambda _: kept)
    if lost == 1:
        kept.append(replace(groups[1], file_id="record-index-0002-0"))
    with pytest.raises(InvalidTableError, match="lacks a file group"):
        find_record_locations(view, ["a"])


def test_groups_of_other_names_are_an_error(indexed: Indexed, monkeypatch: pytest.MonkeyPatch) -> None:
    view = open_view(indexed("global_sql_mor_v9"))
    groups = view.list_groups("record_index")
    mixed = [groups[0], replace(groups[1], file_id="record-index-p1-0000-0")]
    monkeypatch.setattr(view, "list_groups", lambda _: mixed)
    with pytest.raises(InvalidTableError, match="not those of one index"):
        find_record_locations(view, ["a"])
    monkeypatch.setattr(view, "list_groups", lambda _: [replace(groups[0], file_id="files-0000-0")])
    with pytest.raises(InvalidTableError, match="cannot be in a record index"):
        find_record_locations(view, ["a"])
