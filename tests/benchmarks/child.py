"""A measured process: reads a table twice and prints a ``ReadSample`` as JSON.

The first read warms up and is counted as the cold start; the second is measured. Nothing is imported before it is
needed, as imports are part of the cold start.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.benchmarks.job import (
    CHANGES,
    COUNT,
    DATAFUSION,
    DUCKDB,
    HOODIE,
    HUDI_RS,
    PLAN,
    POLARS,
    PYARROW,
    TABLE,
    Job,
    ReadSample,
)


def reader_of(job: Job) -> Callable[[], Any]:
    """Return what reads the table anew at each call: batches, a list of them, or a number of rows."""
    readers = {
        HOODIE: _hoodie,
        HUDI_RS: _hudi_rs,
        PYARROW: _pyarrow,
        POLARS: _polars,
        DUCKDB: _duckdb,
        DATAFUSION: _datafusion,
    }
    return readers[job.engine](job)


def _hoodie(job: Job) -> Callable[[], Any]:
    from hoodie_py.runtime.allocator import settle_allocators

    settle_allocators()  # as the command does; docs/memory.md has the figures without
    from hoodie_py import HoodieTable

    def read() -> Any:
        table = HoodieTable.open(job.path)
        if job.span is None:
            scan = table.scan(columns=job.columns, filter=job.filter, options=job.options)
        elif job.way == CHANGES:
            scan = table.changes(*job.span, columns=job.columns, options=job.options)
        else:
            scan = table.incremental(*job.span, columns=job.columns, options=job.options)
        if job.way == PLAN:
            return len(scan.tasks())
        if job.way == COUNT:
            return scan.count()
        return scan.to_arrow().to_batches() if job.way == TABLE else scan.to_batches()

    return read


def _hudi_rs(job: Job) -> Callable[[], Any]:
    from hudi import HudiQueryType, HudiReadOptions, HudiTable  # type: ignore[import-not-found]

    def read() -> Any:
        options = HudiReadOptions(projection=list(job.columns) if job.columns else None)
        if job.span is not None:
            start, end = job.span
            options = options.with_query_type(HudiQueryType.Incremental)
            options = options.with_start_timestamp(start).with_end_timestamp(end)
        table = HudiTable(job.path)
        return table.read(options) if job.way == TABLE else table.read_stream(options)

    return read


def _pyarrow(job: Job) -> Callable[[], Any]:
    import pyarrow.parquet as pq

    from tests.benchmarks.grow import data_files

    def read() -> Any:
        for file in data_files(Path(job.path)):
            if not file.is_log:
                yield from pq.ParquetFile(file.path).iter_batches(columns=job.columns, use_threads=False)

    return read


def _polars(job: Job) -> Callable[[], Any]:
    import polars as pl

    from hoodie_py import HoodieTable
    from hoodie_py.runtime.allocator import settle_allocators

    settle_allocators()

    def read() -> Any:
        lazy = HoodieTable.open(job.path).scan_polars().filter(pl.sql_expr(job.filter or "true"))
        return lazy.select(job.columns or pl.all()).collect().to_arrow().to_batches()

    return read


def _duckdb(job: Job) -> Callable[[], Any]:
    from hoodie_py import HoodieTable
    from hoodie_py.runtime.allocator import settle_allocators

    settle_allocators()

    def read() -> Any:
        with HoodieTable.open(job.path).scan().to_duckdb("t") as connection:
            return connection.sql(_query(job)).to_arrow_table().to_batches()

    return read


def _datafusion(job: Job) -> Callable[[], Any]:
    from hoodie_py import HoodieTable
    from hoodie_py.runtime.allocator import settle_allocators

    settle_allocators()

    def read() -> Any:
        context = HoodieTable.open(job.path).scan().to_datafusion("t")
        return context.sql(_query(job)).to_arrow_table().to_batches()

    return read


def _query(job: Job) -> str:
    return f"SELECT {', '.join(job.columns or '*')} FROM t WHERE {job.filter or 'true'}"


def processor_seconds() -> float:
    """Return user and system time of this process, threads included."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def peak_memory() -> int:
    """Return the most resident memory that this process ever had, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) << 10
    raise RuntimeError("/proc/self/status does not say the peak memory")


def rows_in(answer: Any) -> int:
    """Count the rows of an answer, taking a stream batch by batch."""
    return answer if isinstance(answer, int) else sum(batch.num_rows for batch in answer)


def check_sums(job: Job, answer: int | Iterable[Any]) -> dict[str, str]:
    """Return the sums of an answer as text."""
    from tests.benchmarks.checksums import sums_of

    if isinstance(answer, int):
        return {"n": str(answer)}
    return {name: str(value) for name, value in sums_of(job.table, answer).items()}


def measure(job: Job, began: float) -> ReadSample:
    """Read twice, and a third time for the sums where they are wanted; or once."""
    if job.processors is not None:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: job.processors])
    read = reader_of(job)
    rows = rows_in(read())
    cold_cpu, cold_wall = processor_seconds(), time.monotonic() - began
    if job.once:
        return ReadSample(cold_cpu, cold_wall, cold_cpu, cold_wall, peak_memory(), rows, {})
    cpu, wall = processor_seconds(), time.monotonic()
    answer = read()
    rows = rows_in(answer)
    cpu, wall = processor_seconds() - cpu, time.monotonic() - wall
    peak = peak_memory()
    sums = check_sums(job, answer if job.way == TABLE else read()) if job.check else {}
    return ReadSample(cold_cpu, cold_wall, cpu, wall, peak, rows, sums)


def main() -> int:
    """Do the job of the first argument, begun at the monotonic time of the second."""
    sample = measure(Job.from_json(sys.argv[1]), float(sys.argv[2]))
    print(json.dumps(asdict(sample)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
