"""What the package's loggers say, and ``hoodie --log-level``."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hoodie_py import HoodieTable
from hoodie_storage.retry import RetryPolicy, call_with_retries
from tests.writer.compaction_tables import QUICK, writable

PACKAGES = ("hoodie_py", "hoodie_storage")


@pytest.fixture(autouse=True)
def _loggers_as_they_were() -> Iterator[None]:
    yield
    for name in PACKAGES:
        logging.getLogger(name).handlers = []
        logging.getLogger(name).setLevel(logging.NOTSET)


def test_importing_sets_up_nothing() -> None:
    code = f"import logging, hoodie_py\nprint([logging.getLogger(name).handlers for name in {PACKAGES}])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[[], []]"


def test_what_completes_and_what_is_undone_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "hoodie_py")
    table = HoodieTable.open(writable("basic_mor_v9_part", tmp_path))
    rows = table.scan(limit=1).to_arrow()
    done = table.upsert(rows.drop_columns([name for name in rows.column_names if name.startswith("_")]), QUICK)
    assert f"The deltacommit {done.instant} is complete" in caplog.text
    planned = table.schedule_compaction()
    assert planned is not None
    table.rollback(planned)
    assert f"compaction {planned} is gone" in caplog.text


def test_retries_are_told_without_what_the_store_said(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "hoodie_storage")
    failures = [ValueError("key=secret")]

    def ask() -> str:
        if failures:
            raise failures.pop()
        return "done"

    assert call_with_retries(ask, RetryPolicy(first_pause=0), lambda _: True) == "done"
    assert "ValueError" in caplog.text
    assert "secret" not in caplog.text


def test_the_command_shows_them_on_stderr(hoodie: Callable[..., Any], tmp_path: Path) -> None:
    base = writable("basic_mor_v9_part", tmp_path)
    result = hoodie("--log-level", "info", "compact", base)
    assert "hoodie_py.writer.transaction.commit_protocol: The commit" in result.stderr
    assert "commit_protocol" not in result.stdout


def test_a_level_that_does_not_exist_is_wrong_usage(hoodie: Callable[..., Any]) -> None:
    result = hoodie("--log-level", "loud", "tables", status=2)
    assert "'loud' is none of debug" in result.stderr
