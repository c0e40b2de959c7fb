"""Move a timeline and its archive from one layout to the other (Hudi ``SevenToEightUpgradeHandler``,
``EightToSevenDowngradeHandler``).

Hudi moves file by file, so that a reader meanwhile, or after a run that died, sees half a timeline. Here all files are
first copied into the folder of the other layout, where nothing counts yet. Then the table's properties name the other
folder, in one step, and the old files are removed. A run that died is begun anew: its copies are removed first.

    layout 1: T.commit (JSON)         layout 2: T_C.commit (Avro)
              T.replacecommit.*                 T.clustering.*      pending files, which the upgrade renames

The completion time C is the time of the file, as in Java. If a table was copied, all its files are younger than its
instants. Their times mean nothing then, and the request times count.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from functools import partial

from hoodie_py.errors import locate_errors
from hoodie_py.files import FileInfo, TableFiles
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.timeline import archive
from hoodie_py.formats.timeline import instants as kinds
from hoodie_py.formats.timeline.archive import ArchivedInstant
from hoodie_py.formats.timeline.archive_entries import make_archived_instants, make_entries
from hoodie_py.formats.timeline.commit_metadata import CommitMetadata
from hoodie_py.formats.timeline.instants import Instant, parse_instant_name
from hoodie_py.formats.timeline.writers import write_commit_metadata
from hoodie_py.table.bounded import read_bounded
from hoodie_py.table.timeline.archive import load_history
from hoodie_py.table.timeline.time_travel import format_instant
from hoodie_py.writer.archival.active_files import ActiveTimeline
from hoodie_py.writer.archival.archive_logs import LogArchive
from hoodie_py.writer.archival.history import HistoryArchive
from hoodie_py.writer.create import PLACEHOLDER
from hoodie_py.writer.settings import ArchivalSettings

_THREADS = 16
_BEFORE_ALL = "00000001"  # the instants of bootstraps, and of partitions of the metadata table, are no times
_FORMAT = "%Y%m%d%H%M%S"

_AT_ONCE = 100  # instants whose contents are in memory


@dataclass(frozen=True, slots=True)
class TimelineMove:
    """A timeline, and the layout that it moves to.

    ``before`` and ``after`` are the table's properties; ``zone`` is the zone of the timeline's times. ``ensure_held``
    raises a ConflictError once the table's lock is lost.
    """

    files: TableFiles
    before: TableConfig
    after: TableConfig
    zone: tzinfo
    settings: ArchivalSettings
    ensure_held: Callable[[], None]

    def copy(self) -> int:
        """Copy all files and the archive, and return the number of copied files of instants.

        Raises:
            CorruptFileError: a file is damaged.
            ConflictError: the lock is lost.
            StorageError: the store refused; nothing counts yet.
        """
        self.ensure_held()
        remove_instants(self.files, self.after)
        _remove_archive(self.files, self.after)
        states = list_states(self.files, self.before)
        upward = self.before.timeline_layout == 1
        times = choose_completion_times(states, self.zone, self.before.is_merge_on_read) if upward else {}
        self.ensure_held()
        with ThreadPoolExecutor(_THREADS, "hoodie-upgrade") as pool:
            list(pool.map(partial(self._copy_state, times), states))
        _move_archive(self.files, self.before, self.after, self.settings, self.zone, self.ensure_held)
        if self.after.timeline_layout > 1:
            self.files.put(f"{self.after.find_history_folder()}/{PLACEHOLDER}", b"")
        self.ensure_held()
        return len(states)

    def remove_old(self) -> None:
        """Remove the files of the old layout. The properties must already name the other one."""
        self.ensure_held()
        remove_instants(self.files, self.before)

    def _copy_state(self, times: Mapping[str, str], state: tuple[FileInfo, Instant]) -> None:
        info, instant = state
        with locate_errors(path=info.path, instant=instant.request_time):
            content = convert_content(read_bounded(self.files, info.path), instant, self.after.timeline_layout)
        moved = rename(instant, self.after.timeline_layout, times.get(info.name))
        path = f"{self.after.find_timeline_folder()}/{moved.file_name(self.after.timeline_layout)}"
        self.files.put(path, content)
        if self.after.timeline_layout == 1 and instant.is_completed:
            self._set_file_time(path, instant.completion_time or "")

    def _set_file_time(self, path: str, completion_time: str) -> None:
        """Set a file's time to its instant's completion time, as Java reads that time from there in layout 1."""
        local = self.files.local_path(path)
        if local is None:  # object stores cannot set it
            return
        with suppress(ValueError, OverflowError):  # digits that are no date
            moment = datetime.strptime(completion_time[:14], _FORMAT).replace(tzinfo=self.zone)
            seconds = moment.timestamp() + int(completion_time[14:17] or 0) / 1000
            os.utime(local, (seconds, seconds))


def list_states(files: TableFiles, config: TableConfig) -> list[tuple[FileInfo, Instant]]:
    """Return the files of instants in a layout's folder, by name."""
    found = []
    for info in files.list_or_empty(config.find_timeline_folder()):
        instant = None if info.is_dir else parse_instant_name(info.name, config.timeline_layout)
        if instant is not None:
            found.append((info, instant))
    return found


def remove_instants(files: TableFiles, config: TableConfig) -> int:
    """Remove the files of instants in a layout's folder, and return their number."""
    states = list_states(files, config)
    with ThreadPoolExecutor(_THREADS, "hoodie-upgrade") as pool:
        # Pending states first: without its completed file, an instant that is left would look as if it had failed.
        for completed in (False, True):
            gone = [info.path for info, instant in states if instant.is_completed is completed]
            list(pool.map(files.delete_with_checksum, gone))
    return len(states)


def rename(instant: Instant, layout: int, completion_time: str | None) -> Instant:
    """Return an instant with the name of its file in the other layout."""
    if instant.is_completed:
        return instant if layout == 1 else replace(instant, completion_time=completion_time)
    action = {kinds.CLUSTERING: kinds.REPLACE_COMMIT} if layout == 1 else {kinds.REPLACE_COMMIT: kinds.CLUSTERING}
    return replace(instant, action=action.get(instant.action, instant.action))


def convert_content(content: bytes, instant: Instant, layout: int) -> bytes:
    """Return the content of a state's file in the other layout: only commits differ.

    Raises:
        CorruptFileError: it is damaged.
    """
    replaces = instant.action == kinds.REPLACE_COMMIT and instant.is_completed
    if not content or not (replaces or instant.action in (kinds.COMMIT, kinds.DELTA_COMMIT)):
        return content
    return write_commit_metadata(CommitMetadata.from_bytes(content), layout, replace=replaces)


def choose_completion_times(states: Sequence[tuple[FileInfo, Instant]], zone: tzinfo, has_logs: bool) -> dict[str, str]:
    """Return the completion times of completed instants of layout 1, by the names of their files.

    No instant completes before it was requested, although some stores round times down. In a table with logs, an
    instant older than a compaction completes before the compaction was planned: else its log files would belong to the
    wrong slice.
    """
    completed = [(info, instant) for info, instant in states if instant.is_completed]
    written = {info.name: _format(info, zone) for info, _ in completed}
    first = min((time for time in written.values() if time is not None), default="")
    moved = [info.name for info, instant in completed if _BEFORE_ALL < instant.request_time < first]
    if len(moved) > 1:  # a file that was not copied is older than the next instant
        written |= dict.fromkeys(moved)
    compactions = sorted(each.request_time for _, each in completed if has_logs and each.action == kinds.COMMIT)
    found = {}
    for info, instant in completed:
        after = next((time for time in compactions if time > instant.request_time), None)
        time = max(written[info.name] or instant.request_time, instant.request_time)
        found[info.name] = time if after is None or time < after else instant.request_time
    return found


def _format(info: FileInfo, zone: tzinfo) -> str | None:
    return None if info.modified is None else format_instant(datetime.fromtimestamp(info.modified / 1000, UTC), zone)


def list_leftovers(files: TableFiles, config: TableConfig) -> list[str]:
    """Return the paths of files of instants that a killed run left in the folder of the layout that does not count."""
    other = replace(config, timeline_layout=3 - config.timeline_layout)
    return [info.path for info, _ in list_states(files, other)]


def _move_archive(
    files: TableFiles,
    before: TableConfig,
    after: TableConfig,
    settings: ArchivalSettings,
    zone: tzinfo,
    ensure_held: Callable[[], None],
) -> None:
    """Write the archive of one layout in the form of the other, where it does not count yet.

    Layout 1 has archive files, layout 2 a history. The old archive stays where it is, as in Hudi: nothing reads it any
    more, and the next move to its layout removes it.

    Raises:
        CorruptFileError: a file of the archive is damaged.
        StorageError: the store refused.
    """
    timeline = ActiveTimeline(files, after, frozenset(), zone)
    if after.timeline_layout > 1:
        history = HistoryArchive(timeline, settings, ensure_held)
        for some in _iterate_logs(files, before):
            history.add_instants(some)
            history.tidy()
        return
    logs = LogArchive(timeline, settings.block_records, ensure_held)
    for some in _iterate_history(files, before):
        with locate_errors(path=before.find_history_folder()):
            entries = list(make_entries(some))
        logs.add_entries(entries)


def _remove_archive(files: TableFiles, config: TableConfig) -> None:
    """Remove an archive that does not count, left by a killed run or by a table that returns to a layout."""
    folder = config.find_history_folder()
    for info in files.list_or_empty(folder):
        if not info.is_dir and _is_of_archive(info.name, config.timeline_layout):
            files.delete_with_checksum(info.path)


def _is_of_archive(name: str, layout: int) -> bool:
    if layout == 1:
        return archive.parse_archive_file_name(name) is not None
    known = archive.parse_history_file_name(name) is not None or archive.parse_manifest_name(name) is not None
    return known or name == archive.VERSION_FILE


def _iterate_logs(files: TableFiles, config: TableConfig) -> Iterator[list[ArchivedInstant]]:
    """Yield the instants of archive files in chunks, oldest first; of two entries of an instant only the first."""
    folder = config.find_history_folder()
    numbered = []
    for info in files.list_or_empty(folder):
        number = None if info.is_dir else archive.parse_archive_file_name(info.name)
        if number is not None:
            numbered.append((number, info.path))
    seen: set[tuple[str, str]] = set()
    for _, path in sorted(numbered):
        with locate_errors(path=path):
            found = make_archived_instants(archive.iterate_archive_entries(read_bounded(files, path, "archive_bytes")))
        new = [each for each in found if (each.request_time, each.action) not in seen]
        seen.update((each.request_time, each.action) for each in new)
        yield from _split(new)


def _iterate_history(files: TableFiles, config: TableConfig) -> Iterator[list[ArchivedInstant]]:
    folder = config.find_history_folder()
    seen: set[tuple[str, str]] = set()
    for each in sorted(load_history(files, folder).files, key=lambda file: file.min_time):
        path = f"{folder}/{each.name}"
        with locate_errors(path=path):
            found = archive.parse_history_parquet(read_bounded(files, path, "archive_bytes"))
        new = sorted(
            (one for one in found if (one.request_time, one.action) not in seen), key=lambda one: one.request_time
        )
        seen.update((one.request_time, one.action) for one in new)
        yield from _split(new)


def _split(instants: list[ArchivedInstant]) -> Iterator[list[ArchivedInstant]]:
    for start in range(0, len(instants), _AT_ONCE):
        yield instants[start : start + _AT_ONCE]
