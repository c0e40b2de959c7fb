"""Bloom filters of given keys."""

from __future__ import annotations

import pyarrow as pa

from hoodie_py.formats.parquet.bloom import BloomBuilder, BloomFilter, BloomSettings


def build_bloom(keys: pa.Array | pa.ChunkedArray, settings: BloomSettings | None = None) -> BloomFilter:
    """Build the filter of all rows of a file; errors as ``BloomBuilder``."""
    builder = BloomBuilder(settings)
    builder.add(keys)
    return builder.finish()
