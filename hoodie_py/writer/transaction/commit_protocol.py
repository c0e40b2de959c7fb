"""The protocol by which an instant completes (Hudi ``BaseActionExecutor``, ``BaseHoodieClient``).

Every write, compaction and clean takes these steps, in this order:

1. Under the table's lock: look at the table, check it, create the requested and the inflight file (``begin_instant``).
2. Without the lock: do the work, and read what the metadata table's records need. A heartbeat shows that the run is
   alive (``run_guard``). Readers see nothing of the work yet.
3. Under the lock again: load the table again. Check that the instant is still this run's and that no other writer
   changed what the run read, including the table's properties. Check the new files, and remove the files of lost
   attempts. Then write the metadata table, every partition that it has by now, then create the completed file. That
   file is the commit.
4. Still under the lock: look once more, as this process may have slept during step 3 (``second_look``).

``complete_instant`` is steps 3 and 4. Each operation does step 1 itself.

A failure before the commit is taken back (``take_back_on_failure``), unless the store did not say whether it created a
file: the commit may have landed then, so nothing is removed. If it did not land, the next write rolls it back.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from hoodie_py.errors import CommitStateUnknownError, ConflictError, FileMissingError, HoodieError, HoodieWarning
from hoodie_py.files import FileInfo, TableFiles, ask_together
from hoodie_py.formats.timeline.commit_metadata import WriteStat
from hoodie_py.formats.timeline.instants import Instant
from hoodie_py.formats.timeline.timeline import Timeline
from hoodie_py.runtime.telemetry import watch_calls
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.handles.data_file import TaskResult, parse_run_id
from hoodie_py.writer.handles.markers import Markers
from hoodie_py.writer.indexes.index import MetadataCommit
from hoodie_py.writer.indexes.metadata_table import MetadataTable
from hoodie_py.writer.lock.heartbeat import Heartbeat, leave_heartbeats
from hoodie_py.writer.lock.lock import HeldLock
from hoodie_py.writer.timeline.session import WriteSession, find_newest_time
from hoodie_py.writer.transaction.pending import list_pending_writes
from hoodie_py.writer.transaction.same_properties import check_same_properties
from hoodie_py.writer.transaction.second_look import CompletedInstant

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FoundFiles:
    """The files of a write's partitions, by partition path, and the files in its folder of markers."""

    listings: Mapping[str, Sequence[FileInfo]]
    markers: Sequence[str]


@dataclass(frozen=True, slots=True)
class Completed:
    """An instant that has completed, and is not in doubt.

    ``markers``: paths of the files in its folder of markers after that; None if they could not be listed.
    """

    files: TableFiles
    request_time: str
    action: str
    completion_time: str
    markers: Sequence[str] | None

    def remove_leftovers(self, results: Sequence[TaskResult], what: str, run_id: int | None = None) -> None:
        """Remove the markers, and files that late attempts published while the commit was made.

        ``what`` begins the warning if the store refuses, such as "The write is committed". Only files of the run
        ``run_id`` are removed; None: files of all runs.
        """
        markers = Markers(self.files, self.request_time)
        written = {path for result in results for path in result.sizes}
        try:
            # The last look's listing will do: an attempt that publishes later finds the instant completed.
            found = markers.list_files() if self.markers is None else self.markers
            for marker in markers.parse_announced(found):
                if marker.path not in written and run_id in (None, parse_run_id(marker.file_name)):
                    self.files.delete_with_checksum(marker.path)
            markers.remove_all(found)
        except HoodieError as error:
            warnings.warn(HoodieWarning(f"{what}, its markers are still there: {error}"), stacklevel=4)


class Completion(Protocol):
    """The steps in which writes, compactions and cleans differ."""

    @property
    def adds_files(self) -> bool:
        """Whether Java cannot roll back an older failed write once this instant has completed."""
        ...

    @property
    def can_run_again(self) -> bool:
        """Whether another process runs the same instant again once it judges this run dead."""
        ...

    @property
    def known_rollbacks(self) -> frozenset[str]:
        """Request times of rollbacks of the instant's earlier attempts."""
        ...

    def describe(self) -> MetadataCommit:
        """Return what the instant does to the table, with the table as the operation found it."""
        ...

    def check_still_ours(self, now: Snapshot) -> Instant:
        """Check that the instant is this run's and that no other writer conflicts; return the inflight instant."""
        ...

    def list_files(self) -> FoundFiles | None:
        """Return what ``settle_files`` decides by, if it can be listed before the table is known; else None."""
        ...

    def settle_files(self, now: Snapshot, found: FoundFiles | None, ensure_own: Callable[[], None]) -> None:
        """Check this run's files and remove files of lost attempts.

        ``found`` is the answer of ``list_files`` under the same lock. ``ensure_own`` raises if the run has lost the
        or its heartbeat. Call it between the listing and the removal if ``can_run_again``: then another run's files may
        have the same instant.
        """
        ...

    def make_content(self, now: Snapshot) -> bytes:
        """Return the content of the completed file."""
        ...

    def check_overlap(self, before: Snapshot, after: Snapshot) -> None:
        """Raise a HoodieError if a commit between two snapshots conflicts with this instant."""
        ...


def begin_instant(
    session: WriteSession, now: Snapshot, requested: Instant, alive: Heartbeat, holding: HeldLock, content: bytes = b""
) -> Instant:
    """Create the inflight file of a requested instant, check that this run may go on, and return the inflight instant.

    The requested file exists: this run has seen or created it. ``content`` goes into the inflight file.

    Raises:
        ConflictError: another writer runs the instant, or may have judged this run dead while this process slept.
        CommitStateUnknownError: the store did not say whether it created the file.
        StorageError: the store refused.
    """
    timeline = session.open_timeline(now)
    inflight = timeline.begin(requested, content)
    # After the file, not before: a check before it would miss a writer that judged this run dead in between.
    try:
        alive.ensure_own(holding)
    except HoodieError:
        # Another writer may have removed the requested file before the inflight file was there. An inflight file alone
        # has no plan: readers would not know what it does.
        if not session.files.exists(timeline.locate(requested)):
            timeline.remove(inflight)
        raise
    return inflight


@watch_calls("commit")
def complete_instant(session: WriteSession, alive: Heartbeat, run: Completion) -> Completed:
    """Complete an instant, and look once more. The session's lock must be free.

    Raises:
        ConflictError: another writer conflicts with the instant, or judged this run dead.
        CommitStateUnknownError: it is unknown whether the commit landed, or whether it stays.
        StorageError: the store refused.
    """
    change = run.describe()
    # Before the lock, which should be held briefly: this may read footers and keys of all new files. A rollback may
    # have removed these files.
    with turn_missing_into_conflict(session, change.snapshot):
        change = MetadataTable.prepare(change)
    with session.hold_lock() as holding:
        ensure_own = partial(alive.ensure_own, holding)
        # Nothing seen before the lock counts: while the tasks ran, others may have committed or rolled this instant
        # back.
        now, found = ask_together(session.files, session.look, run.list_files)
        inflight = run.check_still_ours(now)
        # The rows were keyed, merged and placed by the properties of the earlier look.
        check_same_properties(change.snapshot.config, now.config)
        # Before the commit: from then on readers take every file that is named after the instant, those of lost
        # attempts too.
        run.settle_files(now, found, ensure_own)
        # Before the commit: past a later one, Java rolls back a failed write only if it finds its heartbeat file.
        if run.adds_files and not session.multi_writer:
            leave_heartbeats(session.files, (each for each in list_pending_writes(now) if each != inflight))
        metadata = MetadataTable(session, now)
        # An index that was built since `prepare` would lack this commit for ever.
        with turn_missing_into_conflict(session, change.snapshot):
            change = metadata.bring_up_to_date(change)
        if metadata.is_kept:  # the steps above read files, so this process may have lost lock or heartbeat meanwhile
            ensure_own()
        with _forget_if_lost(metadata) if run.can_run_again else nullcontext():
            # Before the completed file: Java lists files through the metadata table, so a commit that is missing there
            # is invisible, and its files are lost at the next compaction. The other way round is safe: readers ignore
            # entries of an instant that has not completed.
            if metadata.is_kept:
                metadata.commit(change, ensure_own)
            # Under the lock, and as late as can be: incremental reads go by completion times, which must sort as the
            # commits came.
            completion_time = session.clock.take(find_newest_time(now.timeline))
            content = run.make_content(now)
            ensure_own()  # the last thing before the commit: the metadata table and the clock's sleep took their time
            instant = session.open_timeline(now).complete(inflight, completion_time, content)
        completed = CompletedInstant(
            session, now, metadata, inflight, instant, run.known_rollbacks, partial(run.check_overlap, now)
        )
        # Still under the lock: this process may have slept between the last check and the completed file.
        last = completed.look_again(holding, alive)
    if last.doubt is not None:
        raise completed.settle(last.doubt)  # after the block: this takes the lock itself
    _log.info(
        "The %s %s is complete at %s: %s", instant.action, instant.request_time, completion_time, session.files.uri
    )
    return Completed(session.files, instant.request_time, instant.action, completion_time, last.markers)


@contextmanager
def _forget_if_lost(metadata: MetadataTable) -> Iterator[None]:
    """Remove this run's entries in the metadata table if it loses the instant before the completed file.

    Another process may have run the instant again, and the entries of both runs would count.
    """
    try:
        yield
    except ConflictError:
        metadata.forget_own()
        raise


@contextmanager
def take_back_on_failure(take_back: Callable[[BaseException], None]) -> Iterator[None]:
    """Take an operation back if the block fails, unless its commit may have landed.

    ``take_back(error)`` undoes the operation, and adds a note to ``error`` for anything left behind.
    """
    try:
        yield
    except CommitStateUnknownError:
        raise  # the commit may have landed: to remove its files would lose committed rows
    except (Exception, KeyboardInterrupt) as error:
        take_back(error)
        raise


def collect_sizes(results: Sequence[TaskResult]) -> dict[str, dict[str, int]]:
    """Return the sizes in bytes of the new files, by partition path and name."""
    sizes: dict[str, dict[str, int]] = {}
    for result in results:
        named = {path.rpartition("/")[2]: size for path, size in result.sizes.items()}
        sizes.setdefault(result.stat.partition_path, {}).update(named)
    return sizes


def collect_stats(results: Sequence[TaskResult]) -> dict[str, tuple[WriteStat, ...]]:
    """Return the write statistics for a commit's metadata: by partition path, ordered by file id."""
    stats: dict[str, tuple[WriteStat, ...]] = {}
    for result in sorted(results, key=lambda each: each.group):
        partition = result.stat.partition_path
        stats[partition] = (*stats.get(partition, ()), result.stat)
    return stats


@contextmanager
def turn_missing_into_conflict(session: WriteSession, snapshot: Snapshot) -> Iterator[None]:
    """Turn a missing file into a conflict if another writer changed the table since the snapshot.

    A rollback or a clean may remove files that a slower writer is about to read, and an index may be dropped while it
    is used to look up keys. If the table did not change, the file is lost, and the error stays as it is.

    Raises:
        ConflictError: instead of the error about the file.
    """
    try:
        yield
    except HoodieError as error:
        missing = isinstance(error, FileMissingError) or isinstance(error.__cause__, FileMissingError)
        if not missing or not _has_changed(snapshot, session.look()):
            raise
        raise ConflictError(
            f"The table changed while it was read: {error.message}", hint="Try again.", **error.where
        ) from error


def _has_changed(before: Snapshot, now: Snapshot) -> bool:
    """Whether an instant completed or disappeared, or a property changed (properties name the indexes).

    A new pending instant does not count: the block itself may have created it.
    """
    had, has = _list_states(before.timeline), _list_states(now.timeline)
    changed = before.config.properties != now.config.properties
    return changed or bool(had - has) or any(completed for *_, completed in has - had)


def _list_states(timeline: Timeline) -> set[tuple[str, str, bool]]:
    return {(each.request_time, each.comparable_action, each.is_completed) for each in timeline}
