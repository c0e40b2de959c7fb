from __future__ import annotations

import json
from pathlib import Path

import pytest

from hoodie_py import HoodieTable
from tests.writer.index_jobs.indexed_tables import make_table
from tests.writer.written_tables import Kind

QUICK = ("--option", "hoodie.time.generator.max_expected_clock_skew_ms=0")
ONE = ("--option", "hoodie.metadata.global.record.level.index.min.filegroup.count=1")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    make_table(Kind(9, True), tmp_path / "t")
    return tmp_path / "t"


def test_an_index_is_built_shown_and_dropped(hoodie, table: Path) -> None:
    assert "no metadata table" in hoodie("index", table).stderr
    assert "Built record_index with 11 records in 1 file group" in hoodie(
        "index", table, "build", "record_index", *QUICK, *ONE
    ).stdout.replace("\n", " ")
    assert "record_index" in hoodie("index", table, "show").stdout
    shown = json.loads(hoodie("index", table, "--json").stdout)
    assert [(each["name"], each["groups"], each["state"]) for each in shown] == [
        ("files", 1, "complete"),
        ("record_index", 1, "complete"),
    ]
    assert hoodie("index", table, "drop", "record_index", *QUICK).stdout == "Dropped record_index.\n"
    assert HoodieTable.open(table).config.metadata_partitions == ("files",)
    dropped = hoodie("index", table, "drop", "files", "--json", *QUICK).stdout
    assert json.loads(dropped) == {"dropped": ["files"]}


def test_what_was_built_is_printed_as_json(hoodie, table: Path) -> None:
    built = json.loads(hoodie("index", table, "build", "files", "--json", *QUICK).stdout)
    assert [(each["name"], each["instant"], each["records"]) for each in built] == [("files", "00000000000000000", 3)]


@pytest.mark.parametrize("arguments", [("build",), ("drop",), ("show", "record_index"), ("rebuild", "files")])
def test_a_wrong_call_is_refused(hoodie, table: Path, arguments: tuple[str, ...]) -> None:
    assert hoodie("index", table, *arguments, status=2).stdout == ""


def test_an_index_that_is_not_there_cannot_be_dropped(hoodie, table: Path) -> None:
    assert "has no index 'nope'" in hoodie("index", table, "drop", "nope", *QUICK, status=1).stderr
