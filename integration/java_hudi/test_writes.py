"""This package makes tables and writes to them; Java Hudi reads, writes, compacts and cleans them, and back again.

After every step all rows and columns are compared: Java's default read, its read without the metadata table, its
filtered reads and ours, with each other and with a model of the rows. No key is ever there twice.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from hoodie_py import HoodieTable, TableFiles
from hoodie_py.formats.parquet.bloom import BloomFilter
from hoodie_py.formats.parquet.key_range import BLOOM_KEY, BLOOM_TYPE_KEY
from hoodie_py.table.snapshot import open_snapshot
from hoodie_py.writer.handles.spliced_file import SplicedFile
from integration.java_hudi.session import JavaSession
from integration.java_hudi.tables import SCHEMA, Kind, Lake, Row, make_row
from tests.writer.faulty_files import WRITES, FaultyFiles, Killed, Plan

KINDS = [
    Kind(version, partitioned, True, mor)
    for version in (9, 8, 6)
    for mor in (True, False)
    for partitioned in (True, False)
]
every_kind = pytest.mark.parametrize("kind", KINDS, ids=str)
one_of_each = pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.partitioned], ids=str)
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "3"}


class OurLake(Lake):
    """A table that this package made."""

    def put(self, rows: Iterable[Row], operation: str = "upsert", **options: Any) -> None:
        """Write by this package, and note what that must do; options with dots written as ``__``."""
        given = list(rows)
        chosen = {name.replace("__", "."): value for name, value in options.items()}
        result = getattr(self.open(), operation)(_data(given), options=chosen)
        assert result.instant is not None
        if operation == "insert_overwrite_table":
            self.rows.clear()
        if operation == "insert_overwrite":
            parts = {row["part"] for row in given} if self.kind.partitioned else None
            self.rows = {key: row for key, row in self.rows.items() if parts and row["part"] not in parts}
        self.note(given, operation)

    def numbers(self) -> list[int]:
        """Numbers of the rows that are there."""
        return sorted(int(key[1:]) for key in self.rows)

    def turn(self, ts: int) -> None:
        """Update, insert and delete by this package."""
        known = self.numbers()
        new = max(known) + 1
        changed = [make_row(each, ts, price=each * 7.0 + ts, name=f"ours at {ts}") for each in known[:: 2 + ts % 2]]
        self.put([*changed, make_row(new, ts), make_row(new + 1, ts)])
        victims = [self.rows[f"k{each:03d}"] for each in known[1 :: 9 + ts]]
        self.put([{**row, "ts": ts} for row in victims], "delete")


def _data(rows: list[Row]) -> Any:
    import pyarrow as pa

    return pa.Table.from_pylist(rows, SCHEMA)


def made(java: JavaSession, base: Path, kind: Kind, **options: Any) -> OurLake:
    """A table with rows, updates, late updates and deletes, all by this package."""
    HoodieTable.create(
        base,
        SCHEMA,
        record_key="id",
        ordering="ts",
        partition_by=["part"] if kind.partitioned else (),
        table_type=kind.table_type,
        table_version=kind.version,
        name="round_trips",
    )
    lake = OurLake(java, base, kind)
    lake.put([make_row(number) for number in range(24)], **options)
    lake.put([make_row(number, 3, price=300.0 + number) for number in range(3, 28)], **options)
    lake.put([make_row(number, 2, price=200.0 + number) for number in range(0, 30, 4)], **options)
    lake.put([make_row(number, 4) for number in (5, 6, 29)], "delete", **options)
    lake.open().delete("price > 325 or id = 'k001'", options={key.replace("__", "."): v for key, v in options.items()})
    lake.rows = {key: row for key, row in lake.rows.items() if not (row["price"] > 325 or key == "k001")}
    return lake


def services(lake: OurLake) -> None:
    """Java compacts and cleans."""
    if lake.kind.merge_on_read:
        lake.run_java()
    lake.java.clean(lake.path, lake.kind.service_options)


@every_kind
def test_java_reads_writes_and_services_what_we_wrote(java: JavaSession, kind: Kind, tmp_path: Path) -> None:
    lake = made(java, tmp_path / "table", kind)
    lake.check()
    lake.change(5)
    lake.write([make_row(number, 6, name="bloom") for number in range(2, 40, 3)], hoodie__index__type="BLOOM")
    services(lake)
    lake.check()
    lake.turn(7)  # now with a metadata table
    lake.check()
    lake.check_metadata()
    lake.change(8)
    lake.put([make_row(number, 9) for number in range(50, 53)], "insert")
    lake.put([make_row(number, 9) for number in range(60, 63)], "bulk_insert")
    lake.check()
    services(lake)
    if kind.merge_on_read:
        lake.turn(10)
        assert lake.open().compact().instant is not None
    lake.turn(11)
    lake.check()
    lake.check_metadata()


@one_of_each
def test_buckets_are_javas(java: JavaSession, kind: Kind, tmp_path: Path) -> None:
    ours = {key.replace(".", "__"): value for key, value in BUCKETS.items()}
    lake = made(java, tmp_path / "table", kind, **ours)
    lake.check()
    lake.write([make_row(number, 5, name="bucket") for number in range(2, 40, 3)], **ours)
    lake.put([make_row(number, 6) for number in range(0, 60, 5)], **ours)
    lake.check()
    services(lake)
    lake.put([make_row(number, 7) for number in range(1, 60, 5)], **ours)
    lake.write([make_row(number, 8) for number in range(0, 60, 7)], **ours)
    lake.check()
    lake.check_metadata()


@one_of_each
def test_overwritten_partitions_and_tables(java: JavaSession, kind: Kind, tmp_path: Path) -> None:
    lake = made(java, tmp_path / "table", kind)
    lake.put([make_row(number, 5) for number in (0, 3, 90)], "insert_overwrite")
    lake.check()
    lake.change(6)
    lake.put([make_row(number, 7) for number in (1, 3, 5, 6)], "insert_overwrite_table")
    lake.check()
    lake.check_metadata()
    lake.change(8)
    services(lake)
    lake.turn(9)
    lake.check()


@one_of_each
@pytest.mark.parametrize("operation", ["upsert", "insert_overwrite_table"])
def test_java_rolls_back_what_we_left(java: JavaSession, kind: Kind, operation: str, tmp_path: Path) -> None:
    lake = made(java, tmp_path / "table", kind)
    lake.change(5)
    rows = [make_row(number, 6, price=-6.0) for number in range(0, 70, 3)]
    # Before the commit; then, as Java has made a metadata table meanwhile, right after what was written to that.
    for ts, before in ((6, 1), (8, 2)):
        trace = _calls(lake.copied(tmp_path / f"traced {ts}").path, operation, rows, None)
        steps = [at for at, call in enumerate(trace) if call.startswith("put_if_absent .hoodie/")]
        _calls(lake.path, operation, rows, steps[-before] + (before > 1))
        assert len(lake.open().timeline.select_pending()) == 1
        lake.change(ts)
        assert len(lake.open().timeline.select_pending()) == 0
        lake.check()
        lake.check_metadata()


def _calls(base: Path, operation: str, rows: list[Row], at: int | None) -> list[str]:
    """Write, to be killed before one of the calls that change the table; return these calls."""
    plan = Plan(at=at, fault="kill before", watched=WRITES)
    try:
        getattr(HoodieTable(open_snapshot(FaultyFiles(TableFiles.open(base), plan))), operation)(_data(rows))
    except Killed:
        assert at is not None
    return plan.trace


@pytest.mark.parametrize("kind", [Kind(9, True, True), Kind(6, True, True), Kind(8, True, True, False)], ids=str)
def test_twenty_rounds_in_turn(java: JavaSession, kind: Kind, tmp_path: Path) -> None:
    lake = made(java, tmp_path / "table", kind)
    lot = random.Random(str(kind))
    for ts in range(5, 25):
        rows = [_drawn(lake, each, ts, lot) for each in lot.sample(range(60), 12)]
        _step(lake, rows, ts, lot)
        lake.check()
    lake.check_metadata()


def _drawn(lake: OurLake, number: int, ts: int, lot: random.Random) -> Row:
    """A row, late now and then; not where the key was deleted: a log remembers that, a base file does not."""
    late = f"k{number:03d}" in lake.rows and lot.random() < 1 / 3
    return make_row(number, ts - 3 if late else ts, price=float(lot.randrange(100)))


def _step(lake: OurLake, rows: list[Row], ts: int, lot: random.Random) -> None:
    if ts % 2:
        choice = lot.randrange(5)
        if choice == 0:
            doomed = [lake.rows[key] for key in lot.sample(sorted(lake.rows), 4)]
            lake.write([{**row, "ts": ts} for row in doomed], "delete")
        elif choice == 1:
            services(lake)
        else:
            small = {"hoodie__parquet__small__file__limit": "104857600"} if choice == 2 else {}
            lake.write(rows, **small, hoodie__index__type=lot.choice(("SIMPLE", "BLOOM")))
        return
    choice = lot.randrange(6)
    if choice == 0:
        doomed = [lake.rows[key] for key in lot.sample(sorted(lake.rows), 4)]
        lake.put([{**row, "ts": ts} for row in doomed], "delete")
    elif choice == 1 and lake.kind.merge_on_read:
        lake.open().compact()
    elif choice == 2:
        lake.open().clean(retain_commits=2)
    else:
        lake.put(rows, hoodie__index__type=lot.choice(("SIMPLE", "BLOOM")))


@pytest.mark.parametrize(
    ("entries", "most", "kind_of_filter"),
    [("11000", "11000", "exact"), ("1000", "3000", "fewer hashes"), ("500", "900", "open")],
)
def test_javas_bloom_index_finds_the_keys_of_files_that_we_rewrote(
    java: JavaSession, tmp_path: Path, entries: str, most: str, kind_of_filter: str
) -> None:
    settings = {
        "hoodie__index__type": "BLOOM", "hoodie__index__bloom__num_entries": entries,
        "hoodie__bloom__index__filter__dynamic__max__entries": most,
    }  # fmt: skip
    kind = Kind(9, False, False, False)
    lake = OurLake(java, tmp_path / "table", kind)
    HoodieTable.create(
        lake.path, SCHEMA, record_key="id", ordering="ts", table_type=kind.table_type, name="round_trips"
    )
    lake.put([make_row(number) for number in range(10_500)], "bulk_insert", **settings)
    lake.put([make_row(number, 2, name="carried") for number in range(0, 10_510, 50)], **settings)
    lake.put([make_row(number, 3) for number in range(7, 60)], "delete", **settings)
    bloom = _read_bloom(lake)
    assert kind_of_filter == ("open" if bloom.bits == 8 else "exact" if bloom.hashes == 30 else "fewer hashes")
    lake.write([make_row(number, 4, name="java") for number in lake.numbers()[::3]], **settings)
    lake.check()
    assert len(_read_bloom(lake).rows) == (1 if kind_of_filter == "exact" else 3 if most == "3000" else 2)
    lake.put([make_row(number, 5, name="ours") for number in range(0, 10_540, 70)], **settings)
    lake.write([make_row(number, 6, name="java") for number in lake.numbers()[::11]], **settings)
    lake.check()
    assert (
        len(lake.open().file_slices()) == 1
    )  # a key that was not found would have gone to another file, or twice here


@pytest.mark.parametrize("kind", [Kind(9, False, True, False), Kind(6, False, False, False)], ids=str)
def test_java_reads_and_rewrites_files_with_copied_row_groups(
    java: JavaSession, tmp_path: Path, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = {"hoodie__parquet__block__size": "60000", "hoodie__index__type": "BLOOM"}
    copied: list[int] = []
    close = SplicedFile.close
    monkeypatch.setattr(SplicedFile, "close", lambda self: copied.append(len(self.changing.touched)) or close(self))
    lake = OurLake(java, tmp_path / "table", kind)
    HoodieTable.create(
        lake.path, SCHEMA, record_key="id", ordering="ts", table_type=kind.table_type, table_version=kind.version,
        name="round_trips",
    )  # fmt: skip
    lake.put([make_row(number) for number in range(10_500)], "bulk_insert", **small)
    lake.put([make_row(number, 2, name="copied") for number in (5, 6, 5000, 10_499, 10_500)], **small)
    lake.put([make_row(number, 3) for number in range(7, 60)], "delete", **small)
    assert len(copied) == 2
    lake.check()
    lake.write([make_row(number, 4, name="java") for number in lake.numbers()[::100]], hoodie__index__type="BLOOM")
    lake.check()
    lake.put([make_row(number, 5, name="ours") for number in (70, 71, 10_501)], **small)
    lake.put([make_row(number, 6, name="ours") for number in (70, 8000)], **small)
    lake.check()
    assert len(lake.open().file_slices()) == 1


def _read_bloom(lake: Lake) -> BloomFilter:
    [newest] = lake.open().file_slices()
    assert newest.base_file is not None
    facts = pq.read_metadata(lake.path / newest.base_file.path).metadata or {}
    return BloomFilter.from_text(facts[BLOOM_KEY.encode()].decode(), facts[BLOOM_TYPE_KEY.encode()].decode())
