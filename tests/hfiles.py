"""HFiles of a few entries."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from hoodie_py.formats.hfile.blocks import NO_COMPRESSION
from hoodie_py.formats.hfile.data_block import Entry
from hoodie_py.formats.hfile.writer import write_columns


def write_hfile(entries: Sequence[Entry], *, schema: str, created_ms: int, codec: int = NO_COMPRESSION) -> bytes:
    """Encode an HFile; arguments and errors are those of ``write_columns``."""
    keys = pa.array([key for key, _ in entries], pa.large_binary())
    values = pa.array([value for _, value in entries], pa.large_binary())
    return write_columns(keys, values, schema=schema, created_ms=created_ms, codec=codec)
