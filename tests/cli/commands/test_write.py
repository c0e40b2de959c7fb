"""Tests of ``hoodie write``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie_py import HoodieTable

QUICK = ("--option", "hoodie.time.generator.max_expected_clock_skew_ms=0")
NEW = ("--create", "--record-key", "id", "--ordering", "ts", "--partition-by", "city")


def _file(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def _rows(table: Path) -> list[dict[str, Any]]:
    found = HoodieTable.open(table).scan(["id", "ts", "city"]).to_arrow().to_pylist()
    return sorted(found, key=lambda row: str(row["id"]))


@pytest.fixture
def table(hoodie, tmp_path: Path) -> Path:
    rows = pa.table({"id": ["a", "b"], "ts": [1, 5], "city": ["sf", "la"]})
    pq.write_table(rows, tmp_path / "first.parquet")
    done = hoodie("write", tmp_path / "trips", "--from", tmp_path / "first.parquet", *NEW, *QUICK)
    assert "2 rows inserted" in done.stdout
    return tmp_path / "trips"


def test_a_table_is_made_and_changed(hoodie, table: Path, tmp_path: Path) -> None:
    changes = _file(tmp_path, "changes.csv", "id,ts,city\na,2,sf\nb,4,la\nc,1,\n")
    hoodie("write", table, "--from", changes, *QUICK)
    late = {"id": "b", "ts": 5, "city": "la"}
    assert _rows(table) == [{"id": "a", "ts": 2, "city": "sf"}, late, {"id": "c", "ts": 1, "city": None}]
    gone = _file(tmp_path, "gone.ndjson", '{"id": "a"}\n')
    result = json.loads(hoodie("write", table, "--from", gone, "--operation", "delete", "--json", *QUICK).stdout)
    assert (result["operation"], result["rows_deleted"]) == ("delete", 1)
    assert [row["id"] for row in _rows(table)] == ["b", "c"]


@pytest.mark.parametrize(
    ("operation", "left"),
    [
        ("upsert", ["a", "b", "c"]),
        ("insert", ["a", "b", "c"]),
        ("bulk_insert", ["a", "b", "c"]),
        ("insert_overwrite", ["b", "c"]),
        ("insert_overwrite_table", ["c"]),
    ],
)
def test_every_operation(hoodie, table: Path, tmp_path: Path, operation: str, left: list[str]) -> None:
    rows = _file(tmp_path, "rows.jsonl", '{"id": "c", "ts": 1, "city": "sf"}\n')
    hoodie("write", table, "--from", rows, "--operation", operation, *QUICK)
    assert [row["id"] for row in _rows(table)] == left


def test_a_new_table_is_what_the_options_say(hoodie, tmp_path: Path) -> None:
    rows = _file(tmp_path, "rows", "id,ts\na,1\n")
    options = (
        "--create", "--record-key", "id,ts", "--table-type", "cow", "--table-version", "8", "--name", "other",
        "--property", "hoodie.datasource.write.hive_style_partitioning=true", "--format", "csv",
    )  # fmt: skip
    hoodie("write", tmp_path / "t", "--from", rows, *options, *QUICK)
    config = HoodieTable.open(tmp_path / "t").config
    assert (config.name, config.version, config.table_type) == ("other", 8, "COPY_ON_WRITE")
    assert (config.record_key_fields, config.hive_style_partitioning) == (("id", "ts"), True)


def test_fields_take_the_types_of_the_table(hoodie, table: Path, tmp_path: Path) -> None:
    rows = _file(tmp_path, "rows.csv", "city,id,ts\n1,007,3\n")
    hoodie("write", table, "--from", rows, *QUICK)
    assert _rows(table)[0] == {"id": "007", "ts": 3, "city": "1"}


def test_rows_that_do_not_fit_are_an_error_and_change_nothing(hoodie, table: Path, tmp_path: Path) -> None:
    before = sorted(table.rglob("*"))
    bad = _file(tmp_path, "bad.ndjson", '{"id": "c", "ts": "soon", "city": "sf"}\n')
    assert "ts" in hoodie("write", table, "--from", bad, *QUICK, status=1).stderr
    nameless = _file(tmp_path, "nameless.csv", "id,ts,city\n,1,sf\n")
    assert "record key is null or empty" in hoodie("write", table, "--from", nameless, *QUICK, status=1).stderr
    assert sorted(table.rglob("*")) == before


def test_a_table_that_is_there_is_not_made_again(hoodie, table: Path, tmp_path: Path) -> None:
    done = hoodie("write", table, "--from", tmp_path / "first.parquet", *NEW, status=1)
    assert "There is a Hudi table already" in done.stderr


def test_a_table_that_is_not_there_is_not_made_unasked(hoodie, tmp_path: Path) -> None:
    rows = _file(tmp_path, "rows.csv", "id\na\n")
    assert "no Hudi table here" in hoodie("write", tmp_path / "t", "--from", rows, status=1).stderr


@pytest.mark.parametrize(
    "wrong",
    [
        ("--create",),
        ("--record-key", "id"),
        ("--table-version", "9"),
        ("--property", "a=b"),
        ("--create", "--record-key", "id", "--property", "a"),
        ("--operation", "merge"),
        ("--table-type", "heap", "--create", "--record-key", "id"),
        ("--option", "codec"),
    ],
)
def test_wrong_usage(hoodie, tmp_path: Path, wrong: tuple[str, ...]) -> None:
    rows = _file(tmp_path, "rows.csv", "id\na\n")
    hoodie("write", tmp_path / "t", "--from", rows, *wrong, status=2)
    assert not (tmp_path / "t").exists()


def test_a_file_must_be_there_and_say_what_it_is(hoodie, tmp_path: Path) -> None:
    hoodie("write", tmp_path / "t", "--from", tmp_path / "nowhere.csv", status=2)
    assert "--format" in hoodie("write", tmp_path / "t", "--from", _file(tmp_path, "rows.txt", "x"), status=2).stderr


def test_a_first_write_that_is_refused_leaves_no_table(hoodie, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": ["a", None], "ts": [1, 5], "city": ["sf", "la"]}), tmp_path / "bad.parquet")
    hoodie("write", tmp_path / "trips", "--from", tmp_path / "bad.parquet", *NEW, *QUICK, status=1)
    assert not (tmp_path / "trips/.hoodie").exists()
    pq.write_table(pa.table({"id": ["a", "b"], "ts": [1, 5], "city": ["sf", "la"]}), tmp_path / "good.parquet")
    hoodie("write", tmp_path / "trips", "--from", tmp_path / "good.parquet", *NEW, *QUICK)
    assert len(_rows(tmp_path / "trips")) == 2
