"""Archive the oldest instants of a timeline (Hudi ``HoodieTimelineArchiver``).

Under the table's lock, in this order, so that an instant is in one of the two timelines at any time:

1. The instants are written to the archive.
2. Their leftover markers are removed, and files of rolled back writes that would count from now on
   (``remove_late_files``).
3. Their files are removed from the active timeline.

If a run dies between 1 and 3, instants are in both timelines, and count as active. The next run finds them in the
archive and does not write them again.
"""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from hoodie_py.errors import ConflictError, HoodieError, HoodieWarning
from hoodie_py.files import TableFiles
from hoodie_py.formats.timeline.instants import Instant
from hoodie_py.runtime.telemetry import carry_span, watch_calls
from hoodie_py.runtime.wording import Sentence
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.timeline.time_travel import parse_zone
from hoodie_py.writer.archival.active_files import ActiveFiles, ActiveTimeline, collect_active_files
from hoodie_py.writer.archival.choice import Choice, choose_instants
from hoodie_py.writer.handles.data_file import is_named_after
from hoodie_py.writer.handles.markers import TEMP_FOLDER, Markers
from hoodie_py.writer.settings import ArchivalSettings
from hoodie_py.writer.timeline.session import WriteSession
from hoodie_py.writer.transaction.hash_ranges import confirm_completed
from hoodie_py.writer.transaction.pending import list_rolled_back

_log = logging.getLogger(__name__)
_AT_ONCE = 100  # instants whose contents are in memory
_THREADS = 16


@dataclass(frozen=True, slots=True)
class ArchiveResult(Sentence):
    """What an archival did.

    Attributes:
        instants: request times of the instants that left the active timeline, oldest first.
        files: paths of the new files of the archive.
        active: number of completed commits that are still in the active timeline.
        why: why they stay.
        seconds: wall-clock time.
        dry_run: whether nothing was done; ``instants`` could be archived then.

    Examples:
        >>> for ts in range(3, 7):
        ...     count = trips.upsert([{"id": "a", "city": "sf", "price": 1.0, "ts": ts}]).rows_updated
        >>> result = trips.archive(options={"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"})
        >>> len(result.instants), result.active
        (1, 5)
    """

    instants: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    active: int = 0
    why: str = ""
    seconds: float = 0.0
    dry_run: bool = False

    def __str__(self) -> str:
        if not self.instants:
            return f"There is nothing to archive of {self.active} commits: {self.why}."
        span = f"{len(self.instants)} instants, {self.instants[0]} to {self.instants[-1]}"
        if self.dry_run:
            return f"{span}, can be archived; {self.active} commits stay."
        return f"Archived {span}, in {self.seconds:.1f} s; {self.active} commits stay in the active timeline."


class Archive(Protocol):
    """The operations in which the layouts of the timeline differ."""

    def find_archived(self, active: Sequence[ActiveFiles]) -> set[Instant]:
        """Return the instants that an archival which died has already written. ``active``: oldest first."""
        ...

    def add(self, active: Sequence[ActiveFiles]) -> str:
        """Write instants to the archive, and return the path of the new file."""
        ...

    def tidy(self) -> None:
        """Merge files of the archive."""
        ...


def archive(session: WriteSession, *, dry_run: bool = False) -> ArchiveResult:
    """Archive the instants that are due. With ``dry_run`` nothing is written.

    Raises:
        CorruptFileError: an instant's file, or the archive, is damaged.
        UnsupportedFeatureError: the archive is in a newer form.
        ConflictError: another writer holds the lock, or archives at the same time.
        CommitStateUnknownError: the store did not say whether it wrote a file.
        StorageError: the store refused. The next archival goes on.
    """
    choice = choose_instants(session.look(), session.settings.archival)
    if dry_run or not choice.instants:
        return make_result(choice, dry_run=dry_run)
    return _run(session)


def archive_inline(session: WriteSession) -> ArchiveResult | None:
    """Archive the instants that are due after a commit; None if there are none. Errors as for ``archive``.

    The last look at the table decides that. Unless there are more commits than stay, it costs no request.
    """
    known = session.looks.last
    if known is None or not choose_instants(known, session.settings.archival).instants:
        return None
    return _run(session)


@watch_calls("archival")
def _run(session: WriteSession) -> ArchiveResult:
    began = time.monotonic()
    settings = session.settings.archival
    with session.hold_lock() as holding:
        now = session.look()
        choice = choose_instants(now, settings)
        confirm_completed(now, choice.instants)  # later nothing else shows that their hash ranges are in force
        for path in remove_late_files(now, choice.instants, holding.ensure_held):
            _log.warning("Removed a file of a write that had been rolled back: %s/%s", session.files.uri, path)
        zone = parse_zone(session.timezone, now.config.timezone)
        timeline = ActiveTimeline(session.files, now.config, now.timeline.names, zone)
        files = archive_instants(timeline, choice.instants, settings, holding.ensure_held)
    result = make_result(choice, files, seconds=time.monotonic() - began)
    _log.info("%s [table=%s]", result, session.files.uri)
    return result


def make_result(
    choice: Choice, files: Sequence[str] = (), *, seconds: float = 0.0, dry_run: bool = False
) -> ArchiveResult:
    """Return the result of an archival of chosen instants."""
    gone = sum(each.is_write for each in choice.instants)
    times = tuple(each.request_time for each in choice.instants)
    return ArchiveResult(times, tuple(files), choice.active - gone, choice.why, seconds, dry_run)


def archive_instants(
    timeline: ActiveTimeline, instants: Sequence[Instant], settings: ArchivalSettings, ensure_held: Callable[[], None]
) -> list[str]:
    """Move completed instants to the archive, oldest first, and return the paths of new files of the archive.

    ``ensure_held`` raises a ConflictError once the table's lock is lost. Errors as for ``archive``.
    """
    active = collect_active_files(timeline, instants)
    if not active:
        return []
    into = _open_archive(timeline, settings, ensure_held)
    archived = into.find_archived(active)
    made: list[str] = []
    for start in range(0, len(active), _AT_ONCE):
        some = active[start : start + _AT_ONCE]
        new = [each for each in some if each.instant not in archived]
        if new:
            made.append(into.add(new))
        _remove_markers(timeline.files, some)
        _remove_active(timeline, some, ensure_held)
        _tidy(into)
    return made


def _open_archive(timeline: ActiveTimeline, settings: ArchivalSettings, ensure_held: Callable[[], None]) -> Archive:
    # Imported here, because every write asks what is due and few archive.
    if timeline.config.timeline_layout == 1:
        from hoodie_py.writer.archival.archive_logs import LogArchive

        return LogArchive(timeline, settings.block_records, ensure_held)
    from hoodie_py.writer.archival.history import HistoryArchive

    return HistoryArchive(timeline, settings, ensure_held)


def _tidy(into: Archive) -> None:
    """Merge the archive's files. The instants are archived, so a failure is a warning."""
    try:
        into.tidy()
    except ConflictError:
        raise
    except HoodieError as error:
        text = f"Instants are archived; the files of the history were not merged: {error}"
        warnings.warn(HoodieWarning(text), stacklevel=5)


def _remove_markers(files: TableFiles, active: Sequence[ActiveFiles]) -> None:
    """Remove markers whose writer died after its commit."""
    left = {name.rstrip("/") for name in files.list_names(TEMP_FOLDER)}
    for each in active:
        if each.instant.request_time in left:
            Markers(files, each.instant.request_time).remove_all()


def _remove_active(timeline: ActiveTimeline, active: Sequence[ActiveFiles], ensure_held: Callable[[], None]) -> None:
    def remove(state: Instant) -> None:
        timeline.files.delete_with_checksum(timeline.locate(state))

    ensure_held()
    # Pending states first: without its completed file, a completed instant would look pending.
    pending = [state for each in active for state in each.pending]
    with ThreadPoolExecutor(_THREADS, "hoodie-archive") as pool:
        list(pool.map(carry_span(remove), pending))
    ensure_held()
    # One by one, the oldest first, so that the timeline never has a hole.
    for each in active:
        for state in each.completed:
            remove(state)


def remove_late_files(now: Snapshot, leaving: Sequence[Instant], ensure_held: Callable[[], None]) -> list[str]:
    """Remove data files of rolled back instants that the archival would make count, and return their paths.

    A writer that sleeps may be judged dead, and rolled back. If it wakes, finishes a data file, and dies before it
    removes the file again, the file stays. Readers ignore it, as its instant never completed. But an instant before the
    start of the active timeline counts as archived, thus completed (``Timeline.is_archived_before``): the file's rows
    would appear. So the archival that passes a rolled back instant lists the folders. Log files up to table version 6
    are left alone: they carry the instant of their slice, which may be a compaction that was rolled back while they are
    in use.

    The caller holds the table's lock. ``ensure_held`` raises a ConflictError once the lock is lost.

    Raises:
        CorruptFileError: a rollback's file is damaged.
        StorageError: the store refused.
    """
    times = _list_times(now, leaving)
    if not times:
        return []
    every = now.config.has_logs_named_by_commit
    found = [
        info.path
        for listing in now.view.list_data_folders()
        for info in listing.files
        if (every or not info.name.startswith(".")) and any(is_named_after(info.name, time) for time in times)
    ]
    ensure_held()
    for path in found:
        now.files.delete_with_checksum(path)
    for each in times:
        Markers(now.files, each).remove_all()
    return found


def _list_times(now: Snapshot, leaving: Sequence[Instant]) -> list[str]:
    """Return the rolled back instants between the start of the active timeline now and its start after the archival."""
    timeline, going = now.timeline, set(leaving)
    first, then = timeline.first_active_time, timeline.filter(lambda each: each not in going).first_active_time
    if first is None or then is None or first == then:
        return []
    gone = [time for time in list_rolled_back(now) if first <= time < then and timeline.find(time) is None]
    # A compaction may have been rolled back, run again, completed and archived: its files count.
    return [time for time in gone if time not in now.timeline.read_archive().completion_times]
