from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from rich.progress import Progress, ProgressColumn

from hoodie_py.cli import console
from hoodie_py.cli.commands import verify
from tests.writer.index_jobs.indexed_tables import make_table
from tests.writer.written_tables import Kind

QUICK = ("--option", "hoodie.time.generator.max_expected_clock_skew_ms=0")


def test_a_table_is_verified(hoodie, tmp_path: Path) -> None:
    make_table(Kind(9, True), tmp_path / "t")
    hoodie("index", tmp_path / "t", "build", "files", *QUICK)
    assert "nothing is wrong" in hoodie("verify", tmp_path / "t").stdout
    right = json.loads(hoodie("verify", tmp_path / "t", "--metadata", "--json").stdout)
    assert (right["right"], [part["name"] for part in right["parts"]]) == (True, ["files"])
    log = next((tmp_path / "t").glob("p0/.*.log.*"))
    log.write_bytes(log.read_bytes() + b"x")
    assert "files: wrong p0/" in hoodie("verify", tmp_path / "t", status=1).stdout
    assert json.loads(hoodie("verify", tmp_path / "t", "--json", status=1).stdout)["right"] is False


def test_a_check_keeps_what_is_done_until_it_is_over(hoodie, tmp_path: Path) -> None:
    make_table(Kind(9, True), tmp_path / "t")
    state = tmp_path / "state"
    assert "nothing is wrong" in hoodie("verify", tmp_path / "t", "--resume", state).stdout
    assert not state.exists()
    done = hoodie("verify", tmp_path / "t", "--resume", tmp_path, status=1)
    assert "a folder that exists" in done.stderr


def test_a_terminal_shows_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def show(*columns: ProgressColumn) -> Iterator[Progress]:
        bar.add_task("", total=None)
        yield bar

    bar = Progress()
    monkeypatch.setattr(console, "show_progress", show)
    shown = []
    with verify._show_progress() as tell:
        assert tell is not None
        for part, entries, total in (("data", 1, 2000), ("data", 1999, 2000), ("files", 7, None)):
            tell(part, entries, total)
            [task] = bar.tasks
            shown.append((task.description, task.completed, task.total))
    assert shown == [("data: 1 of 2,000", 1, 2000), ("data: 1,999 of 2,000", 1999, 2000), ("files: 7", 7, None)]
