from __future__ import annotations

from pathlib import Path

import pytest

from hoodie_py.errors import FileMissingError
from hoodie_py.table.lake import find_tables


def make(base: Path, *names: str) -> None:
    for name in names:
        (base / name / ".hoodie").mkdir(parents=True)


def test_tables_below_a_folder_are_found(tmp_path: Path) -> None:
    make(tmp_path, "b", "a/deep/one", "_hidden/t", ".trash/t", "b/inside")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    (tmp_path / "file").write_text("")
    assert find_tables(tmp_path) == [f"{tmp_path}/a/deep/one", f"{tmp_path}/b"]
    assert find_tables(tmp_path, depth=2) == [f"{tmp_path}/b"]
    assert find_tables(f"{tmp_path}/a/") == [f"{tmp_path}/a/deep/one"]


def test_a_table_is_found_as_itself(tmp_path: Path) -> None:
    make(tmp_path, "t")
    assert find_tables(tmp_path / "t", depth=0) == [f"{tmp_path}/t"]
    assert find_tables(tmp_path, depth=0) == []


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileMissingError):
        find_tables(tmp_path / "none")
