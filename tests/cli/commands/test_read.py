from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.corpus import ROOT, case_folder

TABLE = "event_time_deletes_mor_v9"


def expected(name: str, query: str = "snapshot") -> list[dict[str, Any]]:
    return pq.read_table(case_folder(name) / "expected" / f"{query}.parquet").to_pylist()


def by_key(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows by key, without the file name, which reference answers shorten."""
    return sorted(
        ({k: v for k, v in row.items() if k != "_hoodie_file_name"} for row in rows), key=lambda row: row["id"]
    )


def test_json_lines_are_the_rows(hoodie, corpus) -> None:
    done = hoodie("read", corpus(TABLE), "--format", "json")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert by_key(rows) == by_key(expected(TABLE))
    assert done.stderr == ""
    assert hoodie("read", corpus(TABLE), "--json").stdout == done.stdout


def test_read_optimized_leaves_logs_out(hoodie, corpus) -> None:
    done = hoodie("read", corpus(TABLE), "--json", "--query-type", "read_optimized")
    assert by_key([json.loads(line) for line in done.stdout.splitlines()]) == by_key(expected(TABLE, "ro"))


def test_as_of(hoodie, corpus) -> None:
    done = hoodie("read", corpus(TABLE), "--json", "--as-of", "20261121101431144")
    assert len(done.stdout.splitlines()) == 8


def test_columns_filter_and_limit(hoodie, corpus) -> None:
    done = hoodie("read", corpus(TABLE), "--columns", "price, id", "--where", "price > 3", "--format", "csv")
    header, *rows = csv.reader(io.StringIO(done.stdout))
    assert header == ["price", "id"]
    assert sorted(rows) == [["10.5", "k7"], ["9", "k6"]]
    assert len(hoodie("read", corpus(TABLE), "--json", "--limit", "3").stdout.splitlines()) == 3
    assert hoodie("read", corpus(TABLE), "--json", "--limit", "0").stdout == ""


def test_parquet_file_is_the_scan(hoodie, corpus, tmp_path: Path) -> None:
    target = tmp_path / "rows.parquet"
    done = hoodie("read", corpus(TABLE), "--format", "parquet", "--output", target)
    assert done.stdout == ""
    assert "4 rows" in done.stderr
    assert by_key(pq.read_table(target).to_pylist()) == by_key(expected(TABLE))
    assert list(tmp_path.iterdir()) == [target]


def test_failed_read_leaves_no_file(hoodie, corpus_copy, tmp_path: Path) -> None:
    table = corpus_copy(TABLE)
    victim = next(table.glob("p1/*.parquet"))
    victim.chmod(0o644)
    victim.write_bytes(victim.read_bytes()[:-100])
    into = tmp_path / "out"
    into.mkdir()
    done = hoodie("read", table, "--format", "csv", "-o", into / "rows.csv", status=1)
    assert victim.name in done.stderr
    assert list(into.iterdir()) == []


@pytest.mark.parametrize("format_", ["csv", "json", "parquet", "table"])
def test_every_type_can_be_written(hoodie, corpus, tmp_path: Path, format_: str) -> None:
    target = tmp_path / "rows"
    hoodie("read", corpus("types_mor_v9"), "--format", format_, "-o", target)
    rows = expected("types_mor_v9")
    if format_ == "json":
        written = [json.loads(line) for line in target.read_text().splitlines()]
        assert {tuple(row) for row in written} == {tuple(rows[0])}
        assert len(written) == len(rows)
    elif format_ == "csv":
        header, *written = csv.reader(target.open(newline=""))
        assert header == list(rows[0])
        assert len(written) == len(rows)
    elif format_ == "parquet":
        assert pq.read_table(target).num_rows == len(rows)
    else:
        assert len(target.read_text().splitlines()) == len(rows) + 2


def test_table_is_for_people(hoodie, corpus) -> None:
    done = hoodie("read", corpus(TABLE))
    assert "_hoodie" not in done.stdout
    assert "meta columns" in done.stderr
    header, _, *rows = done.stdout.splitlines()
    assert header.split() == ["id", "name", "price", "qty", "ts", "part"]
    assert sorted(row.split()[0] for row in rows) == ["k1", "k3", "k6", "k7"]
    assert "_hoodie_commit_time" in hoodie("read", corpus(TABLE), "--columns", "_hoodie_commit_time").stdout


def test_table_says_when_rows_are_left_out(hoodie, corpus) -> None:
    done = hoodie("read", corpus(TABLE), "--limit", "2")
    assert len(done.stdout.splitlines()) == 4
    assert "first 2 rows" in done.stderr
    assert "first" not in hoodie("read", corpus(TABLE), "--limit", "4").stderr


def test_unknown_column_names_the_known_ones(hoodie, corpus) -> None:
    done = hoodie("read", corpus(TABLE), "--columns", "colour", status=1)
    assert "colour" in done.stderr
    assert "price" in done.stderr


def test_empty_table(hoodie, corpus) -> None:
    assert hoodie("read", corpus("empty_mor_v9"), "--json").stdout == ""


@pytest.mark.parametrize(("format_", "width"), [("table", None), ("table", "80"), ("json", None), ("csv", None)])
def test_a_reader_that_goes_away_is_no_failure(corpus, format_: str, width: str | None) -> None:
    code = "from hoodie_py.cli import main; main()"
    command = [sys.executable, "-c", code, "read", str(corpus(TABLE)), "--format", format_]
    env = {**os.environ, "COLUMNS": width or ""}
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(command, cwd=ROOT, env=env, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    finally:
        os.close(writer)
    assert done.returncode == 0, done.stderr
    assert "rror" not in done.stderr
