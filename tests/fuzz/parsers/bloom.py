"""Bloom filters in the footers of base files."""

from __future__ import annotations

import base64
from contextlib import suppress

import pyarrow as pa

from hoodie_py.errors import HoodieError
from hoodie_py.formats.parquet.bloom import DYNAMIC, SIMPLE, BloomFilter, BloomSettings
from tests.formats.blooms import build_bloom

KEYS = pa.array(["", "key-1", "ü" * 40])


def seeds() -> list[bytes]:
    """Filters of both types."""
    found = []
    for kind in (SIMPLE, DYNAMIC):
        settings = BloomSettings(20, max_entries=60, dynamic=kind == DYNAMIC)
        for count in (0, 3, 50):
            keys = pa.array([f"key-{number}" for number in range(count)], pa.string())
            found.append(bytes([kind == DYNAMIC]) + build_bloom(keys, settings).to_bytes())
    return found


def parse(data: bytes) -> None:
    """Read the filter that the first byte says, and ask it; it must be written as it was read."""
    text = base64.b64encode(data[1:]).decode()
    with suppress(HoodieError):
        found = BloomFilter.from_text(text, DYNAMIC if data[:1] == b"\1" else SIMPLE)
        assert len(found.may_contain(KEYS)) == len(KEYS)
        assert found.to_bytes() == data[1:]
    with suppress(HoodieError):
        BloomFilter.from_text(data.decode("latin-1"))
