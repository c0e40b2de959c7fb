"""A filter and 3 of 22 columns by polars, DuckDB and DataFusion, beside our own scan with the same columns and filter.

    python -m tests.benchmarks.dataframes --groups 10 --rounds 5

Each way runs in processes of its own, in turn with the others; figures are medians. The rows and sums of every answer
are those of the whole table, filtered by pyarrow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import pyarrow.compute as pc

from tests.benchmarks.bench_tables import NARROW, BenchTable, bench_table
from tests.benchmarks.checksums import Sums, differences, sums_of
from tests.benchmarks.command import finish, make_parser, say
from tests.benchmarks.job import DATAFUSION, DUCKDB, HOODIE, POLARS, TABLE, Job, ReadSample
from tests.benchmarks.processes import interleaved, load
from tests.benchmarks.results import medians, save, versions

NAME = "mor_small"
COLUMN, LEAST = "i1", 20_000
FILTER = f"{COLUMN} > {LEAST}"  # four fifths of the rows
ENGINES = (POLARS, DUCKDB, DATAFUSION)


def jobs(table: BenchTable) -> Iterator[Job]:
    """Yield the ways that are compared: our own scan, and the engines on top of it."""
    for engine in (HOODIE, *ENGINES):
        yield Job(engine, table.name, str(table.path), engine, way=TABLE, columns=NARROW, filter=FILTER)


def expected_of(table: BenchTable) -> tuple[int, Sums]:
    """Return the rows of the whole table, and the sums of those that pass, by pyarrow's own filter."""
    from hoodie_py import HoodieTable

    rows = HoodieTable.open(table.path).scan(columns=NARROW).to_arrow()
    whole = sums_of(table.name, rows.to_batches())
    if wrong := differences(whole, table.expected):
        raise RuntimeError(f"The rows of {table.name} are wrong: {'; '.join(wrong)}")
    kept = rows.filter(pc.greater(rows.column(COLUMN), LEAST))
    return rows.num_rows, sums_of(table.name, kept.to_batches())


def faults(samples: Mapping[str, list[ReadSample]], expected: Sums) -> dict[str, list[str]]:
    """Say which answers were wrong, by name of the way."""
    wrong: dict[str, list[str]] = {}
    for name, each in samples.items():
        rows = {f"{sample.rows} rows, not {expected['n']}" for sample in each if sample.rows != expected["n"]}
        found = {key: Decimal(value) for key, value in each[0].sums.items()}
        if said := sorted(rows) + differences(found, expected):
            wrong[name] = said
    return wrong


def run(groups: int, rounds: int) -> bool:
    """Measure, keep the figures, and return whether all answers were right."""
    before = load()
    table = bench_table(NAME, groups)
    rows, expected = expected_of(table)
    samples = interleaved(list(jobs(table)), rounds, say)
    wrong = faults(samples, expected)
    for way, said in wrong.items():
        say(f"WRONG ANSWER on {NAME} by {way}: {'; '.join(said)}")
    figures: dict[str, Any] = {
        "rounds": rounds,
        "table": NAME,
        "rows": rows,
        "kept": int(expected["n"]),
        "filter": FILTER,
        "ways": {way: medians(each) for way, each in samples.items()},
        "wrong": wrong,
    }
    save("dataframes", figures, before, versions("hoodie_py", *ENGINES, "pyarrow", "numpy"))
    return not wrong


def main() -> int:
    """Run as the command line says; 1 when an answer was wrong or the table is absent."""
    parser = make_parser(__doc__, 5)
    arguments = parser.parse_args()
    return finish(lambda: run(arguments.groups, arguments.rounds))


if __name__ == "__main__":
    raise SystemExit(main())
