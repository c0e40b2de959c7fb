"""Delete blocks of all versions."""

from __future__ import annotations

from decimal import Decimal

from hoodie_py.errors import HoodieError
from hoodie_py.formats.deletes.decoder import AVRO_VERSION, OrderingKind, decode_deletes, decode_deletes_together
from hoodie_py.formats.log.framing import BlockType, LogBlock, iterate_blocks
from tests.formats.log_writer import KryoWriter, delete_content, deletes
from tests.fuzz.seeds import all_files, distinct, is_log

GOOD = deletes([("g", "p", 1)])
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
        for block in iterate_blocks(data)
        if isinstance(block, LogBlock) and block.type is BlockType.DELETE
    )
    found = distinct(real, 20) + [deletes([sample]) for sample in SAMPLES] + [deletes(SAMPLES), deletes([])]
    found.append(delete_content(1, KryoWriter().keys([("k1", "p"), ("k2", None)])))
    found.append(delete_content(2, KryoWriter().deletes([("k1", "p", 5), ("k2", "p", "x")])))
    return found


def parse(data: bytes) -> None:
    """Decode the content as it is, and with its header made to agree; alone and between others."""
    for content in (data, delete_content(3, data)):
        joint = decode_deletes_together([GOOD, content, GOOD])
        try:
            found = decode_deletes(content)
        except HoodieError:
            assert joint is None
            continue
        found.keys.validate(full=True)
        assert len(found) == len(found.keys) == len(found.kinds) <= len(content)
        assert found.keys.null_count == 0
        if joint is not None:
            assert joint.counts == (1, len(found), 1)
            inner = joint.records.keys[1:-1]
            assert inner.equals(found.keys)
            assert joint.records.kinds[1:-1].tolist() == found.kinds.tolist()
            assert repr(joint.records.values[1:-1]) == repr(found.values)
        else:
            assert content[3] != AVRO_VERSION
