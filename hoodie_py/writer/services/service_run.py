"""A run of a saved plan: what it begins with, its tasks, what runs them, what it ends with, what its files share."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, Self, TypeVar, runtime_checkable

from hoodie_py.formats.timeline.instants import Instant
from hoodie_py.options.read import COMPACTION_MEMORY
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.reader.read_info import ReadInfo, ReadOptions
from hoodie_py.runtime.machine import count_cores, measure_free_memory
from hoodie_py.runtime.telemetry import carry_span
from hoodie_py.table.schema.resolver import resolve_schema
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.view.visibility import GroupKey
from hoodie_py.writer.handles.base_codec import choose_codec
from hoodie_py.writer.handles.data_file import CommitFacts, TaskResult, make_run_id
from hoodie_py.writer.indexes.column_ranges import find_indexed_columns
from hoodie_py.writer.indexes.index import Kind, MetadataCommit
from hoodie_py.writer.output_schema import load_output_schema
from hoodie_py.writer.services.compaction_task import OnRows
from hoodie_py.writer.timeline.session import WriteSession
from hoodie_py.writer.transaction.commit_protocol import collect_sizes, collect_stats

_BYTES_PER_LOG_BYTE = 8  # decoded and folded log rows, against their bytes on disk
_FIXED_BYTES = 128 * 1024 * 1024
_SHARE_OF_MEMORY = 0.5

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Task(Protocol[R_co]):
    """A piece of a table service: picklable, and it may be attempted more than once."""

    @property
    def key(self) -> Hashable:
        """What tells it from the other tasks of its run."""
        ...

    @property
    def size(self) -> int:
        """Bytes of its files, a measure of the work."""
        ...

    @property
    def log_bytes(self) -> int:
        """Bytes of log files that are held in memory at the same time."""
        ...

    @property
    def info(self) -> ReadInfo:
        """Facts of the table."""
        ...

    @property
    def options(self) -> ReadOptions:
        """Options of the read."""
        ...

    @property
    def merger(self) -> Merger | None:
        """The merger that is used instead of the table's."""
        ...

    def with_merger(self, merger: Merger | None) -> Self:
        """Return the task with another merger."""
        ...

    def run(self, on_rows: OnRows | None = None) -> R_co:
        """Do the work. Errors are those of the task."""
        ...


@runtime_checkable
class Runner(Protocol):
    """Runs tasks: on threads of this process, or on the workers of an engine."""

    def run(self, tasks: Sequence[Task[R]], on_rows: OnRows) -> Iterator[R]:
        """Yield the result of each task when it ends; a task may be attempted more than once.

        Raises:
            HoodieError: a task failed; the other tasks have ended.
        """
        ...


class Threads:
    """Runs tasks on threads of this process.

    ``workers``: None for as many as cores and memory allow. ``memory``: in bytes; None for what is free now.
    """

    def __init__(self, workers: int | None = None, memory: int | None = None) -> None:
        self.workers = workers
        self.memory = memory

    def run(self, tasks: Sequence[Task[R]], on_rows: OnRows) -> Iterator[R]:
        """Yield results in the order in which tasks end; after a failure no task begins."""
        width = self.workers or self._count_workers(tasks)
        with ThreadPoolExecutor(max(1, min(width, len(tasks))), "hoodie-compaction") as pool:
            waiting: set[Future[R]] = {pool.submit(carry_span(task.run), on_rows) for task in tasks}
            try:
                while waiting:
                    done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                    for future in done:
                        yield future.result()
            finally:
                for future in waiting:
                    future.cancel()

    def _count_workers(self, tasks: Sequence[Task[R]]) -> int:
        largest = max((task.log_bytes for task in tasks), default=0)
        needed = _FIXED_BYTES + _BYTES_PER_LOG_BYTE * largest
        memory = self.memory if self.memory is not None else measure_free_memory()
        return max(1, min(count_cores(), int(memory * _SHARE_OF_MEMORY) // needed))


Plan = TypeVar("Plan")
Found = TypeVar("Found")
Piece = TypeVar("Piece", bound=Task[Any])


@dataclass(frozen=True, slots=True)
class Saved(Generic[Plan]):
    """A saved plan, and the table at a look.

    Attributes:
        session: of the call.
        snapshot: the table.
        instant: the plan's instant.
        plan: the plan.
    """

    session: WriteSession
    snapshot: Snapshot
    instant: Instant
    plan: Plan

    @property
    def time(self) -> str:
        """Request time."""
        return self.instant.request_time


@dataclass(frozen=True, slots=True)
class Opened(Saved[Plan], Generic[Plan, Found, Piece]):
    """A run of a plan that has begun; ``snapshot`` has the schema that the table had when the plan was made.

    Attributes:
        found: what the plan names, as it is in the table.
        tasks: the work.
        places: file groups that get new files; one without file id stands for all groups of its partition.
        made_by: what all new files have in common; None: the service writes none.
        known_rollbacks: request times of rollbacks of earlier attempts.
        began: ``time.monotonic()`` at the beginning of the run.
    """

    found: Found
    tasks: tuple[Piece, ...] = ()
    places: tuple[GroupKey, ...] = ()
    made_by: CommitFacts | None = None
    known_rollbacks: frozenset[str] = frozenset()
    began: float = 0.0

    @property
    def facts(self) -> CommitFacts:
        """What all new files have in common."""
        if self.made_by is None:
            raise TypeError("This service writes no files.")
        return self.made_by


@dataclass(frozen=True, slots=True)
class Done(Generic[Plan, Found, Piece]):
    """A run that has completed."""

    opened: Opened[Plan, Found, Piece]
    results: Sequence[TaskResult]
    completion_time: str
    seconds: float


def with_schema_of(saved: Saved[Plan]) -> Saved[Plan]:
    """Return the plan with the columns that the table had at its instant, where files are matched by theirs.

    Columns may have been altered since the service was planned (Hudi ``InternalSchemaCache``).
    """
    snapshot = saved.snapshot
    if snapshot.schema.latest_schema is None:
        return saved
    schema = resolve_schema(snapshot.timeline, saved.time)
    if schema.latest_schema == snapshot.schema.latest_schema:
        return saved
    then = snapshot.evolve(view=snapshot.view, schema=schema)
    return replace(saved, snapshot=then)


def make_facts(saved: Saved[Any], slices: Sequence[FileSlice] | None) -> CommitFacts:
    """Return what all files of a run have in common, with a new run id. New base files are compressed as those of
    ``slices``; None: the run writes none.
    """
    snapshot, settings = saved.snapshot, saved.session.settings
    schema = load_output_schema(snapshot)
    return CommitFacts(
        files=snapshot.files,
        config=snapshot.bare_config,
        instant=saved.time,
        action=saved.instant.action,
        run_id=make_run_id(),
        schema=schema,
        file=settings.file if slices is None else choose_codec(settings.file, snapshot, slices),
        indexed=find_indexed_columns(snapshot, schema.avro, settings.options),
    )


def make_read_options(session: WriteSession) -> ReadOptions:
    """Return how the tasks of a run read."""
    options = session.settings.options
    return ReadOptions(memory_limit=COMPACTION_MEMORY.read(options) or None, options=options)


def describe_files(
    opened: Opened[Any, Any, Any], results: Sequence[TaskResult], kind: Kind, operation: str
) -> MetadataCommit:
    """Return the new files of a run, for the metadata table."""
    return MetadataCommit(
        opened.session,
        opened.snapshot,
        opened.time,
        kind,
        operation,
        added=collect_sizes(results),
        stats=collect_stats(results),
        results=results,
        schema=opened.facts.schema.avro,
    )
