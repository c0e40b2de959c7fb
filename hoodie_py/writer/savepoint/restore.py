"""Restore a table to a savepoint (Hudi ``BaseRestoreActionExecutor``): undo all later writes, newest first.

1. Under the table's lock: plan, check, create the requested file. From then on no other writer begins.
2. Under the lock, with a heartbeat: create the inflight file. Switch the metadata table off, as its entries cannot be
   taken back one by one. Undo the instants: remove their data files, then the instants. Build the metadata table anew,
   with the partitions that it had.
3. The restore completes by ``commit_protocol``. Then rollbacks after the savepoint are removed from the timeline, as in
   Java.

Meanwhile the properties list the partitions as being built, so that a killed restore forgets none: the next restore to
the same savepoint goes on with the saved plan.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial

from hoodie_py.errors import ConflictError, FileMissingError, InvalidQueryError, UnsupportedFeatureError
from hoodie_py.files import TableFiles
from hoodie_py.formats.config.table_config import METADATA_PARTITIONS, METADATA_PARTITIONS_INFLIGHT
from hoodie_py.formats.log.framing import LogBlock, iterate_blocks
from hoodie_py.formats.names import parse_base_file_name, parse_log_file_name
from hoodie_py.formats.timeline import instants as kinds
from hoodie_py.formats.timeline.instants import Instant, parse_instant_name
from hoodie_py.formats.timeline.plans import RollbackMetadata, RolledBackInstant, RolledBackPartition
from hoodie_py.formats.timeline.savepoints import (
    RestoreMetadata,
    RestorePlan,
    write_restore_metadata,
    write_restore_plan,
)
from hoodie_py.runtime.telemetry import watch_calls
from hoodie_py.runtime.wording import Sentence
from hoodie_py.table.bounded import read_bounded
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.handles.markers import Markers
from hoodie_py.writer.index_jobs.build import check_rebuildable, rebuild_partitions
from hoodie_py.writer.indexes.index import MetadataCommit
from hoodie_py.writer.indexes.metadata_table import MetadataTable
from hoodie_py.writer.indexes.undo import METADATA_TABLE, undo_metadata_commit
from hoodie_py.writer.lock.heartbeat import HEARTBEAT_FOLDER, Heartbeat
from hoodie_py.writer.lock.lock import HeldLock
from hoodie_py.writer.refusals import check_restorable
from hoodie_py.writer.rollback.finish import delete_files
from hoodie_py.writer.rollback.recovery import undo_failed_writes
from hoodie_py.writer.savepoint.restore_plan import find_pending_restore, find_savepoint_of, make_plan, read_plan
from hoodie_py.writer.timeline.folder_tree import remove_tree
from hoodie_py.writer.timeline.schema_commits import remove_schema_history
from hoodie_py.writer.timeline.session import WriteSession, find_newest_time
from hoodie_py.writer.timeline.table_properties import change_properties
from hoodie_py.writer.transaction.commit_protocol import FoundFiles, begin_instant, complete_instant
from hoodie_py.writer.transaction.hash_ranges import forget_undone
from hoodie_py.writer.transaction.run_guard import guard_run

_FilesByInstant = Mapping[str, Mapping[str, tuple[str, ...]]]
"""Names of data files, by the instant that wrote them and by partition path."""


@dataclass(frozen=True, slots=True)
class RestoreResult(Sentence):
    """What a restore did.

    Attributes:
        savepoint: request time of the commit that is the newest one now.
        instant: request time of the restore; None if there was nothing to undo.
        undone: request times of the undone instants, newest first.
        files_deleted: number of removed data files.
        metadata_partitions: partitions of the metadata table that were built anew.
        seconds: wall-clock time.

    Examples:
        >>> savepoint = trips.savepoint()
        >>> trips.delete(["a"]).rows_deleted
        1
        >>> result = trips.restore(savepoint.instant)
        >>> len(result.undone), trips.scan().count()
        (1, 3)
    """

    savepoint: str
    instant: str | None = None
    undone: tuple[str, ...] = ()
    files_deleted: int = 0
    metadata_partitions: tuple[str, ...] = ()
    seconds: float = 0.0

    def __str__(self) -> str:
        if self.instant is None:
            return f"Nothing came after the savepoint {self.savepoint}."
        built = f", and the metadata table was built anew ({', '.join(self.metadata_partitions)})"
        return (
            f"The table is as it was at {self.savepoint}: {len(self.undone)} later instants and "
            f"{self.files_deleted:,} files were removed{built if self.metadata_partitions else ''}, in "
            f"{self.seconds:.1f} s."
        )


@watch_calls("restore")
def restore(session: WriteSession, savepoint: str) -> RestoreResult:
    """Restore the table to a savepoint, or finish a restore to it that was cut short.

    Raises:
        InvalidQueryError: there is no such savepoint, a later one prevents it, or a restore to another one is pending.
        InvalidTableError: files of the savepoint are gone.
        UnsupportedFeatureError: commits after it were archived, or the table has a feature that is not handled.
        ConflictError: a writer is at work.
        CommitStateUnknownError: the store did not say whether a file was written.
        StorageError: the store refused; the next restore goes on.
    """
    began = time.monotonic()
    check_restorable(session.look())
    if find_pending_restore(session.look()) is None:
        undo_failed_writes(session)
    requested = _request(session, savepoint)
    if requested is None:
        return RestoreResult(savepoint, seconds=time.monotonic() - began)
    with guard_run(session, requested) as alive:
        run = _Run(session, requested, savepoint, alive, began)
        alive.stays = True
        with session.hold_lock() as holding:
            run.undo(holding)
        complete_instant(session, alive, run)
        alive.stays = False
    _remove_rollbacks(session, savepoint)
    return run.make_result()


def _request(session: WriteSession, savepoint: str) -> str | None:
    """Save the plan of a restore, or find the one that was begun, and return its request time.

    Return None if nothing came after the savepoint.
    """
    with session.hold_lock() as holding:
        snapshot = session.look()
        pending = find_pending_restore(snapshot)
        if pending is not None:
            begun = find_savepoint_of(snapshot, pending, read_plan(snapshot, pending))
            if begun != savepoint:
                raise InvalidQueryError(
                    f"A restore to {begun} is pending.",
                    hint=f"Finish it first: restore to {begun}.",
                    instant=pending.request_time,
                )
            return pending.request_time
        check_rebuildable(snapshot)
        MetadataTable.check(snapshot, session.settings.metadata_mode)
        plan = make_plan(session, snapshot, savepoint)
        if not plan.instants:
            return None
        _find_files_to_undo(snapshot, [each.time for each in plan.instants])  # refuses before anything is written
        instant = session.clock.take(find_newest_time(snapshot.timeline))
        holding.ensure_held()
        session.open_timeline(snapshot).request(instant, kinds.RESTORE, write_restore_plan(plan))
        return instant


@dataclass(slots=True)
class _Run:
    """One run of a pending restore, and its completion."""

    session: WriteSession
    instant: str
    savepoint: str
    alive: Heartbeat
    began: float
    plan: RestorePlan = field(default_factory=RestorePlan)
    files: _FilesByInstant = field(default_factory=dict)
    built: tuple[str, ...] = ()
    snapshot: Snapshot | None = None
    adds_files: bool = False
    can_run_again: bool = True
    known_rollbacks: frozenset[str] = frozenset()

    def undo(self, holding: HeldLock) -> None:
        """Undo the remaining instants of the plan. The caller holds the table's lock."""
        snapshot = self.session.look()
        pending = self._find_pending(snapshot)
        self.plan = read_plan(snapshot, pending)
        check_rebuildable(snapshot)
        ensure_own = partial(self.alive.ensure_own, holding)
        if pending.state == kinds.REQUESTED:
            begin_instant(self.session, snapshot, pending, self.alive, holding)
        partitions = self._switch_metadata_off(snapshot, ensure_own)
        self.files = _find_files_to_undo(snapshot, [each.time for each in self.plan.instants])
        for each in self.plan.instants:
            _undo_instant(self.session, snapshot, each, self.files[each.time], ensure_own)
        ensure_own()
        self.built = rebuild_partitions(self.session, partitions, holding)
        self.snapshot = self.session.look()

    def _switch_metadata_off(self, snapshot: Snapshot, ensure_own: Callable[[], None]) -> tuple[str, ...]:
        """Take the partitions of the metadata table out of use, and return the ones to build anew."""
        config = snapshot.config
        every = tuple(sorted({*config.metadata_partitions, *config.metadata_partitions_inflight}))
        kept = () if self.session.settings.metadata_mode == "disable" else every
        ensure_own()
        if every:
            changes = {METADATA_PARTITIONS: "", METADATA_PARTITIONS_INFLIGHT: ",".join(kept)}
            change_properties(self.session.files, changes)
        if not kept:
            remove_tree(self.session.files, METADATA_TABLE)
        return kept

    def _find_pending(self, now: Snapshot) -> Instant:
        found = now.timeline.find(self.instant, kinds.RESTORE)
        if found is None or found.is_completed:
            raise ConflictError("Another writer finished the restore, or took it back.", instant=self.instant)
        return found

    def describe(self) -> MetadataCommit:
        """Return an empty change: the metadata table was built from the restored files."""
        return MetadataCommit(self.session, self.snapshot or self.session.look(), self.instant, "restore")

    def check_still_ours(self, now: Snapshot) -> Instant:
        """Check that no other writer finished the restore."""
        found = self._find_pending(now)
        if found.state != kinds.INFLIGHT:
            raise ConflictError("Another writer took the restore back while it ran.", instant=self.instant)
        return found

    def list_files(self) -> None:
        """Return nothing: a restore lists no files then."""
        return

    def settle_files(self, now: Snapshot, found: FoundFiles | None, ensure_own: Callable[[], None]) -> None:
        """Take back the entries in the metadata table of an earlier attempt that ended right after writing them."""
        ensure_own()
        undo_metadata_commit(self.session.files, self.instant, ensure_own)

    def make_content(self, now: Snapshot) -> bytes:
        """Return the restore's metadata."""
        rollbacks = tuple(
            RollbackMetadata(
                start_rollback_time=self.instant,
                total_files_deleted=sum(map(len, self.files[each.time].values())),
                commits_rolled_back=(each.time,),
                instants=(each,),
                partitions={path: RolledBackPartition(names, ()) for path, names in self.files[each.time].items()},
            )
            for each in self.plan.instants
        )
        metadata = RestoreMetadata(
            start_restore_time=self.instant,
            instants_rolled_back=tuple(each.time for each in self.plan.instants),
            rollbacks=rollbacks,
            time_taken_ms=round((time.monotonic() - self.began) * 1000),
        )
        return write_restore_metadata(metadata, self.session.files.java_uri)

    def check_overlap(self, before: Snapshot, after: Snapshot) -> None:
        """Refuse if another writer has committed: it may have read what the restore removed."""
        known = {each.request_time for each in before.timeline.list_completed_writes()}
        new = [each for each in after.timeline.list_completed_writes() if each.request_time not in known]
        if new:
            raise ConflictError("Another writer committed beside the restore.", instant=new[0].request_time)

    def make_result(self) -> RestoreResult:
        """Return what the run did."""
        files = sum(len(names) for some in self.files.values() for names in some.values())
        undone = tuple(each.time for each in self.plan.instants)
        return RestoreResult(self.savepoint, self.instant, undone, files, self.built, time.monotonic() - self.began)


def _remove_rollbacks(session: WriteSession, savepoint: str) -> None:
    """Remove rollbacks after the savepoint from the timeline.

    The instants that they undid are gone, and Java's metadata table would wait for them.
    """
    with session.hold_lock() as holding:
        snapshot = session.look()
        timeline = session.open_timeline(snapshot)
        for each in snapshot.timeline.select_actions(kinds.ROLLBACK).select_after(savepoint):
            holding.ensure_held()
            if each.is_completed:
                timeline.remove(each)
            timeline.remove_pending(each)


def _find_files_to_undo(snapshot: Snapshot, instants: Collection[str]) -> _FilesByInstant:
    """Return the data files that instants wrote, from one listing of the table.

    File names carry the instant that wrote the file (Hudi ``MergeOnReadRestoreActionExecutor``,
    ``ListingBasedRollbackStrategy``). Only log files up to table version 6 carry the slice's base instant, so their
    blocks are read. Java undoes these blocks with a rollback command; here the files are deleted, as one commit makes
    one log file. A log file with blocks of other commits is refused before anything is undone.

    Raises:
        UnsupportedFeatureError: a log file also holds blocks of other commits.
        StorageError: the store refused.
    """
    wanted = frozenset(instants)
    found: dict[str, dict[str, list[str]]] = {each: {} for each in instants}
    logs = _LogsOfOldTables(snapshot, wanted)
    for listing in snapshot.view.list_data_folders():
        for info in listing.files:
            log = parse_log_file_name(info.name) if info.name.startswith(".") else None
            name = log or (None if info.name.startswith(".") else parse_base_file_name(info.name))
            if name is None:
                continue
            by_name = log is None or log.is_cdc or snapshot.config.has_logs_named_by_commit
            instant = name.instant if by_name else logs.find_instant(info.path)
            if instant in wanted:
                found[instant].setdefault(listing.partition.path, []).append(info.name)
    return {
        instant: {partition: tuple(sorted(names)) for partition, names in sorted(some.items())}
        for instant, some in found.items()
    }


def _undo_instant(
    session: WriteSession,
    snapshot: Snapshot,
    undone: RolledBackInstant,
    files: Mapping[str, tuple[str, ...]],
    check: Callable[[], object],
) -> None:
    """Remove an instant and its data files. ``check`` raises if the run has lost the lock or its heartbeat.

    Raises:
        ConflictError: raised by ``check``.
        StorageError: the store refused; the next run goes on.
    """
    timeline = session.open_timeline(snapshot)
    parsed = (parse_instant_name(name, snapshot.config.timeline_layout) for name in snapshot.timeline.names)
    own = [each for each in parsed if each is not None and each.request_time == undone.time and each.is_write]
    own.sort(key=lambda each: kinds.STATES.index(each.state), reverse=True)
    check()
    # Hash ranges and completed file go before the data files, so that readers do not miss files. The pending states go
    # last: a killed restore leaves a pending instant, which the next run undoes.
    forget_undone(snapshot, own, files)
    for each in own:
        if each.is_completed:
            timeline.remove(each)
    delete_files(session.files, files)
    remove_schema_history(session.files, undone.time)
    Markers(session.files, undone.time).remove_all()
    session.files.delete_with_checksum(f"{HEARTBEAT_FOLDER}/{undone.time}")
    for each in own:
        if not each.is_completed:
            timeline.remove(each)


class _LogsOfOldTables:
    """Finds the instant that wrote a log file, up to table version 6."""

    def __init__(self, snapshot: Snapshot, wanted: frozenset[str]) -> None:
        self._snapshot = snapshot
        self._wanted = wanted
        self._announced: dict[str, str] | None = None

    def find_instant(self, path: str) -> str:
        """Return the newest of the wanted instants with blocks in the file; "" if there is none.

        A file without a whole block belongs to the instant that announced it.
        """
        times = self._read_times(self._snapshot.files, path)
        own = times & self._wanted
        if not times:
            return self._find_announced().get(path, "")
        if own and times - own:
            raise UnsupportedFeatureError(
                "A restore that would undo a part of a log file: others' blocks in it stay.",
                hint="Let Java Hudi restore the table.",
                path=path,
                instant=max(own),
            )
        return max(own, default="")

    def _find_announced(self) -> dict[str, str]:
        if self._announced is None:
            files = self._snapshot.files
            self._announced = {
                marker.path: each for each in self._wanted for marker in Markers(files, each).list_announced()
            }
        return self._announced

    def _read_times(self, files: TableFiles, path: str) -> set[str]:
        try:
            data = read_bounded(files, path, "log_bytes")
        except FileMissingError:
            return set()
        blocks = (block for block in iterate_blocks(data) if isinstance(block, LogBlock))
        return {block.instant_time or "" for block in blocks}
