"""Decide what a restore undoes, and refuse one that is not possible (Hudi ``RestorePlanActionExecutor``,
``RestoreInstantComparatorFactory``).

A restore undoes every write after the savepoint, newest first. A write is after the savepoint if it completed later
than the savepoint's commit, or has not completed. Compactions of merge-on-read tables count by their request time, as
log files of the commits after the request belong to their base files. Up to version 6 only request times are known.
Pending clusterings and log compactions that were planned before the savepoint stay, and so do cleans.

A restore is refused if it would undo a commit with another savepoint, if a later commit has been archived, or if the
savepoint's files are gone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from hoodie_py.errors import ConflictError, InvalidQueryError, InvalidTableError, UnsupportedFeatureError
from hoodie_py.files import list_named_folders
from hoodie_py.formats.names import parse_base_file_name, parse_log_file_name
from hoodie_py.formats.timeline import instants as kinds
from hoodie_py.formats.timeline.instants import Instant
from hoodie_py.formats.timeline.plans import RolledBackInstant
from hoodie_py.formats.timeline.savepoints import RestorePlan
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.lock.heartbeat import find_checkpoint, is_alive
from hoodie_py.writer.savepoint.savepoint import find_savepoint, read_savepoint
from hoodie_py.writer.timeline.session import WriteSession
from hoodie_py.writer.transaction.pending import is_clustering


def find_pending_restore(snapshot: Snapshot) -> Instant | None:
    """Return the restore that has begun and has not completed, or None."""
    return snapshot.timeline.select_pending().select_actions(kinds.RESTORE).last


def read_plan(snapshot: Snapshot, pending: Instant) -> RestorePlan:
    """Return the plan of a pending restore.

    Raises:
        InvalidTableError: the plan is gone.
        CorruptFileError: the plan is damaged.
    """
    requested = replace(pending, state=kinds.REQUESTED)
    return snapshot.timeline.read_instant_file(requested, RestorePlan.from_bytes)


def find_savepoint_of(snapshot: Snapshot, pending: Instant, plan: RestorePlan) -> str | None:
    """Return the plan's savepoint.

    Version 1 plans lack it; it is then the last savepoint before the oldest undone instant (Hudi ``RestoreUtils``).
    """
    if plan.savepoint is not None:
        return plan.savepoint
    oldest = plan.instants[-1].time if plan.instants else pending.request_time
    saved = snapshot.timeline.select_completed().select_actions(kinds.SAVEPOINT)
    return max((each.request_time for each in saved if each.request_time < oldest), default=None)


def make_plan(session: WriteSession, snapshot: Snapshot, instant: str) -> RestorePlan:
    """Return the plan of a restore to a savepoint.

    Raises:
        InvalidQueryError: there is no such savepoint, or a later one prevents it.
        InvalidTableError: files of the savepoint are gone.
        UnsupportedFeatureError: commits after the savepoint have been archived.
        ConflictError: a writer is at work.
    """
    find_savepoint(snapshot, instant)
    undone = _sort_newest_first(_list_later(snapshot, instant))
    _check_savepoints(snapshot, instant, undone)
    _check_archive(snapshot, instant)
    _check_files(snapshot, instant)
    for each in (one for one in undone if not one.is_completed):
        if is_alive(session.files, each.request_time, session.settings.options):
            raise ConflictError(
                "A writer is at work on an instant that the restore would undo.",
                hint="Stop all writers of the table, then restore it.",
                instant=each.request_time,
                action=each.action,
            )
        checkpoint = find_checkpoint(session.files, each.request_time)
        if checkpoint is not None:
            raise ConflictError(
                "A Flink job writes to an instant that the restore would undo, or did when it was stopped.",
                hint="Stop the job, roll the instant back, then restore the table.",
                instant=each.request_time,
                action=each.action,
                path=checkpoint,
            )
    return RestorePlan(tuple(RolledBackInstant(each.request_time, each.action) for each in undone), instant)


def _list_later(snapshot: Snapshot, instant: str) -> list[Instant]:
    timeline = snapshot.timeline
    saved = timeline.select_writes().find(instant)
    if saved is None:
        raise InvalidTableError("The commit of the savepoint is not on the timeline.", instant=instant)
    by_request = snapshot.config.is_merge_on_read
    later = []
    for each in timeline:
        if not each.is_write or each == saved:
            continue
        if each.action == kinds.COMPACTION or (by_request and each.action == kinds.COMMIT and each.is_completed):
            after = each.request_time > instant
        elif each.is_completed:
            after = (each.completion_time or "", each.request_time) > (saved.completion_time or "", instant)
        elif each.action == kinds.LOG_COMPACTION or is_clustering(snapshot, each):
            after = each.request_time > instant
        else:
            after = True
        if after:
            later.append(each)
    return later


def _sort_newest_first(instants: Iterable[Instant]) -> list[Instant]:
    """Sort by completion, pending writes first; compactions by request, as later log files may carry their instant."""
    pending = [each for each in instants if not each.is_completed and each.action != kinds.COMPACTION]
    others = [each for each in instants if each.is_completed or each.action == kinds.COMPACTION]
    pending.sort(key=lambda each: each.request_time, reverse=True)
    others.sort(key=lambda each: (_get_time(each), each.request_time), reverse=True)
    return [*pending, *others]


def _get_time(instant: Instant) -> str:
    return instant.request_time if instant.action in (kinds.COMPACTION, kinds.COMMIT) else instant.completion_time or ""


def _check_savepoints(snapshot: Snapshot, instant: str, undone: Iterable[Instant]) -> None:
    times = {each.request_time for each in undone}
    saved = snapshot.timeline.select_actions(kinds.SAVEPOINT)
    beyond = [each.request_time for each in saved if each.request_time in times]
    if beyond:
        raise InvalidQueryError(
            f"The savepoint {beyond[-1]} is later than {instant}, and keeps what the restore would undo.",
            hint="Delete that savepoint first.",
            instant=beyond[-1],
        )


def _check_archive(snapshot: Snapshot, instant: str) -> None:
    first = snapshot.timeline.first_active_time
    if first is None or first <= instant:
        return
    archived = [each.request_time for each in snapshot.timeline.read_archive().instants if each.is_write]
    if archived and max(archived) > instant:
        raise UnsupportedFeatureError(
            f"Restoring to a savepoint when commits after it have been archived, up to {max(archived)}.",
            hint="Read the table as of the savepoint, and write these rows to it.",
            instant=instant,
        )


def _check_files(snapshot: Snapshot, instant: str) -> None:
    """Refuse if a file is gone that the savepoint names and a commit of the timeline wrote.

    The savepoint may also name log files of later commits, which an earlier restore may have removed.
    """
    named = read_savepoint(snapshot, find_savepoint(snapshot, instant)).files
    partitions = sorted(named)
    listings = list_named_folders(snapshot.files, partitions)
    for partition, listing in zip(partitions, listings, strict=True):
        there = {info.name for info in listing}
        for name in named[partition]:
            path = f"{partition}/{name}" if partition else name
            if name not in there and _is_needed(snapshot, name, path):
                raise InvalidTableError(
                    "A file of the savepoint is gone, so that the table cannot be restored to it.",
                    path=path,
                    instant=instant,
                    hint="Restore to another savepoint.",
                )


def _is_needed(snapshot: Snapshot, name: str, path: str) -> bool:
    log = parse_log_file_name(name)
    if log is None:
        base = parse_base_file_name(name)
        return base is None or snapshot.timeline.is_committed(base.instant)
    if snapshot.config.has_logs_named_by_commit:
        return snapshot.timeline.is_committed(log.instant)
    return path in snapshot.timeline.stats_by_path
