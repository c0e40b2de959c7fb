"""Lists a table's instants page by page: the active ones, and before them the archived ones.

* A page has the newest instants, or the newest requested before a given time, oldest first. The time of a page's first
  instant gives the previous page.
* Cleans stay active longer than commits, so archived instants may lie between active ones. In timeline layout 2 only
  files whose range of times can have instants of the page are read. The names of layout 1 hold no times, so all files
  are read, but no more than the page and one file is held.
* An archiver that died leaves instants in both timelines. They count as active.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hoodie_py.errors import FileMissingError, locate_errors
from hoodie_py.formats.timeline.archive import ArchivedInstant
from hoodie_py.formats.timeline.commit_metadata import CommitMetadata
from hoodie_py.formats.timeline.instants import COMPLETED
from hoodie_py.formats.timeline.timeline import Instant
from hoodie_py.table.timeline.archive import ATTEMPTS, iterate_archive_files, make_missing_error
from hoodie_py.table.timeline.loader import TableTimeline


@dataclass(frozen=True, slots=True)
class ListedInstant:
    """An instant of either timeline; ``entry`` is the archive's entry, ``instant`` the active timeline's."""

    request_time: str
    completion_time: str | None
    action: str
    state: str
    entry: ArchivedInstant | None = None
    instant: Instant | None = None

    @property
    def is_archived(self) -> bool:
        """Whether the instant has left the active timeline."""
        return self.entry is not None


@dataclass(frozen=True, slots=True)
class TimelinePage:
    """Instants oldest first, and whether there are older ones."""

    instants: tuple[ListedInstant, ...]
    has_older: bool

    def read_metadata(self, timeline: TableTimeline) -> list[CommitMetadata | None]:
        """Return the commit metadata of each instant of the page.

        It is None if the instant is not a completed write, or if the archive did not keep it.

        Raises:
            CorruptFileError: a commit's metadata is damaged.
        """
        completed = set(timeline.list_completed_writes())
        writes = [each.instant for each in self.instants if each.instant in completed]
        active = iter(timeline.read_all_metadata([each for each in writes if each is not None]))
        return [next(active) if each.instant in completed else _parse_archived(each.entry) for each in self.instants]


def list_instants(
    timeline: TableTimeline, *, archived: bool = False, limit: int | None = None, before: str | None = None
) -> TimelinePage:
    """Return the newest ``limit`` instants (None: all) requested before a time (None: up to now).

    Raises:
        CorruptFileError: the archive is damaged.
        InvalidTableError: the archive names files that do not exist.
        StorageError: the archive cannot be read.
    """
    active = [_list_active(each) for each in timeline if before is None or each.request_time < before]
    if not archived:
        return _make_page(active, limit)
    # Archive files may be replaced by larger ones while they are read; a new attempt finds these.
    for _ in range(ATTEMPTS):
        try:
            return _make_page([*active, *_select_archived(timeline, active, before, limit)], limit)
        except FileMissingError:
            continue
    raise make_missing_error(timeline.config)


def _parse_archived(entry: ArchivedInstant | None) -> CommitMetadata | None:
    if entry is None or not entry.is_write or not entry.has_metadata:
        return None
    with locate_errors(instant=entry.request_time):
        return entry.parse_commit_metadata()


def _list_active(instant: Instant) -> ListedInstant:
    return ListedInstant(instant.request_time, instant.completion_time, instant.action, instant.state, instant=instant)


def _make_page(found: list[ListedInstant], limit: int | None) -> TimelinePage:
    ordered = sorted(found, key=lambda each: (each.request_time, not each.is_archived))
    shown = ordered if limit is None else ordered[max(0, len(ordered) - limit) :]
    return TimelinePage(tuple(shown), len(shown) < len(ordered))


def _select_archived(
    timeline: TableTimeline, active: Sequence[ListedInstant], before: str | None, limit: int | None
) -> list[ListedInstant]:
    """Return the archived instants that may be in the page, with their contents.

    If there are older ones, one more is returned.
    """
    known = {(each.request_time, each.action) for each in timeline}
    found: dict[tuple[str, str], ArchivedInstant] = {}
    most = None if limit is None else limit + 1

    def may_count(max_time: str, min_time: str) -> bool:
        if before is not None and min_time >= before:
            return False
        times = sorted([*(time for time, _ in found), *(each.request_time for each in active)], reverse=True)
        return most is None or len(times) < most or max_time >= times[most - 1]

    for entries in iterate_archive_files(timeline.files, timeline.config, may_count):
        for entry in entries:
            key = entry.request_time, entry.action
            if key not in known and (before is None or entry.request_time < before):
                found.setdefault(key, entry)
        if most is not None and len(found) > most:
            found = {key: found[key] for key in sorted(found)[-most:]}
    return [
        ListedInstant(each.request_time, each.completion_time, each.action, COMPLETED, each) for each in found.values()
    ]
