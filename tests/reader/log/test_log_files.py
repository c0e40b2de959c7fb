"""The bytes of log files are those on disk, in Arrow's memory or mapped."""

from __future__ import annotations

import mmap
import os
from dataclasses import replace
from pathlib import Path

import pytest

from hoodie_py.errors import CorruptFileError, FileMissingError, StorageError
from hoodie_py.files import TableFiles
from hoodie_py.formats.avro.columnar_cursor import BACK
from hoodie_py.formats.log.framing import BlockType, HeaderKey, LogBlock, iterate_blocks
from hoodie_py.formats.names import LogFileName
from hoodie_py.reader.file_slice import LogFile
from hoodie_py.reader.log import log_files as log_bytes
from hoodie_py.reader.log.log_files import LogOnDemand, open_logs
from hoodie_py.reader.memory.budget import MemoryBudget
from hoodie_py.reader.memory.spill import Spill
from hoodie_py.reader.read_info import ReadStats
from tests.arrow_memory import watched
from tests.formats.log_writer import block
from tests.watched_requests import far_store

CONTENTS = {"one": bytes(range(256)) * 1000, "two": b"", "three": b"x"}


def kinds(files: TableFiles, limit: int, *sizes: int) -> list[type]:
    """Return how files of such sizes are opened, the first being ``one``, the second ``two`` and so on."""
    logs = [replace(log_file(path), size=size) for path, size in zip(CONTENTS, sizes, strict=False)]
    return [type(log) for log in open_logs(files, logs, Spill(MemoryBudget(limit), ReadStats()))]


def log_file(path: str) -> LogFile:
    return LogFile(path, len(CONTENTS.get(path, b"")), LogFileName("f", "1", 1, "0-0-0"))


def contents(files: TableFiles, *names: str) -> list[bytes]:
    logs = [log_file(path) for path in names]
    return [bytes(log.read()) for log in open_logs(files, logs, Spill(MemoryBudget(1 << 30), ReadStats()))]


@pytest.fixture
def files(tmp_path: Path) -> TableFiles:
    for name, content in CONTENTS.items():
        (tmp_path / name).write_bytes(content)
    return TableFiles.open(tmp_path)


def test_files_come_in_order_as_they_are(files: TableFiles) -> None:
    assert contents(files, *CONTENTS) == list(CONTENTS.values())
    assert contents(files, "two") == [b""]
    assert contents(files) == []


def test_a_local_file_takes_arrow_memory_until_its_last_block_is_let_go_of(files: TableFiles) -> None:
    allocated = watched()
    (log,) = open_logs(files, [log_file("one")], Spill(MemoryBudget(1 << 30), ReadStats()))
    data = log.read()
    part = memoryview(data)[10:20]
    assert part.readonly
    assert 0 <= allocated() - len(CONTENTS["one"]) - BACK < 64
    del log, data
    assert bytes(part) == CONTENTS["one"][10:20]
    del part
    assert allocated() == 0


@pytest.mark.parametrize("most", [0, 1 << 20])
def test_small_files_lie_in_one_piece(files: TableFiles, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(log_bytes, "_MOST_SHARED", most)
    spill = Spill(MemoryBudget(1 << 30), ReadStats())
    first, second = (memoryview(log.read()) for log in open_logs(files, [log_file("one"), log_file("three")], spill))
    assert (first.obj is second.obj) == (most > 0)
    assert (first, second) == (CONTENTS["one"], CONTENTS["three"])


def test_a_file_that_has_grown_since_it_was_listed_has_a_piece_of_its_own(files: TableFiles) -> None:
    logs = [replace(log_file("one"), size=10), log_file("three")]
    first, second = (
        memoryview(log.read()) for log in open_logs(files, logs, Spill(MemoryBudget(1 << 30), ReadStats()))
    )
    assert (first, second) == (CONTENTS["one"], CONTENTS["three"])


def test_a_small_delete_block_does_not_keep_the_files_of_its_slice(files: TableFiles, tmp_path: Path) -> None:
    data = block(BlockType.AVRO_DATA, {HeaderKey.INSTANT_TIME: "1"}, bytes(1000))
    deletes = block(BlockType.DELETE, {HeaderKey.INSTANT_TIME: "1"}, bytes(100))
    (tmp_path / "one").write_bytes(data)
    (tmp_path / "three").write_bytes(deletes)
    logs = [replace(log_file("one"), size=len(data)), replace(log_file("three"), size=len(deletes))]
    allocated = watched()
    scanned = [
        log.make_scanned(found)
        for log in open_logs(files, logs, Spill(MemoryBudget(1 << 30), ReadStats()))
        for found in iterate_blocks(log.read())
        if isinstance(found, LogBlock) and found.type is BlockType.DELETE
    ]
    assert bytes(scanned[0].block.content) == bytes(100)
    assert allocated() == 0


def test_files_are_in_memory_in_turn_if_all_of_them_together_are_large(
    files: TableFiles,
) -> None:
    assert kinds(files, 8 * 1000, 500, 499, 1) == [log_bytes._WholeLog] * 3
    assert kinds(files, 8 * 1000, 500, 500, 1) == [LogOnDemand] * 3
    with far_store():
        assert kinds(files, 1 << 30, 1001, 1001) == [log_bytes._WholeLog] * 2


def test_a_local_file_is_mapped_only_if_it_alone_cannot_be_held(files: TableFiles) -> None:
    size = len(CONTENTS["one"])
    for limit, is_mapped in ((8 * size, False), (8 * size - 8, True)):
        _, log = open_logs(files, [log_file("one"), log_file("one")], Spill(MemoryBudget(limit), ReadStats()))
        assert isinstance(log.read(), mmap.mmap) is is_mapped
        assert bytes(log.read()) == CONTENTS["one"]


@pytest.mark.parametrize("files_held", [1, 2])
def test_a_file_that_is_cut_short_while_it_is_read_keeps_its_bytes(
    files: TableFiles, tmp_path: Path, files_held: int
) -> None:
    content = CONTENTS["one"] * 40
    (tmp_path / "one").write_bytes(content)
    large = replace(log_file("one"), size=len(content))
    spill = Spill(MemoryBudget(8 * files_held * len(content)), ReadStats())
    log = next(open_logs(files, [large, large], spill))
    data = memoryview(log.read())
    assert data.readonly
    os.truncate(tmp_path / "one", 10)
    assert data == content  # to touch a page of a mapped file would end the process here
    assert bytes(next(open_logs(files, [large], spill)).read()) == content[:10]


@pytest.mark.parametrize("part_held", [8, 1])
def test_a_block_that_is_cut_off_before_its_turn_is_corrupt(files: TableFiles, tmp_path: Path, part_held: int) -> None:
    content = block(BlockType.AVRO_DATA, {HeaderKey.INSTANT_TIME: "1"}, b"content")
    for name in ("one", "three"):
        (tmp_path / name).write_bytes(content)
    logs = [replace(log_file(name), size=len(content)) for name in ("one", "three")]
    scanned = [
        log.make_scanned(found)
        for log in open_logs(files, logs, Spill(MemoryBudget(part_held * len(content)), ReadStats()))
        for found in iterate_blocks(log.read())
        if isinstance(found, LogBlock)
    ]
    os.truncate(tmp_path / "three", len(content) - 1)
    assert [len(each.block.content) for each in scanned] == [0, 0]
    assert bytes(scanned[0].load().content) == b"content"
    with pytest.raises(CorruptFileError, match="cut short while its file was read"):
        scanned[1].load()


def test_a_file_elsewhere_is_read_through_its_store(files: TableFiles) -> None:
    with far_store():
        assert contents(files, *CONTENTS) == list(CONTENTS.values())
        assert contents(files, "three") == [b"x"]


def test_what_cannot_be_read_is_named(files: TableFiles, tmp_path: Path) -> None:
    with pytest.raises(FileMissingError) as missing:
        contents(files, "one", "gone")
    assert (missing.value.where["path"], missing.value.where["operation"]) == (str(tmp_path / "gone"), "read")
    (tmp_path / "folder").mkdir()
    with pytest.raises(StorageError) as folder:
        contents(files, "folder")
    assert folder.value.where["path"] == str(tmp_path / "folder")
