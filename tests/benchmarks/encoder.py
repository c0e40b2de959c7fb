"""The encoder of log blocks beside fastavro: records of mor_small, from one to all of them in one block.

    python -m tests.benchmarks.encoder

fastavro is timed twice: writing dicts that are there already, which is all its own work, and making them of the same
Arrow batch first, which is what a writer of Arrow data would have to do. Both give the bytes that we give.
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Callable, Sequence
from typing import Any

import fastavro
import pyarrow as pa
from fastavro.schema import parse_schema

from hoodie_py.formats.avro.data_blocks import AvroSchema, decode_avro_data
from hoodie_py.formats.avro.encoder import encode_records
from tests.benchmarks.block_speed import Records, Ways, run
from tests.benchmarks.decoder import fastavro_rows

_LENGTH = struct.Struct(">i")


def fastavro_block(rows: Sequence[dict[str, Any]], schema: Any) -> bytes:
    """Encode the content of a block from dicts."""
    pieces = [struct.pack(">ii", 3, len(rows))]
    for row in rows:
        stream = io.BytesIO()
        fastavro.schemaless_writer(stream, schema, row)
        pieces += (_LENGTH.pack(stream.tell()), stream.getvalue())
    return b"".join(pieces)


def ways(records: Records, count: int) -> Ways:
    """Return the three ways to encode a block of ``count`` records."""
    content = records.block(count)
    ours = AvroSchema.parse(records.schema)
    theirs = parse_schema(json.loads(records.schema))
    batch: pa.RecordBatch = decode_avro_data(content, ours)

    def from_dicts() -> Callable[[], bytes]:
        rows = fastavro_rows(content, theirs)
        return lambda: fastavro_block(rows, theirs)

    prepare: dict[str, Callable[[], Callable[[], bytes]]] = {
        "hoodie_py": lambda: lambda: encode_records(batch, ours),
        "fastavro from dicts": from_dicts,
        "fastavro from Arrow": lambda: lambda: fastavro_block(batch.to_pylist(), theirs),
    }

    def check() -> None:
        for name, make in prepare.items():
            assert make()() == content, f"{name} encodes a block of {count} records otherwise than Java"

    return Ways(content, prepare, check)


if __name__ == "__main__":
    raise SystemExit(run("encoder", ways))
