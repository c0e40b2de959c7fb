"""Make a Parquet file without rows that has facts in its footer, as a partition's metafile in the base file format.

Readers take the facts from the footer and ignore the one column (Hudi ``ParquetUtils.writeMetaFile``).
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.parquet as pq


def make_facts_file(facts: Mapping[str, str]) -> bytes:
    """Return the bytes of a file with these keys and values in its footer."""
    sink = pa.BufferOutputStream()
    empty = pa.schema([pa.field("dummyint", pa.int64())], metadata=dict(facts)).empty_table()
    pq.write_table(empty, sink, store_schema=False)
    return bytes(sink.getvalue())
