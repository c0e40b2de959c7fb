"""Commit the files of a write of records (Hudi ``BaseCommitActionExecutor``).

The steps are those of ``commit_protocol``. Before it takes an instant, and again before it commits, a write checks that
no other process changed the facts by which its records were placed (``first_look``). It announces each data file by a
marker before it writes the file.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

from hoodie_py.errors import CommitStateUnknownError, ConflictError, HoodieError, HoodieWarning
from hoodie_py.files import ask_all, ask_together, list_folders
from hoodie_py.formats.names import CDC_SUFFIX
from hoodie_py.formats.timeline.commit_metadata import CommitMetadata
from hoodie_py.formats.timeline.instants import INFLIGHT, REQUESTED, Instant
from hoodie_py.formats.timeline.writers import write_commit_metadata, write_requested_replace
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.view.partitions import PARTITION_METAFILES
from hoodie_py.writer.commit.conflicts import check_conflicts
from hoodie_py.writer.commit.first_look import Intent, check_before_begin, check_before_commit
from hoodie_py.writer.handles.base_codec import choose_codec
from hoodie_py.writer.handles.data_file import CommitFacts, TaskResult, is_named_after, make_run_id
from hoodie_py.writer.handles.markers import Markers
from hoodie_py.writer.indexes.column_ranges import find_indexed_columns
from hoodie_py.writer.indexes.index import MetadataCommit
from hoodie_py.writer.indexes.undo import undo_metadata_commit
from hoodie_py.writer.lock.heartbeat import Heartbeat
from hoodie_py.writer.records import WriteOperation
from hoodie_py.writer.timeline.schema_commits import remove_schema_history, save_schema_history
from hoodie_py.writer.timeline.session import RUN_ID, WriteSession, find_newest_time
from hoodie_py.writer.timeline.timeline_writer import TimelineWriter
from hoodie_py.writer.transaction.commit_protocol import (
    FoundFiles,
    begin_instant,
    collect_sizes,
    collect_stats,
    complete_instant,
    take_back_on_failure,
    turn_missing_into_conflict,
)
from hoodie_py.writer.transaction.pending import list_rollbacks_of
from hoodie_py.writer.transaction.run_guard import Leftovers, forget_finished, guard_run


@dataclass(slots=True)
class OpenCommit:
    """A write that has begun.

    ``snapshot`` is the table at the first look, but with the properties and the timeline of the look under which the
    write began. ``completion_time`` is None until the write is committed.
    """

    session: WriteSession
    intent: Intent
    snapshot: Snapshot
    facts: CommitFacts
    alive: Heartbeat
    completion_time: str | None = None

    @property
    def instant(self) -> str:
        """Request time."""
        return self.facts.instant

    def commit(self, results: Sequence[TaskResult]) -> str:
        """Commit what the tasks wrote, and return the completion time.

        ``results`` contains one result for each new file, of the attempt that counts.

        Raises:
            ConflictError: another writer's change conflicts with this write.
            CommitStateUnknownError: the store did not say whether the commit landed.
            StorageError: the store refused.
        """
        done = complete_instant(self.session, self.alive, _WriteCompletion(self, results))
        self.completion_time = done.completion_time
        self.alive.stays = False  # only now: a pending instant without its heartbeat file counts as dead
        leave = partial(done.remove_leftovers, results, "The write is committed")
        # The last look found the heartbeat to be this run's, and nobody else runs the instant of a write.
        ask_together(self.facts.files, leave, partial(self.alive.end, is_own=True))
        return self.completion_time


@contextmanager
def open_commit(session: WriteSession, intent: Intent) -> Iterator[OpenCommit]:
    """Begin a write. The block runs its tasks and commits. If it fails or does not commit, the write is taken back.

    Raises:
        ConflictError: another writer changed the table, or is at work.
        UnsupportedFeatureError: the table has a feature that is not handled.
        CommitStateUnknownError: the store did not say whether a file was written; nothing was taken back.
        StorageError: the store refused; the table is unchanged.
    """
    with ExitStack() as stack:
        begun = _begin(session, intent, stack)
        with take_back_on_failure(lambda error: _abort(begun, error)):
            yield begun
        if begun.completion_time is None:
            _abort(begun, None)


def _begin(session: WriteSession, intent: Intent, stack: ExitStack) -> OpenCommit:
    files = session.settings.file
    if intent.writes_base_files:  # before the lock, as this reads footers of base files
        with turn_missing_into_conflict(session, intent.snapshot):
            files = choose_codec(files, intent.snapshot)
    with session.hold_lock() as holding:
        now, left = ask_together(session.files, session.look, partial(Leftovers.list, session.files))
        check_before_begin(session, intent, now)
        forget_finished(session, now, left)
        instant = session.clock.take(find_newest_time(now.timeline))
        # The heartbeat comes before the requested file: other writers judge the pending instant by it.
        alive = stack.enter_context(guard_run(session, instant, lock_held=True))
        facts = CommitFacts(
            files=session.files,
            config=now.bare_config,
            instant=instant,
            action=intent.action,
            run_id=make_run_id(),
            schema=intent.schema,
            file=files,
            indexed=find_indexed_columns(now, intent.schema.avro, session.settings.options),
        )
        writer = session.open_timeline(now)
        # The clock slept, and the lock may have expired.
        holding.ensure_held()
        profile = CommitMetadata(operation_type=intent.operation.name, write_stats=intent.workload)
        content = write_commit_metadata(profile, now.config.timeline_layout, replace=intent.replaces)
        requested = _request(writer, facts, _make_requested(intent), alive)
        begun = OpenCommit(session, intent, intent.snapshot.take_over(now), facts, alive)
        try:
            begin_instant(session, now, requested, alive, holding, content)
        except CommitStateUnknownError:
            raise  # the inflight file may still appear: the next write rolls the instant back
        except HoodieError as error:
            _undo(begun, now, error)
            raise
    return begun


def _make_requested(intent: Intent) -> bytes:
    if not intent.replaces:
        return b""
    named = intent.operation is WriteOperation.DELETE_PARTITION
    return write_requested_replace(intent.operation.name if named else None)


def _request(writer: TimelineWriter, facts: CommitFacts, content: bytes, alive: Heartbeat) -> Instant:
    alive.stays = True  # before the file: this process may die right after it
    try:
        return writer.request(facts.instant, facts.action, content)
    except (CommitStateUnknownError, ConflictError):  # after a lost answer the conflict may be with its own file
        raise
    except HoodieError:
        alive.stays = False
        raise


@dataclass(frozen=True, slots=True)
class _WriteCompletion:
    """How a write completes."""

    begun: OpenCommit
    results: Sequence[TaskResult]
    adds_files: bool = True
    can_run_again: bool = False  # another process rolls a write back; it never continues it
    known_rollbacks: frozenset[str] = frozenset()

    def describe(self) -> MetadataCommit:
        """Return the new files and the replaced file groups."""
        begun = self.begun
        return MetadataCommit(
            begun.session,
            begun.snapshot,
            begun.instant,
            "write",
            begun.intent.operation.name,
            added=collect_sizes(self.results),
            stats=collect_stats(self.results),
            replaced=begun.intent.claims.replaced or {},
            results=self.results,
            schema=begun.intent.schema.avro,
            merger=begun.intent.merger,
        )

    def check_still_ours(self, now: Snapshot) -> Instant:
        """Check that no other writer rolled the write back or conflicts with it."""
        begun = self.begun
        found = now.timeline.find(begun.instant, begun.facts.action)
        if found is None or found.state != INFLIGHT:
            state = "gone" if found is None else found.state
            raise ConflictError(f"Another writer changed this write's instant: it is {state}.", instant=begun.instant)
        rollbacks = list_rollbacks_of(now, begun.instant)
        if rollbacks:
            raise ConflictError(
                "Another writer rolls this write back.", instant=begun.instant, rollback=rollbacks[0].request_time
            )
        check_before_commit(begun.session, begun.intent, now, begun.instant)
        return found

    def list_files(self) -> FoundFiles:
        """List the partitions of the results, and the markers."""
        files = self.begun.facts.files
        partitions = sorted({result.stat.partition_path for result in self.results})
        listings, markers = ask_together(
            files, partial(list_folders, files, partitions), Markers(files, self.begun.instant).list_files
        )
        return FoundFiles(dict(zip(partitions, listings, strict=True)), markers)

    def settle_files(self, now: Snapshot, found: FoundFiles | None, ensure_own: Callable[[], None]) -> None:
        """Check the files of the results, and remove files of other attempts."""
        _settle_files(self.begun, self.results, found or self.list_files())
        schema, session = self.begun.intent.schema, self.begun.session
        if schema.has_ids:
            time = session.clock.take(find_newest_time(now.timeline))
            save_schema_history(now, self.begun.instant, time, schema)

    def make_content(self, now: Snapshot) -> bytes:
        """Return the commit metadata."""
        intent, run_id = self.begun.intent, str(self.begun.facts.run_id)
        metadata = CommitMetadata(
            operation_type=intent.operation.name,
            extra_metadata={
                **intent.extra_metadata,
                RUN_ID: run_id,
                **intent.schema.make_commit_texts(self.begun.instant),
            },
            write_stats=collect_stats(self.results),
            replaced_file_ids=intent.claims.replaced or {},
        )
        return write_commit_metadata(metadata, now.config.timeline_layout, replace=intent.replaces)

    def check_overlap(self, before: Snapshot, after: Snapshot) -> None:
        """Check what others committed between two looks."""
        check_conflicts(self.begun.intent.claims, before, after, own=self.begun.instant)


def _settle_files(begun: OpenCommit, results: Sequence[TaskResult], found: FoundFiles) -> None:
    """Check that the files of the results are complete, make their folders partitions, and remove files of other
    attempts.
    """
    listed = {info.path: info.size for listing in found.listings.values() for info in listing if not info.is_dir}
    new = [path for path, some in found.listings.items() if not PARTITION_METAFILES & {each.name for each in some}]
    ask_all(begun.facts.files, [partial(begun.facts.make_partition, path) for path in new])
    # By now another writer may have removed a file, or a late attempt may have written it again.
    for path, size in (file for result in results for file in result.sizes.items()):
        if listed.get(path) != size:
            raise ConflictError("A file of this write was removed or changed.", path=path, instant=begun.instant)
    _remove_others(begun, results, listed, found.markers)


def _remove_others(
    begun: OpenCommit, results: Sequence[TaskResult], listed: Mapping[str, int], markers: Sequence[str]
) -> None:
    written = {path for result in results for path in result.sizes}
    announced = {each.path for each in Markers(begun.facts.files, begun.instant).parse_announced(markers)}
    by_log_name = begun.facts.config.has_logs_named_by_commit
    names = {path: path.rpartition("/")[2] for path in listed}
    # Up to version 6 log files are named after their slice's base instant, so a name does not show which write made it.
    stray = {
        path
        for path, name in names.items()
        if (by_log_name or not name.startswith(".") or name.endswith(CDC_SUFFIX))
        and is_named_after(name, begun.instant)
    }
    for path in sorted((announced | stray) - written):
        begun.facts.files.delete_with_checksum(path)


def _abort(begun: OpenCommit, error: BaseException | None) -> None:
    """Take the write back unless it is committed; add a note to the error for anything left behind."""
    if begun.completion_time is not None:
        return
    try:
        with begun.session.hold_lock():
            now = begun.session.look()
            found = now.timeline.find(begun.instant, begun.facts.action)
            if found is not None and found.is_completed:  # the commit landed all the same: it must stay whole
                begun.alive.stays = False
            elif found is not None and not list_rollbacks_of(now, begun.instant):
                _undo(begun, now, error)
            else:  # another writer rolled it back, perhaps before this one wrote its entries in the metadata table
                undo_metadata_commit(begun.facts.files, begun.instant)
                begun.alive.stays = found is not None
    except HoodieError as problem:
        _note_problem(error, problem)


def _undo(begun: OpenCommit, now: Snapshot, error: BaseException | None) -> None:
    """Remove the write's entries in the metadata table, its data files, then its instant. The caller holds the lock."""
    files = begun.facts.files
    try:
        if begun.intent.schema.has_ids:
            remove_schema_history(files, begun.instant)
        # The instant goes last: as long as it is pending, another writer finds it and removes what this one left.
        undo_metadata_commit(files, begun.instant)
        markers = Markers(files, begun.instant)
        for state in (INFLIGHT, REQUESTED):  # twice, as tasks may still publish until the inflight file is gone
            for marker in markers.list_announced():
                files.delete_with_checksum(marker.path)
            markers.remove_all()
            begun.session.open_timeline(now).remove(Instant(begun.instant, None, begun.facts.action, state))
        begun.alive.stays = False
    except HoodieError as problem:
        _note_problem(error, problem)


def _note_problem(error: BaseException | None, problem: HoodieError) -> None:
    text = f"What the write left was not all removed: {problem} The next write will do that."
    if error is None:
        warnings.warn(HoodieWarning(text), stacklevel=4)
    else:
        error.add_note(text)
