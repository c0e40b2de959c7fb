"""The compaction job: its command line, run as a module and by its path."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="NOT TESTED: pyspark is not installed")

from hoodie_py import HoodieTable
from hoodie_py.spark import compaction_job as compact_job
from hoodie_py.writer.services.compaction_report import Progress
from tests.writer.compaction_tables import rows, writable

QUICK = ("--option", "hoodie.time.generator.max_expected_clock_skew_ms=0")


def test_its_folder_does_not_hide_python_s_own_modules(tmp_path: Path) -> None:
    script = Path(compact_job.__file__)
    for command in ([str(script)], ["-m", "hoodie_py.spark.compaction_job"]):
        done = subprocess.run(
            [sys.executable, *command, "--help"], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert "--schedule-only" in done.stdout


@pytest.mark.parametrize(
    "wrong", [("--option", "codec"), ("--schedule-only", "--instant", "1"), ("--metadata-mode", "x")]
)
def test_wrong_usage(wrong: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as ended:
        compact_job.main(["/nowhere", *wrong])
    assert ended.value.code == 2


def test_plan_then_work(spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = writable("basic_mor_v9_part", tmp_path)
    before = rows(HoodieTable.open(base))
    assert compact_job.main([str(base), "--schedule-only", *QUICK]) == 0
    [pending] = HoodieTable.open(base).timeline.select_pending_compactions()
    assert compact_job.main([str(base), "--instant", pending.request_time, *QUICK]) == 0
    assert compact_job.main([str(base), *QUICK]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == f"Compaction {pending.request_time} is planned."
    assert said[1].startswith(f"Compaction {pending.request_time} merged 2 file groups")
    assert said[2] == "There was nothing to compact."
    assert rows(HoodieTable.open(base), "read_optimized") == before


def test_failures_are_one_line_and_a_status(spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compact_job.main([str(tmp_path / "nowhere")]) == 1
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert len(said.splitlines()) == 1


def test_progress_is_a_line_now_and_then(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(compact_job.time, "monotonic", lambda: now)
    lines = compact_job._ProgressLines()
    for now in (101.0, 111.0, 112.0, 130.0):
        lines(Progress("1", 4, 1, 4_000, 1_000, 500, now - 100))
    assert capsys.readouterr().err.splitlines() == [
        "1 of 4 file groups, 1,000 of 4,000 bytes, 45 rows/s, about 33 s to go",
        "1 of 4 file groups, 1,000 of 4,000 bytes, 17 rows/s, about 90 s to go",
    ]
