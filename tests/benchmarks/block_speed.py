"""Ways to work on one log block, timed beside each other: blocks of records of mor_small, from one to all of them."""

from __future__ import annotations

import json
import statistics
import struct
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hoodie_py.formats.log.framing import BlockType, LogBlock, iterate_blocks
from tests.benchmarks.bench_tables import TablesAbsentError, bench_table
from tests.benchmarks.processes import answer_of, load
from tests.benchmarks.results import save, versions

SMALL = (1, 10, 30, 100, 1000)
ROUNDS = 7
LEAST_SECONDS = 0.25  # one timing repeats the call until all took this long
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
        prepare: by name, ours first: makes ready what a way needs and returns what it does.
        check: raises AssertionError where they give different results.
    """

    content: bytes
    prepare: Mapping[str, Callable[[], Callable[[], Any]]]
    check: Callable[[], None]


def bench_records() -> Records:
    """Return the records of all log blocks of mor_small, which have one schema."""
    schemas: set[str] = set()
    pieces: list[bytes] = []
    for path in bench_table("mor_small").log_files:
        for block in iterate_blocks(path.read_bytes()):
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
    """Return the median processor seconds of a call in warm memory: the first calls of a process, which fetch it from
    the system, take up to three times as long.
    """
    call()
    times: list[float] = []
    total = 0.0
    while total < LEAST_SECONDS:
        began = time.process_time()
        call()
        times.append(time.process_time() - began)
        total += times[-1]
    return statistics.median(times)


def run(name: str, ways: Callable[[Records, int], Ways]) -> int:
    """Measure each way in processes of its own, in turn, keep the figures and print them; 1 when the tables are absent.

    Args:
        name: of the figures, and of the module in this package that calls this; with the name of a way behind it that
            is such a process.
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
    counts = (*SMALL, len(records.pieces))
    if len(sys.argv) > 1:
        prepared = (ways(records, count).prepare[sys.argv[1]] for count in counts)
        print(json.dumps([processor_time(prepare()) for prepare in prepared]))
        return 0
    blocks = _compared(name, [ways(records, count) for count in counts], counts)
    save(name, {"rounds": ROUNDS, "blocks": blocks}, before, versions("hoodie_py", "fastavro", "pyarrow", "numpy"))
    for block in blocks:
        (_, ours), *theirs = block["seconds"].items()
        speed = f"{block['records']:6} records: {block['records'] / ours:10,.0f} records/s"
        times = [f"{way} {each / ours:5.2f} times the time" for way, each in theirs]
        print(", ".join((speed, *times)))
    return 0


def _compared(name: str, each: Sequence[Ways], counts: Sequence[int]) -> list[dict[str, Any]]:
    """Check the blocks, time all ways on them, and return the figures of each block."""
    for ways in each:
        ways.check()
    seconds: dict[str, list[list[float]]] = {way: [] for way in each[0].prepare}
    for _ in range(ROUNDS):
        for way, found in seconds.items():
            found.append(answer_of(f"{name}, {way}", f"{__package__}.{name}", way))
    medians = {way: [statistics.median(times) for times in zip(*found, strict=True)] for way, found in seconds.items()}
    return [
        {
            "records": count,
            "bytes": len(ways.content),
            "seconds": {way: times[number] for way, times in medians.items()},
        }
        for number, (ways, count) in enumerate(zip(each, counts, strict=True))
    ]
