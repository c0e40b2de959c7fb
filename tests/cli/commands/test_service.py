"""``hoodie service`` on one table and on a lake: what is printed, the page, the loop and its end, statuses."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from hoodie_py import HoodieTable
from hoodie_py.cli.lake_page import TableState, make_page
from hoodie_py.testing import local_s3
from hoodie_py.writer.services.due_service import DueService
from hoodie_py.writer.upkeep.report import ServiceReport, ServiceStep
from tests.watched_requests import failing_requests, writes
from tests.writer.written_tables import Kind, contents, put, records, row

OPTION = ("--option", "hoodie.time.generator.max_expected_clock_skew_ms=0")
SOON = (*OPTION, "--option", "hoodie.compact.inline.max.delta.commits=2")


def grown(base: Path) -> Path:
    Kind(9, True).create(base)
    for ts in range(1, 4):
        put(base, records([row(each, ts) for each in range(4)]))
    return base


def test_a_table_is_judged_and_served(hoodie, tmp_path: Path) -> None:
    base = grown(tmp_path / "t")
    shown = hoodie("service", base, *SOON).stdout
    assert "compaction      due" in shown
    assert "3 of 2 delta commits and no compaction yet" in shown
    [facts] = json.loads(hoodie("service", base, *SOON, "--json").stdout)
    assert (facts["due"], facts["table"], facts["version"]) == (["compaction"], "t", 9)
    rows = contents(base)
    done = hoodie("service", base, *SOON, "--run", "--only", "compaction,clean")
    assert "t: Compaction " in done.stderr
    assert "0 of 2 delta commits since the compaction at" in done.stdout
    assert contents(base) == rows


def test_a_lake_is_a_line_for_each_table(hoodie, tmp_path: Path) -> None:
    grown(tmp_path / "a" / "t")
    Kind(8, False).create(tmp_path / "b")
    broken = tmp_path / "c" / ".hoodie"
    broken.mkdir(parents=True)
    lines = hoodie("service", tmp_path, *SOON, status=1).stdout.splitlines()
    assert lines[:2] == [f"{tmp_path}/a/t: compaction", f"{tmp_path}/b: nothing is due"]
    assert lines[2].startswith(f"{tmp_path}/c: ")
    assert "no table up to 0 levels" in hoodie("service", tmp_path / "a", "--depth", "0", status=1).stdout
    page = tmp_path / "page.html"
    hoodie("service", tmp_path, tmp_path / "b", *SOON, "--html", page, status=1)
    text = page.read_text()
    assert "4 tables, 1 with something due, 1 that cannot be looked at" in text
    assert text.count("<h2") == 4


def test_a_lake_on_s3(hoodie) -> None:
    with local_s3("services") as s3:
        schema = pa.schema([("id", pa.string()), ("ts", pa.int64())])
        HoodieTable.create(
            f"{s3.uri}/lake/trips", schema, record_key="id", ordering="ts", storage_options=s3.storage_options
        )
        facts = json.loads(hoodie("service", f"{s3.uri}/lake", "--json", env=dict(s3.env)).stdout)
    assert [(each["uri"], each["due"]) for each in facts] == [(f"{s3.uri}/lake/trips", [])]


def test_words_that_make_no_sense(hoodie, tmp_path: Path) -> None:
    base = grown(tmp_path / "t")
    assert "--run" in hoodie("service", base, "--engine", "spark", status=2).stderr
    assert "vacuum" in hoodie("service", base, "--only", "vacuum", status=1).stderr
    assert str(tmp_path / "none") in hoodie("service", tmp_path / "none", status=1).stdout


def test_a_table_that_is_only_read_is_no_failure(hoodie, tmp_path: Path) -> None:
    base = grown(tmp_path / "t")
    properties = base / ".hoodie/hoodie.properties"
    text = properties.read_text().replace("hoodie.table.version=9", "hoodie.table.version=5")
    properties.write_text(
        "\n".join(line for line in text.split("\n") if "checksum" not in line and "layout" not in line)
    )
    assert "only read" in hoodie("service", tmp_path, "--html", tmp_path / "page.html").stdout
    assert "cannot be looked at" in (tmp_path / "page.html").read_text()
    assert not list(tmp_path.glob(".page*"))


def test_a_failed_step_is_told_and_sets_the_status(hoodie, tmp_path: Path) -> None:
    base = grown(tmp_path / "t")
    with failing_requests(writes(rf"{base}/[^.].*\.parquet$"), OSError("no disk")):
        done = hoodie("service", base, *SOON, "--run", status=1)
    assert "t: compaction: failed: OSError: no disk" in done.stderr


def test_a_loop_ends_on_a_signal(tmp_path: Path) -> None:
    base = grown(tmp_path / "t")
    command = [sys.executable, "-c", "from hoodie_py.cli.app import main; main()", "service", str(base), "--run"]
    run = subprocess.Popen(
        [*command, "--every", "60", *SOON], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
    )
    try:
        until = time.monotonic() + 60
        while not len(HoodieTable.open(base).timeline.select_actions("commit")) and time.monotonic() < until:
            time.sleep(0.1)
        run.send_signal(signal.SIGTERM)
        out, err = run.communicate(timeout=60)
    finally:
        run.kill()
    assert run.returncode == 0, err
    assert "t: Compaction " in err
    assert "service" in out


def test_the_page_escapes_what_tables_say() -> None:
    evil = "<script>alert(1)</script>\x1b[31m"
    services = (DueService("compaction", "due", evil), DueService("clean", "not due", "fine"))
    steps = (ServiceStep("compaction", evil, "failed"), ServiceStep("clean", "done & dusted"))
    report = ServiceReport(evil, f"s3://lake/{evil}", "MERGE_ON_READ", 9, "20260101000000000", services, steps)
    page = make_page([TableState("b", report), TableState(evil, error=evil)], datetime(2026, 1, 1, tzinfo=UTC))
    assert "<script>" not in page
    assert "\x1b" not in page
    assert page.count("&lt;script&gt;") == 7
    assert "As of 2026-01-01 00:00:00 UTC" in page
    assert "done &amp; dusted" in page
    assert page.index("cannot be looked at") < page.index("failed")


def test_partitions_are_deleted(hoodie, tmp_path: Path) -> None:
    base = grown(tmp_path / "t")
    done = hoodie("delete-partition", base, "p0", *OPTION)
    assert done.stdout.startswith("Delete partition ")
    assert set(contents(base)) == {"k1", "k3"}
    assert "error: " in hoodie("delete-partition", base, "../x", *OPTION, status=1).stderr
    for missing in ("p7", "p*9", "nofield=p1", "p0"):  # the rows of p0 are gone
        others = [] if missing == "p0" else ["p1"]
        said = hoodie("delete-partition", base, *others, missing, *OPTION, status=1)
        assert f"The table has no partition '{missing}'." in said.stderr
        assert "p1" in said.stderr
    assert set(contents(base)) == {"k1", "k3"}
    assert hoodie("delete-partition", base, "part=p1", *OPTION).stdout.startswith("Delete partition ")
    assert contents(base) == {}


def test_log_files_are_joined(hoodie, tmp_path: Path) -> None:
    base = grown(tmp_path / "t")
    rows = contents(base)
    assert hoodie("log-compact", base, *OPTION).stdout == "There was nothing to compact.\n"
    facts = json.loads(hoodie("log-compact", base, *OPTION, "--blocks", "2", "--json").stdout)
    assert facts["file_groups"] == 2
    assert contents(base) == rows
