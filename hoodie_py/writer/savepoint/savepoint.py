"""Create, list and delete savepoints (Hudi ``SavepointActionExecutor``, ``SavepointHelpers``).

A savepoint belongs to a completed commit and has that commit's request time. Its file names the files that a query at
that commit reads. Cleans keep these files, archival keeps the commit, and a restore goes back to it. A commit whose
files a clean may have removed cannot get a savepoint.

A savepoint takes effect by its completed file, under the table's lock. It has no requested file, and no entry in the
metadata table. A killed process leaves only an inflight file, which the next call takes over, or a later write removes.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from hoodie_py.errors import ConflictError, InvalidQueryError
from hoodie_py.formats.timeline.instants import CLEAN, INFLIGHT, RESTORE, SAVEPOINT, Instant
from hoodie_py.formats.timeline.savepoints import SavepointMetadata, write_savepoint_metadata
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.runtime.wording import Sentence
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.timeline.cleans import read_cleans
from hoodie_py.table.view.file_groups import FileGroup
from hoodie_py.table.view.slicing import make_all_slices, make_slice
from hoodie_py.writer.timeline.session import WriteSession, find_newest_time


@dataclass(frozen=True, slots=True)
class Savepoint(Sentence):
    """A savepoint.

    Attributes:
        instant: request time of the commit that it keeps.
        user: the user that created it; "" if not given.
        comment: the reason for it.
        saved_at: when it was created, in milliseconds since 1970.
        files: number of files that it names.

    Examples:
        >>> savepoint = trips.savepoint(comment="before the migration")
        >>> savepoint.comment, savepoint.instant == trips.timeline.select_writes().last.request_time
        ('before the migration', True)
    """

    instant: str
    user: str
    comment: str
    saved_at: int
    files: int

    def __str__(self) -> str:
        who = f" by {self.user}" if self.user else ""
        why = f": {self.comment}" if self.comment else ""
        return f"Savepoint {self.instant}{who} keeps {self.files:,} files{why}."


def list_savepoints(snapshot: Snapshot) -> list[Savepoint]:
    """Return the table's savepoints, oldest first.

    Raises:
        CorruptFileError: the file of a savepoint is damaged.
    """
    return [_describe(each.request_time, read_savepoint(snapshot, each)) for each in _select_completed(snapshot)]


def read_savepoint(snapshot: Snapshot, savepoint: Instant) -> SavepointMetadata:
    """Return the content of a completed savepoint's file.

    Raises:
        CorruptFileError: the file is damaged.
    """
    return snapshot.timeline.read_instant_file(savepoint, SavepointMetadata.from_bytes)


def create_savepoint(session: WriteSession, instant: str | None, user: str, comment: str) -> Savepoint:
    """Create a savepoint of a completed commit; of the newest one if ``instant`` is None.

    Raises:
        InvalidQueryError: there is no such commit, a clean may have removed its files, or it already has a savepoint.
        ConflictError: another writer holds the lock, or a restore is pending.
        CommitStateUnknownError: the store did not say whether it wrote the file.
        StorageError: the store refused.
    """
    with session.hold_lock() as holding:
        snapshot = session.look()
        commit = _find_commit(snapshot, instant)
        _check_possible(snapshot, commit)
        saved = SavepointMetadata(user, round(time.time() * 1000), comment, _list_files(snapshot, commit.request_time))
        timeline = session.open_timeline(snapshot)
        inflight = Instant(commit.request_time, None, SAVEPOINT, INFLIGHT)
        completion_time = session.clock.take(find_newest_time(snapshot.timeline))
        holding.ensure_held()  # whatever may refuse comes first: an inflight file alone is no savepoint
        if snapshot.timeline.find(commit.request_time, SAVEPOINT) is None:
            timeline.begin(inflight)
        timeline.complete(inflight, completion_time, write_savepoint_metadata(saved))
    return _describe(commit.request_time, saved)


def delete_savepoint(session: WriteSession, instant: str) -> Savepoint:
    """Delete a savepoint, and return its description. Later cleans may remove its files.

    Raises:
        InvalidQueryError: there is no such savepoint.
        ConflictError: another writer holds the lock, or a restore is pending.
        StorageError: the store refused.
    """
    with session.hold_lock() as holding:
        snapshot = session.look()
        found = find_savepoint(snapshot, instant)
        _check_no_restore(snapshot)
        what = _describe(instant, read_savepoint(snapshot, found))
        timeline = session.open_timeline(snapshot)
        holding.ensure_held()
        timeline.remove(replace(found, state=INFLIGHT, completion_time=None))
        timeline.remove(found)  # last: until it is gone the savepoint counts, and can be deleted again
    return what


def find_savepoint(snapshot: Snapshot, instant: str) -> Instant:
    """Return the completed savepoint of a commit.

    Raises:
        InvalidQueryError: there is none.
    """
    found = snapshot.timeline.find(instant, SAVEPOINT)
    if found is None or not found.is_completed:
        known = ", ".join(each.request_time for each in _select_completed(snapshot)) or "none"
        raise InvalidQueryError(f"There is no savepoint at {instant[:40]!r}.", hint=f"Savepoints: {known[:1000]}.")
    return found


def _describe(instant: str, saved: SavepointMetadata) -> Savepoint:
    files = sum(map(len, saved.files.values()))
    return Savepoint(instant, saved.saved_by or "", saved.comments or "", saved.saved_at or 0, files)


def _select_completed(snapshot: Snapshot) -> list[Instant]:
    return list(snapshot.timeline.select_completed().select_actions(SAVEPOINT))


def _find_commit(snapshot: Snapshot, instant: str | None) -> Instant:
    writes = snapshot.timeline.select_writes()
    found = writes.last if instant is None else writes.find(instant)
    if found is None:
        what = "The table has no completed commit" if instant is None else f"There is no commit at {instant[:40]!r}"
        active = "" if writes.last is None else f" The active timeline has {writes.instants[0].request_time} to "
        raise InvalidQueryError(
            f"{what} that a savepoint could keep.",
            hint="Only completed commits of the active timeline can have one."
            + (f"{active}{writes.last.request_time}." if writes.last is not None else ""),
        )
    return found


def _check_possible(snapshot: Snapshot, commit: Instant) -> None:
    _check_no_restore(snapshot)
    known = snapshot.timeline.find(commit.request_time, SAVEPOINT)
    if known is not None and known.is_completed:
        raise InvalidQueryError("The commit has a savepoint already.", instant=commit.request_time)
    earliest = _find_earliest_kept(snapshot, commit)
    if earliest is not None and commit.request_time < earliest:
        raise InvalidQueryError(
            f"A clean may have removed files of this commit: it kept those of {earliest} and later ones.",
            hint="Make the savepoint of a later commit.",
            instant=commit.request_time,
        )


def _check_no_restore(snapshot: Snapshot) -> None:
    pending = snapshot.timeline.select_pending().select_actions(RESTORE)
    if len(pending):
        raise ConflictError(
            "A restore is pending.",
            hint="Finish it: call restore again with the same savepoint.",
            instant=pending.instants[0].request_time,
        )


def _find_earliest_kept(snapshot: Snapshot, commit: Instant) -> str | None:
    """Return the request time from which on all cleans after a commit kept all files; None without such cleans.

    A clean by file versions does not record it. Then it is the last commit before the clean (Hudi
    ``getLastCommitRetained``).
    """
    timeline = snapshot.timeline
    cleans = read_cleans(timeline, commit.request_time)
    kept = [each.retained or _find_last_before(snapshot, each.request_time) for each in cleans]
    last = timeline.select_actions(CLEAN).last
    if last is not None and not any(each.request_time == last.request_time for each in cleans):  # not begun, or before
        kept.append(timeline.find_earliest_retained() or _find_last_before(snapshot, last.request_time))
    return max(kept, default=None)


def _find_last_before(snapshot: Snapshot, clean: str) -> str:
    before = [each for each in snapshot.timeline.select_writes() if each.request_time <= clean]
    return before[-1].request_time if before else clean


def _list_files(snapshot: Snapshot, instant: str) -> dict[str, tuple[str, ...]]:
    """Return the names of the files that a query at the commit reads, by partition path.

    Includes later log files of the same slices: Java names them, too.
    """
    found: dict[str, set[str]] = {}
    visibility = snapshot.view.visibility
    for group in snapshot.view.list_file_groups():
        if not visibility.is_replaced(group.key, instant):
            for each in _find_slices(group, snapshot, instant):
                files = (*((each.base_file,) if each.base_file is not None else ()), *each.log_files)
                found.setdefault(group.partition_path, set()).update(file.path.rpartition("/")[2] for file in files)
    return {partition: tuple(sorted(names)) for partition, names in sorted(found.items())}


def _find_slices(group: FileGroup, snapshot: Snapshot, instant: str) -> list[FileSlice]:
    visibility = snapshot.view.visibility
    read = make_slice(group, visibility, instant)
    before = [each for each in make_all_slices(group, visibility) if each.base_instant <= instant]
    return [each for each in (read, *before[-1:]) if each is not None]
