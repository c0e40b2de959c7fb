"""docs/merge-modes.md is true: its history, written to files and read under every mode, gives its table."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from hoodie_py import RecordMerger
from hoodie_py.formats.config.merge_config import MergeMode
from hoodie_py.formats.config.table_config import TableConfig
from tests.corpus import ROOT
from tests.reader.slices import UNAVAILABLE, Version, config_of, reader_of, rows_of, write_slice

PAGE = (ROOT / "docs" / "merge-modes.md").read_text()
BASE = [Version("a", ts=10, v=1, s="a")]
LOG = [
    Version("a", ts=30, v=None, s="b"),
    Version("a", ts=20, v=2, s=UNAVAILABLE),
    Version("a", "block", ts=None),
    Version("a", ts=5, v=3, s="c"),
]


def lines() -> list[list[str]]:
    """The page's table of results: the mode, then a cell for each commit."""
    table = PAGE[PAGE.index("| mode |") :].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


def setting(mode: str) -> tuple[TableConfig, RecordMerger | None]:
    names = re.findall("`(.*?)`", mode)
    if names[0] == "CUSTOM":
        scope: dict[str, Any] = {}
        exec(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0], scope)
        return config_of(), scope["Sum"]()
    return config_of(MergeMode[names[0]], partial_update_mode=names[1] if len(names) > 1 else None), None


@pytest.mark.parametrize("line", lines(), ids=lambda line: line[0].replace("`", ""))
def test_a_line_of_the_table(line: list[str], tmp_path: Path) -> None:
    config, merger = setting(line[0])
    for commits, expected in enumerate(line[1:]):
        folder = tmp_path / str(commits)
        folder.mkdir()
        written = write_slice(folder, BASE, LOG[:commits])
        rows = rows_of(reader_of(folder, written, config, columns=["ts", "v", "s"], merger=merger))
        shown = [", ".join("null" if value is None else str(value) for value in row.values()) for row in rows]
        assert ([expected.replace("__gone__", UNAVAILABLE)] if expected != "-" else []) == shown


def test_every_mode_is_there() -> None:
    assert len({line[0] for line in lines()}) == 7
    assert all(len(line) == 6 for line in lines())


def test_a_partial_row_keeps_what_it_lacks(tmp_path: Path) -> None:
    for mode in (MergeMode.COMMIT_TIME_ORDERING, MergeMode.EVENT_TIME_ORDERING):
        folder = tmp_path / mode.value
        folder.mkdir()
        written = write_slice(folder, BASE, [Version("a", ts=30, s="b", absent=("v",))])
        rows = rows_of(reader_of(folder, written, config_of(mode), columns=["ts", "v", "s"]))
        assert rows == [{"ts": 30, "v": 1, "s": "b"}]
