"""What a read of a large log takes at several memory limits: seconds, anonymous memory, bytes spilled.

Each read is a process of its own, whose anonymous memory (RssAnon) is sampled from outside; what a read of the base
files alone has at most is subtracted.  All reads must give the same rows, by a checksum that does not depend on their
order and is made in another process.

    python -m tests.benchmarks.memory_limit [--copies 95] [--limits 64,256,none] [--pair keys|positions]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py import FileGroupReader, HoodieTable
from hoodie_py.options.read import MERGE_USE_POSITIONS
from tests.benchmarks.bench_tables import TablesAbsentError
from tests.benchmarks.large_log import COPIES, large_log

_ALLOWED = 1.2
_SAMPLE_SECONDS = 0.002
_CHECKED_ROWS = 8192
_ODD = np.uint64(0x9E3779B97F4A7C15)
_MB = 1 << 20


@dataclass(frozen=True)
class Read:
    """What one process did."""

    seconds: float
    cpu_seconds: float
    rows: int
    checksum: int
    spilled: int
    peak: int


# ------------------------------------------------------------------------------------------------ the reading process


def row_hashes(batch: pa.RecordBatch) -> np.ndarray:
    """Return a number for each row that depends on every value of it."""
    total = np.zeros(batch.num_rows, np.uint64)
    for place, column in enumerate(batch.columns):
        total = (total + _hashes(column) * (np.uint64(place * int(_ODD) % (1 << 64) | 1))) * _ODD
    return total


def _hashes(column: pa.Array) -> np.ndarray:
    type_ = column.type
    if pa.types.is_list(type_):
        lengths = pc.list_value_length(column).fill_null(0).to_numpy(zero_copy_only=False)
        ends = np.cumsum(lengths)
        sums = np.concatenate([[np.uint64(0)], np.cumsum(_hashes(column.flatten()), dtype=np.uint64)])
        return sums[ends] - sums[ends - lengths] + lengths.astype(np.uint64)
    if pa.types.is_map(type_):
        lengths = np.diff(np.asarray(column.offsets)).astype(np.int64)
        ends = np.cumsum(lengths)
        pairs = _hashes(column.keys) * _ODD + _hashes(column.items)
        sums = np.concatenate([[np.uint64(0)], np.cumsum(pairs, dtype=np.uint64)])
        return sums[ends] - sums[ends - lengths]
    if pa.types.is_struct(type_):
        return row_hashes(pa.RecordBatch.from_arrays(column.flatten(), names=[field.name for field in type_]))
    if pa.types.is_integer(type_):
        return column.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64).view(np.uint64)
    if pa.types.is_binary(type_):
        return _texts(column.fill_null(b"\xff"))
    return _texts(column.cast(pa.string()).fill_null("\x00null").cast(pa.binary()))


def _texts(column: pa.Array) -> np.ndarray:
    """Sum the bytes of each text, each times a number of its place."""
    offsets = np.frombuffer(column.buffers()[1], np.int32)[column.offset :][: len(column) + 1].astype(np.int64)
    data = column.buffers()[2]
    size = int(offsets[-1] - offsets[0])
    if not size:
        return np.zeros(len(column), np.uint64)
    lengths = np.diff(offsets)
    starts = offsets[:-1] - offsets[0]
    places = (np.arange(size) - np.repeat(starts, lengths) + 1).astype(np.uint64)
    weights = places * _ODD ^ (places * _ODD) >> np.uint64(29)
    sums = np.zeros(size + 1, np.uint64)
    np.cumsum(weights * (np.frombuffer(data, np.uint8, size, int(offsets[0])) + np.uint64(1)), out=sums[1:])
    return sums[starts + lengths] - sums[starts]


def read(path: str, limit: int | None, by_position: bool, base_only: bool, check: bool) -> dict[str, Any]:
    """Read a table's rows and return facts of it."""
    began, cpu = time.monotonic(), time.process_time()
    options = {MERGE_USE_POSITIONS: str(by_position).lower()}
    kind = "read_optimized" if base_only else "snapshot"
    scan = HoodieTable.open(path).scan(query_type=kind, memory_limit=limit, options=options)
    rows = checksum = spilled = 0
    for reader in (task.reader() for task in scan.tasks()):
        for batch in _small(reader):
            rows += batch.num_rows
            checksum += int(row_hashes(batch).sum()) if check else 0
        spilled += reader.stats.spill.bytes
    seconds, cpu = time.monotonic() - began, time.process_time() - cpu
    return {
        "seconds": seconds,
        "cpu_seconds": cpu,
        "rows": rows,
        "checksum": checksum & (2**64 - 1),
        "spilled": spilled,
    }


def _small(reader: FileGroupReader) -> Iterator[pa.RecordBatch]:
    for batch in reader.to_batches():
        for start in range(0, batch.num_rows, _CHECKED_ROWS):
            yield batch.slice(start, _CHECKED_ROWS)


# ---------------------------------------------------------------------------------------------- the process around it


def measured(path: Path, limit: int | None, *, by_position: bool, base_only: bool = False, check: bool = False) -> Read:
    """Read in a process of its own, with a checksum or without, and note the most anonymous memory it has.

    Raises:
        RuntimeError: the process failed.
    """
    job = json.dumps([str(path), limit, by_position, base_only, check])
    command = [sys.executable, "-m", "tests.benchmarks.memory_limit", "--job", job]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    peak = 0
    while child.poll() is None:
        peak = max(peak, _anonymous(child.pid))
        time.sleep(_SAMPLE_SECONDS)
    output = child.stdout.read() if child.stdout is not None else ""
    if child.returncode:
        raise RuntimeError(f"reading {path} with memory_limit={limit} failed")
    return Read(**json.loads(output), peak=peak)


def _anonymous(pid: int) -> int:
    """Return the bytes of memory of a process that no file stands behind; 0 if it has gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("RssAnon")), 0)


def main() -> int:
    """Measure and print a table; fail where a limit is passed or rows differ."""
    parser = argparse.ArgumentParser(description="Measure reads of a large log at several memory limits.")
    parser.add_argument("--copies", type=int, default=COPIES)
    parser.add_argument("--limits", default="64,256,none", help="megabytes or none, separated by commas")
    parser.add_argument("--pair", choices=("keys", "positions"), default="keys")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.job:
        print(json.dumps(read(*json.loads(arguments.job))))
        return 0
    try:
        path = large_log(arguments.copies)
    except TablesAbsentError as error:
        print(error)
        return 1
    by_position = arguments.pair == "positions"
    base = measured(path, None, by_position=by_position, base_only=True)
    print(f"base files alone: {base.seconds:.1f} s, {base.peak / _MB:.0f} MB anonymous, {base.rows} rows")
    reads: list[Read] = []
    kept = True
    for text in arguments.limits.split(","):
        limit = None if text == "none" else int(text) * _MB
        done = measured(path, limit, by_position=by_position)
        above = done.peak - base.peak
        within = limit is None or above <= _ALLOWED * limit
        kept &= within
        print(
            f"{text:>5} MB: {done.seconds:5.1f} s ({done.cpu_seconds:.1f} CPU), {above / _MB:6.0f} MB above base"
            f"{'' if within else ' TOO MUCH'}, {done.spilled / _MB:6.0f} MB spilled, {done.rows} rows"
        )
        reads.append(measured(path, limit, by_position=by_position, check=True))
    same = len({(done.rows, done.checksum) for done in reads}) == 1
    print("the rows are the same" if same else "THE ROWS DIFFER")
    return 0 if same and kept else 1


if __name__ == "__main__":
    raise SystemExit(main())
