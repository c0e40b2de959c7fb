"""Expression indexes built over tables of ours: what they hold, what is refused, and that filters find every row."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import InvalidQueryError, UnsupportedFeatureError
from hoodie_py.formats.parquet.bloom import BloomFilter
from tests.writer.compaction_tables import QUICK
from tests.writer.index_jobs.indexed_tables import read_index
from tests.writer.indexes.statistics_tables import plain

SCHEMA = pa.schema([
    ("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("name", pa.string()), ("day", pa.date32()),
    ("rare", pa.int32()), ("at", pa.timestamp("us", "UTC")), ("st", pa.struct([("a", pa.int32())])),
])  # fmt: skip
ON, OFF = ({"hoodie.enable.data.skipping": each} for each in ("true", "false"))


def make_row(number: int, ts: int = 1) -> dict[str, Any]:
    return {
        "id": f"K{number}",
        "part": f"p{number % 2}",
        "ts": ts,
        "name": f"Näme {number}" if number % 7 == 3 else f" Name {number}",
        "day": dt.date(1969, 12, 30) + dt.timedelta(days=200 * number),
        "rare": number if number % 5 == 0 else None,
        "at": dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
        "st": {"a": number},
    }


def make_table(base: Path, version: int = 9, kind: str = "MERGE_ON_READ", rows: int = 10) -> HoodieTable:
    HoodieTable.create(
        base, SCHEMA, record_key="id", ordering="ts", partition_by=["part"], table_type=kind, table_version=version
    )
    table = HoodieTable.open(base)
    if rows:
        table.insert([make_row(number) for number in range(rows)], options=QUICK)
        table.upsert([make_row(number, 2) for number in (2, 3)], options=QUICK)
        table.delete(["K4"], options=QUICK)
    return table


FUNCTIONS: list[tuple[str | None, str, dict[str, object]]] = [
    ("year", "day", {}),
    (None, "rare", {}),
    ("lower", "name", {}),
    ("substring", "name", {"pos": 2, "len": 3}),
    ("to_timestamp", "at", {}),
]


@pytest.mark.parametrize(("version", "functions"), [(9, FUNCTIONS), (8, FUNCTIONS[:1])], ids=["9", "8"])
def test_every_function_is_built_kept_and_right(version: int, functions: list[Any], tmp_path: Path) -> None:
    table = make_table(tmp_path / "t", version)
    for number, (function, column, arguments) in enumerate(functions):
        name = f"expr_index_x{number}"
        table.index.build(name, column, function=function, arguments=arguments, options=QUICK)
    report = table.verify(data=False)
    assert report.is_right, str(report)
    files = sum(len(each.log_files) + 1 for each in table.file_slices())
    parts = [part for part in report.parts if part.name.startswith("expr_")]
    assert len(parts) == len(functions)
    files -= 1  # the log file of the delete has no rows
    assert all(part.checked == files + 2 for part in parts if not part.untold)
    assert [part.name for part in parts if part.untold] == (["expr_index_x2"] if version == 9 else [])  # not of ASCII
    table.upsert([make_row(number, 3) for number in (1, 8, 11, 12)], options=QUICK)
    table.delete(["K8"], options=QUICK)
    report = table.verify(data=False)
    assert report.is_right, str(report)


def test_the_definition_is_javas(tmp_path: Path) -> None:
    table = make_table(tmp_path / "t")
    table.index.build("cut", "name", function="Substring", arguments={"pos": 1, "len": 2}, options=QUICK)
    text = (tmp_path / "t/.hoodie/.index_defs/index.json").read_text()
    assert json.loads(text)["indexDefinitions"]["expr_index_cut"] == {
        "indexName": "expr_index_cut",
        "indexType": "column_stats",
        "indexFunction": "substring",
        "sourceFields": ["name"],
        "indexOptions": {"expr": "substring", "pos": "1", "len": "2"},
        "version": "V2",
    }
    names = {each.name.split("_")[0] for each in (tmp_path / "t/.hoodie/metadata/expr_index_cut").glob("*.hfile")}
    assert names == {"expr-index-cut-0000-0", "expr-index-cut-0001-0"}
    [shown] = [each for each in table.index.show() if each.name == "expr_index_cut"]
    assert (shown.kind, shown.expression) == ("expression_index of column_stats", "substring(name, pos=1, len=2)")
    assert table.index.drop("cut", options=QUICK) == ("expr_index_cut",)
    assert "expr_index_cut" not in (tmp_path / "t/.hoodie/.index_defs/index.json").read_text()


def test_ranges_are_of_files_and_partitions(tmp_path: Path) -> None:
    table = make_table(tmp_path / "t")
    table.index.build("years", "day", function="year", options=QUICK)
    rows = read_index(tmp_path / "t", "expr_index_years").to_pylist()
    whole = {
        row["ColumnStatsMetadata"]["fileName"]: plain(row["ColumnStatsMetadata"]) for row in rows if row["type"] == 6
    }
    assert {name: (each["minValue"][1], each["maxValue"][1]) for name, each in whole.items()} == {
        "p0": ("1969", "1974"),
        "p1": ("1970", "1974"),
    }
    assert all(each["isTightBound"] for each in whole.values())
    of_files = [row["ColumnStatsMetadata"] for row in rows if row["type"] == 3]
    assert len({each["valueType"]["typeOrdinal"] for each in of_files}) == 1  # Java merges no others
    assert len(of_files) == sum(len(each.log_files) + 1 for each in table.file_slices()) - 1  # not of the deletes


def test_nulls_are_counted_apart_and_hide_no_row(tmp_path: Path) -> None:
    """Java leaves nulls out of the number of values, so a file may have more nulls than values and yet have values."""
    table = make_table(tmp_path / "t")
    table.index.build("rare", "rare", function="identity", options=QUICK)
    rows = [row["ColumnStatsMetadata"] for row in read_index(tmp_path / "t", "expr_index_rare").to_pylist()]
    assert any(row["nullCount"] >= row["valueCount"] > 0 for row in rows)
    for number in (0, 5):
        assert table.scan(filter=f"rare = {number}", options=ON).to_arrow()["id"].to_pylist() == [f"K{number}"]
    assert table.scan(filter="rare is null", options=ON).count() == 7
    assert table.scan(filter="rare is not null", options=ON).count() == 2


def test_filters_find_the_same_with_the_index(tmp_path: Path) -> None:
    table = make_table(tmp_path / "t", kind="COPY_ON_WRITE")
    table.index.build("up", "name", function="upper", options=QUICK)
    table.index.build("low", "id", function="lower", kind="bloom_filters", options=QUICK)
    report = table.verify(data=False)
    assert report.is_right, str(report)
    for where in (
        "upper(name) = ' NAME 6'",
        "lower(id) = 'k5'",
        "lower(id) in ('k4', 'k99')",
        "upper(name) < ' NAME 2'",
    ):
        found = table.scan(filter=where, options=ON).to_arrow()["id"].to_pylist()
        assert sorted(found) == sorted(
            table.scan(filter=where, options={"hoodie.enable.data.skipping": "false"}).to_arrow()["id"].to_pylist()
        )
    said = str(table.scan(filter="lower(id) = 'k99'", options=ON).explain())
    assert "expr_index_low left out 2 of 2 file slices" in said


def test_a_bloom_filter_has_the_results(tmp_path: Path) -> None:
    table = make_table(tmp_path / "t", kind="COPY_ON_WRITE")
    table.index.build("low", "id", function="lower", kind="bloom_filters", options=QUICK)
    blooms = [row["BloomFilterMetadata"] for row in read_index(tmp_path / "t", "expr_index_low").to_pylist()]
    assert len(blooms) == 2
    found = [BloomFilter.from_text(each["bloomFilter"].decode(), each["type"]) for each in blooms]
    assert [sum(each.may_contain(pa.array([f"k{i}" for i in range(10)]))) for each in found] in ([4, 5], [5, 4])


def test_an_empty_table_gets_an_empty_index(tmp_path: Path) -> None:
    table = make_table(tmp_path / "t", rows=0)
    built = table.index.build("years", "day", function="year", options=QUICK)
    assert [each.records for each in built] == [1, 0]
    table.insert([make_row(1)], options=QUICK)
    assert len(read_index(tmp_path / "t", "expr_index_years")) == 2
    assert table.verify().is_right


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"column": "day", "function": "hour"}, "the results depend on Spark"),
        ({"column": "at", "function": "year"}, "the results depend on Spark"),
        ({"column": "ts", "function": "from_unixtime", "arguments": {"format": "yyyy"}}, "the results depend on Spark"),
        ({"column": "name", "function": "regexp_extract", "arguments": {"pattern": "a", "idx": 0}}, "depend on Spark"),
        ({"column": "name", "function": "split", "arguments": {"pattern": ","}}, "lists have no order"),
        ({"column": "name", "function": "sqrt"}, "over the function 'sqrt'"),
        ({"column": "day", "function": "date_add"}, "needs the argument 'days'"),
        ({"column": "day", "function": "year", "arguments": {"format": "y"}}, "is no argument of 'year'"),
        ({"column": "st.a", "function": "identity"}, "a field of a struct"),
        ({"column": "st", "function": "identity"}, "of the order of 'identity'"),
        ({"column": "nope", "function": "year"}, "has no column 'nope'"),
        ({"column": "id", "function": "lower", "kind": "bloom_filters"}, "can write no log files"),
    ],
)  # fmt: skip
def test_what_cannot_be_built_is_refused(arguments: dict[str, Any], problem: str, tmp_path: Path) -> None:
    table = make_table(tmp_path / "t", rows=1)
    with pytest.raises((InvalidQueryError, UnsupportedFeatureError), match=problem):
        table.index.build("x", options=QUICK, **arguments)
    assert not (tmp_path / "t/.hoodie/metadata").exists()


def test_values_without_texts_have_no_bloom_filters(tmp_path: Path) -> None:
    table = make_table(tmp_path / "t", kind="COPY_ON_WRITE", rows=1)
    with pytest.raises(UnsupportedFeatureError, match="bloom filters of 'identity' of date32"):
        table.index.build("x", "day", function="identity", kind="bloom_filters", options=QUICK)
