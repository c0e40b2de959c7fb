"""Which blocks of a slice's log files count."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoodie_py.errors import CorruptFileError, UnsupportedFeatureError
from hoodie_py.files import TableFiles
from hoodie_py.formats.log.framing import BlockType, HeaderKey
from hoodie_py.formats.names import LogFileName
from hoodie_py.reader.file_slice import BlockRules, LogFile
from hoodie_py.reader.log.scan import scan_log_files
from hoodie_py.reader.memory.budget import MemoryBudget
from hoodie_py.reader.memory.spill import Spill
from hoodie_py.reader.read_info import ReadStats
from tests.formats.log_writer import block, rollback

DATA = block(BlockType.AVRO_DATA, {HeaderKey.INSTANT_TIME: "1"}, b"content")


def instants(folder: Path, content: bytes) -> tuple[list[str | None], ReadStats]:
    (folder / "log").write_bytes(content)
    logs = [LogFile("log", len(content), LogFileName("f", "1", 1, "0-0-0"))]
    stats = ReadStats()
    spill = Spill(MemoryBudget(1 << 20), ReadStats())
    found = scan_log_files(TableFiles.open(folder), logs, BlockRules(query_instant="9"), stats, spill)
    return [each.block.instant_time for each in found], stats


def command(**headers: str) -> bytes:
    known = {HeaderKey.INSTANT_TIME: "2", HeaderKey.TARGET_INSTANT_TIME: "1"}
    return block(BlockType.COMMAND, known | {HeaderKey[name]: text for name, text in headers.items()}, b"")


def test_a_rollback_takes_back_what_came_before_it(tmp_path: Path) -> None:
    found, stats = instants(tmp_path, DATA + rollback("2", "1"))
    assert (found, stats.rollback_blocks) == ([], 1)


def test_a_command_other_than_rollback_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"Log command '7' is not known") as caught:
        instants(tmp_path, DATA + command(COMMAND_BLOCK_TYPE="7"))
    assert caught.value.where["offset"] == len(DATA)


def test_a_command_block_that_does_not_say_which_command_is_corrupt(tmp_path: Path) -> None:
    with pytest.raises(CorruptFileError, match="does not say which command"):
        instants(tmp_path, DATA + command())
