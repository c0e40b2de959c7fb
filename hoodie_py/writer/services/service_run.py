"""A run of a saved plan: what it begins with, what it ends with, and what the files that it writes have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from hoodie_py.formats.timeline.instants import Instant
from hoodie_py.options.read import COMPACTION_MEMORY
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.reader.read_info import ReadOptions
from hoodie_py.table.schema.resolver import resolve_schema
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.view.visibility import GroupKey
from hoodie_py.writer.handles.base_codec import choose_codec
from hoodie_py.writer.handles.data_file import CommitFacts, TaskResult, make_run_id
from hoodie_py.writer.indexes.column_ranges import find_indexed_columns
from hoodie_py.writer.indexes.index import Kind, MetadataCommit
from hoodie_py.writer.output_schema import load_output_schema
from hoodie_py.writer.services.runner import Task
from hoodie_py.writer.timeline.session import WriteSession
from hoodie_py.writer.transaction.commit_protocol import collect_sizes, collect_stats

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
