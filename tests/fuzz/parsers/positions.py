"""Record positions: the Base64 text, and any bytes as its bitmap."""

from __future__ import annotations

import base64
from contextlib import suppress

from pyroaring import BitMap64

from hoodie_py.errors import HoodieError
from hoodie_py.formats.log.blocks import decode_positions
from hoodie_py.formats.log.framing import LogBlock, iterate_blocks
from tests.fuzz.seeds import all_files, distinct, is_log

SETS: tuple[list[int], ...] = (
    [],
    [5],
    list(range(20)),
    list(range(0, 9000, 2)),
    list(range(100_000, 180_000)),
    [3, 1 << 20, 1 << 33, (1 << 40) + 1],
)


def seeds() -> list[bytes]:
    """Real positions, and bitmaps of each kind of container."""
    real = (
        base64.b64decode(block.record_positions)
        for _, _, data in all_files(is_log)
        for block in iterate_blocks(data)
        if isinstance(block, LogBlock) and block.record_positions
    )
    made = [BitMap64(values) for values in SETS]
    for bitmap in made:
        bitmap.run_optimize()
    return distinct(real, 20) + [BitMap64(values).serialize() for values in SETS] + [each.serialize() for each in made]


def parse(data: bytes) -> None:
    """Decode with and without knowing how many there are."""
    for text in (data.decode("latin-1"), base64.b64encode(data).decode()):
        with suppress(HoodieError):
            positions = decode_positions(text)
            assert len(positions) < 2 or (positions[1:] > positions[:-1]).all()
            assert len(positions) == 0 or positions[0] >= 0
            assert len(decode_positions(text, len(positions))) == len(positions)
