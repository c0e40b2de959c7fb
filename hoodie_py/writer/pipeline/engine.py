"""Engine: does the work of a write on its rows, wherever they are.

``Write`` makes the decisions of a write and commits it. What reads rows, looks up their keys and writes files is an
engine's: ``LocalEngine`` works with threads of this process, Spark's ``SparkEngine`` with the workers of a session. An
engine may attempt a task more than once, and returns results in any order, one for each file, of the attempt that
counts. Any object with ``run`` runs the tasks of table services (``Runner``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.table.scan.task import ScanTask
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.view.visibility import GroupKey
from hoodie_py.writer.handles.data_file import TaskResult
from hoodie_py.writer.output_schema import OutputSchema
from hoodie_py.writer.pipeline.assign import FileAssignment
from hoodie_py.writer.pipeline.tasks import Tasks, WriteTask, run_task
from hoodie_py.writer.records import WriteOperation, WriteRecords
from hoodie_py.writer.services.service_run import Runner
from hoodie_py.writer.settings import WriteSettings
from hoodie_py.writer.timeline.session import WriteSession

if TYPE_CHECKING:
    from hoodie_py.writer.dml.changes import RowChanges


@dataclass(frozen=True, slots=True)
class Target:
    """What the rows of a write are placed by.

    Attributes:
        session: the session of the call, whose settings name the table's index.
        snapshot: the table at the first look.
        operation: the operation.
        merger: the merger that replaces the table's merge mode; None if the caller gave none.
    """

    session: WriteSession
    snapshot: Snapshot
    operation: WriteOperation
    merger: Merger | None = None

    @property
    def settings(self) -> WriteSettings:
        """The options of the call."""
        return self.session.settings


class Placed(Protocol):
    """Rows whose files are known."""

    @property
    def assignments(self) -> tuple[FileAssignment, ...] | None:
        """One for each new file; None if every task writes its rows to new files, which only it knows."""
        ...

    def write(self, tasks: Tasks) -> Sequence[TaskResult]:
        """Write the files, and return one result for each.

        Raises:
            HoodieError: a task failed. No task is running any more then.
        """
        ...


class Rows(Protocol):
    """The rows of a write, conformed to the table, with their keys and partition paths."""

    @property
    def schema(self) -> OutputSchema:
        """The schema of the new files."""
        ...

    @property
    def made_of(self) -> tuple[str, ...]:
        """The fields that keys and partition paths were made from; empty if the caller gave keys and paths."""
        ...

    @property
    def partitions(self) -> list[str]:
        """Paths of the partitions that have rows; empty if they are not known before the rows are placed."""
        ...

    @property
    def is_empty(self) -> bool:
        """Whether there are no rows, as far as that is known."""
        ...

    def place(self, target: Target) -> Placed:
        """Combine the rows of one key, look keys up, and assign each row to a file.

        Raises:
            PlannedForClusteringError: rows belong to file groups that a pending clustering replaces.
            HoodieError: as for ``assign_records``.
        """
        ...

    def close(self) -> None:
        """Release what the rows hold on disk or on workers."""
        ...


@dataclass(slots=True)
class ChangedGroup:
    """How many rows of a file group change."""

    file_slice: FileSlice
    updates: int = 0
    deletes: int = 0


class Changes(Protocol):
    """The rows of the table that an update or a merge changes."""

    @property
    def groups(self) -> Mapping[GroupKey, ChangedGroup]:
        """The file groups that change."""
        ...

    @property
    def moved(self) -> Sequence[pa.Table]:
        """The rows that move to other partitions."""
        ...

    def write(self, work: Sequence[Work]) -> Sequence[TaskResult]:
        """Write the files; errors as for ``Placed.write``."""
        ...

    def close(self) -> None:
        """Release what the rows hold on disk or on workers."""
        ...


@dataclass(frozen=True, slots=True)
class Work:
    """One new file of an update or a merge: its task, and the new rows that go into it beside the changed rows of its
    file group, if any.

    ``inserts``: the number of records with new keys. ``ordering``: the types of ordering values.
    """

    task: WriteTask
    rows: int
    inserts: int
    changes: bool
    new: WriteRecords | None = None
    positions: np.ndarray | None = None
    ordering: tuple[pa.DataType, ...] = ()

    def run(self, changed: WriteRecords | None) -> TaskResult:
        """Write the file; errors as for ``run_task``."""
        if changed is None:
            assert self.new is not None
            assert self.positions is not None
            return run_task(self.task, self.new, self.positions, self.inserts)
        records = changed if self.new is None else _concatenate(changed, self.new)
        return run_task(self.task, records, np.full(len(records), -1, np.int64), self.inserts)


class Engine(Runner, Protocol):
    """Does the work of writes and of table services; it has no state of a single write."""

    def list_columns(self, data: Any, target: Target) -> tuple[Any, Sequence[str]]:
        """Return a caller's rows, opened if need be, with the names of their columns."""
        ...

    def key(self, data: Any, target: Target) -> Rows:
        """Conform a caller's rows to the table, and make their keys.

        Raises:
            HoodieError: as for ``make_records``.
        """
        ...

    def find_changes(self, changes: RowChanges, tasks: Sequence[ScanTask], target: Target) -> Changes:
        """Compute what changes in the slices of tasks; ``changes.source`` remembers which of its rows matched.

        Raises:
            HoodieError: as for ``RowChanges.compute`` and reads.
        """
        ...


def _concatenate(first: WriteRecords, second: WriteRecords) -> WriteRecords:
    ordering = zip(first.ordering, second.ordering, strict=True) if second.ordering else ()
    return WriteRecords(
        pa.concat_tables([first.rows, second.rows.cast(first.rows.schema)]),
        pa.chunked_array([*first.keys.chunks, *second.keys.chunks], pa.string()),
        None,
        pa.chunked_array([pa.array(first.delete_mask), pa.array(second.delete_mask)]),
        tuple(pa.chunked_array([*a.chunks, *b.cast(a.type).chunks], a.type) for a, b in ordering),
    )
