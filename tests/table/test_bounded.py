"""Tables whose files never end, lead in circles or are no files: an error, soon, and nothing else is touched."""

from __future__ import annotations

import os
import resource
import shutil
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from hoodie_py import CorruptFileError, HoodieError, HoodieTable, InvalidTableError
from hoodie_py.errors import StorageError
from hoodie_py.files import TableFiles
from hoodie_py.table.bounded import read_bounded
from hoodie_py.table.timeline.archive import load_archive
from hoodie_py.writer.handles.markers import Markers
from hoodie_py.writer.timeline.folder_tree import list_tree, remove_tree
from tests.writer.compaction_tables import QUICK
from tests.writer.written_tables import KINDS, Kind, contents, row

HUGE = 64 << 30  # bytes, none of them on the disk


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)


def table_of(base: Path, kind: Kind = Kind(9, True)) -> HoodieTable:  # noqa: B008 - a value
    table = HoodieTable.open(kind.create(base))
    table.upsert([row(i) for i in range(4)], options=QUICK)
    table.upsert([row(i, 2) for i in range(4)], options=QUICK)
    return table.refresh()


def everything(base: Path) -> None:
    """Ask, look and write."""
    table = HoodieTable.open(base)
    table.scan().to_arrow()
    assert table.scan(integrity="strict").to_arrow().num_rows == 4
    table.inspect.timeline()
    table.upsert([row(0, 3)], options=QUICK)


def in_place(kind: Kind, base: Path) -> list[Path]:
    """The kinds of files of a table: properties, instants, data; all that a read needs."""
    files = [path for path in base.rglob("*") if path.is_file() and not path.name.startswith(".hoodie_partition")]
    return [path for path in files if path.suffix not in (".inflight", ".requested", ".crc") and path.stat().st_size]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.partitioned], ids=str)
@pytest.mark.parametrize("what", ["pipe", "socket", "huge", "folder", "loop"])
def test_a_file_that_is_none_is_an_error(kind: Kind, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOODIE_PY_LIMITS", "metadata_bytes=1M properties_bytes=1M")
    base = tmp_path / "table"
    table_of(base, kind)
    copy = tmp_path / "copy"
    for path in in_place(kind, base):
        if what == "loop" and "commit" in path.name:
            continue  # as if there were none: the commit never completed
        shutil.copytree(base, copy, symlinks=True)
        victim = copy / path.relative_to(base)
        victim.unlink()
        _PUT[what](victim)
        with suppress(HoodieError):  # unless it is one that nothing needs
            everything(copy)
        shutil.rmtree(copy)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 4 << 20  # KiB


def _socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # names of sockets are short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind("s")
        Path("s").rename(path.name)
    finally:
        os.chdir(here)


def _huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(HUGE)


_PUT: dict[str, Callable[[Path], None]] = {
    "pipe": os.mkfifo,
    "socket": _socket,
    "huge": _huge,
    "folder": Path.mkdir,
    "loop": lambda path: path.symlink_to(path),
}


def test_a_pipe_is_not_waited_for(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    files = TableFiles.open(tmp_path)
    for ask in (files.read, files.local_path, lambda path: files.read_range(path, 0, 1)):
        with pytest.raises(InvalidTableError, match="pipe"):
            ask("pipe")


@pytest.mark.parametrize("limit", ["metadata_bytes", "archive_bytes", "log_bytes", "properties_bytes"])
def test_no_more_is_read_than_the_limit(limit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    _huge(tmp_path / "file")
    monkeypatch.setenv("HOODIE_PY_LIMITS", f"{limit}=1000")
    with pytest.raises(CorruptFileError, match=f"{limit}=1000"):
        read_bounded(TableFiles.open(tmp_path), "file", limit)
    (tmp_path / "file").write_bytes(b"x" * 1000)
    assert len(read_bounded(TableFiles.open(tmp_path), "file", limit)) == 1000


def test_the_archive_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    table = table_of(tmp_path, Kind(6, True))
    archived = tmp_path / table.config.find_history_folder()
    archived.mkdir(exist_ok=True)
    _huge(archived / ".commits_.archive.1_1-0-1")
    monkeypatch.setenv("HOODIE_PY_LIMITS", "archive_bytes=1K")
    with pytest.raises(CorruptFileError, match="archive_bytes"):
        load_archive(table.files, table.config)


def test_markers_are_not_looked_for_behind_links(tmp_path: Path):
    table_of(tmp_path)
    temp = tmp_path / ".hoodie" / ".temp"
    (temp / "20990101000000000").mkdir(parents=True)
    (temp / "20990101000000000" / "up").symlink_to(tmp_path, target_is_directory=True)
    (temp / "20990101000000001").symlink_to(tmp_path, target_is_directory=True)
    files = TableFiles.open(tmp_path)
    for instant in ("20990101000000000", "20990101000000001"):
        assert Markers(files, instant).list_announced() == []
        Markers(files, instant).remove_all()
        assert not (temp / instant).exists()
    assert len(contents(tmp_path)) == 4


def test_folders_too_deep_are_an_error(tmp_path: Path):
    (tmp_path / "/".join("abcdefghij" * 5)).mkdir(parents=True)
    files = TableFiles.open(tmp_path)
    for ask in (lambda: list(list_tree(files, "a")), lambda: remove_tree(files, "a")):
        with pytest.raises(InvalidTableError, match="deeper"):
            ask()


def test_a_link_to_itself_is_as_one_to_nothing(tmp_path: Path):
    table = table_of(tmp_path)
    (tmp_path / "p0" / "self").symlink_to(tmp_path / "p0" / "self")
    (tmp_path / "self").symlink_to("self")
    assert table.scan().count() == 4
    with pytest.raises(StorageError):
        table.files.read("self")
