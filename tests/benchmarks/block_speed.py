"""Ways to work on one log block, timed beside each other: blocks of records of mor_small, from one to all of them."""

from __future__ import annotations

import statistics
import struct
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hoodie_py.formats.log import BlockType, LogBlock, iter_blocks
from tests.benchmarks.bench_tables import TablesAbsentError, bench_table
from tests.benchmarks.processes import load
from tests.benchmarks.results import save, versions

SMALL = (1, 10, 30, 100, 1000)
ROUNDS = 7
LEAST_SECONDS = 0.25  # one timing repeats the call until it took this long
HEADER = 8  # bytes of a block's content in front of its records


@dataclass(frozen=True)
class Records:
    """Encoded records of one schema, each with the length in front of it."""

    schema: str
    pieces: list[bytes]

    def block(self, count: int) -> bytes:
        """Return the content of a block with the first ``count`` records."""
        return struct.pack(">ii", 3, count) + b"".join(self.pieces[:count])


@dataclass(frozen=True)
class Ways:
    """What is to be timed on a block.

    Attributes:
        content: of the block.
        calls: what each way does, by name; ours is the first.
        check: raises AssertionError where they give different results.
    """

    content: bytes
    calls: Mapping[str, Callable[[], Any]]
    check: Callable[[], None]


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
    at = HEADER
    while at < len(content):
        end = at + 4 + int.from_bytes(content[at : at + 4], "big")
        yield bytes(content[at:end])
        at = end


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


def compare(ways: Ways, count: int) -> dict[str, Any]:
    """Time all ways on a block of ``count`` records, in turn, after the check.

    Raises:
        AssertionError: results that differ.
    """
    ways.check()
    seconds: dict[str, list[float]] = {name: [] for name in ways.calls}
    for _ in range(ROUNDS):
        for name, call in ways.calls.items():
            seconds[name].append(processor_time(call))
    medians = {name: statistics.median(each) for name, each in seconds.items()}
    return {"records": count, "bytes": len(ways.content), "seconds": medians}


def run(name: str, ways: Callable[[Records, int], Ways]) -> int:
    """Measure, keep the figures and print them; 1 when the tables are absent.

    Args:
        name: of the figures.
        ways: returns what is to be timed on a block of so many of the records.

    Raises:
        AssertionError: results that differ.
    """
    before = load()
    try:
        records = bench_records()
    except TablesAbsentError as error:
        print(error, file=sys.stderr)
        return 1
    blocks = [compare(ways(records, count), count) for count in (*SMALL, len(records.pieces))]
    save(name, {"rounds": ROUNDS, "blocks": blocks}, before, versions("hoodie_py", "fastavro", "pyarrow", "numpy"))
    for block in blocks:
        (_, ours), *theirs = block["seconds"].items()
        speed = f"{block['records']:6} records: {block['records'] / ours:10,.0f} records/s"
        times = [f"{way} {each / ours:5.2f} times the time" for way, each in theirs]
        print(", ".join((speed, *times)))
    return 0
