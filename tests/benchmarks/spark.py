"""Reading in Spark: hoodie_py beside Spark's own Parquet reader on the base files and, with --java, beside Java Hudi.

    python -m tests.benchmarks.spark --groups 10 --rounds 5 --java

Each engine has a session of its own with the same memory; queries take turns. Processor time is that of the JVM and all
Python workers, from opening the table to the result; starting the session is left out, and so are warming queries: a
turn, and before each query the same one, as Spark ends Python workers that were idle for a minute.
Every result that has values is checked, and the full width by the table's sums before anything is timed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Self

from tests.benchmarks.bench_tables import BenchTable, bench_table
from tests.benchmarks.checksums import differences
from tests.benchmarks.command import finish, make_parser, say
from tests.benchmarks.java_hudi import java_hudi
from tests.benchmarks.processes import PeakMemory, load, tree_seconds
from tests.benchmarks.results import save, versions
from tests.benchmarks.samples import Sample, medians

QUERIES = ("noop", "narrow", "count")
OURS = ("read", "format")
FLOOR = "parquet"
JAVA = "java"
ONE_PROCESSOR = "read, local[1]"
TABLES = ("mor_small", "mor_late")
WARMING = 1  # turns that are not counted
_SERVER = Path(__file__).with_name("spark_server.py")


class SparkServer:
    """A Spark session in a process of its own; requests are answered one by one."""

    def __init__(self, python: str, master: str, jar: str | None = None) -> None:
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed with the session
        command = [python, str(_SERVER), master, *([jar] if jar else [])]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env=_environment(python),
        )
        self.version: str = self._answer()["spark"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._log.close()

    @property
    def pid(self) -> int:
        """The process at the root of the tree."""
        return self._process.pid

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Run a query.

        Raises:
            RuntimeError: it failed, or the session ended.
        """
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def measure(self, request: dict[str, Any]) -> tuple[Sample, dict[str, str]]:
        """Run a query and return what it cost the JVM and all Python workers, and the values it gave.

        Raises:
            RuntimeError: as ``ask``.
        """
        before = tree_seconds(self.pid)
        with PeakMemory(self.pid) as peak:
            answer = self.ask(request)
        return Sample(tree_seconds(self.pid) - before, answer["wall"], peak.bytes), answer["values"]

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._log.seek(0)
            raise RuntimeError(f"The Spark session ended: {self._log.read()[-3000:]}")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        found: dict[str, Any] = answer["ok"]
        return found


@dataclass(frozen=True)
class Asked:
    """One way to ask: a reader of a session."""

    name: str
    server: SparkServer
    reader: str

    def request(self, table: BenchTable, query: str) -> dict[str, Any]:
        """Put a query about a table into words."""
        files = [str(path) for path in table.base_files] if self.reader == FLOOR else []
        return {"reader": self.reader, "query": query, "table": table.name, "path": str(table.path), "files": files}

    def check(self, table: BenchTable, query: str, values: dict[str, str]) -> list[str]:
        """Say what is wrong with an answer; that of base files alone is not known."""
        if self.reader == FLOOR:
            return []
        return differences({name: Decimal(text) for name, text in values.items()}, table.expected)


def _environment(python: str) -> dict[str, str]:
    root = Path(__file__).resolve().parent.parent.parent
    folders = (root, root / "storage", Path(__file__).with_name("count_children"))
    paths = os.pathsep.join(map(str, folders))
    return {**os.environ, "PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": python, "PYTHONPATH": paths}


def asked_of(everyone: list[Asked], query: str) -> Iterator[Asked]:
    """Yield who runs a query: one processor is of interest at full width only."""
    yield from (asked for asked in everyone if asked.name != ONE_PROCESSOR or query == "noop")


def compare(everyone: list[Asked], table: BenchTable, rounds: int) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """Measure all queries on a table; returns medians by query and way, and wrong answers by way."""
    wrong: dict[str, list[str]] = defaultdict(list)
    for asked in everyone:
        if asked.reader != FLOOR:
            wrong[asked.name] += asked.check(table, "sums", asked.server.ask(asked.request(table, "sums"))["values"])
    samples: dict[str, dict[str, list[Sample]]] = {query: defaultdict(list) for query in QUERIES}
    for turn in range(WARMING + rounds):
        for query in QUERIES:
            for asked in asked_of(everyone, query):
                asked.server.ask(asked.request(table, query))
                sample, values = asked.server.measure(asked.request(table, query))
                wrong[asked.name] += asked.check(table, query, values)
                if turn >= WARMING:
                    samples[query][asked.name].append(sample)
                say(
                    f"{turn + 1}/{WARMING + rounds}  {table.name:9} {query:6} {asked.name:14} "
                    f"cpu {sample.cpu:6.2f}  wall {sample.wall:6.2f}"
                )
    found = {query: {name: medians(each) for name, each in ways.items()} for query, ways in samples.items()}
    return found, {name: sorted(set(said)) for name, said in wrong.items() if said}


def run(groups: int, rounds: int, names: tuple[str, ...], java: bool) -> bool:
    """Measure, keep the figures, and return whether hoodie_py's answers were right."""
    before = load()
    tables = [bench_table(name, groups) for name in names]
    figures: dict[str, Any] = {"groups": groups, "rounds": rounds, "tables": {}}
    with ExitStack() as stack:
        ours = stack.enter_context(SparkServer(sys.executable, "local[2]"))
        single = stack.enter_context(SparkServer(sys.executable, "local[1]"))
        everyone = [Asked(name, ours, name) for name in (*OURS, FLOOR)] + [Asked(ONE_PROCESSOR, single, "read")]
        packages = {**versions("hoodie_py", "pyspark", "pyarrow", "numpy"), "spark": ours.version}
        environment = java_hudi(java)
        if environment is not None:
            theirs = stack.enter_context(SparkServer(environment.python, "local[2]", environment.jar))
            everyone.append(Asked(JAVA, theirs, JAVA))
            packages |= {"spark of Java Hudi": theirs.version, "Java Hudi": Path(environment.jar).parent.name}
        right = True
        for table in tables:
            queries, wrong = compare(everyone, table, rounds)
            for way, said in wrong.items():
                say(f"WRONG ANSWER on {table.name} by {way}: {'; '.join(said)}")
            right = right and not set(wrong) - {JAVA}
            figures["tables"][table.name] = {"rows": int(table.expected["n"]), "queries": queries, "wrong": wrong}
            save("spark", figures, before, packages)  # a session may end long before the last table
    return right


def main() -> int:
    """Run as the command line says; 1 when an answer was wrong or the tables are absent."""
    parser = make_parser(__doc__, 5)
    parser.add_argument("--table", action="append", choices=TABLES, help="only this table")
    parser.add_argument("--java", action="store_true", help="beside Java Hudi; left out where Java or Maven is missing")
    arguments = parser.parse_args()
    return finish(lambda: run(arguments.groups, arguments.rounds, tuple(arguments.table or TABLES), arguments.java))


if __name__ == "__main__":
    raise SystemExit(main())
