"""Make a Parquet file without rows whose footer contains facts, for a partition's metafile in the base file format.

Readers take the facts from the footer and ignore the only column (Hudi ``ParquetUtils.writeMetaFile``).
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.parquet as pq


def make_facts_file(facts: Mapping[str, str]) -> bytes:
    """Return the bytes of a file with these keys and values in its footer."""
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, pa.schema({"dummyint": pa.int64()}), store_schema=False) as writer:
        writer.add_key_value_metadata(dict(facts))
    return bytes(sink.getvalue())
