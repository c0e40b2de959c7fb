"""What users do all day, beside other table formats: bulk writes, appends, upserts, reads, narrow filters.

    python -m tests.benchmarks.formats --rounds 3 --rows 2000000

Each job runs in a fresh process on a copy of its table, the engines in turn. Imports of the engine's own package are
not measured, anything it imports later is. Figures are medians of processor seconds (user and system, all threads).
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.benchmarks.bench_tables import cache_folder
from tests.benchmarks.command import say
from tests.benchmarks.format_engines import ENGINES, KEY, Engine
from tests.benchmarks.processes import answer_of, load
from tests.benchmarks.results import save, saved, versions
from tests.benchmarks.samples import cost_of

ROWS = 2_000_000
_SMALL = 10_000


@dataclass(frozen=True)
class FormatJob:
    """One thing that users do.

    Attributes:
        name: as on the page.
        source: name of the rows that are written; None for reads.
        table: name of the rows that the table holds before; None: there is no table.
        act: of an engine, a table and the rows; returns the number of rows that were read, None for writes.
        left_out: engines that would need minutes, or cannot do it.
    """

    name: str
    source: str | None
    table: str | None
    act: Callable[[Engine, str, pa.Table], int | None]
    left_out: tuple[str, ...] = ()


def _write(engine: Engine, path: str, rows: pa.Table) -> None:
    engine.create(path, rows)


def _append(engine: Engine, path: str, rows: pa.Table) -> None:
    engine.append(path, rows)


def _upsert(engine: Engine, path: str, rows: pa.Table) -> None:
    engine.upsert(path, rows)


def _read(**query: Any) -> Callable[[Engine, str, pa.Table], int]:
    return lambda engine, path, _: engine.read(path, **query)


_TWO = (("i1", "<", 50), ("category", "==", "c07"))
_ONE = ((KEY, "==", f"k{123_456:010d}"),)
_LIMITS = ("pyarrow", "polars")  # which read our files, and pyarrow writes one
JOBS = {
    each.name: each
    for each in (
        FormatJob("bulk write", "base", None, _write, ("polars",)),
        FormatJob("append half as much", "half", "base", _append, _LIMITS),
        FormatJob("append 10,000 rows", "small", "half", _append, _LIMITS),
        FormatJob("upsert 1 row", "one", "base", _upsert, _LIMITS),
        FormatJob("upsert 1 %", "percent", "base", _upsert, _LIMITS),
        FormatJob("upsert 10 %", "tenth", "base", _upsert, ("pyiceberg", *_LIMITS)),
        FormatJob("read all", None, "base", _read()),
        FormatJob("read 3 columns", None, "base", _read(columns=[KEY, "i1", "f1"])),
        FormatJob("two conditions", None, "base", _read(where=_TWO)),
        FormatJob("one key", None, "base", _read(where=_ONE)),
    )
}


def make_rows(first: int, count: int, version: int = 0, step: int = 1) -> pa.Table:
    """Return rows of 12 columns with keys from ``first`` on, every ``step``-th."""
    at = np.arange(first, first + count * step, step, dtype=np.int64)
    random = np.random.default_rng(version)
    texts = pa.array([f"c{each:02d}" for each in range(40)])
    return pa.table(
        {
            KEY: pa.array([f"k{each:010d}" for each in at]),
            "ts": np.full(count, version, np.int64),
            "category": texts.take(pa.array(at % 40)),
            "name": pa.array([f"name {each % 100_003}" for each in at]),
            "i1": (at * 7919 % 10_000).astype(np.int32),
            "i2": at * 31,
            "i3": random.integers(0, 1 << 40, count),
            "f1": random.random(count),
            "f2": at / 7,
            "flag": at % 3 == 0,
            "day": pa.array((at % 3650).astype(np.int32)).cast(pa.date32()),
            "moment": pa.array(at * 1_000_003, pa.timestamp("us", "UTC")),
        }
    )


def _make_source(name: str, rows: int) -> pa.Table:
    """Return the rows of a name; a part of them changes rows of ``base``."""
    return {
        "base": lambda: make_rows(0, rows),
        "half": lambda: make_rows(rows, rows // 2),
        "small": lambda: make_rows(2 * rows, min(_SMALL, rows // 2)),
        "one": lambda: make_rows(rows // 3, 1, 1),
        "percent": lambda: make_rows(rows // 3, max(rows // 100, 1), 1),
        "tenth": lambda: make_rows(5, rows // 10, 1, 10),
    }[name]()


def source_path(name: str, rows: int) -> Path:
    """Return the Parquet file with the rows of a name, which is made once."""
    path = cache_folder() / "formats" / f"{name}_{rows}.parquet"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(_make_source(name, rows), path)
    return path


@contextmanager
def copy_of(engine: Engine, job: FormatJob, rows: int) -> Iterator[Path]:
    """Give a copy of the job's table, or a place for it; the table itself is made once."""
    folder = cache_folder() / "formats"
    place = folder / "copy"
    shutil.rmtree(place, ignore_errors=True)
    if job.table is not None:
        made = folder / f"{engine.stored_as}_{job.table}_{rows}"
        if not (made / ".whole").exists():
            shutil.rmtree(made, ignore_errors=True)
            ENGINES[engine.stored_as].create(str(made / "table"), pq.read_table(source_path(job.table, rows)))
            (made / ".whole").touch()
        shutil.copytree(made, place)
    place.mkdir(parents=True, exist_ok=True)
    try:
        yield place / "table"
    finally:
        shutil.rmtree(place, ignore_errors=True)


def measure(job: FormatJob, engine: Engine, rows: int) -> dict[str, float]:
    """Do a job in a process of its own."""
    with copy_of(engine, job, rows) as path:
        before = _count_bytes()
        source = "" if job.source is None else str(source_path(job.source, rows))
        arguments = job.name, engine.name, str(path), source
        what = f"{job.name} by {engine.name}"
        figures = answer_of(what, "tests.benchmarks.formats", "--child", *arguments)
        return {**figures, "written": _count_bytes() - before}


def _count_bytes() -> int:
    """Return the bytes of all tables: pyiceberg writes its files beside the copy."""
    return sum(each.stat().st_size for each in (cache_folder() / "formats").rglob("*") if each.is_file())


def child(job: FormatJob, engine: Engine, path: str, source: str) -> dict[str, Any]:
    """Do a job in this process, which does nothing else."""
    rows = pq.read_table(source) if source else pa.table({})
    engine.load()
    found: list[int | None] = []
    sample = cost_of(lambda: found.append(job.act(engine, path, rows)))
    return {**asdict(sample), "rows": found[0]}


def run(rounds: int, rows: int, names: Mapping[str, FormatJob]) -> bool:
    """Measure, keep the figures, and return whether all engines read the same numbers of rows."""
    before = load()
    earlier = saved("formats") or {}
    # With ``--job`` the other jobs' figures stay, if they are of as many rows.
    table: dict[str, dict[str, dict[str, float]]] = dict(earlier["jobs"]) if earlier.get("rows") == rows else {}
    right = True
    for job in names.values():
        samples: dict[str, list[dict[str, float]]] = defaultdict(list)
        for turn in range(rounds):
            for engine in ENGINES.values():
                if engine.name not in job.left_out:
                    samples[engine.name].append(measure(job, engine, rows))
                    last = samples[engine.name][-1]
                    say(f"{turn + 1}/{rounds} {job.name:20} {engine.name:12} cpu {last['cpu']:6.2f}")
        read = {sample["rows"] for each in samples.values() for sample in each if sample["rows"] is not None}
        if len(read) > 1:
            say(f"WRONG ANSWERS: {job.name} gave {sorted(read)} rows")
            right = False
        table[job.name] = {
            engine: {key: median(each[key] for each in some) for key in ("cpu", "wall", "peak", "written")}
            for engine, some in samples.items()
        }
        save(
            "formats",
            {"rows": rows, "rounds": rounds, "jobs": table},
            before,
            versions("hoodie_py", "deltalake", "pyiceberg", "polars", "pyarrow"),
        )
    return right


def main() -> int:
    """Run as the command line says; 1 if answers differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--job", action="append", choices=JOBS, help="only this one")
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        job, engine, path, source = given.child
        print(json.dumps(child(JOBS[job], ENGINES[engine], path, source)))
        return 0
    return 0 if run(given.rounds, given.rows, {name: JOBS[name] for name in given.job or JOBS}) else 1


if __name__ == "__main__":
    raise SystemExit(main())
