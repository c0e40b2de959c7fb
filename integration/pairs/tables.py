"""The small tables that pairs of operations are done to, made once each."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from hoodie_py import HoodieTable
from integration.crash.children import DIED, DONE, in_a_child
from integration.crash.faults import KILL_BEFORE, Plan, faulty
from integration.crash.operations import LOCKS, QUICK
from integration.crash.stores import Folder, State, files_at, open_table

SCHEMA = pa.schema(
    [("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("name", pa.string()), ("qty", pa.int64())]
)
VERSIONS, KINDS, INDEXES = (6, 8, 9), ("mor", "cow"), ("indexed", "plain")
_FEW_GROUPS = {
    "hoodie.metadata.record.index.min.filegroup.count": "1",
    "hoodie.metadata.record.index.max.filegroup.count": "1",
}
"""Of indexes of keys; ten, of a few rows each, would take most of a trial's time."""
SAVED, FAILED = "saved", "failed"
LOCK_OF = {"local": "file", "s3": "object"}
MOMENT = datetime(2026, 3, 1, 12, tzinfo=UTC)
"""When a trial begins, on the clock of the processes; tables are made before."""

Values = tuple[int, str, int]
Rows = Mapping[tuple[str, str], Values]
"""Ordering value, name and quantity by partition and key."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of table. ``indexed``: it has every index that its version knows, save those that operations build.
    ``trait``: SAVED has a savepoint with commits after it, FAILED the rest of a write whose process was killed.
    """

    version: int
    merge_on_read: bool
    indexed: bool
    trait: str = ""

    def __str__(self) -> str:
        words = ["mor" if self.merge_on_read else "cow", str(self.version), "indexed" if self.indexed else "plain"]
        return " ".join([*words, *([self.trait] if self.trait else [])])


@dataclass(frozen=True, slots=True)
class Prepared:
    """A table before a trial: its files, its rows, the savepoint's instant and rows, the failed write's instant."""

    kind: Kind
    state: State
    rows: Rows
    saved: str = ""
    saved_rows: Rows | None = None
    failed: str = ""


def options_of(lock: str) -> dict[str, str]:
    """Return the options of all writers: "machine" is Hudi's default, each writer taking itself for the only one; with
    "file", on disks, and "object", on S3, they know of each other.
    """
    return {**QUICK, **LOCKS[lock], **_FEW_GROUPS, "hoodie.write.lock.wait_time_ms": "20000"}


def make_row(number: int, ts: int) -> dict[str, Any]:
    return {"id": f"k{number}", "part": f"p{number % 2}", "ts": ts, "name": f"n{number}-{ts}", "qty": number}


def rows_of(found: pa.Table) -> dict[tuple[str, str], Values]:
    """Return rows by place; a key that is there twice is told by a name that no row has."""
    rows: dict[tuple[str, str], Values] = {}
    for row in found.select(SCHEMA.names).to_pylist():
        place = (row["part"], row["id"])
        value = (row["ts"], row["name"], row["qty"])
        rows[place] = value if place not in rows else (-1, f"TWICE: {rows[place]} and {value}", 0)
    return rows


@cache
def prepare(kind: Kind) -> Prepared:
    """Make a table in a child, by its clock, so that each process that asks gets the same files."""
    with tempfile.TemporaryDirectory() as name:
        base = Path(name) / "t"
        base.mkdir()
        place = Folder(base)
        made = _in_a_child(lambda: _make(kind, base), 0, str(kind))
        failed = ""
        if kind.trait == FAILED:
            failed = _leave_a_failed_write(place)
        place.let_time_pass(3600)
        rows, saved_rows = _in_a_child(lambda: _look(place, made), 40, "look")
        return Prepared(kind, place.dump(), rows, made, saved_rows, failed)


def _in_a_child(work: Any, minutes: int, seed: str) -> Any:
    how, answer = in_a_child(work, MOMENT - timedelta(minutes=60 - minutes), seed)
    assert how == DONE, answer
    return answer


def _make(kind: Kind, base: Path) -> str:
    table = HoodieTable.create(
        base,
        SCHEMA,
        record_key="id",
        ordering="ts",
        partition_by=["part"],
        table_type="MERGE_ON_READ" if kind.merge_on_read else "COPY_ON_WRITE",
        table_version=kind.version,
        name="t",
    )
    table.upsert([make_row(number, 1) for number in range(8)], QUICK)
    table.upsert([make_row(number, 2) for number in (0, 1, 2, 3)], QUICK)
    if kind.merge_on_read and kind.trait != SAVED:
        table.compact(options=QUICK)
    saved = ""
    if kind.trait == SAVED:
        saved = table.savepoint(comment="kept", options=QUICK).instant
    table.upsert([make_row(number, 3) for number in (0, 1, 4, 5)], QUICK)
    if kind.indexed:
        for arguments in indexes_of(kind.version):
            table.index.build(**arguments, options={**QUICK, **_FEW_GROUPS})
    # The metadata table is compacted, as archival goes no further than that.
    table.upsert(
        [make_row(number, 4) for number in (0, 1, 6)], {**QUICK, "hoodie.metadata.compact.max.delta.commits": "1"}
    )
    table.delete(["k7"], QUICK)
    return saved


def indexes_of(version: int) -> list[dict[str, Any]]:
    """Return the indexes of an indexed table, as arguments of a build."""
    named: list[dict[str, Any]] = [{"name": "record_index"}, {"name": "column_stats"}]
    if version == 6:
        return named
    return [
        *named,
        {"name": "partition_stats"},
        {"name": "by_name", "column": "name"},
        {"name": "up", "column": "name", "function": "upper"},
    ]


def _leave_a_failed_write(place: Folder) -> str:
    """Write once more, and die right before the completed file."""
    ending = (".commit", ".deltacommit")

    def write(plan: Plan) -> list[tuple[str, str]]:
        table = open_table(faulty(files_at(place), plan))
        plan.armed = True
        table.upsert([make_row(number, 9) for number in (0, 5)] + [make_row(20, 9)], options_of(LOCK_OF["local"]))
        return plan.calls

    state = place.dump()
    calls = _in_a_child(lambda: write(Plan()), 20, "failed")
    [at] = [
        number
        for number, (verb, path) in enumerate(calls)
        if verb == "create" and path.endswith(ending) and "/metadata/" not in path
    ]
    place.load(state)
    moment = MOMENT - timedelta(minutes=40)
    assert in_a_child(lambda: write(Plan(at, KILL_BEFORE)), moment, "failed") == (DIED, None)
    place.let_time_pass(3600)
    pending = _in_a_child(
        lambda: [each.request_time for each in open_table(files_at(place)).timeline.select_pending()], 30, ""
    )
    [instant] = pending
    return str(instant)


def _look(place: Folder, saved: str) -> tuple[Rows, Rows | None]:
    table = open_table(files_at(place))
    then = rows_of(table.scan(as_of=saved).to_arrow()) if saved else None
    return rows_of(table.scan().to_arrow()), then
