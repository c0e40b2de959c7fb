"""The decoder of log blocks beside fastavro: records of mor_small, from one to all of them in one block.

    python -m tests.benchmarks.decoder

fastavro is timed twice: making a dict a record, which is all its own work, and making those dicts an Arrow batch, which
is the same result as ours and is compared with it. Ours gets a block as a table's reader does, amid other bytes in
Arrow's memory; fastavro gets its bytes.
"""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pyarrow as pa
from fastavro.schema import parse_schema

from hoodie_py.formats.avro.data_blocks import AvroSchema, decode_avro_data
from tests.benchmarks.block_speed import HEADER, Records, Ways, run

AROUND = 100  # bytes on both sides of a block: its headers, and what follows


def fastavro_rows(content: bytes, schema: Any) -> list[Any]:
    """Decode a block's records into dicts."""
    stream = io.BytesIO(content)
    stream.seek(HEADER)
    rows = []
    for _ in range(int.from_bytes(content[4:8], "big")):
        stream.read(4)
        rows.append(fastavro.schemaless_reader(stream, schema))
    return rows


def in_a_file(content: bytes) -> memoryview:
    """Return a block's content where it lies in the bytes of a log file that were read."""
    read = pa.py_buffer(b"".join((bytes(AROUND), content, bytes(AROUND))))
    return memoryview(read)[AROUND : AROUND + len(content)]


def ways(records: Records, count: int) -> Ways:
    """Return the three ways to decode a block of ``count`` records."""
    content = records.block(count)
    lying = in_a_file(content)
    ours = AvroSchema.parse(records.schema)
    theirs = parse_schema(json.loads(records.schema))

    def to_arrow() -> pa.RecordBatch:
        return pa.RecordBatch.from_pylist(fastavro_rows(content, theirs), ours.arrow)

    def check() -> None:
        wanted = to_arrow()
        assert decode_avro_data(lying, ours).equals(wanted), f"the decoders disagree on a block of {count} records"
        assert wanted.num_rows == count

    prepare = {
        "hoodie_py": lambda: lambda: decode_avro_data(lying, ours),
        "fastavro to dicts": lambda: lambda: fastavro_rows(content, theirs),
        "fastavro to Arrow": lambda: to_arrow,
    }
    return Ways(content, prepare, check)


if __name__ == "__main__":
    raise SystemExit(run("decoder", ways))
