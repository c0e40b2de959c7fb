"""The framing of log files."""

from __future__ import annotations

from contextlib import suppress

from hoodie_py.errors import HoodieError
from hoodie_py.formats.log.framing import MAGIC, LogBlock, iterate_blocks
from tests.fuzz.seeds import all_files, distinct, is_log


def seeds() -> list[bytes]:
    """The shortest real log files."""
    return distinct((data for _, _, data in all_files(is_log, 6000)), 30)


def parse(data: bytes) -> None:
    """Walk the blocks; they follow each other without a gap."""
    offset = 0
    with suppress(HoodieError):
        for block in iterate_blocks(data):
            assert not data[offset : block.offset].replace(MAGIC, b"")  # a magic that another follows at once
            offset = block.offset + block.size if isinstance(block, LogBlock) else block.end
            assert block.offset < offset <= len(data)
            if isinstance(block, LogBlock):
                _look_at(block)


def _look_at(block: LogBlock) -> None:
    _ = block.instant_time, block.target_instant_time, block.compacted_instants, block.is_partial, block.is_data
    with suppress(HoodieError):
        _ = block.is_rollback
