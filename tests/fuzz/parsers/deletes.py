"""Delete blocks of all versions."""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal

from hoodie_py.errors import HoodieError
from hoodie_py.formats.deletes import OrderingKind, decode_deletes
from hoodie_py.formats.log import BlockType, LogBlock, iter_blocks
from tests.formats.log_writer import KryoWriter, delete_content, deletes
from tests.fuzz.seeds import all_files, distinct, is_log

SAMPLES: tuple[tuple[str, str | None, object], ...] = (
    ("k1", "p", None), ("k2", None, 7), ("k3", "p", 1 << 40), ("k4", "p", 1.5), ("k5", "p", "text"),
    ("k6", "p", b"\0\xff"),
    ("k7", "p", True), ("k8", "p", Decimal("1.25")), ("k9", "p", (OrderingKind.DATE, 19000)),
    ("ka", "p", (OrderingKind.TIMESTAMP_MICROS, 10**15)), ("kb", "p", (OrderingKind.ARRAY, [1, "x", None])),
)  # fmt: skip


def seeds() -> list[bytes]:
    """Real delete blocks, one of each version, and one of every ordering type."""
    real = (
        bytes(block.content)
        for _, _, data in all_files(is_log)
        for block in iter_blocks(data)
        if isinstance(block, LogBlock) and block.type is BlockType.DELETE
    )
    found = distinct(real, 20) + [deletes([sample]) for sample in SAMPLES] + [deletes(SAMPLES), deletes([])]
    found.append(delete_content(1, KryoWriter().keys([("k1", "p"), ("k2", None)])))
    found.append(delete_content(2, KryoWriter().deletes([("k1", "p", 5), ("k2", "p", "x")])))
    return found


def parse(data: bytes) -> None:
    """Decode the content as it is, and with its header made to agree."""
    for content in (data, delete_content(3, data)):
        with suppress(HoodieError):
            found = decode_deletes(content)
            found.keys.validate(full=True)
            assert len(found) == len(found.keys) == len(found.kinds) <= len(content)
            assert found.keys.null_count == 0
