from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from hoodie_py import HoodieTable
from hoodie_py.cli import console
from hoodie_py.cli.commands import compact
from hoodie_py.writer.services.compaction_report import Progress
from tests.writer.compaction_tables import leftovers, orphans, rows, writable

NAME = "basic_mor_v9_part"
QUICK = ("--option", "hoodie.time.generator.max_expected_clock_skew_ms=0")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return writable(NAME, tmp_path)


def files(table: Path) -> list[tuple[str, int]]:
    return sorted((str(path), path.stat().st_size) for path in table.rglob("*") if path.is_file())


def test_a_table_is_compacted_and_a_sentence_says_so(hoodie, table: Path) -> None:
    before = rows(HoodieTable.open(table))
    done = hoodie("compact", table, *QUICK)
    assert done.stdout.startswith("Compaction 2")
    assert "merged 2 file groups" in done.stdout
    assert done.stderr == ""
    assert rows(HoodieTable.open(table), "read_optimized") == before
    assert (orphans(table), leftovers(table)) == ([], [])
    assert hoodie("compact", table, *QUICK).stdout == "There was nothing to compact.\n"


def test_a_dry_run_says_what_and_why_and_writes_nothing(hoodie, table: Path) -> None:
    before = files(table)
    found = json.loads(hoodie("compact", table, "--dry-run", "--json").stdout)
    assert files(table) == before
    slices = HoodieTable.open(table).file_slices()
    assert {each["file_id"]: each["taken"] for each in found["slices"]} == {
        each.file_id: bool(each.log_files) for each in slices
    }
    assert [each["reason"] for each in found["slices"] if not each["taken"]] == ["it has no log files"]
    assert found["cost_bytes"] == sum(each["cost_bytes"] for each in found["slices"] if each["taken"]) > 0
    people = hoodie("compact", table, "--dry-run", env={"COLUMNS": "120"})
    assert "it has no log files" in people.stdout
    assert "would merge 2 of 3 file slices" in people.stdout
    assert files(table) == before


def test_a_dry_run_of_nothing_names_the_reason(hoodie, table: Path) -> None:
    late = ("--option", "hoodie.compact.inline.max.delta.commits=100")
    assert "NUM_COMMITS is not due" in hoodie("compact", table, "--dry-run", *late).stdout
    assert hoodie("compact", table, "--schedule-only", *late, *QUICK).stdout == ""


def test_the_two_steps_apart(hoodie, table: Path) -> None:
    instant = hoodie("compact", table, "--schedule-only", *QUICK).stdout.strip()
    [pending] = HoodieTable.open(table).timeline.select_pending_compactions()
    assert pending.request_time == instant
    assert instant in hoodie("compact", table, "--dry-run").stderr
    assert f"compaction {instant} is pending" in hoodie("compact", table, "--dry-run").stdout
    result = json.loads(hoodie("compact", table, "--instant", instant, "--json", *QUICK).stdout)
    assert (result["instant"], result["file_groups"]) == (instant, 2)
    assert json.loads(hoodie("compact", table, "--schedule-only", "--json", *QUICK).stdout) == {"instant": None}


def test_options_reach_the_writer(hoodie, table: Path) -> None:
    import pyarrow.parquet as pq

    hoodie("compact", table, *QUICK, "--option", "hoodie.parquet.compression.codec=snappy")
    instant = HoodieTable.open(table).timeline.select_completed().select_actions("commit").instants[-1].request_time
    [path, *_] = table.rglob(f"*_{instant}.parquet")
    assert pq.ParquetFile(path).metadata.row_group(0).column(0).compression == "SNAPPY"


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("hoodie.parquet.block.size=1GB", "hoodie.parquet.block.size cannot be '1GB'"),
        ("hoodie.parquet.blok.size=1", "Did you mean hoodie.parquet.block.size?"),
        ("hoodie.clean.partition.filter.regex=a", "A clean is of all partitions"),
    ],
)
def test_options_without_meaning_change_nothing(hoodie, table: Path, option: str, said: str) -> None:
    before = files(table)
    assert said in " ".join(hoodie("compact", table, "--option", option, status=1).stderr.split())
    assert files(table) == before


def test_a_strategy_by_name(hoodie, table: Path) -> None:
    assert "merged 2" in hoodie("compact", table, "--strategy", "UnBoundedCompactionStrategy", *QUICK).stdout
    assert "NoSuch" in hoodie("compact", table, "--dry-run", "--strategy", "NoSuch", status=1).stderr


def test_a_metadata_table_may_be_a_reason_to_refuse(hoodie, tmp_path: Path) -> None:
    name = "mdt_files_mor_v9"
    table = writable(name, tmp_path)
    before = files(table)
    assert "metadata" in hoodie("compact", table, "--metadata-mode", "refuse", *QUICK, status=1).stderr
    assert [each for each in files(table) if each in before] == before


def test_a_merger_by_its_python_path(hoodie, tmp_path: Path) -> None:
    table = writable("custom_highest_price_updates_mor_v9", tmp_path)
    assert "needs a merger" in hoodie("compact", table, *QUICK, status=1).stderr
    merger = "integration.corpus_mergers.HighestPrice"
    assert "merged" in hoodie("compact", table, "--merger", merger, *QUICK).stdout


def test_a_merger_that_is_not_the_table_s_needs_a_word_more(hoodie, table: Path) -> None:
    given = ("compact", table, "--merger", "integration.corpus_mergers.HighestPrice", *QUICK)
    refused = hoodie(*given, status=1).stderr
    assert "HighestPrice is not the merger of this table" in refused
    assert "--override-merger" in refused
    assert "no Python class" in hoodie("compact", table, "--merger", "com.example.Merger", *QUICK, status=1).stderr
    assert "merged 2" in hoodie(*given, "--override-merger").stdout


@pytest.mark.parametrize(
    "wrong",
    [
        ("--option", "codec"),
        ("--engine", "flink"),
        ("--metadata-mode", "maybe"),
        ("--instant", "1", "--schedule-only"),
        ("--instant", "1", "--dry-run"),
        ("--instant", "1", "--strategy", "UnBoundedCompactionStrategy"),
        ("--override-merger",),
    ],
)
def test_wrong_usage(hoodie, table: Path, wrong: tuple[str, ...]) -> None:
    before = files(table)
    hoodie("compact", table, *wrong, status=2)
    assert files(table) == before


def test_an_instant_that_is_no_plan_is_a_failure(hoodie, table: Path) -> None:
    assert "no compaction" in hoodie("compact", table, "--instant", "20990101000000000", status=1).stderr


def open_terminal(monkeypatch: pytest.MonkeyPatch, width: int) -> io.StringIO:
    """Let stderr be a terminal; return what it shows."""

    class Terminal(console.DataConsole):
        is_terminal = True  # type: ignore[assignment]

    screen = io.StringIO()
    monkeypatch.setattr(console, "make_stderr", lambda: Terminal(file=screen, width=width))
    return screen


def test_a_bar_on_a_terminal_only(hoodie, table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = open_terminal(monkeypatch, 120)
    hoodie("compact", table, *QUICK)
    assert "2/2 file groups, " in screen.getvalue()
    assert "compacting" in screen.getvalue()


def test_a_bar_and_its_figures_fit_80_columns(hoodie, table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = open_terminal(monkeypatch, 80)
    figures = "137/999 file groups, 99.9 GB of 99.9 GB, 202,388 rows/s, 2:40 left"
    monkeypatch.setattr(compact, "format_progress", lambda _: figures)
    hoodie("compact", table, *QUICK)
    shown = [line for line in screen.getvalue().splitlines() if figures in line]
    assert shown
    assert all(line.count("━") >= 8 for line in shown)


def test_progress_in_words() -> None:
    progress = Progress("1", 4, 1, 4_000_000, 1_000_000, 5_000, 2.0)
    assert compact.format_progress(progress) == "1/4 file groups, 1.0 MB of 4.0 MB, 2,500 rows/s, 0:06 left"
    begun = Progress("1", 4, 0, 4_000_000, 0, 0, 0.0)
    assert compact.format_progress(begun) == "0/4 file groups, 0 B of 4.0 MB, 0 rows/s"


@pytest.mark.spark
def test_spark_does_the_same(hoodie, spark, table: Path) -> None:
    before = rows(HoodieTable.open(table))
    assert "merged 2 file groups" in hoodie("compact", table, "--engine", "spark", *QUICK).stdout
    assert rows(HoodieTable.open(table), "read_optimized") == before
    assert spark.range(1).count() == 1  # a session that was there stays
