"""Row groups of Parquet files: only those that pyarrow reads as Spark does, in order, divided evenly."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark", reason="NOT TESTED: pyspark is not installed")

from hoodie_py import CorruptFileError
from hoodie_py.errors import FileMissingError
from hoodie_py.spark.parquet_files import RowGroup, divide_groups, find_row_groups, read_groups

UTC = datetime.UTC
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("ts", pa.int64()),
        ("at", pa.timestamp("us", "UTC")),
        ("day", pa.date32()),
        ("price", pa.decimal128(12, 2)),
        ("tags", pa.list_(pa.string())),
        ("inner", pa.struct([("a", pa.int32()), ("b", pa.map_(pa.string(), pa.float64()))])),
    ]
)


def table(numbers: range, ts: int = 1) -> pa.Table:
    """Rows of all kinds of columns, with nulls."""
    rows = [
        {
            "id": f"k{n:05}",
            "ts": ts,
            "at": datetime.datetime(1890 + n % 300, 3, 4, 5, 6, 7, n, tzinfo=UTC),
            "day": None if n % 5 == 0 else datetime.date(1500 + n % 700, 1, 2),
            "price": None if n % 7 == 0 else Decimal(n) / 100,
            "tags": None if n % 3 == 0 else [f"t{n}", None],
            "inner": None if n % 11 == 0 else {"a": n, "b": [("x", n / 2)]},
        }
        for n in numbers
    ]
    return pa.Table.from_pylist(rows, SCHEMA)


def saved(folder: Path, count: int = 1, rows: int = 40, **settings: Any) -> list[Path]:
    """Files of different rows, of several row groups each."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"part {n}.parquet" for n in range(count)]
    for n, path in enumerate(paths):
        pq.write_table(table(range(n * rows, (n + 1) * rows)), path, row_group_size=15, **settings)
    return paths


def group(n: int, size: int, path: str = "f") -> RowGroup:
    return RowGroup(path, n, size)


def test_a_file_is_read_in_the_schema_asked_for(tmp_path: Path) -> None:
    (path,) = saved(tmp_path)
    groups = find_row_groups(str(path), SCHEMA, trusting=True)
    assert groups is not None
    assert [(each.path, each.number) for each in groups] == [(str(path), n) for n in range(3)]
    found = pa.Table.from_batches(read_groups(groups, SCHEMA))
    assert found.equals(table(range(40)))
    assert pa.Table.from_batches(read_groups(groups[2:], SCHEMA)).equals(table(range(30, 40)))


def test_what_pyarrow_calls_otherwise_is_brought_to_sparks_types(tmp_path: Path) -> None:
    stored = table(range(10)).select(["id", "at"])
    other = pa.schema([("at", pa.timestamp("ms", "Europe/Berlin")), ("id", pa.large_string())])
    pq.write_table(stored.select(["at", "id"]).cast(other, safe=False), tmp_path / "f")
    groups = find_row_groups(str(tmp_path / "f"), stored.schema, trusting=True)
    assert groups is not None
    found = pa.Table.from_batches(read_groups(groups, stored.schema))
    assert found.schema == stored.schema
    assert found["id"].equals(stored["id"])
    assert found["at"].equals(stored["at"].cast(pa.timestamp("ms", "UTC"), safe=False).cast(pa.timestamp("us", "UTC")))


@pytest.mark.parametrize(
    "stored",
    [
        pa.table({"id": ["a"]}),
        pa.table({"id": ["a"], "ts": pa.array([1], pa.int32())}),
        pa.table({"id": ["a"], "ts": pa.array([1], pa.uint64())}),
        pa.table({"id": ["a"], "ts": [1], "more": [1]}),
        pa.table({"id": ["a"], "ts": [1], "TS": [1]}),
        pa.table({"id": pa.array(["a"]).dictionary_encode(), "ts": [1]}),
        pa.table({"id": pa.array([b"a"]), "ts": [1]}),
    ],
    ids=["missing", "narrower", "unsigned", "further", "twice", "dictionary", "binary"],
)
def test_files_of_other_columns_are_for_spark(tmp_path: Path, stored: pa.Table) -> None:
    pq.write_table(stored, tmp_path / "f")
    schema = pa.schema([("id", pa.string()), ("ts", pa.int64())])
    assert find_row_groups(str(tmp_path / "f"), schema, trusting=True) is None


def test_timestamps_of_twelve_bytes(tmp_path: Path) -> None:
    stored = table(range(5)).select(["id", "at"])
    pq.write_table(stored, tmp_path / "f", use_deprecated_int96_timestamps=True)
    groups = find_row_groups(str(tmp_path / "f"), stored.schema, trusting=True)
    assert groups is not None
    assert pa.Table.from_batches(read_groups(groups, stored.schema)).equals(stored)
    local = pa.schema([("id", pa.string()), ("at", pa.timestamp("us"))])
    assert find_row_groups(str(tmp_path / "f"), local, trusting=True) is None
    nested = pa.table({"at": [[datetime.datetime(2026, 1, 2, tzinfo=UTC)]]})
    pq.write_table(nested, tmp_path / "n", use_deprecated_int96_timestamps=True)
    assert find_row_groups(str(tmp_path / "n"), nested.schema, trusting=True) is None


@pytest.mark.parametrize(
    ("facts", "trusting", "alike"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"org.apache.spark.version": "3.5.1"}, False, True),
        ({"org.apache.spark.version": "4.3.0", "org.apache.spark.legacyDateTime": ""}, True, False),
        ({"org.apache.spark.version": "4.3.0", "org.apache.spark.legacyINT96": ""}, True, False),
        ({"org.apache.spark.version": "3.0.3"}, True, False),
        ({"org.apache.spark.version": "2.4.8"}, True, False),
        ({"org.apache.spark.version": "unknown"}, True, False),
    ],
)
def test_the_calendar_of_a_file(tmp_path: Path, facts: dict[str, str], *, trusting: bool, alike: bool) -> None:
    days = table(range(5)).select(["day"]).replace_schema_metadata(facts)
    pq.write_table(days, tmp_path / "days")
    assert (find_row_groups(str(tmp_path / "days"), days.schema, trusting=trusting) is not None) is alike
    names = table(range(5)).select(["id"]).replace_schema_metadata(facts)
    pq.write_table(names, tmp_path / "names")
    assert find_row_groups(str(tmp_path / "names"), names.schema, trusting=False) is not None


def test_no_parquet_file_is_for_spark_to_complain_about(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"PAR1 or not")
    assert find_row_groups(str(tmp_path / "f"), SCHEMA, trusting=True) is None
    assert find_row_groups(str(tmp_path / "none"), SCHEMA, trusting=True) is None


def test_a_file_that_changes_before_it_is_read(tmp_path: Path) -> None:
    (path,) = saved(tmp_path)
    groups = find_row_groups(str(path), SCHEMA, trusting=True) or []
    pq.write_table(table(range(10)), path)
    with pytest.raises(CorruptFileError, match="changed"):
        list(read_groups(groups, SCHEMA))
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(CorruptFileError, match="cannot be read as Parquet"):
        list(read_groups(groups, SCHEMA))
    path.unlink()
    with pytest.raises(FileMissingError):
        list(read_groups(groups, SCHEMA))


def test_tasks_get_about_as_many_bytes_each_in_order() -> None:
    groups = [group(n, 10) for n in range(10)]
    assert divide_groups(groups, 2, least=0) == [groups[:5], groups[5:]]
    assert divide_groups(groups, 3, least=0, most=None) == [groups[:3], groups[3:7], groups[7:]]
    assert divide_groups(groups, 1, least=0, most=20) == [groups[n : n + 2] for n in range(0, 10, 2)]
    assert divide_groups(groups, 8, least=1000) == [groups]
    assert divide_groups([group(0, 0), group(1, 0)], 4) == [[group(0, 0), group(1, 0)]]
    uneven = [group(0, 1), group(1, 1000), group(2, 1)]
    assert [each for task in divide_groups(uneven, 3, least=0) for each in task] == uneven
    for tasks in range(1, 12):
        assert len(divide_groups(groups, tasks, least=0, most=None)) <= tasks
