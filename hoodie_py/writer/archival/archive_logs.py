"""The archive of timeline layout 1: numbered files in log format (Hudi ``TimelineArchiverV1``).

Each archival adds one file with an entry for every state of every instant. Files are never changed. Hudi 1.2.0 does not
merge them, either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from hoodie_py.errors import locate_errors
from hoodie_py.formats.timeline.archive import parse_archive_file_name, parse_archived_log
from hoodie_py.formats.timeline.archive_entries import (
    encode_archive_log,
    make_archive_file_name,
    make_entry,
    needs_content,
)
from hoodie_py.formats.timeline.instants import CLEAN, Instant
from hoodie_py.table.bounded import read_bounded
from hoodie_py.table.timeline.time_travel import format_instant
from hoodie_py.writer.archival.active_files import ActiveFiles, ActiveTimeline

_THREADS = 16


@dataclass(frozen=True, slots=True)
class LogArchive:
    """Writes archive files of a timeline; ``ensure_held`` as for ``HistoryArchive``."""

    timeline: ActiveTimeline
    block_records: int
    ensure_held: Callable[[], None]

    @property
    def folder(self) -> str:
        """Path of the archive."""
        return self.timeline.config.find_history_folder()

    def find_archived(self, active: Sequence[ActiveFiles]) -> set[Instant]:
        """Return the instants that are in the newest file: an archival that died has already written them.

        Raises:
            CorruptFileError: the file is damaged.
            StorageError: the store refused.
        """
        number = self._find_last()
        if not number:
            return set()
        path = f"{self.folder}/{make_archive_file_name(number)}"
        with locate_errors(path=path):
            entries = parse_archived_log(read_bounded(self.timeline.files, path, "archive_bytes"))
        found = {(each.request_time, each.action) for each in entries}
        return {each.instant for each in active if (each.instant.request_time, each.instant.action) in found}

    def add(self, active: Sequence[ActiveFiles]) -> str:
        """Add a file with the entries of instants, and return its path.

        Raises:
            CorruptFileError: an instant's file is damaged.
            UnsupportedFeatureError: an instant's file lacks data for its entry.
            ConflictError: another writer archives, or the lock is lost.
            CommitStateUnknownError: the store did not say whether it wrote the file.
            StorageError: the store refused.
        """
        return self.add_entries(_make_entries(self.timeline, active))

    def add_entries(self, entries: Sequence[Mapping[str, Any]]) -> str:
        """Add a file of entries, and return its path; errors as for ``add``."""
        content = encode_archive_log(entries, self.block_records)
        path = f"{self.folder}/{make_archive_file_name(self._find_last() + 1)}"
        self.ensure_held()
        self.timeline.files.put_if_absent(path, content)
        self.ensure_held()
        return path

    def tidy(self) -> None:
        """Do nothing: archive files are not merged."""

    def _find_last(self) -> int:
        names = self.timeline.files.list_names(self.folder)
        return max((number for name in names if (number := parse_archive_file_name(name)) is not None), default=0)


def _make_entries(timeline: ActiveTimeline, active: Sequence[ActiveFiles]) -> list[dict[str, Any]]:
    """Read the contents of all states; each becomes an entry."""
    written = {info.name: info.modified for info in timeline.files.list(timeline.config.find_timeline_folder())}
    states = [(each, state) for each in active for state in each.states]
    with ThreadPoolExecutor(min(_THREADS, len(states)), "hoodie-archive") as pool:
        contents = list(pool.map(lambda pair: _read_state(timeline, *pair), states))
    entries = []
    for (_, state), content in zip(states, contents, strict=True):
        at = _format_time(written.get(state.file_name(timeline.config.timeline_layout)), timeline, state)
        with locate_errors(path=timeline.locate(state), instant=state.request_time):
            entries.append(make_entry(state, at, content))
    return entries


def _format_time(modified: float | None, timeline: ActiveTimeline, state: Instant) -> str:
    """Return when a state was reached: the time of its file, in milliseconds since 1970, as in Java."""
    if modified is None:
        return state.request_time
    return format_instant(datetime.fromtimestamp(modified / 1000, UTC), timeline.zone)


def _read_state(timeline: ActiveTimeline, active: ActiveFiles, state: Instant) -> bytes:
    if not needs_content(state):
        return b""
    is_plan = state.action == CLEAN and not state.is_completed
    return timeline.read(active.requested or state if is_plan else state)
