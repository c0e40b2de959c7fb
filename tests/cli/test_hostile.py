"""What a table says cannot change the terminal, whichever command prints it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable
from tests.writer.compaction_tables import QUICK

EVIL = "\x1b[2J\x9b31m\x07"
OPTION = ("--option", "hoodie.time.generator.max_expected_clock_skew_ms=0")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table with control sequences in keys, partitions and values."""
    uri = str(tmp_path_factory.mktemp("hostile") / "table")
    schema = pa.schema([("id", pa.string()), ("place", pa.string()), ("text", pa.string()), ("ts", pa.int64())])
    made = HoodieTable.create(uri, schema, record_key="id", ordering="ts", partition_by="place")
    for ts in (1, 2):
        rows = [
            {"id": EVIL, "place": f"p{EVIL}", "text": EVIL, "ts": ts},
            {"id": "b", "place": "q", "text": "", "ts": ts},
        ]
        made.upsert(rows, QUICK)
    return uri


@pytest.mark.parametrize("width", [None, "80"])
@pytest.mark.parametrize(
    "command",
    [
        ("read",),
        ("read", "--json"),
        ("read", "--explain"),
        ("explain", EVIL),
        ("history", EVIL),
        ("show",),
        ("slices",),
        ("timeline",),
        ("verify",),
        ("index",),
        ("compact", "--dry-run"),
        ("clean", "--dry-run", "--retain-commits", "1"),
        ("cluster", "--dry-run"),
        ("service",),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else str(value),
)
def test_no_control_character_comes_through(
    hoodie: Callable[..., Any], table: str, command: tuple[str, ...], width: str | None
) -> None:
    name, *rest = command
    done = hoodie("--log-level", "debug", name, table, *rest, env={"COLUMNS": width})
    shown = done.stdout + done.stderr
    assert [line for line in shown.split("\n") if not line.isprintable()] == []
    assert shown


def test_paths_are_exact_for_programs(hoodie: Callable[..., Any], table: str) -> None:
    paths = hoodie("slices", table, "--files").stdout.splitlines()
    assert paths
    assert all(Path(path.removeprefix("file://")).is_file() for path in paths)
