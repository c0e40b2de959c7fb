"""Query: what a scan reads, apart from columns, filter and limit. Task: a part of a scan's rows.

A scan does not depend on the kind of its query, so queries of changes and of commits use the same class.
``SnapshotQuery`` reads all rows at the snapshot's instant, or the rows of base files only.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import pyarrow as pa

from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.reader.read_info import ReadInfo, ReadOptions
from hoodie_py.runtime.fold_gate import FoldGate
from hoodie_py.table.scan.slice_choice import choose_slices
from hoodie_py.table.scan.task import ScanTask
from hoodie_py.table.snapshot import Snapshot

if TYPE_CHECKING:
    from hoodie_py.reader.merge.merger import Merger
    from hoodie_py.table.filter.predicate import Predicate


class Task(Protocol):
    """A part of a scan's rows: a frozen dataclass, small and picklable, so that an engine can send it to its workers.

    ``columns`` are the columns of the result, ``limit`` is its maximal number of rows, and ``merger`` replaces the
    table's merge mode.

    Examples:
        >>> for task in trips.scan(columns=["id"]).tasks():
        ...     print(task.size > 0, task.schema.names)
        True ['id']
        True ['id']
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def info(self) -> ReadInfo:
        """The facts about the table that the read needs."""
        ...

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the batches, in order."""
        ...

    @property
    def predicate(self) -> Predicate | None:
        """The filter; None for all rows."""
        ...

    @property
    def options(self) -> ReadOptions:
        """Settings of the read."""
        ...

    @property
    def merger(self) -> Merger | None:
        """A merger that replaces the table's merge mode."""
        ...

    @property
    def limit(self) -> int | None:
        """Maximal number of rows; None for all."""
        ...

    @property
    def size(self) -> int:
        """Bytes of the files to read, a measure of the work."""
        ...

    @property
    def schema(self) -> pa.Schema:
        """Schema of the batches."""
        ...

    def to_batches(self, gate: FoldGate | None = None) -> Generator[pa.RecordBatch, None, None]:
        """Yield the rows; empty batches are left out.

        Tasks that are read at the same time in one process share ``gate``.

        Raises:
            HoodieError: files are missing, corrupt or not supported, or versions of a record do not merge.
        """
        ...


@dataclass(frozen=True)
class Request:
    """The arguments of a query.

    Attributes:
        snapshot: the table at the pinned instant.
        columns: columns of the result, in order.
        predicate: the filter; None for all rows.
        options: settings of the read.
        limit: maximal number of rows of the result; None for all.
        merger: replaces the table's merge mode.
    """

    snapshot: Snapshot
    columns: tuple[str, ...]
    predicate: Predicate | None
    options: ReadOptions
    limit: int | None = None
    merger: Merger | None = None


class Query(Protocol):
    """What a scan reads; small and immutable."""

    @property
    def kind(self) -> str:
        """The query's type, as users name it."""
        ...

    def find_schema(self, snapshot: Snapshot) -> pa.Schema:
        """Return all columns that the query can return."""
        ...

    def make_tasks(self, request: Request) -> Sequence[Task]:
        """List files, and return the tasks that together yield the scan's rows, before its limit."""
        ...

    def iterate_tasks(self, request: Request) -> Iterator[Sequence[Task]]:
        """Yield the same tasks in parts, for callers that may need few; lists files lazily if that saves requests."""
        ...


@dataclass(frozen=True, slots=True)
class SnapshotQuery:
    """Rows at one instant: ``kind`` "snapshot" merges log files, "read_optimized" reads base files only."""

    kind: str = "snapshot"

    def find_schema(self, snapshot: Snapshot) -> pa.Schema:
        """Return the table's columns."""
        return snapshot.schema.arrow

    def make_tasks(self, request: Request) -> list[ScanTask]:
        """Return one task for each file slice that may hold wanted rows."""
        found = choose_slices(request.snapshot, self.kind, request.predicate, request.options, request.merger)
        return make_slice_tasks(request, self.kind, found.slices)

    def iterate_tasks(self, request: Request) -> Iterator[Sequence[Task]]:
        """Yield the tasks folder by folder; all at once if the metadata table lists the files."""
        snapshot, options = request.snapshot, request.options
        if options.integrity == "strict" or snapshot.choose_view(options) is not snapshot.view:
            yield self.make_tasks(request)
            return
        for slices in snapshot.iterate_file_slices(self.kind, request.predicate, options):
            yield make_slice_tasks(request, self.kind, slices)


def make_slice_tasks(request: Request, query_type: str, slices: Iterable[FileSlice]) -> list[ScanTask]:
    """Return one task for each slice. With integrity "strict", check first that no file of the query is missing."""
    snapshot, predicate = request.snapshot, request.predicate
    strict = request.options.integrity == "strict"
    if strict:
        snapshot.check_complete(query_type, predicate, request.options)
    return [
        ScanTask(
            file_slice,
            snapshot.read_info(file_slice, strict=strict, predicate=predicate),
            request.columns,
            predicate,
            request.options,
            request.merger,
            request.limit,
        )
        for file_slice in slices
    ]
