"""The tables that benchmarks read: unpacked, grown and kept, with the sums that a right answer has.

Packed tables (NAME.zip, NAME.expect.json) are looked for in the folder BENCH_TABLES, ``../shared/bench`` unless set;
grown ones are kept in BENCH_CACHE, ``.bench`` in the checkout unless set.

    python -m tests.benchmarks.bench_tables mor_small --groups 10 --base 1
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.benchmarks.checksums import Sums, sums_of
from tests.benchmarks.grow import data_files, grow
from tests.benchmarks.rekey import KeyShape

ROOT = Path(__file__).resolve().parent.parent.parent
NARROW = ("i1", "l2", "amt")  # the three columns of narrow reads, in every table
KEY_SHAPES = {
    "mor_small": KeyShape("key-", "[0-9A-F]{16}", 20),
    "mor_late": KeyShape("acct", "-[0-9]{3}-[0-9A-F]{16}", 25),
}


class TablesAbsentError(Exception):
    """The packed tables are not at hand; the message says where they were looked for."""


@dataclass(frozen=True)
class BenchTable:
    """A table on disk and the sums of its rows; ``name`` is that of the table it was grown from."""

    name: str
    path: Path
    expected: Sums

    @property
    def base_files(self) -> list[Path]:
        """Its Parquet files."""
        return [file.path for file in data_files(self.path) if not file.is_log]

    @property
    def log_files(self) -> list[Path]:
        """Its log files."""
        return [file.path for file in data_files(self.path) if file.is_log]


def packed_folder() -> Path:
    """Where packed tables are."""
    return Path(os.environ.get("BENCH_TABLES", ROOT.parent / "shared" / "bench")).resolve()


def cache_folder() -> Path:
    """Where grown tables and results are kept."""
    return Path(os.environ.get("BENCH_CACHE", ROOT / ".bench")).resolve()


def bench_table(name: str, groups: int = 1, bases: int = 1) -> BenchTable:
    """Return a table with ``groups`` times its file groups and ``bases`` times its base rows, made if need be.

    Raises:
        TablesAbsentError: the packed table is not there.
    """
    path = cache_folder() / f"{name}_g{groups}_b{bases}"
    note = path.with_name(path.name + ".expect.json")
    if not note.is_file():
        source = _unpacked(name)
        if (groups, bases) != (1, 1):
            shutil.rmtree(path, ignore_errors=True)
            grow(source, path, KEY_SHAPES[name], groups, bases)
        expected = _scaled(name, source, groups, bases)
        note.write_text(json.dumps({key: str(value) for key, value in expected.items()}))
    return BenchTable(name, path, _read_sums(note))


def _unpacked(name: str) -> Path:
    folder = cache_folder() / f"{name}_g1_b1"
    if not folder.is_dir():
        archive = packed_folder() / f"{name}.zip"
        if not archive.is_file():
            raise TablesAbsentError(
                f"There is no {name}.zip in {packed_folder()}. Set BENCH_TABLES to the folder that has it."
            )
        fresh = folder.with_name(folder.name + ".new")
        shutil.rmtree(fresh, ignore_errors=True)
        with zipfile.ZipFile(archive) as packed:
            packed.extractall(fresh)
        (fresh / name).rename(folder)
        fresh.rmdir()
    return folder


def _scaled(name: str, source: Path, groups: int, bases: int) -> Sums:
    """Work out the sums of a grown table: every sum is over rows, so copies add up."""
    merged = _read_sums(packed_folder() / f"{name}.expect.json")
    appended = sums_of(name, _base_rows(source)) if bases > 1 else {}
    return {key: groups * (value + (bases - 1) * appended.get(key, 0)) for key, value in merged.items()}


def _base_rows(table: Path) -> Iterator[pa.RecordBatch]:
    for file in data_files(table):
        if not file.is_log:
            yield from pq.ParquetFile(file.path).iter_batches()


def _read_sums(path: Path) -> Sums:
    return {key: Decimal(text) if "." in text else int(text) for key, text in json.loads(path.read_text()).items()}


def main() -> int:
    """Make one table and print where it is."""
    parser = argparse.ArgumentParser(description="Grow a benchmark table.")
    parser.add_argument("name", choices=sorted(KEY_SHAPES))
    parser.add_argument("--groups", type=int, default=10)
    parser.add_argument("--base", type=int, default=1)
    arguments = parser.parse_args()
    try:
        table = bench_table(arguments.name, arguments.groups, arguments.base)
    except TablesAbsentError as error:
        print(error)
        return 1
    print(table.path)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
