"""Files of an attempt at a compaction are removed only by whoever holds the lock."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoodie_py.errors import ConflictError
from hoodie_py.files import TableFiles
from hoodie_py.writer.rollback.attempt import remove_files

INSTANT = "20200101000000000"


def test_nothing_is_removed_once_the_lock_is_lost(tmp_path: Path) -> None:
    """Between the listing and this another may have run the compaction again: its files have the same instant."""
    file = tmp_path / "p" / f"group-0_1-0-0_{INSTANT}.parquet"
    file.parent.mkdir()
    file.write_bytes(b"rows")
    files, groups = TableFiles.open(str(tmp_path)), [("p", "group-0")]

    def lost() -> None:
        raise ConflictError("The table's lock was lost.")

    with pytest.raises(ConflictError):
        remove_files(files, INSTANT, groups, check=lost)
    assert file.exists()
    assert remove_files(files, INSTANT, groups, check=lambda: None) == 1
    assert not file.exists()
