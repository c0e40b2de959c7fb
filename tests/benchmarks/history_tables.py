"""Tables of many small commits, for queries over a range of them.

A thousand commits write ten files each: some make new file groups, the others change groups that are there. The data
files and the timeline are those of this package's writer, but no commit looks keys up or plans, as it knows its rows.

    python -m tests.benchmarks.history_tables history_mor
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py import HoodieTable
from hoodie_py.formats.config.table_config import CDC_ENABLED
from hoodie_py.formats.parquet.bloom import BloomSettings
from hoodie_py.formats.timeline.commit_metadata import NO_COMMIT, SCHEMA_KEY, CommitMetadata, WriteStat
from hoodie_py.formats.timeline.instants import COMMIT, DELTA_COMMIT
from hoodie_py.formats.timeline.writers import write_commit_metadata
from hoodie_py.reader.file_slice import BaseFile, FileSlice
from hoodie_py.table.snapshot import Snapshot, open_snapshot
from hoodie_py.writer.handles.append import AppendTask
from hoodie_py.writer.handles.create import InsertTask
from hoodie_py.writer.handles.data_file import CommitFacts, TaskResult, make_run_id
from hoodie_py.writer.handles.markers import Markers
from hoodie_py.writer.handles.merge import RewriteTask
from hoodie_py.writer.output_schema import load_output_schema
from hoodie_py.writer.pipeline.assign import make_file_id
from hoodie_py.writer.records import WriteOperation, WriteRecords
from hoodie_py.writer.settings import FileSettings
from hoodie_py.writer.timeline.timeline_writer import TimelineWriter
from hoodie_py.writer.transaction.commit_protocol import collect_stats
from tests.benchmarks.bench_tables import cache_folder
from tests.benchmarks.checksums import Sums

COMMITS = 1000
FILES_A_COMMIT = 10
SHARE = 100  # the range has one commit of so many
PARTITIONS = 100

_FIRST = datetime(2026, 1, 1, tzinfo=UTC)
_SCHEMA = pa.schema(
    {
        "key": pa.string(),
        "region": pa.string(),
        "ts": pa.int64(),
        "quantity": pa.int32(),
        "price": pa.float64(),
        "customer": pa.string(),
        "note": pa.string(),
        "day": pa.date32(),
        "paid": pa.bool_(),
    }
)
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class HistoryShape:
    """What the commits of a table do: ``new_groups`` of their files make file groups, the others change some."""

    table_type: str
    new_groups: int
    rows: int  # of a new group
    changed: int  # rows of a group that a commit changes
    commits: int = COMMITS
    captures_changes: bool = False  # whether changes go to .cdc files as well

    @property
    def is_merge_on_read(self) -> bool:
        """Whether changes go to log files."""
        return self.table_type == "MERGE_ON_READ"


SHAPES = {
    "history_mor": HistoryShape("MERGE_ON_READ", 2, 1000, 250),
    "history_cow": HistoryShape("COPY_ON_WRITE", 8, 450, 150),
    "history_cdc": HistoryShape("COPY_ON_WRITE", 8, 450, 150, captures_changes=True),
}


@dataclass(frozen=True)
class HistoryTable:
    """A table on disk.

    Attributes:
        name: its name in ``SHAPES``.
        path: base path.
        start, end: the range, as completion times: one in ``SHARE`` of the commits, in the middle.
        files: data files that the range's commits wrote.
        expected: number of rows, and sum of ``ts``, of a full scan.
        expected_of_range: the same of the range.
        changes: number of inserts and updates in the range.
    """

    name: str
    path: Path
    start: str
    end: str
    files: int
    expected: Sums
    expected_of_range: Sums
    changes: int


def history_table(name: str) -> HistoryTable:
    """Return a table, made if need be."""
    path = cache_folder() / name
    note = path.with_name(f"{name}.range.json")
    if not note.is_file():
        shutil.rmtree(path, ignore_errors=True)
        made = asdict(make_history(SHAPES[name], name, path))
        note.write_text(json.dumps({**made, "path": str(path)}))
    kept = json.loads(note.read_text())
    return HistoryTable(**{**kept, "path": path})


def make_history(shape: HistoryShape, name: str, path: Path) -> HistoryTable:
    """Write a table of this shape."""
    table = HoodieTable.create(
        path,
        _SCHEMA,
        record_key="key",
        ordering="ts",
        partition_by="region",
        table_type=shape.table_type,
        name=name,
        properties={CDC_ENABLED: shape.captures_changes},
    )
    writer = _HistoryWriter(shape, open_snapshot(table.files))
    for number in range(shape.commits):
        writer.write_commit(number)
    writer.publish()
    size = shape.commits // SHARE
    first = shape.commits // 2
    changes = writer.changed[first : first + size]
    latest = {(group, row): number for number, rows in changes for group, some in rows for row in some.tolist()}
    newest = [int(number) for group in writer.groups for number in group.newest]
    return HistoryTable(
        name,
        path,
        start=_time_of(first - 1, completed=True),
        end=_time_of(first + size - 1, completed=True),
        files=size * FILES_A_COMMIT,
        expected={"n": len(newest), "sts": sum(newest)},
        expected_of_range={"n": len(latest), "sts": sum(latest.values())},
        changes=sum(len(some) for _, rows in changes for _, some in rows),
    )


def _time_of(number: int, *, completed: bool = False) -> str:
    """Return the request or completion time of a commit: one is requested each minute, and takes half of it."""
    time = _FIRST + timedelta(minutes=number, seconds=30 if completed else 0)
    return f"{time:%Y%m%d%H%M%S}000"


@dataclass(slots=True)
class _Group:
    """A file group while the table is made; ``newest`` has the number of the commit that wrote each row last."""

    number: int
    file_id: str
    partition_path: str
    base_file: BaseFile
    newest: Numbers


@dataclass(frozen=True, slots=True)
class _Commit:
    """A commit whose data files are there."""

    number: int
    profile: bytes
    metadata: bytes


@dataclass(slots=True)
class _HistoryWriter:
    """Writes data files commit by commit, and the timeline at the end: tasks list it, and it grows long.

    ``changed`` has, for each commit, its number and the rows that it wrote by number of the group.
    """

    shape: HistoryShape
    snapshot: Snapshot
    groups: list[_Group] = field(default_factory=list)
    changed: list[tuple[int, list[tuple[int, Numbers]]]] = field(default_factory=list)
    _commits: list[_Commit] = field(default_factory=list)

    def write_commit(self, number: int) -> None:
        """Write the data files of a commit."""
        random = np.random.default_rng(number)
        facts = self._make_facts(number)
        new = min(FILES_A_COMMIT, max(self.shape.new_groups, FILES_A_COMMIT - len(self.groups)))
        old = random.choice(len(self.groups), FILES_A_COMMIT - new, replace=False).tolist()
        rows = [(each, np.sort(random.choice(self.shape.rows, self.shape.changed, replace=False))) for each in old]
        workload = self._make_workload(new, old)
        profile = CommitMetadata(operation_type=WriteOperation.UPSERT.name, write_stats=workload)
        timeline = TimelineWriter(facts.files, facts.config)
        layout = facts.config.timeline_layout
        content = write_commit_metadata(profile, layout)
        requested = timeline.request(facts.instant, facts.action, b"")
        timeline.begin(requested, content)
        results = [self._change(facts, index, number, *each, random) for index, each in enumerate(rows)]
        results += [self._insert(facts, len(old) + index, number, random) for index in range(new)]
        timeline.remove_pending(requested)
        Markers(facts.files, facts.instant).remove_all()
        fresh = range(len(self.groups) - new, len(self.groups))
        self.changed.append((number, [*rows, *((each, np.arange(self.shape.rows)) for each in fresh)]))
        done = CommitMetadata(
            operation_type=WriteOperation.UPSERT.name,
            extra_metadata={SCHEMA_KEY: facts.schema.table},
            write_stats=collect_stats(results),
        )
        self._commits.append(_Commit(number, content, write_commit_metadata(done, layout)))

    def publish(self) -> None:
        """Write the timeline."""
        timeline = TimelineWriter(self.snapshot.files, self.snapshot.config)
        for commit in self._commits:
            requested = timeline.request(_time_of(commit.number), self._action, b"")
            inflight = timeline.begin(requested, commit.profile)
            timeline.complete(inflight, _time_of(commit.number, completed=True), commit.metadata)

    @property
    def _action(self) -> str:
        return DELTA_COMMIT if self.shape.is_merge_on_read else COMMIT

    def _make_facts(self, number: int) -> CommitFacts:
        return CommitFacts(
            files=self.snapshot.files,
            config=self.snapshot.bare_config,
            instant=_time_of(number),
            action=self._action,
            run_id=make_run_id(),
            schema=load_output_schema(self.snapshot),
            # Hudi's filter is for sixty thousand keys, and would be nearly all of such a small file.
            file=FileSettings(bloom=BloomSettings(entries=self.shape.rows, dynamic=False)),
        )

    def _make_workload(self, new: int, old: list[int]) -> dict[str, tuple[WriteStat, ...]]:
        """Return the statistics of the inflight file: inserts by partition, then updates by file group."""
        found: dict[str, tuple[WriteStat, ...]] = {}
        for number in range(len(self.groups), len(self.groups) + new):
            stat = WriteStat(file_id="", path=None, prev_commit=NO_COMMIT, num_inserts=self.shape.rows)
            found[_partition_of(number)] = (stat,)
        for each in old:
            group = self.groups[each]
            none = WriteStat(file_id="", path=None, prev_commit=NO_COMMIT)
            stat = WriteStat(
                file_id=group.file_id,
                path=None,
                prev_commit=group.base_file.instant,
                num_update_writes=self.shape.changed,
            )
            found[group.partition_path] = (*found.get(group.partition_path, (none,)), stat)
        return found

    def _insert(self, facts: CommitFacts, index: int, number: int, random: np.random.Generator) -> TaskResult:
        group = len(self.groups)
        partition, file_id = _partition_of(group), make_file_id()
        records = _make_records(group, np.arange(self.shape.rows), number, random)
        done = InsertTask(facts, index, partition, file_id).run([records])
        newest = np.full(self.shape.rows, number)
        self.groups.append(_Group(group, file_id, partition, _base_file(done, facts.instant), newest))
        return done

    def _change(
        self, facts: CommitFacts, index: int, number: int, at: int, rows: Numbers, random: np.random.Generator
    ) -> TaskResult:
        group = self.groups[at]
        records = _make_records(at, rows, number, random)
        group.newest[rows] = number
        base = group.base_file
        if self.shape.is_merge_on_read:
            task = AppendTask(
                facts, index, group.partition_path, group.file_id, base.instant, base_file=base.name,
                positions_of=base.instant,
            )  # fmt: skip
            return task.run(records, rows)
        old = FileSlice(group.partition_path, group.file_id, base.instant, base, ())
        info = self.snapshot.read_info(old).as_stored(facts.schema.arrow, facts.schema.defaults)
        done = RewriteTask(facts, index, old, info).run(records)
        group.base_file = _base_file(done, facts.instant)
        return done


def _partition_of(group: int) -> str:
    return f"region-{group % PARTITIONS:02}"


def _base_file(done: TaskResult, instant: str) -> BaseFile:
    return BaseFile(done.path, done.stat.file_size_in_bytes, instant, done.stat.file_id or "")


def _make_records(group: int, rows: Numbers, commit: int, random: np.random.Generator) -> WriteRecords:
    count = len(rows)
    keys = pc.binary_join_element_wise(f"order-{group:05}", pc.utf8_lpad(pa.array(rows).cast(pa.string()), 5, "0"), "-")
    partitions = pa.array(np.full(count, _partition_of(group)))
    ts = pa.array(np.full(count, commit))
    customers = pc.binary_join_element_wise(
        "customer", pa.array(random.integers(0, 5000, count)).cast(pa.string()), " "
    )
    notes = pa.array([each.hex() for each in _split(random.bytes(count * 12), 12)])
    days = np.full(count, np.datetime64(date(2026, 1, 1)) + commit // 24)
    columns = {
        "key": keys,
        "region": partitions,
        "ts": ts,
        "quantity": pa.array(random.integers(1, 100, count), pa.int32()),
        "price": pa.array(random.integers(1, 10**6, count) / 100),
        "customer": customers,
        "note": notes,
        "day": pa.array(days, pa.date32()),
        "paid": pa.array(random.integers(0, 2, count) == 1),
    }
    table = pa.table(columns, _SCHEMA)
    return WriteRecords(
        rows=table,
        keys=table["key"],
        partition_paths=table["region"],
        ordering=(table["ts"],),
        made_of=("key", "region"),
    )


def _split(data: bytes, size: int) -> Iterator[bytes]:
    return (data[start : start + size] for start in range(0, len(data), size))


def main() -> int:
    """Make one table and print what it has."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=sorted(SHAPES))
    print(history_table(parser.parse_args().name))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
