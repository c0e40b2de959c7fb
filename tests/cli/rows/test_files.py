from __future__ import annotations

import csv
import io
import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_py.cli.rows.files import CsvWriter, JsonWriter, open_output

BATCH = pa.record_batch(
    {
        "text": pa.array(['a,"b"\n', None, ""]),
        "bytes": pa.array([b"\x00\xff", None, b""]),
        "list": pa.array([[1, None], None, []], pa.list_(pa.int64())),
        "map": pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int64())),
        "struct": pa.array([{"x": 1.5, "y": None}, None, {"x": None, "y": "z"}]),
        "decimal": pa.array([Decimal("1.50"), None, Decimal("-0.01")], pa.decimal128(10, 2)),
        "time": pa.array([0, None, 1], pa.timestamp("us", "UTC")),
    }
)


def written(writer: type[CsvWriter | JsonWriter]) -> str:
    target = io.BytesIO()
    with writer(target, BATCH.schema) as file:
        file.write(BATCH)
        file.write(BATCH.slice(0, 0))
    return target.getvalue().decode()


def test_json_lines() -> None:
    first, second, third = (json.loads(line) for line in written(JsonWriter).splitlines())
    assert first == {
        "text": 'a,"b"\n', "bytes": "AP8=", "list": [1, None], "map": {"k": 1}, "struct": {"x": 1.5, "y": None},
        "decimal": "1.50", "time": "1970-01-01T00:00:00+00:00",
    }  # fmt: skip
    assert set(second.values()) == {None}
    assert third["text"] == ""
    assert third["list"] == []


def test_csv_has_nested_values_as_json() -> None:
    rows = list(csv.DictReader(io.StringIO(written(CsvWriter), newline="")))
    assert rows[0]["text"] == 'a,"b"\n'
    assert [json.loads(rows[0][name]) for name in ("list", "map", "struct")] == [
        [1, None],
        {"k": 1},
        {"x": 1.5, "y": None},
    ]
    assert rows[0]["bytes"] == "AP8="
    assert rows[0]["decimal"] == "1.50"
    assert set(rows[1].values()) == {""}


def test_csv_tells_null_from_empty() -> None:
    lines = written(CsvWriter).splitlines()
    assert lines[-2].startswith(",")
    assert lines[-1].startswith('"",')


class Terminal(io.BytesIO):
    def isatty(self) -> bool:
        return True


HOSTILE = pa.record_batch(
    {
        "a\x1b[2J": pa.array(["\x1b]0;title\x07", "two\nlines", '=HYPERLINK("x")']),
        "dictionary": pa.array(["\x9b31m", None, "plain"]).dictionary_encode(),
        "n": pa.array([1, 2, 3]),
    }
)


def write_csv(target: io.BytesIO) -> str:
    with CsvWriter(target, HOSTILE.schema) as file:
        file.write(HOSTILE)
    return target.getvalue().decode()


def test_csv_on_a_terminal_escapes_names_and_values() -> None:
    shown = write_csv(Terminal())
    assert all(line.isprintable() for line in shown.splitlines())
    header, *rows = csv.reader(io.StringIO(shown))
    assert header == ["a\\x1b[2J", "dictionary", "n"]
    assert [row[0] for row in rows] == ["\\x1b]0;title\\x07", "two\\nlines", '=HYPERLINK("x")']
    assert [row[1:] for row in rows] == [["\\x9b31m", "1"], ["", "2"], ["plain", "3"]]


def test_csv_for_programs_is_exact() -> None:
    header, *rows = csv.reader(io.StringIO(write_csv(io.BytesIO()), newline=""))
    assert header[0] == "a\x1b[2J"
    assert [row[0] for row in rows] == HOSTILE.column(0).to_pylist()


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "rows"
    target.write_text("before")
    with pytest.raises(TypeError), open_output(target) as file:
        file.writelines([b"half", None])
    assert target.read_text() == "before"
    assert list(tmp_path.iterdir()) == [target]
    with open_output(target) as file:
        file.write(b"whole")
    assert target.read_text() == "whole"
