"""The encoder of log blocks beside fastavro: records of mor_small, from one to all of them in one block.

    python -m tests.benchmarks.encoder

fastavro is timed twice: writing dicts that are there already, which is all its own work, and making them of the same
Arrow batch first, which is what a writer of Arrow data would have to do. Both give the bytes that we give.
"""

from __future__ import annotations

import io
import json
import struct
import sys
from collections.abc import Callable, Sequence
from typing import Any

import fastavro
import pyarrow as pa
from fastavro.schema import parse_schema

from hoodie_py.formats.avro import AvroSchema, decode_avro_data
from hoodie_py.formats.avro_encoder import encode_records
from tests.benchmarks.bench_tables import TablesAbsentError
from tests.benchmarks.decoder import ROUNDS, SMALL, Records, bench_records, fastavro_rows, processor_time
from tests.benchmarks.processes import load
from tests.benchmarks.results import save, versions

_LENGTH = struct.Struct(">i")
WAYS = ("hoodie_py", "fastavro from dicts", "fastavro from Arrow")


def fastavro_block(rows: Sequence[dict[str, Any]], schema: Any) -> bytes:
    """Encode the content of a block from dicts."""
    pieces = [struct.pack(">ii", 3, len(rows))]
    for row in rows:
        stream = io.BytesIO()
        fastavro.schemaless_writer(stream, schema, row)
        pieces += (_LENGTH.pack(stream.tell()), stream.getvalue())
    return b"".join(pieces)


def compare(records: Records, count: int) -> dict[str, Any]:
    """Time the three ways on a block of ``count`` records, in turn, after one run each that is not counted.

    Raises:
        AssertionError: bytes that differ.
    """
    content = records.block(count)
    ours = AvroSchema.parse(records.schema)
    theirs = parse_schema(json.loads(records.schema))
    batch: pa.RecordBatch = decode_avro_data(content, ours)
    rows = fastavro_rows(content, theirs)
    calls: dict[str, Callable[[], bytes]] = {
        WAYS[0]: lambda: encode_records(batch, ours),
        WAYS[1]: lambda: fastavro_block(rows, theirs),
        WAYS[2]: lambda: fastavro_block(batch.to_pylist(), theirs),
    }
    for name, call in calls.items():
        assert call() == content, f"{name} encodes a block of {count} records otherwise than Java"
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            seconds[name].append(processor_time(call))
    return {
        "records": count,
        "bytes": len(content),
        "seconds": {name: sorted(each)[ROUNDS // 2] for name, each in seconds.items()},
    }


def main() -> int:
    """Measure, keep the figures and print them; 1 when bytes differ or the tables are absent."""
    before = load()
    try:
        records = bench_records()
    except TablesAbsentError as error:
        print(error, file=sys.stderr)
        return 1
    blocks = [compare(records, count) for count in (*SMALL, len(records.pieces))]
    save("encoder", {"rounds": ROUNDS, "blocks": blocks}, before, versions("hoodie_py", "fastavro", "pyarrow", "numpy"))
    for block in blocks:
        ours, dicts, arrow = (block["seconds"][name] for name in WAYS)
        speed = f"{block['records']:6} records: {block['records'] / ours:10,.0f} records/s"
        print(f"{speed}, fastavro {dicts / ours:5.2f} times the time from dicts, {arrow / ours:5.2f} times from Arrow")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
