"""Tables that Java Hudi writes for the tests, and what must be in them: a model of the rows in plain Python."""

from __future__ import annotations

import datetime as dt
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from hoodie_py import HoodieTable
from integration.java_hudi.session import JavaSession

SCHEMA = pa.schema([
    ("id", pa.string()),
    ("part", pa.string()),
    ("ts", pa.int64()),
    ("name", pa.string()),
    ("price", pa.float64()),
    ("amount", pa.decimal128(12, 2)),
    ("at", pa.timestamp("us", "UTC")),
    ("day", pa.date32()),
    ("data", pa.binary()),
    ("flag", pa.bool_()),
    ("tags", pa.list_(pa.string())),
    ("st", pa.struct([("a", pa.int32()), ("b", pa.string())])),
    ("counts", pa.map_(pa.string(), pa.int64())),
])  # fmt: skip
META = ("_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key", "_hoodie_partition_path")

Row = dict[str, Any]
_DUE = 10  # delta commits after which Java compacts the metadata table


@dataclass(frozen=True, slots=True)
class Kind:
    """What kind of table: Hudi's table version, whether it has partitions, a metadata table, log files."""

    version: int
    partitioned: bool
    metadata: bool
    merge_on_read: bool = True

    def __str__(self) -> str:
        name = f"v{self.version}-{'part' if self.partitioned else 'flat'}-{'mdt' if self.metadata else 'nomdt'}"
        return name if self.merge_on_read else f"{name}-cow"

    @property
    def table_type(self) -> str:
        """Hudi's name for the type."""
        return "MERGE_ON_READ" if self.merge_on_read else "COPY_ON_WRITE"

    @property
    def service_options(self) -> dict[str, str]:
        """Java's options for table services on it."""
        return {
            "hoodie.write.table.version": str(self.version),
            "hoodie.write.auto.upgrade": "false",
            "hoodie.metadata.enable": str(self.metadata).lower(),
        }

    @property
    def write_options(self) -> dict[str, str]:
        """Java's options for writes to it."""
        options = {
            **self.service_options,
            "hoodie.table.name": "round_trips",
            "hoodie.datasource.write.table.type": self.table_type,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.table.ordering.fields": "ts",
            "hoodie.compact.inline": "false",  # else the fifth delta commit is compacted by its writer
            "hoodie.parquet.small.file.limit": "0",  # else updates beside inserts rewrite base files: no log, no test
            "hoodie.insert.shuffle.parallelism": "1",
            "hoodie.upsert.shuffle.parallelism": "1",
            "hoodie.delete.shuffle.parallelism": "1",
        }
        if self.partitioned:
            return {**options, "hoodie.datasource.write.partitionpath.field": "part"}
        keys = "org.apache.hudi.keygen.NonpartitionedKeyGenerator"
        return {**options, "hoodie.datasource.write.keygenerator.class": keys}


KINDS = [
    Kind(version, partitioned, metadata)
    for version in (9, 8, 6)
    for partitioned in (True, False)
    for metadata in (True, False)
]


def make_row(number: int, ts: int = 1, **changes: Any) -> Row:
    """A row with something in every column, and nulls here and there."""
    row: Row = {
        "id": f"k{number:03d}",
        "part": f"p{number % 3}",
        "ts": ts,
        "name": f"näme {number}" if number % 5 else None,
        "price": number * 1.5,
        "amount": Decimal(number) / 4 if number % 4 else None,
        "at": dt.datetime(2026, 1, 1, tzinfo=dt.UTC) + dt.timedelta(hours=number, microseconds=number),
        "day": dt.date(1969, 12, 30) + dt.timedelta(days=number),
        "data": bytes([number % 256, 0, 255]) if number % 7 else None,
        "flag": number % 2 == 0,
        "tags": [f"t{each}" for each in range(number % 4)] if number % 6 else None,
        "st": {"a": number, "b": f"b{number}" if number % 3 else None},
        "counts": [(f"c{each}", each) for each in range(number % 3)],
    }
    return row | changes


@dataclass(slots=True)
class Lake:
    """A table of one test: Java's hands on it, and what must be in it.

    Args:
        java: the session.
        path: base path.
        kind: of the table.
        rows: the rows by id.
        checks: how many were made; the filters take turns.
    """

    java: JavaSession
    path: Path
    kind: Kind
    rows: dict[str, Row] = field(default_factory=dict)
    checks: int = 0

    def write(self, rows: Iterable[Row], operation: str = "upsert", mode: str = "append", **options: str) -> None:
        """Have Java write rows, and note what that must do; options with dots written as ``__``."""
        given = list(rows)
        chosen = self.kind.write_options | {name.replace("__", "."): value for name, value in options.items()}
        self.java.write(self.path, pa.Table.from_pylist(given, SCHEMA), chosen, operation=operation, mode=mode)
        self.note(given, operation)

    def note(self, rows: Iterable[Row], operation: str) -> None:
        """Note what a write must do to the table's rows."""
        for row in rows:
            known = self.rows.get(row["id"])
            if operation == "delete":
                self.rows.pop(row["id"], None)
            elif known is None or known["ts"] <= row["ts"]:
                self.rows[row["id"]] = row

    def change(self, ts: int) -> None:
        """Have Java update some rows, insert two and delete one."""
        known = sorted(self.rows)
        numbers = [int(key[1:]) for key in known]
        updated = [  # where they are: Java's default index looks for a key in the row's partition only
            make_row(each, ts, price=each * 10.0 + ts, name=f"at {ts}", part=self.rows[f"k{each:03d}"]["part"])
            for each in numbers[:: 3 + ts % 2]
        ]
        new = max(numbers) + 1
        self.write([*updated, make_row(new, ts), make_row(new + 1, ts)])
        victim = self.rows[known[ts % len(known)]]
        self.write([{**victim, "ts": ts}], "delete")

    def open(self) -> HoodieTable:
        """Our view of the table as it is now."""
        return HoodieTable.open(self.path)

    def schedule_java(self) -> str:
        """Have Java plan a compaction."""
        instant = self.java.schedule_compaction(self.path, self.kind.service_options)
        assert instant is not None
        return instant

    def run_java(self, instant: str | None = None) -> str:
        """Have Java run a compaction, planning it first unless it is named."""
        done = self.java.run_compaction(self.path, self.kind.service_options, instant)
        assert done is not None
        return done

    def check(self) -> dict[str, Row]:
        """Compare all reads with the model and with each other; return the rows with meta columns.

        Java's default read, its read without the metadata table, its read with a filter, and ours.
        """
        want = {key: _plain(row) for key, row in self.rows.items()}
        asked: dict[str, tuple[str | None, dict[str, str]]] = {"java": (None, {})}
        if self.kind.metadata:  # else the default is no other
            asked["java, listing"] = (None, {"hoodie.metadata.enable": "false"})
        where, keep = _FILTERS[self.checks % len(_FILTERS)]
        self.checks += 1
        asked[where] = (where, {})
        answers = self.java.read_together(self.path, list(asked.values()))
        reads = {name: by_key(rows) for name, rows in zip(asked, answers, strict=True)}
        reads["ours"] = by_key(self.open().scan().to_arrow())
        filtered = reads.pop(where)
        for name, found in reads.items():
            assert _rows(found) == _rows(reads["java"]), f"{name} differs from Java's default read"
            assert _meta(found) == _meta(reads["java"]), name
        assert _rows(reads["java"]) == want
        assert _rows(filtered) == {key: row for key, row in want.items() if keep(row)}, where
        return reads["java"]

    def check_metadata(self) -> None:
        """Compare the metadata table with the files that are there, where there is one."""
        if self.kind.metadata:
            assert self.java.wrong_metadata(self.path) == []

    def planned(self) -> list[str]:
        """Request times of pending compactions."""
        return [each.request_time for each in self.open().timeline.select_pending_compactions()]

    def log_files(self) -> int:
        """How many log files a snapshot still reads."""
        return sum(len(each.log_files) for each in self.open().file_slices())

    def copied(self, into: Path) -> Lake:
        """A copy for another test."""
        shutil.copytree(self.path, into)
        return Lake(self.java, into, self.kind, dict(self.rows))


_FILTERS: Sequence[tuple[str, Callable[[Row], bool]]] = (
    ("price > 20", lambda row: row["price"] > 20),
    ("ts < 3", lambda row: row["ts"] < 3),
)


def is_metadata_compaction_near(table: Path) -> bool:
    """Say whether Java compacts the metadata table at its next commit but one.

    If that is a rollback of the commit before it, Java's compaction comes first, and then Java refuses to roll back
    what is older than it.
    """
    metadata = table / ".hoodie/metadata"
    if not metadata.exists():
        return False
    timeline = HoodieTable.open(metadata).timeline.select_completed()
    compacted = max((each.request_time for each in timeline if each.action == "commit"), default="")
    return sum(each.action == "deltacommit" and each.request_time > compacted for each in timeline) >= _DUE - 1


def same_rows(before: Mapping[str, Row], after: Mapping[str, Row]) -> None:
    """Fail unless all columns but the file name are the same: a compaction changes no more than that."""
    assert {key: _but_file(row) for key, row in before.items()} == {key: _but_file(row) for key, row in after.items()}


def by_key(table: pa.Table) -> dict[str, Row]:
    """Rows by id; a repeated id is an error."""
    rows = [_plain(row) for row in table.to_pylist()]
    found = {row["id"]: row for row in rows}
    assert len(found) == len(rows), "an id is there twice"
    return found


def _plain(row: Row) -> Row:
    """Values that compare: maps as sorted pairs."""
    plain = dict(row)
    if plain.get("counts") is not None:
        plain["counts"] = sorted(tuple(pair) for pair in plain["counts"])
    if plain.get("amount") is not None:
        plain["amount"] = Decimal(plain["amount"])
    return plain


def _only(row: Row, names: Iterable[str]) -> Row:
    return {name: row[name] for name in names}


def _rows(rows: Mapping[str, Row]) -> dict[str, Row]:
    return {key: _only(row, SCHEMA.names) for key, row in rows.items()}


def _meta(rows: Mapping[str, Row]) -> dict[str, Row]:
    return {key: _only(row, META) for key, row in rows.items()}


def _but_file(row: Row) -> Row:
    return {name: value for name, value in row.items() if name != "_hoodie_file_name"}
