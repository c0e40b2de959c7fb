"""Tables that capture changes, a model of the changes that writes make, and Java's answer to a query for them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from hoodie_py import HoodieTable, TableFiles
from hoodie_py.table.snapshot import open_snapshot
from integration.java_hudi.session import JavaSession
from integration.java_hudi.tables import SCHEMA, Kind, Lake, Row, make_row
from tests.writer.faulty_files import WRITES, FaultyFiles, Killed, Plan

KEEP = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}  # images lie in older base files, too
MODES = ("OP_KEY_ONLY", "DATA_BEFORE", "DATA_BEFORE_AFTER")
SHOWN = ("id", "part", "ts", "name", "price")  # what the model says of an image

Image = tuple[Any, ...] | None
Change = tuple[str, Image, Image]


@dataclass(frozen=True, slots=True)
class Capturing:
    """What kind of table, and what its change-data files hold."""

    kind: Kind
    mode: str

    def __str__(self) -> str:
        return f"{self.kind}-{self.mode.lower()}"

    @property
    def properties(self) -> dict[str, str]:
        """The table's properties for it."""
        return {"hoodie.table.cdc.enabled": "true", "hoodie.table.cdc.supplemental.logging.mode": self.mode}

    @property
    def java_reads_changes(self) -> bool:
        """Whether Java can answer; Hudi 1.2.0 fails over the log files of table version 6."""
        return not self.kind.merge_on_read or self.kind.version > 6


@dataclass(slots=True)
class ChangingTable:
    """A table of one test that Java and this package write, and the changes that each commit made.

    Args:
        java: the session.
        path: base path.
        of: kind of the table.
        rows: the rows by id.
        commits: the changes of each write, oldest first.
    """

    java: JavaSession
    path: Path
    of: Capturing
    rows: dict[str, Row] = field(default_factory=dict)
    commits: list[list[Change]] = field(default_factory=list)

    def create(self) -> None:
        """Make the empty table by this package."""
        kind = self.of.kind
        HoodieTable.create(
            self.path,
            SCHEMA,
            record_key="id",
            ordering="ts",
            partition_by="part" if kind.partitioned else (),
            table_type=kind.table_type,
            table_version=kind.version,
            name="round_trips",
            properties=self.of.properties,
        )

    def write(self, rows: Iterable[Row], operation: str = "upsert", *, by_java: bool = False) -> None:
        """Write rows, and note the changes that this must make."""
        given = list(rows)
        data = pa.Table.from_pylist(given, SCHEMA)
        if by_java:
            options = {**self.of.kind.write_options, **self.of.properties, **KEEP}
            mode = "append" if self.path.exists() else "overwrite"
            self.java.write(self.path, data, options, operation=operation, mode=mode)
        else:
            table = HoodieTable.open(self.path)
            {"upsert": table.upsert, "delete": table.delete, "insert": table.insert}[operation](data)
        self.commits.append(list(self._note(given, operation)))

    def replace_partition(self, rows: Iterable[Row]) -> None:
        """Overwrite the partition of the rows, by this package."""
        given = list(rows)
        HoodieTable.open(self.path).insert_overwrite(pa.Table.from_pylist(given, SCHEMA))
        part = given[0]["part"]
        gone = [row for row in self.rows.values() if row["part"] == part or not self.of.kind.partitioned]
        for row in gone:
            del self.rows[row["id"]]
        deleted: list[Change] = [("d", _show(row), None) for row in gone]
        self.commits.append([*deleted, *self._note(given, "insert")])

    def change(self, ts: int, *, by_java: bool = False) -> None:
        """Update some rows, insert two, and delete one."""
        known = sorted(self.rows)
        numbers = [int(key[1:]) for key in known]
        new = max(numbers) + 1
        updated = [make_row(each, ts, price=each * 10.0 + ts, name=f"at {ts}") for each in numbers[:: 3 + ts % 2]]
        self.write([*updated, make_row(new, ts), make_row(new + 1, ts)], by_java=by_java)
        self.write([{**self.rows[known[ts % len(known)]], "ts": ts}], "delete", by_java=by_java)

    def kill_upsert(self, rows: Iterable[Row]) -> None:
        """Write by this package, to be killed right before the commit."""
        data = pa.Table.from_pylist(list(rows), SCHEMA)
        self._kill(lambda table: table.upsert(data))

    def kill_compaction(self) -> str:
        """Plan a compaction, run it, to be killed right before the commit, and return its instant."""
        instant = str(HoodieTable.open(self.path).schedule_compaction())
        self._kill(lambda table: table.run_compaction(instant))
        return instant

    def _kill(self, act: Callable[[HoodieTable], object]) -> None:
        trace = Plan(watched=WRITES)
        traced = self.path.with_name(f"{self.path.name} traced")
        shutil.copytree(self.path, traced)
        act(HoodieTable(open_snapshot(FaultyFiles(TableFiles.open(traced), trace))))
        shutil.rmtree(traced)
        last = max(at for at, call in enumerate(trace.trace) if call.startswith("put_if_absent .hoodie/"))
        plan = Plan(at=last, fault="kill before", watched=WRITES)
        with suppress(Killed):
            act(HoodieTable(open_snapshot(FaultyFiles(TableFiles.open(self.path), plan))))
        assert plan.dead

    def change_files(self) -> set[str]:
        """Change-data files that are there, relative to the table."""
        return {path.relative_to(self.path).as_posix() for path in self.path.rglob(".*.cdc")}

    def named_change_files(self) -> set[str]:
        """Change-data files that the commits on the active timeline name."""
        timeline = HoodieTable.open(self.path)._snapshot.timeline
        stats = [each for at in timeline.list_completed_writes() for each in timeline.read_metadata(at).iterate_stats()]
        return {path for stat in stats for path in stat.cdc_stats}

    def copied(self, into: Path) -> ChangingTable:
        """A copy of the table."""
        shutil.copytree(self.path, into)
        return ChangingTable(self.java, into, self.of, dict(self.rows), list(self.commits))

    def compact(self, *, by_java: bool = False) -> None:
        """Plan and run a compaction."""
        if by_java:
            assert self.java.run_compaction(self.path, self.of.kind.service_options) is not None
        else:
            assert HoodieTable.open(self.path).compact().instant is not None

    def read(self, start: str = "earliest") -> list[Change]:
        """Ask this package for the changes after ``start``, and Java, where it can answer; they must agree."""
        ours = HoodieTable.open(self.path).changes(start).to_arrow().to_pylist()
        if self.of.java_reads_changes:
            assert sorted(map(_simplify, ours), key=repr) == sorted(map(_simplify, self.read_by_java(start)), key=repr)
        return sort_changes(_simplify(row)[1:] for row in ours)

    def read_by_java(self, start: str) -> list[Row]:
        """Ask Java for the changes after ``start``."""
        options = {
            "hoodie__datasource__query__type": "incremental",
            "hoodie__datasource__query__incremental__format": "cdc",
            "hoodie__datasource__read__begin__instanttime": "000" if start == "earliest" else start,
        }
        return self.java.read(self.path, **options).to_pylist()

    def check(self) -> None:
        """Compare all rows, and the changes of the whole history and of its later half, with the model."""
        lake = Lake(self.java, self.path, self.of.kind, self.rows)
        lake.check()
        if (self.path / ".hoodie" / "metadata").exists():
            lake.check_metadata()
        assert self.read() == self._sum_up(0)
        half = len(self.commits) // 2
        writes = [each for each in HoodieTable.open(self.path).timeline.select_writes() if each.action != "compaction"]
        times = [each.completion_time or "" for each in writes if not self._is_compaction(each.request_time)]
        assert len(times) == len(self.commits)
        assert self.read(times[half - 1]) == self._sum_up(half)

    def _is_compaction(self, instant: str) -> bool:
        return self.of.kind.merge_on_read and any(
            each.request_time == instant and each.action == "commit" for each in HoodieTable.open(self.path).timeline
        )

    def _sum_up(self, first: int) -> list[Change]:
        return sort_changes(change for commit in self.commits[first:] for change in commit)

    def _note(self, rows: Iterable[Row], operation: str) -> Iterator[Change]:
        for row in rows:
            known = self.rows.get(row["id"])
            if operation == "delete":
                if known is not None:
                    yield "d", _show(self.rows.pop(row["id"])), None
            elif known is None:
                self.rows[row["id"]] = row
                yield "i", None, _show(row)
            elif known["ts"] <= row["ts"]:
                self.rows[row["id"]] = row
                yield "u", _show(known), _show(row)


def sort_changes(changes: Iterable[Change]) -> list[Change]:
    """Order changes, so that lists of them compare."""
    return sorted(changes, key=repr)


def _simplify(row: Row) -> tuple[str, str, Image, Image]:
    """Return commit, operation and images. Java shows meta columns where it takes an image from a base file."""
    return row["ts_ms"], row["op"], _parse(row["before"]), _parse(row["after"])


def _show(row: Row) -> Image:
    return tuple(row.get(name) for name in SHOWN)  # Java's images leave out nulls


def _parse(image: str | None) -> Image:
    found = json.loads(image) if image else None  # Java's text for no image is empty or "null"
    return None if found is None else _show(found)
