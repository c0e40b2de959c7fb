"""Clustering: in one process and on Spark, with --java beside Java Hudi's own.

    python -m tests.benchmarks.clustering --groups 10 --rounds 3 --java

All file groups of a table, with their log files, become few: in the order in which they lie, or sorted by a column.
Every run gets a fresh copy of its table, whose rows are checked by their sums afterwards. Processor time is that of
planning and running: of a process of its own, imports left out, or of the JVM and all Python workers, where a session
clusters the table without more groups first. Java Hudi runs once.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.benchmarks.bench_tables import BenchTable, bench_table
from tests.benchmarks.command import finish, make_parser, say
from tests.benchmarks.compaction import IN_PROCESS, JAVA, SPARK, TABLES, Compacted, CopyOf
from tests.benchmarks.java_hudi import java_hudi
from tests.benchmarks.processes import load
from tests.benchmarks.results import save, versions
from tests.benchmarks.samples import Sample, cost_in_process, cost_of, medians
from tests.benchmarks.spark import SparkServer

ORDERS = {"as they lie": "", "sorted": "name"}
"""Columns to sort by."""
OPTIONS = {
    "hoodie.parquet.compression.codec": "zstd",
    "hoodie.clustering.inline.max.commits": "1",
    "hoodie.clustering.plan.strategy.small.file.limit": str(1 << 30),
    "hoodie.metadata.enable": "false",
}


def in_process(path: Path, order: str) -> Sample:
    """Cluster in a process of its own."""
    return cost_in_process(f"Clustering {path}", "tests.benchmarks.clustering", str(path), order)


def child(path: str, order: str) -> Sample:
    """Cluster in this process, which does nothing else."""
    from hoodie_py import HoodieTable
    from hoodie_py.writer.clustering import cluster as clustering  # noqa: F401 - imports are not what is measured
    from hoodie_py.writer.clustering import plan as clustering_plan  # noqa: F401 - imports are not what is measured

    return cost_of(lambda: HoodieTable.open(path).cluster(options=_options(order)))


def _options(order: str) -> dict[str, str]:
    return {**OPTIONS, "hoodie.clustering.plan.strategy.sort.columns": order} if order else OPTIONS


@contextmanager
def open_session(table: BenchTable, order: str, jar: tuple[str, str] | None) -> Iterator[SparkServer]:
    """Start a Spark session that has clustered a small table."""
    python, bundle = jar if jar is not None else (sys.executable, None)
    with SparkServer(python, "local[2]", bundle) as server:
        with CopyOf(bench_table(table.name), "warming") as small:
            by_server(server, "java" if jar else "format", small.path, order)
        yield server


def by_server(server: SparkServer, reader: str, path: Path, order: str) -> Sample:
    """Cluster in a Spark session."""
    request = {"reader": reader, "query": "cluster", "path": str(path), "settings": _options(order)}
    sample, _ = server.measure(request)
    return sample


def once(way: str, table: BenchTable, order: str, jar: tuple[str, str] | None) -> tuple[Compacted, list[str]]:
    """Cluster a fresh copy; Spark in a new session."""
    with CopyOf(table, "clustered") as copy:
        if way == IN_PROCESS:
            sample = in_process(copy.path, order)
        else:
            with open_session(table, order, jar) as server:
                sample = by_server(server, "java" if jar else "format", copy.path, order)
        clustered = Compacted(**asdict(sample), written=copy.written())
        wrong = copy.faults()
    say(
        f"{table.path.name:16} {order or '-':6} {way:20} cpu {sample.cpu:7.2f}  wall {sample.wall:7.2f}  "
        f"peak {sample.peak / 1e6:6.0f} MB  written {clustered.written / 1e6:6.1f} MB"
    )
    if wrong:
        say(f"WRONG ROWS after {way}: {'; '.join(wrong)}")
    return clustered, wrong


def compare(table: BenchTable, rounds: int, jar: tuple[str, str] | None) -> dict[str, Any]:
    """Return medians by order and way, and what was wrong."""
    found: dict[str, Any] = {"rows": int(table.expected["n"]), "orders": {}, "wrong": {}}
    for name, order in ORDERS.items():
        samples: dict[str, list[Compacted]] = defaultdict(list)
        ways = [(way, None) for _ in range(rounds) for way in (IN_PROCESS, SPARK)] + ([(JAVA, jar)] if jar else [])
        for way, needed in ways:
            sample, wrong = once(way, table, order, needed)
            samples[way].append(sample)
            if wrong:
                found["wrong"][f"{way}, {name}"] = wrong
        found["orders"][name] = {way: medians(each) for way, each in samples.items()}
    return found


def run(arguments: argparse.Namespace) -> bool:
    """Measure what is asked for, keep the figures, and return whether all rows were right."""
    before = load()
    environment = java_hudi(arguments.java)
    jar = None if environment is None else (environment.python, environment.jar)
    tables = {
        name: compare(bench_table(name, arguments.groups), arguments.rounds, jar) for name in arguments.table or TABLES
    }
    figures = {"groups": arguments.groups, "rounds": arguments.rounds, "tables": tables}
    save("clustering", figures, before, versions("hoodie_py", "pyspark", "pyarrow"))
    return not any(found["wrong"] for found in tables.values())


def main() -> int:
    """Run as the command line says; 1 when rows were wrong or the tables are absent."""
    parser = make_parser(__doc__, 3)
    parser.add_argument("--table", action="append", choices=TABLES, help="only this table")
    parser.add_argument(
        "--java", action="store_true", help="Java Hudi as well, once; left out where Java or Maven is missing"
    )
    parser.add_argument("--child", nargs=2, metavar=("PATH", "ORDER"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        print(json.dumps(asdict(child(*arguments.child))))
        return 0
    return finish(lambda: run(arguments))


if __name__ == "__main__":
    raise SystemExit(main())
