"""Reading in one process: hoodie_py beside hudi-rs, and beside pyarrow on the base files alone.

    python -m tests.benchmarks.in_process --groups 10 --base 10 --rounds 5

Each way runs in processes of its own, in turn with the others; figures are medians. The number of rows of every
measured answer is checked, and in the first round every sum of the table that the answer has columns for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from tests.benchmarks.bench_tables import NARROW, BenchTable, bench_table
from tests.benchmarks.checksums import differences
from tests.benchmarks.command import finish, make_parser, say
from tests.benchmarks.job import COUNT, HOODIE, HUDI_RS, PYARROW, TABLE, Job, ReadSample
from tests.benchmarks.processes import import_seconds, interleaved, load
from tests.benchmarks.results import medians, save, versions

KEYS_ONLY = {"hoodie.merge.use.record.positions": "false"}
TABLES = ("mor_small", "mor_late")
FLAT = ("base x1", "base grown")


def jobs(table: BenchTable) -> Iterator[Job]:
    """Yield the ways to read a table that are compared."""

    def job(name: str, engine: str, **rest: Any) -> Job:
        return Job(name, table.name, str(table.path), engine, **rest)

    yield job("hoodie_py", HOODIE)
    yield job("hudi-rs stream", HUDI_RS)
    yield job("hoodie_py, 1 processor", HOODIE, processors=1)
    yield job("hudi-rs", HUDI_RS, way=TABLE)
    yield job("hoodie_py to_arrow", HOODIE, way=TABLE)
    yield job("hoodie_py by keys", HOODIE, options=KEYS_ONLY)
    yield job("hoodie_py 3 columns", HOODIE, columns=NARROW)
    yield job("hudi-rs 3 columns", HUDI_RS, columns=NARROW, way=TABLE)
    yield job("hoodie_py 3 columns, 1 processor", HOODIE, columns=NARROW, processors=1)
    yield job("hoodie_py count", HOODIE, way=COUNT)
    yield job("pyarrow base files, 1 processor", PYARROW, processors=1)


def flat_jobs(bases: int) -> Iterator[Job]:
    """Yield streams over the same log side and base files of two sizes."""
    for name, factor in zip(FLAT, (1, bases), strict=True):
        yield Job(name, "mor_small", str(bench_table("mor_small", 1, factor).path), HOODIE)


def faults(samples: Mapping[str, list[ReadSample]], table: BenchTable) -> dict[str, list[str]]:
    """Say which answers were wrong, by name of the way; base files alone have no answer to check."""
    wrong: dict[str, list[str]] = {}
    for name, each in samples.items():
        if name.startswith(PYARROW):
            continue
        rows = {
            f"{sample.rows} rows, not {table.expected['n']}" for sample in each if sample.rows != table.expected["n"]
        }
        found = {key: Decimal(value) for key, value in each[0].sums.items()}
        said = sorted(rows) + differences(found, table.expected)
        if said:
            wrong[name] = said
    return wrong


def run(groups: int, bases: int, rounds: int, names: tuple[str, ...]) -> bool:
    """Measure, keep the figures, and return whether hoodie_py's answers were right."""
    before = load()
    figures: dict[str, Any] = {"groups": groups, "bases": bases, "rounds": rounds, "tables": {}}
    right = True
    for name in names:
        table = bench_table(name, groups)
        samples = interleaved(list(jobs(table)), rounds, say)
        wrong = faults(samples, table)
        for way, said in wrong.items():
            say(f"WRONG ANSWER on {name} by {way}: {'; '.join(said)}")
        right = right and not any(way.startswith(HOODIE) for way in wrong)
        figures["tables"][name] = {
            "rows": int(table.expected["n"]),
            "files": [len(table.base_files), len(table.log_files)],
            "bytes": [sum(path.stat().st_size for path in files) for files in (table.base_files, table.log_files)],
            "ways": {way: medians(each) for way, each in samples.items()},
            "wrong": wrong,
        }
    samples = interleaved(list(flat_jobs(bases)), rounds, say)
    for way, factor in zip(FLAT, (1, bases), strict=True):
        wrong = faults({way: samples[way]}, bench_table("mor_small", 1, factor))
        right = right and not wrong
        if wrong:
            say(f"WRONG ANSWER on mor_small with {factor} times the base: {wrong}")
    figures["flat"] = {way: medians(each) for way, each in samples.items()}
    needed = "numpy, pyarrow, pyarrow.compute, pyarrow.parquet"
    figures["imports"] = {
        "pyarrow": import_seconds(needed, 2 * rounds),
        "hoodie_py": import_seconds(f"{needed}, hoodie_py; hoodie_py.HoodieTable", 2 * rounds),
    }
    save("in_process", figures, before, versions("hoodie_py", "hudi", "pyarrow", "numpy"))
    return right


def main() -> int:
    """Run as the command line says; 1 when an answer was wrong or the tables are absent."""
    parser = make_parser(__doc__, 5)
    parser.add_argument("--base", type=int, default=10, help="how many times the base rows, where memory is compared")
    parser.add_argument("--table", action="append", choices=TABLES, help="only this table")
    arguments = parser.parse_args()
    return finish(lambda: run(arguments.groups, arguments.base, arguments.rounds, tuple(arguments.table or TABLES)))


if __name__ == "__main__":
    raise SystemExit(main())
