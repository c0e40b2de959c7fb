"""The decoder of log blocks beside fastavro: records of mor_small, from one to all of them in one block.

    python -m tests.benchmarks.decoder

fastavro is timed twice: making a dict a record, which is all its own work, and making those dicts an Arrow batch, which
is the same result as ours. Its dicts are compared with our rows.
"""

from __future__ import annotations

import io
import json
import struct
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import fastavro
import pyarrow as pa
from fastavro.schema import parse_schema

from hoodie_py.formats.avro import AvroSchema, decode_avro_data
from hoodie_py.formats.log import BlockType, LogBlock, iter_blocks
from tests.benchmarks.bench_tables import TablesAbsentError, bench_table
from tests.benchmarks.processes import load
from tests.benchmarks.results import save, versions

SMALL = (1, 10, 30, 100, 1000)
ROUNDS = 7
LEAST_SECONDS = 0.05  # one timing repeats the call until it took this long
_HEADER = 8


@dataclass(frozen=True)
class Records:
    """Encoded records of one schema, each with the length in front of it."""

    schema: str
    pieces: list[bytes]

    def block(self, count: int) -> bytes:
        """Return the content of a block with the first ``count`` records."""
        return struct.pack(">ii", 3, count) + b"".join(self.pieces[:count])


def bench_records() -> Records:
    """Return the records of all log blocks of mor_small, which have one schema."""
    schemas: set[str] = set()
    pieces: list[bytes] = []
    for path in bench_table("mor_small").log_files:
        for block in iter_blocks(path.read_bytes()):
            if isinstance(block, LogBlock) and block.type is BlockType.AVRO_DATA:
                schemas.add(block.schema_text or "")
                pieces += _split(block.content)
    (schema,) = schemas
    return Records(schema, pieces)


def _split(content: memoryview) -> Iterator[bytes]:
    at = _HEADER
    while at < len(content):
        end = at + 4 + int.from_bytes(content[at : at + 4], "big")
        yield bytes(content[at:end])
        at = end


def fastavro_rows(content: bytes, schema: Any) -> list[Any]:
    """Decode a block's records into dicts."""
    stream = io.BytesIO(content)
    stream.seek(_HEADER)
    rows = []
    for _ in range(int.from_bytes(content[4:8], "big")):
        stream.read(4)
        rows.append(fastavro.schemaless_reader(stream, schema))
    return rows


def processor_time(call: Callable[[], object]) -> float:
    """Return processor seconds of one call."""
    calls = 0
    began = time.process_time()
    while True:
        call()
        calls += 1
        took = time.process_time() - began
        if took >= LEAST_SECONDS:
            return took / calls


def compare(records: Records, count: int) -> dict[str, Any]:
    """Time the three ways on a block of ``count`` records, in turn, after one run each that is not counted.

    Raises:
        AssertionError: rows that differ.
    """
    content = records.block(count)
    ours = AvroSchema.parse(records.schema)
    theirs = parse_schema(json.loads(records.schema))
    calls: dict[str, Callable[[], Any]] = {
        "hoodie_py": lambda: decode_avro_data(content, ours),
        "fastavro to dicts": lambda: fastavro_rows(content, theirs),
        "fastavro to Arrow": lambda: pa.RecordBatch.from_pylist(fastavro_rows(content, theirs), ours.arrow),
    }
    wanted = calls["fastavro to Arrow"]()
    assert calls["hoodie_py"]().equals(wanted), f"the decoders disagree on a block of {count} records"
    assert wanted.num_rows == count
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
    """Measure, keep the figures and print them; 1 when rows differ or the tables are absent."""
    before = load()
    try:
        records = bench_records()
    except TablesAbsentError as error:
        print(error, file=sys.stderr)
        return 1
    blocks = [compare(records, count) for count in (*SMALL, len(records.pieces))]
    save("decoder", {"rounds": ROUNDS, "blocks": blocks}, before, versions("hoodie_py", "fastavro", "pyarrow", "numpy"))
    for block in blocks:
        ours, dicts, arrow = (
            block["seconds"][name] for name in ("hoodie_py", "fastavro to dicts", "fastavro to Arrow")
        )
        speed = f"{block['records']:6} records: {block['records'] / ours:10,.0f} records/s"
        print(f"{speed}, fastavro {dicts / ours:5.2f} times the time to dicts, {arrow / ours:5.2f} times to Arrow")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
