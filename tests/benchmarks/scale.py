"""How cost grows with what a table holds: files, partitions, commits, rows; beside hudi-rs where it does the same.

    python -m tests.benchmarks.scale              all measurements, some twenty minutes; --only planning for some

Each measurement runs in a process of its own, on tables whose files are links to few (``scale_tables``). Counts are
those of an object store: calls, bytes read and files opened, on one reading; processor time is of another one.
"""

from __future__ import annotations

import argparse
import json
import pickle
import resource
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from hoodie_py import HoodieTable
from tests.benchmarks.bench_tables import cache_folder
from tests.benchmarks.counting_files import Counts, open_counted
from tests.benchmarks.processes import answer_of, load
from tests.benchmarks.results import save, saved, versions
from tests.benchmarks.round_trips import count_deltalake, count_hoodie
from tests.benchmarks.scale_tables import QUICK, create, make_old_table, make_rows, make_wide_table
from tests.table.indexes.fabricated_keys import add_record_index

Figures = dict[str, Any]
_TABLES = cache_folder() / "scale"
WIDE = {
    "f10k_c100": (10_000, 100, 100),
    "f10k_c1000": (10_000, 1_000, 100),
    "f100k_c100": (100_000, 100, 1_000),
    "f100k_c1000": (100_000, 1_000, 1_000),
    "p10k": (10_000, 100, 10_000),
    "p10k_indexed": (10_000, 100, 10_000),
    "keys_100k": (100_000, 100, 1_000),
}
_KEYS = 1_000_000  # in the record index of keys_100k, in ten file groups
_INDEX_GROUPS = 10
_BY_RECORD_INDEX = {**QUICK, "hoodie.index.type": "RECORD_INDEX"}
_SERVICES = {**QUICK, "hoodie.compact.inline": "true"}
_COMPACTED = {**_SERVICES, "hoodie.archive.automatic": "false"}
_ALONE = {**QUICK, "hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
_INDEXES = ("files", "column_stats", "partition_stats", "bloom_filters", "record_index")
_MERGED, _COPIED = "MERGE_ON_READ", "COPY_ON_WRITE"
SMALL_WRITES = 1_000
_STREAM_ROWS = 1 << 17


def table_path(name: str) -> str:
    """Return the path of a table with many files, which is made once."""
    path = _TABLES / name
    if not (path / ".whole").exists():
        make_wide_table(path, *WIDE[name])
        if name in ("p10k_indexed", "keys_100k"):
            HoodieTable.open(path).index.build("files", options=QUICK)
        if name == "keys_100k":
            add_record_index(path, pa.array(map(_make_key, range(_KEYS))), _INDEX_GROUPS)
        (path / ".whole").touch()
    return str(path)


def plan(name: str, filter: str | None = None) -> Figures:  # noqa: A002 - as in ``scan``
    """Make the tasks of a scan."""
    path = table_path(name)
    table, counts = open_counted(path)
    tasks = table.scan(filter=filter).tasks()
    return {
        "tasks": len(tasks),
        **_told(counts),
        **_timed(lambda: HoodieTable.open(path).scan(filter=filter).tasks()),
    }


def plan_hudi_rs(name: str) -> Figures:
    """Make the file slices of a table with hudi-rs."""
    from hudi import HudiTableBuilder

    path, found = table_path(name), []
    timed = _timed(lambda: found.extend(HudiTableBuilder.from_base_uri(path).build().get_file_slices()))
    return {"tasks": len(found), **timed}


def miss(name: str) -> Figures:
    """Read the rows of a key that no file has."""
    path = table_path(name)
    table, counts = open_counted(path)
    rows = table.scan(filter="id = 'x'").to_arrow().num_rows
    return {
        "rows": rows,
        **_told(counts),
        **_timed(lambda: HoodieTable.open(path).scan(filter="id = 'x'").to_arrow()),
    }


def miss_hudi_rs(name: str) -> Figures:
    """The same with hudi-rs."""
    from hudi import HudiReadOptions, HudiTableBuilder

    path = table_path(name)
    options = HudiReadOptions(filters=[("id", "=", "x")])
    return {"rows": 0, **_timed(lambda: HudiTableBuilder.from_base_uri(path).build().read(options))}


def _make_key(number: int) -> str:
    return f"key-{number:012d}-{number * 7919 % 1_000_003}"


def look_up(name: str) -> Figures:
    """Read the rows of one key of a record index; its file, a link, has another one."""
    path, wanted = table_path(name), f"id = '{_make_key(123_456)}'"
    table, counts = open_counted(path)
    table.scan(filter=wanted).to_arrow()
    return {**_told(counts), **_timed(lambda: HoodieTable.open(path).scan(filter=wanted).to_arrow())}


def delete(name: str, options: dict[str, str]) -> Figures:
    """Delete a key that no file has."""
    path = table_path(name)
    table, counts = open_counted(path)
    table.delete(["x"], options)
    return {**_told(counts), **_timed(lambda: HoodieTable.open(path).delete(["x"], options))}


def upsert(commits: int, version: int) -> Figures:
    """Change one row of a file group with a log, in a table with many commits."""
    path = _TABLES / f"old_{version}_{commits}"
    make_old_table(path, commits, version)
    table, counts = open_counted(str(path))
    table.upsert(make_rows(["k2"], "p", 3))
    task = len(pickle.dumps(HoodieTable.open(path).scan(filter="part = 'p'").tasks()[0]))
    timed = _timed(lambda: HoodieTable.open(path).upsert(make_rows(["k3"], "p", 4)))
    shutil.rmtree(path)
    return {"task_bytes": task, **_told(counts), **timed}


def small_writes(
    count: int, version: int, table_type: str, options: dict[str, str], indexes: Sequence[str] = ()
) -> Figures:
    """Change one row after the other; return the mean seconds of each tenth, without waiting for other clocks."""
    path = _TABLES / "small_writes"
    table = create(path, version, table_type)
    table.insert(make_rows([f"k{number}" for number in range(1000)], "p"), QUICK)
    for each in indexes:
        HoodieTable.open(path).index.build(each, options=QUICK)
    table = HoodieTable.open(path)
    tenths = []
    for tenth in range(10):
        began, cpu = time.perf_counter(), time.process_time()
        for number in range(count // 10):
            table.upsert(make_rows([f"k{number}"], "p", 2 + number + tenth * count), options)
        tenths.append((time.process_time() - cpu, time.perf_counter() - began))
    logs = max(len(each.log_files) for each in table.file_slices())
    shutil.rmtree(path)
    return {
        "cpu_tenths": [cpu / count * 10 for cpu, _ in tenths],
        "wall_tenths": [wall / count * 10 for _, wall in tenths],
        "logs": logs,
    }


def bulk_insert(rows: int) -> Figures:
    """Insert rows from a stream; return the most memory that the process had."""
    path = _TABLES / "bulk"
    table = create(path)
    before = _peak()
    stream = pa.RecordBatchReader.from_batches(make_rows([], "").schema, _make_stream(rows))
    timed = _timed(lambda: table.bulk_insert(stream))
    shutil.rmtree(path)
    return {**timed, "before": before, "peak": _peak()}


def _make_stream(rows: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, rows, _STREAM_ROWS):
        numbers = pa.array(range(start, min(rows, start + _STREAM_ROWS)), pa.int64())
        parts = pa.array([f"p{number % 10}" for number in range(len(numbers))])
        yield pa.record_batch([numbers.cast(pa.string()), numbers, parts], ["id", "ts", "part"])


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _told(counts: Counts) -> Figures:
    return {"calls": counts.calls, "bytes": counts.bytes, "opened": len(counts.opened)}


def _timed(act: Callable[[], object]) -> Figures:
    began, cpu = time.perf_counter(), time.process_time()
    act()
    return {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - began}


MEASUREMENTS: dict[str, list[tuple[str, Callable[..., Figures], dict[str, Any]]]] = {
    "round_trips": [("hoodie_py", count_hoodie, {}), ("deltalake", count_deltalake, {})],
    "planning": [
        (f"{name}, {who}", act, {"name": name})
        for name in WIDE
        if name.startswith("f")
        for who, act in (("hoodie_py", plan), ("hudi-rs", plan_hudi_rs))
    ],
    "partition": [
        ("without metadata table", plan, {"name": "p10k", "filter": "part = 'p77'"}),
        ("with metadata table", plan, {"name": "p10k_indexed", "filter": "part = 'p77'"}),
    ],
    "miss": [("hoodie_py", miss, {"name": "f10k_c100"}), ("hudi-rs", miss_hudi_rs, {"name": "f10k_c100"})],
    "look_up": [("hoodie_py", look_up, {"name": "keys_100k"})],
    "delete": [
        ("10,000 files, without an index", delete, {"name": "f10k_c100", "options": QUICK}),
        ("100,000 files, by the record index", delete, {"name": "keys_100k", "options": _BY_RECORD_INDEX}),
    ],
    "upsert": [
        (f"version {version}, {commits} commits", upsert, {"commits": commits, "version": version})
        for version in (9, 6)
        for commits in (100, 10_000)
    ],
    "small_writes": [
        (
            f"version {version}, {table_type.lower().replace('_', ' ')}, {label}",
            small_writes,
            {"count": SMALL_WRITES, "version": version, "table_type": table_type, "options": options, **more},
        )
        for version, table_type, label, options, more in (
            (9, _MERGED, "table services", _SERVICES, {}),
            (9, _MERGED, "no archival", _COMPACTED, {}),
            (9, _MERGED, "no table services", _ALONE, {}),
            (9, _MERGED, "table services, all indexes", _SERVICES, {"indexes": _INDEXES}),
            (9, _COPIED, "table services", _SERVICES, {}),
            (6, _MERGED, "table services", _SERVICES, {}),
        )
    ],
    "bulk_insert": [(f"{rows:,} rows", bulk_insert, {"rows": rows}) for rows in (2_000_000, 20_000_000)],
}


def main() -> int:
    """Measure, and keep the figures for the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=MEASUREMENTS, action="append", help="measure this alone")
    parser.add_argument("--one", nargs=2, metavar=("SECTION", "NUMBER"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        section, number = given.one
        _, act, arguments = MEASUREMENTS[section][int(number)]
        print(json.dumps(act(**arguments)))
        return 0
    before = load()
    found: dict[str, Figures] = dict((saved("scale") or {}).get("sections", {}))
    _TABLES.mkdir(parents=True, exist_ok=True)
    for name in WIDE:
        table_path(name)
    for section in given.only or MEASUREMENTS:
        found[section] = {}
        for number, (label, _, _) in enumerate(MEASUREMENTS[section]):
            figures = answer_of(f"{section}: {label}", "tests.benchmarks.scale", "--one", section, str(number))
            found[section][label] = figures
            print(f"{section:14} {label:30} {_say(figures)}", flush=True)
        save("scale", {"sections": found}, before, versions("hudi", "pyarrow", "deltalake", "s3fs"))
    return 0


def _say(figures: Figures) -> str:
    return "  ".join(f"{name} {value:.3g}" for name, value in figures.items() if isinstance(value, float | int))


if __name__ == "__main__":
    sys.exit(main())
