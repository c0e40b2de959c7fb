from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from hoodie_py import HoodieTable

TABLE = "cdc_before_after_cow_v9"


def test_people_see_what_changed_in_the_order_of_commits(hoodie, corpus) -> None:
    shown = hoodie("changes", corpus(TABLE)).stdout
    header, _, *lines = shown.splitlines()
    assert header.split() == ["commit", "op", "key", "values"]
    assert [line.split()[1] for line in lines] == [
        *["insert"] * 6, "update", "update", "insert", "delete", "delete", "update", "insert", "insert", "delete",
        "delete",
    ]  # fmt: skip
    assert sorted(lines, key=lambda line: line.split()[0]) == lines
    assert any(line.endswith("k1   name: n1 → u1, price: 1.5 → 1.0, ts: 10 → 20") for line in lines)


def test_programs_get_structs_or_the_texts_of_java(hoodie, corpus, tmp_path: Path) -> None:
    table = corpus(TABLE)
    rows = [json.loads(line) for line in hoodie("changes", table, "--json").stdout.splitlines()]
    assert {row["op"] for row in rows} == {"i", "u", "d"}
    assert [row["before"]["name"] for row in rows if row["op"] == "u" and row["after"]["name"] == "u2"] == ["u1"]
    header, *lines = csv.reader(io.StringIO(hoodie("changes", table, "--format", "csv").stdout))
    assert header == ["op", "ts_ms", "before", "after"]
    java = {
        (row["op"], row["ts_ms"], row["before"]) for row in HoodieTable.open(table).changes().to_arrow().to_pylist()
    }
    assert {(op, time, before or None) for op, time, before, _ in lines} == java
    hoodie("changes", table, "--format", "parquet", "-o", tmp_path / "changes.parquet")
    assert pq.read_table(tmp_path / "changes.parquet")["after"].type.field("price") is not None


def test_ranges_conditions_and_limits(hoodie, corpus) -> None:
    table = corpus(TABLE)
    first = next(iter(HoodieTable.open(table).timeline)).completion_time
    later = hoodie("changes", table, "--json", "--from", first, "--where", "op = 'i'").stdout.splitlines()
    assert sorted(json.loads(line)["after"]["id"] for line in later) == ["k3", "k7", "k9"]
    assert len(hoodie("changes", table, "--json", "--to", first).stdout.splitlines()) == 6
    assert "first 2 rows" in hoodie("changes", table, "--limit", "2").stderr


def test_a_table_without_change_data_says_what_there_is(hoodie, corpus) -> None:
    done = hoodie("changes", corpus("basic_mor_v9_part"), status=1)
    assert "no change data" in done.stderr


@pytest.mark.parametrize("given", [["--follow", "--to", "1"], ["--json", "--format", "csv"]])
def test_wrong_usage(hoodie, corpus, given: list[str]) -> None:
    hoodie("changes", corpus(TABLE), *given, status=2)
