"""Write routed records, commit them, then run the table services that are due (Hudi ``BaseHoodieWriteClient``)."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hoodie_py.errors import HoodieError, HoodieWarning
from hoodie_py.formats.timeline.commit_metadata import WriteStat
from hoodie_py.options.log_compaction import INLINE_LOG_COMPACTION
from hoodie_py.options.write import (
    AUTOMATIC_ARCHIVE,
    AUTOMATIC_CLEAN,
    INLINE_COMPACT,
    INLINE_SCHEDULE,
    SCHEMA_CHANGES,
    TABLE_SERVICES,
)
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.archival.archive import archive_inline
from hoodie_py.writer.clustering.cluster import Clustering
from hoodie_py.writer.commit.catalogs import check_catalogs, sync_catalogs
from hoodie_py.writer.commit.conflicts import Claims
from hoodie_py.writer.commit.first_look import Intent
from hoodie_py.writer.commit.result import WriteResult
from hoodie_py.writer.commit.tasks import Tasks, make_workload, run_jobs
from hoodie_py.writer.commit.write_commit import open_commit
from hoodie_py.writer.handles.data_file import CommitFacts, TaskResult
from hoodie_py.writer.index_jobs.services import run_metadata_services
from hoodie_py.writer.output_schema import OutputSchema
from hoodie_py.writer.partitioner.assign import AssignedRecords
from hoodie_py.writer.partitioner.fill import Fill
from hoodie_py.writer.precombine.merge_options import keep_if_own
from hoodie_py.writer.records import WriteOperation
from hoodie_py.writer.schema_changes import describe_changes
from hoodie_py.writer.services import clean
from hoodie_py.writer.services.compaction import Compaction
from hoodie_py.writer.services.log_compaction import LogCompaction
from hoodie_py.writer.services.runner import Runner
from hoodie_py.writer.timeline.session import WriteSession


@dataclass(frozen=True, slots=True)
class Write:
    """One write of one call.

    Attributes:
        session: the session of the call.
        snapshot: the table at the first look.
        operation: the operation.
        schema: the schema of the new files.
        merger: the merger that the caller gave.
        replaced: file ids of the groups that the write replaces, by partition path; None if it is no replace commit.
        looked_up: whether the write searched for its keys, so that no other write may insert the new ones.
        non_blocking: whether other writes may add log files to the same file groups.
        extra_metadata: the caller's entries in the commit's metadata.
    """

    session: WriteSession
    snapshot: Snapshot
    operation: WriteOperation
    schema: OutputSchema
    merger: Merger | None = None
    replaced: Mapping[str, tuple[str, ...]] | None = None
    looked_up: bool = True
    non_blocking: bool = False
    extra_metadata: Mapping[str, str] = field(default_factory=dict)


Run = Callable[[Tasks, AssignedRecords], Sequence[TaskResult]]
"""Runs the tasks of routed records, and returns one result per task, of the attempt that counts."""


def run_here(tasks: Tasks, routed: AssignedRecords) -> Sequence[TaskResult]:
    """Run tasks in this process."""
    return run_jobs(list(tasks.iterate_jobs(routed)))


def commit_records(
    write: Write, routed: AssignedRecords, run: Run = run_here, services: Runner | None = None
) -> WriteResult:
    """Write and commit records.

    Only ``run``, which runs the tasks, reads the records themselves. ``services`` runs the tasks of an inline
    compaction; None: this process does.

    Raises:
        ConflictError: another writer changed the table, or is at work.
        UnsupportedFeatureError: the table has a feature that is not handled.
        MergeError: the table needs a merger that was not supplied, or versions do not merge.
        CommitStateUnknownError: the store did not say whether the commit landed; nothing was taken back.
        StorageError: the store refused; the table is unchanged.
    """
    if not routed.assignments and not write.replaced:
        return WriteResult(write.operation)

    def write_files(facts: CommitFacts) -> Sequence[TaskResult]:
        return run(Tasks(write.snapshot, facts, write.session.settings, write.merger), routed)

    return _commit(write, _make_claims(write, routed), make_workload(routed), write_files, services)


def commit_new_files(
    write: Write, run: Callable[[CommitFacts], Sequence[TaskResult]], services: Runner | None = None
) -> WriteResult:
    """Commit new files whose records were neither read nor looked up before the tasks.

    ``run`` writes the files, and returns one result per file, of the attempt that counts. Errors as for
    ``commit_records``.
    """
    return _commit(write, Claims(new_keys_in=None, looked_up=False), {}, run, services)


def _commit(
    write: Write,
    claims: Claims,
    expected: Mapping[str, tuple[WriteStat, ...]],
    run: Callable[[CommitFacts], Sequence[TaskResult]],
    services: Runner | None,
) -> WriteResult:
    began = time.monotonic()
    intent = Intent(
        operation=write.operation,
        snapshot=write.snapshot,
        schema=write.schema,
        claims=claims,
        workload=expected,
        extra_metadata=write.extra_metadata,
        merger=keep_if_own(write.snapshot.config, write.merger),
    )
    catalogs = check_catalogs(write.session)
    _warn_of_changes(write.schema)
    # At the start of a write, not after a commit: until then Java can roll the last commit back.
    run_metadata_services(write.session, write.snapshot)
    with open_commit(write.session, intent) as begun:
        results = run(begun.facts)
        if not results and write.replaced is None:
            return WriteResult(write.operation)  # there were no records: the block's end takes the write back
        completion_time = begun.commit(results)
    done = WriteResult.of(
        write.operation,
        begun.instant,
        completion_time,
        results,
        replaced=sum(map(len, (write.replaced or {}).values())),
        seconds=time.monotonic() - began,
    )
    done = replace(done, schema_changes=write.schema.changes)
    done = _run_inline_services(write, done, services)
    return replace(done, synced=sync_catalogs(write.session, catalogs), seconds=time.monotonic() - began)


def _warn_of_changes(schema: OutputSchema) -> None:
    """Warn before anything is written: if warnings are errors, the table stays as it is."""
    if schema.changes:
        text = (
            f"The write changes the table's schema: {describe_changes(schema.changes)}. With "
            f"{SCHEMA_CHANGES}=NONE it would be refused."
        )
        warnings.warn(HoodieWarning(text), stacklevel=4)


def _make_claims(write: Write, routed: AssignedRecords) -> Claims:
    return Claims(
        touched=frozenset(each.group for each in routed.assignments),
        rewritten=frozenset(each.group for each in routed.assignments if each.fill is not Fill.NONE),
        replaced=write.replaced,
        new_keys_in=frozenset(each.partition_path for each in routed.assignments if each.inserts),
        looked_up=write.looked_up,
        non_blocking=write.non_blocking,
    )


def _run_inline_services(write: Write, done: WriteResult, runner: Runner | None) -> WriteResult:
    """Plan and run a compaction and a clustering if they are due, then clean and archive, as the options ask (Hudi
    ``runTableServicesInline``, ``mayBeCleanAndArchive``).
    """
    session = write.session
    options = session.settings.options
    inline, schedule = INLINE_COMPACT.read(options), INLINE_SCHEDULE.read(options)
    if not TABLE_SERVICES.read(options):
        return done
    try:
        if write.snapshot.config.is_merge_on_read and (inline or schedule):
            service = Compaction()
            done = replace(done, scheduled=service.schedule(service.with_upkeep_options(session)))
        if done.scheduled is not None and inline:
            # Only a merger that is the table's own: readers merge by the table's rules.
            own = keep_if_own(session.look().config, write.merger)
            result = Compaction().run(session, done.scheduled, runner=runner, merger=own)
            done = replace(done, compaction=result)
        if write.snapshot.config.is_merge_on_read and INLINE_LOG_COMPACTION.read(options):
            folding = LogCompaction()
            folding.run(session, folding.schedule(session), runner=runner)
        done = replace(done, clustering=Clustering().run_inline(session, write.merger, runner))
        if AUTOMATIC_CLEAN.read(options):
            done = replace(done, clean=clean.clean(session, None))
        if AUTOMATIC_ARCHIVE.read(options):
            done = replace(done, archive=archive_inline(session))
    except HoodieError as error:  # the commit has landed, so this is no error of the write
        warnings.warn(HoodieWarning(f"The write is committed; a table service after it failed: {error}"), stacklevel=3)
    return done
