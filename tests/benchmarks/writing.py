"""Writing: an upsert of a tenth of the keys and a bulk insert, in one process, on Spark, with --java by Java Hudi.

    python -m tests.benchmarks.writing --groups 10 --rounds 3 --java

The rows to write lie in a Parquet file. Every upsert gets a fresh copy of the table; what is there afterwards is
checked by its sums. Processor time is that of the writing call with the reading of the file: of a process of its own,
imports left out, or of the JVM and all Python workers, where a session writes to a small table first.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tests.benchmarks.bench_tables import BenchTable, bench_table, cache_folder
from tests.benchmarks.checksums import Sums, differences, sums_of
from tests.benchmarks.command import finish, make_parser, say
from tests.benchmarks.compaction import IN_PROCESS, JAVA, SPARK, CopyOf
from tests.benchmarks.java_hudi import java_hudi
from tests.benchmarks.processes import load
from tests.benchmarks.results import save, versions
from tests.benchmarks.samples import Sample, cost_in_process, cost_of, medians
from tests.benchmarks.spark import SparkServer

TABLE = "mor_small"
UPSERT, BULK_INSERT = "upsert", "bulk_insert"
OPERATIONS = (UPSERT, BULK_INSERT)
ONE_IN = 10  # keys that the upsert has
BULK_ROWS = 1_000_000
LATER = 1_000_000  # added to the ordering value of every upserted row
SETTINGS = {
    "hoodie.table.name": TABLE,
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "uid",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
    "hoodie.metadata.enable": "false",
    "hoodie.compact.inline": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.parquet.compression.codec": "zstd",
    "hoodie.logfile.data.block.format": "avro",
    "hoodie.bulkinsert.shuffle.parallelism": "2",
    "hoodie.upsert.shuffle.parallelism": "4",
}


@dataclass(frozen=True)
class Task:
    """Rows to write, and the sums of the table once they are written."""

    operation: str
    table: BenchTable
    rows: Path
    count: int
    expected: Sums

    @contextmanager
    def target(self) -> Iterator[Path]:
        """Give a fresh place to write to."""
        if self.operation == UPSERT:
            with CopyOf(self.table, "upserted") as copy:
                yield copy.path
            return
        path = cache_folder() / f"inserted-{os.getpid()}-{self.count}"
        shutil.rmtree(path, ignore_errors=True)
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)

    def faults(self, path: Path) -> list[str]:
        """Say what is wrong with the table after the write."""
        from hoodie_py import HoodieTable

        return differences(sums_of(TABLE, HoodieTable.open(path).scan().to_batches()), self.expected)


def task(operation: str, groups: int, most: int = BULK_ROWS) -> Task:
    """Prepare the rows of an operation; they are kept."""
    table = bench_table(TABLE, groups)
    path = cache_folder() / f"{TABLE}_g{groups}_{operation}_{most}.parquet"
    if not path.is_file():
        rows = _changed(table) if operation == UPSERT else _rows(table).slice(0, most)
        pq.write_table(rows, path, compression="zstd", row_group_size=100_000)
    count = pq.read_metadata(path).num_rows
    if operation == UPSERT:
        return Task(operation, table, path, count, {**table.expected, "sts": table.expected["sts"] + LATER * count})
    return Task(operation, table, path, count, sums_of(TABLE, pq.ParquetFile(path).iter_batches()))


def _rows(table: BenchTable) -> pa.Table:
    """Read the table's own columns."""
    from hoodie_py import HoodieTable

    opened = HoodieTable.open(table.path)
    return opened.scan(columns=[name for name in opened.schema.names if not name.startswith("_hoodie")]).to_arrow()


def _changed(table: BenchTable) -> pa.Table:
    """Return every tenth row with a later ordering value."""
    rows = _rows(table)
    rows = rows.take(pa.array(range(0, rows.num_rows, ONE_IN)))
    at = rows.schema.get_field_index("ts")
    later = pc.add(rows.column(at), LATER)
    return rows.set_column(at, rows.schema.field(at), later)


def in_process(job: Task, path: Path) -> Sample:
    """Write in a process of its own."""
    arguments = job.operation, str(path), str(job.rows)
    return cost_in_process(f"{job.operation} into {path}", "tests.benchmarks.writing", *arguments)


def child(operation: str, path: str, rows: str) -> Sample:
    """Write in this process, which does nothing else."""
    from hoodie_py import HoodieTable
    from hoodie_py.writer.handles import append as append_task  # noqa: F401 - imports are not measured
    from hoodie_py.writer.handles import create as insert_task  # noqa: F401 - imports are not measured
    from hoodie_py.writer.index import tagging  # noqa: F401 - imports are not measured
    from hoodie_py.writer.pipeline import write as write_data  # noqa: F401 - imports are not measured

    def work() -> None:
        source = pq.ParquetFile(rows)
        if operation == UPSERT:
            HoodieTable.open(path).upsert(source.read(), options=SETTINGS)
        else:
            table = HoodieTable.create(path, source.schema_arrow, record_key="uid", ordering="ts", name=TABLE)
            table.bulk_insert(source.read(), options=SETTINGS)

    return cost_of(work)


def by_session(job: Task, path: Path, bundle: tuple[str, str] | None) -> Sample:
    """Write in a new Spark session, which wrote to a small table before."""
    python, jar = bundle if bundle is not None else (sys.executable, None)
    reader = "java" if bundle else "format"
    with SparkServer(python, "local[2]", jar) as server:
        warming = task(job.operation, 1, BULK_ROWS // 10)
        with warming.target() as small:
            _ask(server, reader, warming, small)
        return _ask(server, reader, job, path)


def _ask(server: SparkServer, reader: str, job: Task, path: Path) -> Sample:
    request = {"reader": reader, "query": "write", "path": str(path), "files": [str(job.rows)]}
    sample, _ = server.measure({**request, "operation": job.operation, "settings": SETTINGS})
    return sample


def compare(job: Task, rounds: int, bundle: tuple[str, str] | None) -> dict[str, Any]:
    """Return medians by way, and what was wrong by way; the ways take turns."""
    ways: dict[str, Callable[[Path], Sample]] = {
        IN_PROCESS: lambda path: in_process(job, path),
        SPARK: lambda path: by_session(job, path, None),
    }
    if bundle is not None:
        ways[JAVA] = lambda path: by_session(job, path, bundle)
    samples: dict[str, list[Sample]] = defaultdict(list)
    wrong: dict[str, list[str]] = {}
    for _ in range(rounds):
        for way, write in ways.items():
            with job.target() as path:
                sample = write(path)
                faults = job.faults(path)
            samples[way].append(sample)
            say(f"{job.operation:12} {way:20} cpu {sample.cpu:7.2f}  wall {sample.wall:7.2f}  {sample.peak >> 20} MB")
            if faults:
                wrong[way] = faults
                say(f"WRONG ROWS after {way}: {'; '.join(faults)}")
    return {"rows": job.count, "ways": {way: medians(each) for way, each in samples.items()}, "wrong": wrong}


def run(arguments: argparse.Namespace) -> bool:
    """Measure, keep the figures, and return whether all rows were right."""
    before = load()
    environment = java_hudi(arguments.java)
    bundle = None if environment is None else (environment.python, environment.jar)
    figures: dict[str, Any] = {"groups": arguments.groups, "rounds": arguments.rounds, "operations": {}}
    for operation in arguments.operation or OPERATIONS:
        figures["operations"][operation] = compare(task(operation, arguments.groups), arguments.rounds, bundle)
    save("writing", figures, before, versions("hoodie_py", "pyspark", "pyarrow"))
    return not any(found["wrong"] for found in figures["operations"].values())


def main() -> int:
    """Run as the command line says; 1 when rows were wrong or the tables are absent."""
    parser = make_parser(__doc__, 3)
    parser.add_argument("--operation", action="append", choices=OPERATIONS, help="only this one")
    parser.add_argument(
        "--java", action="store_true", help="Java Hudi as well; left out where Java or Maven is missing"
    )
    parser.add_argument("--child", nargs=3, metavar=("OPERATION", "PATH", "ROWS"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        print(json.dumps(asdict(child(*arguments.child))))
        return 0
    return finish(lambda: run(arguments))


if __name__ == "__main__":
    raise SystemExit(main())
