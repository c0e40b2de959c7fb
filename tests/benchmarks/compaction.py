"""Compaction: in one process and on Spark, with --java beside Java Hudi's own; and how reads of the result prune.

    python -m tests.benchmarks.compaction --groups 10 --rounds 3 --java

Every run gets a fresh copy of its table, whose rows are checked by their sums afterwards, merged and read-optimised.
Processor time is that of planning and running: of a process of its own, imports left out, or of the JVM and all Python
workers; the start of the session with its Python workers and a first small query is left out. With --warm, sessions
compact the table as it is without more groups first, so that what is compiled or imported only once is left out, too.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Any, Self

from tests.benchmarks.bench_tables import BenchTable, bench_table, cache_folder
from tests.benchmarks.checksums import differences, sums_of
from tests.benchmarks.command import finish, make_parser, say
from tests.benchmarks.java_hudi import java_hudi
from tests.benchmarks.processes import ROOT, load
from tests.benchmarks.results import save, versions
from tests.benchmarks.samples import Sample, cost_in_process, cost_of, medians
from tests.benchmarks.spark import SparkServer

TABLES = ("mor_small", "mor_late")
CODECS = ("snappy", "zstd")
SCALES = (1, 4, 16)
CODEC = "hoodie.parquet.compression.codec"
IN_PROCESS, ONE_THREAD, SPARK, JAVA = "in process", "in process, one thread", "Spark local[2]", "Java Hudi local[2]"

_NUMBERS = count()


@dataclass(frozen=True)
class Compacted(Sample):
    """What a compaction cost, and the bytes of the new base files."""

    written: int


class CopyOf:
    """A copy of a table that lives as long as a ``with`` block."""

    def __init__(self, table: BenchTable, purpose: str = "compacted") -> None:
        self._table = table
        self.path = cache_folder() / f"{purpose}-{os.getpid()}-{next(_NUMBERS)}"

    def __enter__(self) -> Self:
        shutil.rmtree(self.path, ignore_errors=True)
        shutil.copytree(self._table.path, self.path)
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.path)

    def faults(self) -> list[str]:
        """Say what is wrong with the compacted rows, and whether anything was left to merge."""
        from hoodie_py import HoodieTable

        table = HoodieTable.open(self.path)
        wrong = [f"{each.file_id} has log files still" for each in table.file_slices() if each.log_files]
        for kind in ("snapshot", "read_optimized"):
            found = sums_of(self._table.name, table.scan(query_type=kind).to_batches())
            wrong += [f"{kind}: {text}" for text in differences(found, self._table.expected)]
        return wrong

    def written(self) -> int:
        """Bytes of the newest base files."""
        from hoodie_py import HoodieTable

        return sum(each.base_file.size for each in HoodieTable.open(self.path).file_slices() if each.base_file)


def in_process(path: Path, codec: str, threads: int | None) -> Sample:
    """Compact in a process of its own."""
    arguments = str(path), codec, str(threads or 0)
    return cost_in_process(f"Compacting {path}", "tests.benchmarks.compaction", *arguments)


def child(path: str, codec: str, threads: int) -> Sample:
    """Compact in this process, which does nothing else."""
    from hoodie_py import HoodieTable
    from hoodie_py.writer.pipeline.local_engine import LocalEngine
    from hoodie_py.writer.services import (
        compaction,  # noqa: F401 - imports are not what is measured
    )

    return cost_of(lambda: HoodieTable.open(path).compact(LocalEngine(threads or None), options={CODEC: codec}))


def by_server(server: SparkServer, reader: str, path: Path, codec: str) -> Sample:
    """Compact in a Spark session."""
    sample, _ = server.measure({"reader": reader, "query": "compact", "path": str(path), "codec": codec})
    return sample


def once(
    way: str, table: BenchTable, codec: str, jar: tuple[str, str] | None = None, warm: bool = False
) -> tuple[Compacted, list[str]]:
    """Compact a fresh copy; Spark in a new session, as a job has."""
    with CopyOf(table) as copy:
        if way in (IN_PROCESS, ONE_THREAD):
            sample = in_process(copy.path, codec, 1 if way == ONE_THREAD else None)
        else:
            python, bundle = jar if jar is not None else (sys.executable, None)
            with SparkServer(python, "local[2]", bundle) as server:
                file = str(table.base_files[0])
                server.ask({"reader": "parquet", "query": "count", "table": table.name, "path": "", "files": [file]})
                reader = "java" if jar else "format"
                if warm:
                    with CopyOf(bench_table(table.name), "warming") as small:
                        by_server(server, reader, small.path, codec)
                sample = by_server(server, reader, copy.path, codec)
        compacted = Compacted(**asdict(sample), written=copy.written())
        say(
            f"{table.path.name:16} {codec:6} {way:22} cpu {sample.cpu:7.2f}  wall {sample.wall:7.2f}  "
            f"peak {sample.peak / 1e6:6.0f} MB  written {compacted.written / 1e6:6.1f} MB"
        )
        return compacted, copy.faults()


def compare(
    table: BenchTable, codecs: Sequence[str], rounds: int, jar: tuple[str, str] | None, warm: bool
) -> dict[str, Any]:
    """Return medians by codec and way, and what was wrong by way; Java Hudi runs once a codec."""
    found: dict[str, Any] = {"rows": int(table.expected["n"]), "codecs": {}, "wrong": {}}
    for codec in codecs:
        samples: dict[str, list[Compacted]] = defaultdict(list)
        ways = [(way, None) for _ in range(rounds) for way in (IN_PROCESS, SPARK)] + ([(JAVA, jar)] if jar else [])
        for way, needed in ways:
            sample, wrong = once(way, table, codec, needed, warm)
            samples[way].append(sample)
            if wrong:
                found["wrong"][f"{way}, {codec}"] = wrong
                say(f"WRONG ROWS after {way}: {'; '.join(wrong)}")
        found["codecs"][codec] = {way: medians(each) for way, each in samples.items()}
    return found


def scaling(name: str, rounds: int) -> dict[str, Any]:
    """Return figures for more and more file groups, compacted one at a time: time a row and memory should not grow."""
    found: dict[str, Any] = {}
    for groups in SCALES:
        table = bench_table(name, groups)
        samples, wrong = zip(*(once(ONE_THREAD, table, "zstd") for _ in range(rounds)), strict=True)
        middle = medians(samples)
        rows = int(table.expected["n"])
        found[str(groups)] = {**middle, "rows": rows, "cpu_us_a_row": middle["cpu"] / rows * 1e6, "wrong": wrong[0]}
        say(f"{name} x{groups}: {found[str(groups)]['cpu_us_a_row']:.2f} us a row, {middle['peak'] / 1e6:.0f} MB")
    return found


def pruning(table: BenchTable) -> dict[str, float]:
    """Return which share of a compacted table's bytes a filter for one record key reads."""
    with CopyOf(table) as copy:
        in_process(copy.path, "zstd", None)
        program = (
            "import sys; from hoodie_py import HoodieTable\n"
            "t = HoodieTable.open(sys.argv[1])\n"
            "def read():\n"
            "    said = dict(line.split(': ') for line in open('/proc/self/io').read().splitlines())\n"
            "    return int(said['rchar'])\n"
            "k = next(iter(t.scan(columns=['_hoodie_record_key'], limit=1).to_batches()))[0][0].as_py()\n"
            "b = read(); n = t.scan(filter=f\"_hoodie_record_key = '{k}'\").to_arrow().num_rows; a = read()\n"
            "print(n, a - b)\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", program, str(copy.path)], cwd=ROOT, capture_output=True, text=True, check=True
        )
        rows, count = map(int, done.stdout.split())
        share = count / copy.written()
        say(f"{table.path.name}: a filter for one key found {rows} row and read {share:.1%} of the bytes")
        return {"rows": rows, "bytes": count, "share": share}


def run(arguments: argparse.Namespace) -> bool:
    """Measure what is asked for, keep the figures, and return whether all rows were right."""
    before = load()
    environment = java_hudi(arguments.java)
    jar = None if environment is None else (environment.python, environment.jar)
    figures: dict[str, Any] = {
        "groups": arguments.groups,
        "rounds": arguments.rounds,
        "warm": arguments.warm,
        "tables": {},
        "scaling": {},
    }
    for name in arguments.table or TABLES:
        table = bench_table(name, arguments.groups)
        figures["tables"][name] = compare(table, arguments.codec or CODECS, arguments.rounds, jar, arguments.warm)
        figures["tables"][name]["pruning"] = pruning(table)
        if not arguments.no_scaling:
            figures["scaling"][name] = scaling(name, arguments.rounds)
    save("compaction", figures, before, versions("hoodie_py", "pyspark", "pyarrow"))
    return not any(found["wrong"] for found in figures["tables"].values()) and not any(
        each["wrong"] for found in figures["scaling"].values() for each in found.values()
    )


def main() -> int:
    """Run as the command line says; 1 when rows were wrong or the tables are absent."""
    parser = make_parser(__doc__, 3)
    parser.add_argument("--table", action="append", choices=TABLES, help="only this table")
    parser.add_argument("--codec", action="append", choices=CODECS, help="only this codec")
    parser.add_argument(
        "--java", action="store_true", help="Java Hudi as well, once; left out where Java or Maven is missing"
    )
    parser.add_argument("--warm", action="store_true", help="have sessions compact a small table first")
    parser.add_argument("--no-scaling", action="store_true", help="leave out 1, 4 and 16 times the file groups")
    parser.add_argument("--child", nargs=3, metavar=("PATH", "CODEC", "THREADS"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        path, codec, threads = arguments.child
        print(json.dumps(asdict(child(path, codec, int(threads)))))
        return 0
    return finish(lambda: run(arguments))


if __name__ == "__main__":
    raise SystemExit(main())
