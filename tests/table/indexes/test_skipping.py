"""A slice that indexes leave out has no row that passes: random filters on tables of Java with all indexes."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hoodie_py.errors import CorruptFileError, HoodieError, HoodieWarning, InvalidQueryError
from hoodie_py.table.filter.evaluate import evaluate
from hoodie_py.table.filter.sql_parser import parse_sql
from hoodie_py.table.indexes import keys
from hoodie_py.table.indexes.index import FilterRequest, SliceFilter
from hoodie_py.table.indexes.ranges import find_ranged_columns
from hoodie_py.table.indexes.skipping import skip_slices
from hoodie_py.table.indexes.source import open_metadata_view
from hoodie_py.table.scan.scan import Scan
from hoodie_py.table.scan.slice_choice import SliceChoice, choose_slices
from tests.table.indexes.skipping_tables import OFF, ON, SliceRows, filters, open_scan, read_slices, unpack

EXAMPLES = 8


class Opened:
    """A table, its slices with their rows, and random filters."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.scan = open_scan(path)
        self.slices: list[SliceRows] = read_slices(self.scan)
        rows = pa.Table.from_batches([each.rows for each in self.slices])
        self.filters = filters(self.scan.schema, rows)


@pytest.fixture(
    scope="module",
    params=["types_mor_v9", "types_mor_v6", "expressions_mor_v9", "nested_mor_v9", "evolved_mor_v9"],
)
def opened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Opened:
    return Opened(unpack(request.param, tmp_path_factory.mktemp("skipping")))


def choose(scan: Scan, where: str, kind: str = "snapshot") -> SliceChoice:
    return choose_slices(scan.snapshot, kind, parse_sql(where, scan.schema), scan.options, None)


@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_slice_with_a_wanted_row_is_left_out(opened: Opened, data: st.DataObject) -> None:
    check_filter(opened, data.draw(opened.filters))


def check_filter(opened: Opened, where: str) -> SliceChoice:
    """Check that each slice with a row that passes is read."""
    chosen = choose(opened.scan, where)
    kept = {each.file_id for each in chosen.slices}
    predicate = parse_sql(where, opened.scan.schema)
    for each in opened.slices:
        if each.file_slice.file_id not in kept:
            try:
                assert True not in evaluate(predicate, each.rows).to_pylist(), where
            except InvalidQueryError:
                continue
    return chosen


@pytest.fixture(scope="module")
def expressions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack("expressions_mor_v9", tmp_path_factory.mktemp("skipping"))


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack("types_mor_v9", tmp_path_factory.mktemp("skipping"))


@pytest.mark.parametrize(
    ("where", "left"),
    [
        ("l < 0", 0),
        ("i = 1072", 1),
        ("d = -7.0", 1),
        ("tsz is null", 1),
        ("nul is not null", 0),
        ("dec38 < 0", 0),
        ("ntz < timestamp_ntz'1960-02-01 00:00:00'", 1),
        ("dn > 1e9", 6),  # NaN is above all numbers, and base files with one have made-up bounds
        ("dn = 45.5", 6),
        ("bin = X'2900ff'", 6),
        ("part = 'p1' or l < 0", 6),  # partition columns are not judged by statistics
    ],
)
def test_statistics_leave_out_what_they_can(table: Path, where: str, left: int) -> None:
    chosen = choose(open_scan(table), where)
    assert (chosen.considered, len(chosen.slices)) == (6, left)
    assert sum(each.skipped for each in chosen.steps) == 6 - left


@pytest.mark.parametrize(
    ("where", "index", "left"),
    [
        ("upper(s) = 'S3'", "expr_index_idx_up", 2),
        ("upper(s) > 'ZY'", "expr_index_idx_up", 1),
        ("upper(s) = 'ÄA'", "", 2),  # Java and Python may not agree about the case of every letter
        ("lower(s) = 's3'", "expr_index_idx_bl", 1),
        ("lower(s) in ('q', 'r')", "expr_index_idx_bl", 0),
        ("lower(s) = 's3' or i = 0", "", 2),
        ("upper(id) = 'K3'", "", 2),
        ("extra is not null", "partition_stats", 0),
    ],
)
def test_indexes_of_expressions_leave_out_what_they_can(expressions: Path, where: str, index: str, left: int) -> None:
    chosen = choose(open_scan(expressions), where)
    assert (chosen.considered, len(chosen.slices)) == (2, left)
    assert {each.name for each in chosen.steps if each.skipped} == ({index} if left < 2 else set())
    assert not index or index in {each.name for each in chosen.steps}


@pytest.mark.parametrize(
    ("name", "where", "left"),
    [
        ("nested_mor_v9", "st.a = 500", 1),  # in a log file
        ("nested_mor_v9", "st.a > 1000", 0),
        ("nested_mor_v9", "st.a is null", 6),  # also where the struct is null
        ("nested_mor_v9", "j = 105", 4),  # not indexed when half of the files were written
        ("evolved_mor_v9", "x > 10000000000000", 1),  # int, later long
        ("evolved_mor_v9", "x < 40", 3),
        ("evolved_mor_v9", "f = 1", 3),  # float, later double: base files with floats are unknown
        ("evolved_mor_v9", "y < 0", 1),  # int, later double: a range with 0 is unknown
        ("evolved_mor_v9", "z = 'a'", 3),  # added: unknown where it was not there
        ("evolved_mor_v9", "z is null", 4),
    ],
)
def test_columns_that_changed_are_left_out_where_their_statistics_tell(
    name: str, where: str, left: int, tmp_path: Path
) -> None:
    chosen = choose(open_scan(unpack(name, tmp_path)), where)
    assert (chosen.considered, len(chosen.slices)) == (6, left)


def test_a_bloom_filter_leaves_out_base_files_without_a_key(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its ranges alone do not: the key would be between two that are there. The record index is not asked."""
    monkeypatch.setattr(keys, "may_locate", lambda *_: False)
    chosen = choose(open_scan(table), "id = 'k0081x'")
    assert [(each.name, each.skipped) for each in chosen.steps][-1] == ("bloom_filters", 1)
    assert not chosen.slices


@pytest.mark.parametrize("kind", ["snapshot", "read_optimized"])
def test_rows_are_the_same_with_and_without(table: Path, kind: str) -> None:
    for where in ("i > 1000 or s = 'upd'", "d = -7.0", "id = 'k0063'"):
        rows = [open_scan(table).snapshot and _read(table, where, kind, options) for options in (ON, OFF, None)]
        assert rows[0] == rows[1] == rows[2]


def _read(table: Path, where: str, kind: str, options: dict[str, str] | None) -> list[str]:
    from hoodie_py import HoodieTable

    found = HoodieTable.open(table).scan(filter=where, query_type=kind, options=options).to_arrow()
    return sorted(map(str, found.to_pylist()))


def test_a_read_of_base_files_is_judged_by_base_files_alone(table: Path) -> None:
    """The rows with this value are in log files."""
    assert not choose(open_scan(table), "s = 'upd'", "read_optimized").slices
    assert choose(open_scan(table), "s = 'upd'").slices


def test_few_slices_are_not_looked_up_unless_the_user_asks(table: Path) -> None:
    from hoodie_py import HoodieTable

    scan = HoodieTable.open(table).scan(filter="l < 0")
    chosen = choose_slices(scan.snapshot, "snapshot", scan.predicate, scan.options, None)
    assert len(chosen.slices) == 6
    assert [each.note for each in chosen.steps if each.name == "column_stats"] == [
        "Not asked: 6 file slices are few, and their files tell the same."
    ]


@pytest.mark.parametrize(
    ("options", "note"),
    [
        (OFF, "The option hoodie.enable.data.skipping is false."),
        ({"hoodie.metadata.enable": "false"}, "The option hoodie.metadata.enable is false."),
    ],
)
def test_options_switch_skipping_off(table: Path, options: dict[str, str], note: str) -> None:
    from hoodie_py import HoodieTable

    scan = HoodieTable.open(table).scan(filter="l < 0", options=options)
    assert choose_slices(scan.snapshot, "snapshot", scan.predicate, scan.options, None).note == note
    assert len(scan.tasks()) == 6


def test_statistics_that_cannot_be_read_leave_out_nothing_and_are_an_error_with_strict(
    table: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(table, copy)
    for path in (copy / ".hoodie" / "metadata" / "column_stats").glob("*col-stats*"):
        path.write_bytes(b"nothing")
    with pytest.warns(HoodieWarning, match="column_stats cannot be read"):
        assert len(choose(open_scan(copy), "d = -7.0").slices) == 1  # by partition_stats
    with pytest.raises(HoodieError):
        choose(open_scan(copy, integrity="strict"), "d = -7.0")


def test_renamed_columns_and_columns_with_defaults_are_not_judged(table: Path) -> None:
    scan = open_scan(table, "l < 0 and i = 1 and part = 'p1'")
    snapshot, view = scan.snapshot, open_metadata_view(scan.snapshot)
    assert view is not None
    assert scan.predicate is not None
    request = FilterRequest(view, snapshot.files, snapshot.config, snapshot.timeline, snapshot.schema, scan.predicate)
    assert sorted(find_ranged_columns(request)) == ["i", "l"]
    changed = replace(snapshot.schema, defaults={"i": 5})
    assert sorted(find_ranged_columns(replace(request, columns=changed))) == ["l"]


def test_records_of_another_shape_and_broken_definitions_leave_out_nothing(table: Path, tmp_path: Path) -> None:
    scan = open_scan(table)

    class Strange:
        name = "strange"
        least_slices = 0

        def choose(self, slices: object) -> None:
            raise KeyError("minValue")

    def make_broken(request: FilterRequest) -> list[SliceFilter]:
        raise CorruptFileError("The file of index definitions cannot be read.")

    view = open_metadata_view(scan.snapshot)
    assert view is not None
    snapshot, predicate = scan.snapshot, parse_sql("l < 0", scan.schema)
    request = FilterRequest(view, snapshot.files, snapshot.config, snapshot.timeline, snapshot.schema, predicate)
    slices = snapshot.file_slices()
    for makers, message in (([lambda _: [Strange()]], "strange cannot be read"), ([make_broken], "definition of an")):
        with pytest.warns(HoodieWarning, match=message):
            assert skip_slices(request, slices, makers)[0] == slices
        with pytest.raises(CorruptFileError):
            skip_slices(replace(request, strict=True), slices, makers)
