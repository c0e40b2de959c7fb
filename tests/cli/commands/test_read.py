from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie_py import HoodieTable
from tests.corpus import ROOT, case_folder
from tests.writer.written_tables import Kind, row

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


def test_times_of_a_filter_are_of_the_given_zone(hoodie, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    noon = datetime(2024, 1, 1, 12, tzinfo=UTC)
    HoodieTable.create(
        path, pa.schema([("id", pa.string()), ("at", pa.timestamp("us", "UTC"))]), record_key="id"
    ).insert([{"id": "noon", "at": noon}])
    read = ("read", path, "--json", "--columns", "id", "--where", "at = timestamp'2024-01-01 07:00:00'")
    assert hoodie(*read).stdout == ""
    assert json.loads(hoodie(*read, "--timezone", "America/New_York").stdout) == {"id": "noon"}


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


def test_a_range_of_commits(hoodie, tmp_path: Path) -> None:
    table = HoodieTable.open(Kind(9, merge_on_read=True).create(tmp_path / "t"))
    for ts in (1, 2, 3):
        table.upsert([row(ts, ts=ts)])
    first, second, _ = (each.completion_time for each in table.timeline)
    shown = [
        sorted(json.loads(line)["id"] for line in hoodie("read", tmp_path / "t", "--json", *given).stdout.splitlines())
        for given in (["--from", first], ["--from", first, "--to", second], ["--to", first], ["--from", "earliest"])
    ]
    assert shown == [["k2", "k3"], ["k2"], ["k1"], ["k1", "k2", "k3"]]
    assert "k2" in hoodie("read", tmp_path / "t", "--from", first, "--columns", "id", "--where", "ts = 2").stdout
    assert "2026" in hoodie("read", tmp_path / "t", "--from", second, "--to", first, status=1).stderr


@pytest.mark.parametrize(
    "given",
    [
        ["--from", "1", "--as-of", "2026-01-01"],
        ["--to", "1", "--query-type", "read_optimized"],
        ["--follow", "--as-of", "2026-01-01"],
        ["--follow", "--to", "1"],
        ["--follow", "--limit", "1"],
        ["--follow", "--output", "rows.csv"],
        ["--follow", "--format", "parquet"],
    ],
)
def test_options_that_do_not_go_together_are_wrong_usage(hoodie, corpus, given: list[str]) -> None:
    assert "--f" in hoodie("read", corpus(TABLE), *given, status=2).stderr


@pytest.mark.parametrize("format_", ["json", "csv", "table"])
def test_rows_are_followed_until_an_interrupt(tmp_path: Path, format_: str) -> None:
    table = HoodieTable.open(Kind(9, merge_on_read=True).create(tmp_path / "t"))
    table.upsert([row(1)])
    code = "from hoodie_py.cli import main; main()"
    follow = ["--follow", "--poll", "0.1", "--columns", "id", "--format", format_]
    command = [sys.executable, "-c", code, "read", str(tmp_path / "t"), *follow]
    following = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert following.stdout is not None
    try:
        seen = ""
        for number in (1, 2):
            while f"k{number}" not in seen:
                line = following.stdout.readline()
                assert line, following.communicate()
                seen += line
            if number == 1:
                table.upsert([row(2)])
        following.send_signal(signal.SIGINT)
        _, notes = following.communicate(timeout=60)
    finally:
        following.kill()
    assert following.returncode == 0, notes
    last = table.timeline.last
    assert last is not None
    assert f"t@completed:{last.completion_time}" in notes
    assert seen.count("k1") == 1
    assert "Traceback" not in notes


def test_analyze_says_what_reading_took(hoodie, corpus) -> None:
    done = hoodie("read", corpus(TABLE), "--analyze")
    assert done.stdout.splitlines()[-1].startswith("Reading gave ")
    found = json.loads(hoodie("read", corpus(TABLE), "--analyze", "--json").stdout)
    assert found["read"]["rows"] == HoodieTable.open(corpus(TABLE)).scan().count()
    assert json.loads(hoodie("read", corpus(TABLE), "--explain", "--json").stdout)["read"] is None


def test_explain_says_what_would_be_read(hoodie, corpus) -> None:
    done = hoodie("read", corpus(TABLE), "--where", "price > 3", "--explain")
    assert done.stdout.startswith("A snapshot query of ")
    assert "To read: " in done.stdout
    found = json.loads(hoodie("read", corpus(TABLE), "--where", "price > 3", "--explain", "--json").stdout)
    assert found["read_slices"] == found["slices"] > 0


def test_output_needs_a_folder(hoodie, corpus, tmp_path: Path) -> None:
    done = hoodie("read", corpus(TABLE), "--format", "csv", "--output", tmp_path / "none" / "x.csv", status=1)
    assert "There is no folder" in done.stderr
    done = hoodie("read", corpus(TABLE), "--format", "csv", "--output", tmp_path, status=1)
    assert "is a folder" in done.stderr


def test_the_time_before_all_commits_is_said(hoodie, corpus) -> None:
    done = hoodie("read", corpus(TABLE), "--as-of", "2001-01-01", "--format", "csv")
    assert "is before the first commit" in done.stderr
    assert len(done.stdout.splitlines()) == 1


def test_columns_in_another_case_are_guessed(hoodie, corpus) -> None:
    assert "Did you mean 'id'?" in hoodie("read", corpus(TABLE), "--columns", "ID", status=1).stderr
