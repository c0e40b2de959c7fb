"""Filters on record keys, and on columns with a secondary index: the rows are those without an index, and only file
slices that have them become tasks.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable, HoodieWarning, InvalidTableError, RecordMerger
from hoodie_py.errors import HoodieError
from hoodie_py.table.filter.evaluate import evaluate
from hoodie_py.table.filter.sql_parser import parse_sql
from hoodie_py.table.indexes import keys
from hoodie_py.table.indexes.keys import LOCATIONS, find_record_locations
from tests.benchmarks.counting_files import open_counted
from tests.benchmarks.scale_tables import make_wide_table
from tests.table.indexes.fabricated import add_metadata_table
from tests.table.indexes.fabricated_keys import add_record_index

Indexed = Callable[[str], Path]
TABLES = ("global_sql_mor_v9", "partitioned_mor_v9", "global_sql_cow_v8", "global_mor_v6", "global_cow_v6")
WITH = {"hoodie.enable.data.skipping": "true"}  # also where slices are few
WITHOUT = {"hoodie.enable.data.skipping": "false"}


@pytest.fixture(params=TABLES)
def table(request: pytest.FixtureRequest, indexed: Indexed) -> HoodieTable:
    return HoodieTable.open(indexed(request.param))


@pytest.fixture
def changed(indexed: Indexed, tmp_path: Path) -> Path:
    """A table to change."""
    shutil.copytree(indexed("global_sql_mor_v9"), tmp_path / "table")
    return tmp_path / "table"


def read(table: HoodieTable, options: Mapping[str, str] = WITH, **arguments: Any) -> list[dict[str, Any]]:
    return sorted(table.scan(options=options, **arguments).to_arrow().to_pylist(), key=str)


def iterate_filters(rows: list[dict[str, Any]]) -> Iterator[str]:
    for key in [*sorted(row["id"] for row in rows)[::8], "k003", "k008", "k999", ""]:
        yield f"id = '{key}'"
    yield "id in ('k001', 'k005', 'k008', 'k034', 'nobody', null)"
    yield "_hoodie_record_key in ('k001', 'k002') and part = 'p1'"
    yield "(id = 'k001' and price > 1e9) or id = 'k004'"
    yield "id = 'k001' and id = 'k002'"
    for name in [*sorted({row["name"] for row in rows if row["name"]})[::4], "m$5\\", "m$5", "nobody"]:
        escaped = name.replace("\\", "\\\\")
        yield f"name = '{escaped}'"
    yield "name in ('z', 'n1') and part = 'p2'"
    yield "name = null"


def test_rows_are_those_without_an_index(table: HoodieTable) -> None:
    whole = table.scan().to_arrow().combine_chunks()
    for where in iterate_filters(whole.to_pylist()):
        mask = evaluate(parse_sql(where, whole.schema), whole.to_batches()[0])
        assert read(table, filter=where) == sorted(whole.filter(mask).to_pylist(), key=str), where


def test_only_slices_with_rows_become_tasks(table: HoodieTable) -> None:
    for where in ("id = 'k001'", "id in ('k001', 'k004', 'k999')", "id = 'k999'", "id = 'k003'"):
        rows = read(table, filter=where, options=WITHOUT)
        homes = {row["_hoodie_file_name"].partition("_")[0] for row in rows}
        assert {task.file_slice.file_id for task in table.scan(filter=where, options=WITH).tasks()} == homes


@pytest.mark.parametrize("name", ["global_sql_mor_v9", "global_sql_cow_v8"])
def test_only_slices_with_the_value_become_tasks(indexed: Indexed, name: str) -> None:
    table = HoodieTable.open(indexed(name))
    for where in ("name = 'z'", "name = 'nobody'", "name in ('m10', 'n2')", "name = 'm$5\\\\'"):
        homes = {row["_hoodie_file_name"].partition("_")[0] for row in read(table, filter=where, options=WITHOUT)}
        assert {task.file_slice.file_id for task in table.scan(filter=where, options=WITH).tasks()} == homes, where


def test_states_of_the_past_are_read_without_the_index(table: HoodieTable) -> None:
    """Then another file group may have had the key."""
    for instant in [each.request_time for each in table.timeline.select_writes().instants][1::3]:
        for where in ("id = 'k003'", "name = 'n1'"):
            arguments = {"filter": where, "as_of": instant}
            assert read(table, **arguments) == read(table, **arguments, options=WITHOUT)


def test_rows_that_are_not_merged_are_read_without_the_index(table: HoodieTable) -> None:
    """Base files have rows that logs delete, and values that logs change."""
    for where in ("id = 'k008'", "id = 'k001'", "name = 'n1'"):
        arguments: dict[str, Any] = {"filter": where, "query_type": "read_optimized"}
        assert read(table, **arguments) == read(table, **arguments, options=WITHOUT)
        unmerged = {"hoodie.datasource.merge.type": "skip_merge"}
        assert read(table, filter=where, options=unmerged | WITH) == read(
            table, filter=where, options=unmerged | WITHOUT
        )


class KeepsDeleted(RecordMerger):
    """Keeps what is deleted."""

    strategy_id = "0f5b6f1c-0000-4000-8000-000000000001"

    def merge(self, older: Any, newer: Any, context: Any, props: Mapping[str, str]) -> Any:
        return older if newer.is_delete else newer


def test_a_merger_of_the_user_may_keep_what_the_index_lacks(indexed: Indexed) -> None:
    table = HoodieTable.open(indexed("global_sql_mor_v9"))
    assert len(read(table, filter="id = 'k008'", merger=KeepsDeleted)) == 1


def test_few_slices_are_not_located_unless_the_user_asks(table: HoodieTable) -> None:
    where = "id = 'k001'"
    assert len(table.scan(filter=where).tasks()) > len(table.scan(filter=where, options=WITH).tasks())


def give_locations(monkeypatch: pytest.MonkeyPatch, change: Callable[[pa.Table], pa.Table]) -> None:
    monkeypatch.setattr(keys, "find_record_locations", lambda *given: change(find_record_locations(*given)))


def check_not_used(table: HoodieTable, where: str, problem: str) -> None:
    """The rows are right, with a warning; strict reads refuse."""
    with pytest.warns(HoodieWarning, match=problem):
        found = read(table, filter=where)
    assert found == read(table, filter=where, options=WITHOUT)
    with pytest.raises(HoodieError, match=problem):
        table.scan(filter=where, integrity="strict", options=WITH).to_arrow()


def test_a_location_without_a_file_group_is_not_believed(indexed: Indexed, monkeypatch: pytest.MonkeyPatch) -> None:
    table = HoodieTable.open(indexed("global_sql_mor_v9"))

    def lie(found: pa.Table) -> pa.Table:
        gone = pa.array(["00000000-0000-0000-0000-000000000000-0"] * found.num_rows)
        return found.set_column(2, LOCATIONS.field(2), gone)

    give_locations(monkeypatch, lie)
    check_not_used(table, "id = 'k001'", "a file group that the table does not have")


def test_a_secondary_key_without_its_record_is_not_believed(indexed: Indexed, monkeypatch: pytest.MonkeyPatch) -> None:
    table = HoodieTable.open(indexed("global_sql_mor_v9"))
    give_locations(monkeypatch, lambda found: found.slice(1))
    check_not_used(table, "name = 'z'", "a record that the record index lacks")


@pytest.mark.parametrize(
    ("partition", "where"), [("record_index", "id = 'k001'"), ("secondary_index_by_name", "name = 'z'")]
)
def test_a_truncated_index_is_not_used(changed: Path, partition: str, where: str) -> None:
    for path in (changed / ".hoodie" / "metadata" / partition).rglob("*.hfile"):
        path.write_bytes(path.read_bytes()[:-100])
    check_not_used(HoodieTable.open(changed), where, "must end with its trailer")


def test_an_index_without_file_groups_is_not_used(changed: Path) -> None:
    shutil.rmtree(changed / ".hoodie" / "metadata" / "record_index")
    with pytest.raises(InvalidTableError, match="The partition 'record_index' of the metadata table has no files"):
        HoodieTable.open(changed).scan(filter="id = 'k001'", integrity="strict", options=WITH).to_arrow()


def test_definitions_that_are_gone_leave_the_secondary_index_out(changed: Path) -> None:
    (changed / ".hoodie" / ".index_defs" / "index.json").write_text("{")
    check_not_used(HoodieTable.open(changed), "name = 'z'", "index definitions cannot be read")


def test_a_look_up_among_many_files_costs_few_calls(corpus: Indexed, tmp_path: Path) -> None:
    """100,000 files take no more calls than these 200; only the partition of the key is listed."""
    make_wide_table(tmp_path, files=200, commits=3, partitions=40)
    add_metadata_table(tmp_path, corpus("mdt_files_mor_v9"))
    keys = ["a", *(f"key {number}" for number in range(5_000))]
    add_record_index(tmp_path, pa.array(keys), groups=4)
    for where, rows in (("id = 'a'", 1), ("id in ('key 7', 'key 81')", 0), ("id = 'absent'", 0)):
        table, counts = open_counted(str(tmp_path))
        assert table.scan(filter=where).to_arrow().num_rows == rows
        assert counts.calls <= 24, dict(counts.verbs)
        assert counts.bytes < 600_000
