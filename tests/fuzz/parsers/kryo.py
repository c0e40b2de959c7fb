"""Kryo objects of old delete blocks."""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal

from hoodie_py.errors import HoodieError
from hoodie_py.formats.deletes.decoder import decode_deletes
from hoodie_py.formats.deletes.kryo import read_deletes
from tests.formats.log_writer import KryoWriter, delete_content

VALUES: tuple[object, ...] = (
    None, 5, -1, 2.5, "text", "ü" * 70, True, Decimal("-1.25"), ("long", 1 << 60), ("long", -3), ("float", 0.5)
)  # fmt: skip


def seeds() -> list[bytes]:
    """Arrays of keys and of records with every ordering type."""
    found = [KryoWriter().deletes([("key", "p", value), ("key", "p", value)]) for value in VALUES]
    found.append(KryoWriter().deletes([(f"key{i}", None, value) for i, value in enumerate(VALUES)]))
    found += [KryoWriter().keys([]), KryoWriter().keys([("a", "p"), ("a", "p"), ("bb", None)])]
    return found


def parse(data: bytes) -> None:
    """Read the objects alone, and as a block of version 2."""
    with suppress(HoodieError):
        assert len(read_deletes(data)) <= len(data)
    with suppress(HoodieError):
        decode_deletes(delete_content(2, data))
