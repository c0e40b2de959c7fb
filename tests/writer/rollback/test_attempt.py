"""Files of an attempt at a compaction are removed only by whoever holds the lock."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoodie_py.errors import ConflictError
from hoodie_py.files import TableFiles
from hoodie_py.formats.names import MarkerType
from hoodie_py.writer.handles.markers import Marker, Markers
from hoodie_py.writer.rollback.attempt import list_files_of_instant, remove_files, remove_files_of_run

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


def test_change_data_goes_and_later_log_files_stay(tmp_path: Path) -> None:
    """Up to table version 6 the log files of later writes have a compaction's instant in their names, too."""
    folder = tmp_path / "p"
    folder.mkdir()
    names = [
        f"group-0_1-5-0_{INSTANT}.parquet", f".group-0_{INSTANT}.log.1_1-5-0.cdc",
        f".group-0_{INSTANT}.log.1_1-6-0.cdc",
        f".group-0_{INSTANT}.log.1_1-5-0", f".other-0_{INSTANT}.log.1_1-5-0.cdc",
        ".group-0_20190101000000000.log.1_1-5-0.cdc",
    ]  # fmt: skip
    for name in names:
        (folder / name).write_bytes(b"rows")
    files = TableFiles.open(str(tmp_path))
    listed = list_files_of_instant(files, INSTANT, [("p", "group-0")])
    assert sorted(listed) == sorted(f"p/{name}" for name in names[:3])
    markers = Markers(files, INSTANT)
    for name in names[1:4]:
        markers.announce(Marker("p", name, MarkerType.APPEND))
    remove_files_of_run(files, INSTANT, 5)
    assert not (folder / names[1]).exists()
    assert (folder / names[2]).exists()
    assert (folder / names[3]).exists()
    remove_files(files, INSTANT, [("p", "group-0")], keep={f"p/{names[0]}"})
    assert sorted(path.name for path in folder.iterdir()) == sorted([names[0], *names[3:]])
