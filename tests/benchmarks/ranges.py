"""A range of one commit in a hundred beside a full scan of the same table, by hoodie_py and by hudi-rs.

    python -m tests.benchmarks.ranges --rounds 3

Each way runs in processes of its own, in turn with the others, on a local disk; figures are medians. Once more each
reads from an S3 server that counts requests and bytes. Rows and sums of every answer are checked.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.benchmarks.bench_tables import cache_folder
from tests.benchmarks.checksums import Sums, differences
from tests.benchmarks.command import say
from tests.benchmarks.counting_s3 import BUCKET, CountingS3, counting_s3
from tests.benchmarks.history_tables import COMMITS, SHAPES, SHARE, HistoryTable, history_table
from tests.benchmarks.job import CHANGES, HOODIE, HUDI_RS, PLAN, TABLE, Job, ReadSample
from tests.benchmarks.processes import interleaved, load, run_job
from tests.benchmarks.results import medians, save, versions

FULL, RANGE, PLANNED, CHANGED = "full scan", "range", "range, planned only", "changes in the range"


@dataclass(frozen=True)
class Cost:
    """What a way takes from a store: requests, bytes, and the objects that it reads."""

    requests: int
    bytes: int
    objects: int


def jobs(table: HistoryTable) -> Iterator[Job]:
    """Yield the ways that are compared."""
    span = table.start, table.end

    def job(engine: str, query: str, **rest: Any) -> Job:
        return Job(f"{engine} {query}", table.name, str(table.path), engine, **rest)

    yield job(HOODIE, FULL)
    yield job(HOODIE, RANGE, span=span)
    yield job(HOODIE, PLANNED, span=span, way=PLAN)
    if SHAPES[table.name].captures_changes:
        yield job(HOODIE, CHANGED, span=span, way=CHANGES)
        return
    yield job(HUDI_RS, FULL, way=TABLE)
    yield job(HUDI_RS, RANGE, span=span, way=TABLE)


def expected_of(job: Job, table: HistoryTable) -> Sums:
    """Return the sums that an answer has to have; only planning has none."""
    if job.way == PLAN:
        return {}
    if job.way == CHANGES:
        return {"n": table.changes}
    return table.expected if job.span is None else table.expected_of_range


def faults(job: Job, samples: list[ReadSample], expected: Sums) -> list[str]:
    """Say what is wrong with a way's answers."""
    if job.way == PLAN:
        return []
    rows = {f"{each.rows} rows, not {expected['n']}" for each in samples if each.rows != expected["n"]}
    found = {key: Decimal(value) for each in samples for key, value in each.sums.items()}
    return sorted(rows) + differences(found, expected)


def cost_of(job: Job, server: CountingS3) -> tuple[Cost, ReadSample]:
    """Return what one read in a new process takes from the store."""
    there = replace(job, path=f"s3://{BUCKET}/{job.table}", once=True)
    with server.count() as traffic:
        sample = run_job(there, server.env)
    return Cost(sum(traffic.requests.values()), traffic.bytes, len(traffic.objects)), sample


def cost_of_command(table: HistoryTable) -> float:
    """Return processor seconds of the command that writes the range's rows to a file, from its start to its end."""
    hoodie = str(Path(sys.executable).with_name("hoodie"))
    command = [hoodie, "read", str(table.path), "--from", table.start, "--to", table.end, "--format", "parquet"]
    with TemporaryDirectory() as folder:
        before = os.times()
        subprocess.run([*command, "--output", f"{folder}/rows.parquet"], check=True, capture_output=True)
        after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def compare(table: HistoryTable, rounds: int, server: CountingS3) -> dict[str, Any]:
    """Return figures by way, and what was wrong by way."""
    ways = list(jobs(table))
    samples = interleaved(ways, rounds, say)
    figures: dict[str, Any] = {}
    wrong: dict[str, list[str]] = {}
    for job in ways:
        cost, remote = cost_of(job, server)
        say(f"{job.table} {job.name:30} {cost.requests:6} requests  {cost.bytes / 1e6:8.2f} MB  {cost.objects} objects")
        said = faults(job, [*samples[job.name], remote], expected_of(job, table))
        if said:
            wrong[job.name] = said
            say(f"WRONG ANSWER on {table.name} by {job.name}: {'; '.join(said)}")
        figures[job.name] = {**medians(samples[job.name]), **asdict(cost)}
    return {
        "rows": int(table.expected["n"]),
        "files": table.files,
        "ways": figures,
        "command": statistics.median(cost_of_command(table) for _ in range(rounds)),
        "wrong": wrong,
    }


def run(names: tuple[str, ...], rounds: int) -> bool:
    """Measure, keep the figures, and return whether hoodie_py's answers were right."""
    before = load()
    found: dict[str, Mapping[str, Any]] = {}
    cache_folder().mkdir(parents=True, exist_ok=True)
    with counting_s3(cache_folder()) as server:
        for name in names:
            found[name] = compare(history_table(name), rounds, server)
    figures = {"rounds": rounds, "commits": COMMITS, "of_range": COMMITS // SHARE, "tables": found}
    save("ranges", figures, before, versions("hoodie_py", "hudi", "pyarrow", "numpy", "s3fs"))
    return not any(way.startswith(HOODIE) for each in found.values() for way in each["wrong"])


def main() -> int:
    """Run as the command line says; 1 when an answer was wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--table", action="append", choices=sorted(SHAPES), help="only this table")
    arguments = parser.parse_args()
    return 0 if run(tuple(arguments.table or SHAPES), arguments.rounds) else 1


if __name__ == "__main__":
    raise SystemExit(main())
