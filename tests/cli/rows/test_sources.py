"""Rows are read from files as ``hoodie read`` writes them; other values are refused."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie_py.cli.options import RowFormat, find_format
from hoodie_py.cli.rows.files import CsvWriter, JsonWriter, ParquetWriter, RowWriter
from hoodie_py.cli.rows.sources import read_rows
from hoodie_py.errors import InvalidQueryError

_SCHEMA = pa.schema([
    ("id", pa.string()),
    ("n", pa.int32()),
    ("f", pa.float64()),
    ("b", pa.bool_()),
    ("d", pa.decimal128(12, 3)),
    ("day", pa.date32()),
    ("at", pa.timestamp("us", "UTC")),
    ("local", pa.timestamp("us")),
    ("raw", pa.binary()),
    ("tags", pa.list_(pa.string())),
    ("st", pa.struct([("a", pa.int32()), ("day", pa.date32()), ("d", pa.decimal128(5, 1))])),
    ("counts", pa.map_(pa.string(), pa.int64())),
])  # fmt: skip
_AT = dt.datetime(2026, 1, 2, 3, 4, 5, 678901)
_ROWS: list[dict[str, Any]] = [
    {
        "id": "007", "n": 1, "f": 0.1, "b": True, "d": Decimal("12345678.125"), "day": dt.date(1969, 7, 20),
        "at": _AT.replace(tzinfo=dt.UTC), "local": _AT, "raw": b"\0\xff", "tags": ["x", None, "a,b\n"],
        "st": {"a": 1, "day": dt.date(2026, 1, 1), "d": Decimal("1.5")}, "counts": [("k", 1)],
    },
    dict.fromkeys(_SCHEMA.names) | {"id": "é \"q\" 'x'"},
    dict.fromkeys(_SCHEMA.names) | {"id": "", "f": float("inf"), "tags": [], "counts": []},
]  # fmt: skip


@pytest.mark.parametrize(
    ("format_", "writer"),
    [(RowFormat.parquet, ParquetWriter), (RowFormat.csv, CsvWriter), (RowFormat.ndjson, JsonWriter)],
)
def test_what_was_written_reads_back(format_: RowFormat, writer: type[RowWriter], tmp_path: Path) -> None:
    table = pa.Table.from_pylist(_ROWS, _SCHEMA)
    path = tmp_path / "rows"
    with path.open("wb") as target, writer(target, _SCHEMA) as written:
        for batch in table.to_batches(max_chunksize=2):
            written.write(batch)
    assert read_rows(path, format_, _SCHEMA).cast(_SCHEMA).to_pylist() == table.to_pylist()


def _written(folder: Path, text: str) -> Path:
    path = folder / "rows"
    path.write_text(text)
    return path


def test_without_a_table_types_are_found_out(tmp_path: Path) -> None:
    csv = read_rows(_written(tmp_path, "id,n,f\na,1,1.5\n,2,\n"), RowFormat.csv)
    assert csv.to_pylist() == [{"id": "a", "n": 1, "f": 1.5}, {"id": None, "n": 2, "f": None}]
    path = _written(tmp_path, '{"id": "a", "n": 1}\n\n{"id": "b", "f": 1.5, "l": [1.5], "s": {"x": 1.5}}\n')
    json = read_rows(path, RowFormat.ndjson)
    assert json.column("f").to_pylist() == [None, 1.5]
    assert json.column("s").to_pylist() == [None, {"x": 1.5}]
    assert read_rows(_written(tmp_path, ""), RowFormat.ndjson).num_rows == 0


def test_many_lines_become_one_table(tmp_path: Path) -> None:
    many = 50_000  # as many as are parsed at once
    path = _written(tmp_path, many * '{"n": null}\n' + (many - 1) * '{"n": 1}\n' + '{"n": 2, "m": "x"}\n{"n": 2.5}\n')
    rows = read_rows(path, RowFormat.ndjson)
    assert rows.column("n").to_pylist() == many * [None] + (many - 1) * [1] + [2, 2.5]
    assert rows.column("m").to_pylist()[-2:] == ["x", None]


def test_numbers_of_decimals_are_exact(tmp_path: Path) -> None:
    schema = pa.schema([("d", pa.decimal128(38, 20))])
    path = _written(tmp_path, '{"d": 0.12345678901234567890}\n{"d": "3"}\n{"d": 4}\n')
    wanted = [Decimal("0.12345678901234567890"), Decimal(3), Decimal(4)]
    assert read_rows(path, RowFormat.ndjson, schema).column("d").to_pylist() == wanted


@pytest.mark.parametrize(
    ("type_", "line"),
    [
        (pa.int32(), '{"c": 1.5}'),
        (pa.int32(), '{"c": "1"}'),
        (pa.date32(), '{"c": "yesterday"}'),
        (pa.timestamp("us", "UTC"), '{"c": "2026-01-01T00:00:00"}'),
        (pa.binary(), '{"c": "%%"}'),
        (pa.decimal128(3, 1), '{"c": "many"}'),
        (pa.float64(), '{"c": "much"}'),
        (pa.struct([("a", pa.date32())]), '{"c": {"a": "never"}}'),
        (pa.int32(), '{"c": '),
        (pa.int32(), "[1]"),
    ],
)
def test_bad_lines_are_refused(type_: pa.DataType, line: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidQueryError) as raised:
        read_rows(_written(tmp_path, line), RowFormat.ndjson, pa.schema([("c", type_)]))
    assert raised.value.where["path"] == str(tmp_path / "rows")


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        (pa.int32(), "1.5"),
        (pa.timestamp("us", "UTC"), "2026-01-01T00:00:00"),
        (pa.date32(), "yesterday"),
        (pa.binary(), "%%"),
        (pa.list_(pa.int32()), "[1"),
    ],
)
def test_bad_fields_are_refused(type_: pa.DataType, text: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidQueryError):
        read_rows(_written(tmp_path, f"c,x\n{text},1\n"), RowFormat.csv, pa.schema([("c", type_)]))


def test_what_is_no_such_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidQueryError, match="cannot be read as parquet"):
        read_rows(_written(tmp_path, "a,b"), RowFormat.parquet)


def test_names_tell_formats(tmp_path: Path) -> None:
    names = ("a.PARQUET", "a.csv", "a.ndjson", "a.jsonl", "a.json", "a.txt")
    assert [find_format(tmp_path / name) for name in names] == [
        RowFormat.parquet, RowFormat.csv, RowFormat.ndjson, RowFormat.ndjson, RowFormat.ndjson, None,
    ]  # fmt: skip


def test_hive_folders_above_a_file_count_for_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "city=sf"
    folder.mkdir()
    pq.write_table(pa.table({"id": ["a"]}), folder / "rows.parquet")
    assert read_rows(folder / "rows.parquet", RowFormat.parquet).column_names == ["id"]


def test_meta_columns_of_csv_are_texts_although_instants_are_digits(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("_hoodie_commit_time,id\n20261122023126905,7\n")
    rows = read_rows(tmp_path / "rows.csv", RowFormat.csv)
    assert rows.schema.types == [pa.string(), pa.int64()]
