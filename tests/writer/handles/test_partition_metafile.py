"""A folder is made a partition once."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoodie_py.files import TableFiles
from hoodie_py.formats.config.properties import parse_properties
from hoodie_py.writer.handles.partition_metafile import PARTITION_METAFILE, ensure_partition


@pytest.mark.parametrize(("path", "depth"), [("", "0"), ("sf", "1"), ("2026/01/31", "3")])
def test_it_says_when_it_was_made_and_how_deep_it_lies(path: str, depth: str, tmp_path: Path) -> None:
    files = TableFiles.open(tmp_path)
    ensure_partition(files, path, "20260101000000001")
    ensure_partition(files, path, "20260101000000002")
    found = parse_properties((tmp_path / path / PARTITION_METAFILE).read_bytes())
    assert found == {"commitTime": "20260101000000001", "partitionDepth": depth}


def test_the_first_of_two_tasks_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = TableFiles.open(tmp_path)
    ensure_partition(files, "p", "20260101000000001")
    monkeypatch.setattr(TableFiles, "exists", lambda *_: False)
    ensure_partition(files, "p", "20260101000000002")
    assert b"20260101000000001" in (tmp_path / "p" / PARTITION_METAFILE).read_bytes()
