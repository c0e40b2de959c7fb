"""Move the archive of a timeline from one layout to the other: archive files to a history, and back.

The old archive stays where it is, as in Hudi: nothing reads it any more, and the next move to its layout removes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import tzinfo

from hoodie_py.errors import locate_errors
from hoodie_py.files import TableFiles
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.timeline.archive import (
    VERSION_FILE,
    ArchivedInstant,
    iterate_archive_entries,
    parse_archive_file_name,
    parse_history_file_name,
    parse_history_parquet,
    parse_manifest_name,
)
from hoodie_py.formats.timeline.archive_entries import make_archived_instants, make_entries
from hoodie_py.table.bounded import read_bounded
from hoodie_py.table.timeline.archive import load_history
from hoodie_py.writer.archival.active_files import ActiveTimeline
from hoodie_py.writer.archival.archive_logs import LogArchive
from hoodie_py.writer.archival.history import HistoryArchive
from hoodie_py.writer.settings import ArchivalSettings

_AT_ONCE = 100  # instants whose contents are in memory


def move_archive(
    files: TableFiles,
    before: TableConfig,
    after: TableConfig,
    settings: ArchivalSettings,
    zone: tzinfo,
    ensure_held: Callable[[], None],
) -> None:
    """Write the archive of one layout in the form of the other, where it does not count yet.

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


def remove_archive(files: TableFiles, config: TableConfig) -> None:
    """Remove an archive that does not count, left by a killed run or by a table that returns to a layout."""
    folder = config.find_history_folder()
    for info in files.list_or_empty(folder):
        if not info.is_dir and _is_of_archive(info.name, config.timeline_layout):
            files.delete_with_checksum(info.path)


def _is_of_archive(name: str, layout: int) -> bool:
    if layout == 1:
        return parse_archive_file_name(name) is not None
    known = parse_history_file_name(name) is not None or parse_manifest_name(name) is not None
    return known or name == VERSION_FILE


def _iterate_logs(files: TableFiles, config: TableConfig) -> Iterator[list[ArchivedInstant]]:
    """Yield the instants of archive files in chunks, oldest first; of two entries of an instant only the first."""
    folder = config.find_history_folder()
    numbered = []
    for info in files.list_or_empty(folder):
        number = None if info.is_dir else parse_archive_file_name(info.name)
        if number is not None:
            numbered.append((number, info.path))
    seen: set[tuple[str, str]] = set()
    for _, path in sorted(numbered):
        with locate_errors(path=path):
            found = make_archived_instants(iterate_archive_entries(read_bounded(files, path, "archive_bytes")))
        new = [each for each in found if (each.request_time, each.action) not in seen]
        seen.update((each.request_time, each.action) for each in new)
        yield from _split(new)


def _iterate_history(files: TableFiles, config: TableConfig) -> Iterator[list[ArchivedInstant]]:
    folder = config.find_history_folder()
    seen: set[tuple[str, str]] = set()
    for each in sorted(load_history(files, folder).files, key=lambda file: file.min_time):
        path = f"{folder}/{each.name}"
        with locate_errors(path=path):
            found = parse_history_parquet(read_bounded(files, path, "archive_bytes"))
        new = sorted(
            (one for one in found if (one.request_time, one.action) not in seen), key=lambda one: one.request_time
        )
        seen.update((one.request_time, one.action) for one in new)
        yield from _split(new)


def _split(instants: list[ArchivedInstant]) -> Iterator[list[ArchivedInstant]]:
    for start in range(0, len(instants), _AT_ONCE):
        yield instants[start : start + _AT_ONCE]
