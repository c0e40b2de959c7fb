"""The archived timeline of a table, read from its folder.

Timeline layout 1 (Hudi ``ArchivedTimelineV1``): numbered archive files. The states of one instant may lie in several
files; the newest file wins. Timeline layout 2 (Hudi ``LSMTimeline``): a manifest lists the history files that count.
``_version_`` names the manifest; without it the manifest with the greatest number counts. Without a manifest there is
no history. Hudi compacts the history and removes files, so on a missing file the newest manifest is read again.

Loading reads only request and completion times. Commit metadata is read when a caller asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property, partial

from hoodie_py.errors import FileMissingError, InvalidTableError, locate_errors
from hoodie_py.files import TableFiles
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.timeline.archive import (
    VERSION_FILE,
    ArchivedInstant,
    HistoryFile,
    keep_newest_entries,
    parse_archive_file_name,
    parse_archived_log,
    parse_history_manifest,
    parse_history_parquet,
    parse_history_version,
    parse_manifest_name,
)
from hoodie_py.formats.timeline.commit_metadata import CommitMetadata
from hoodie_py.runtime.telemetry import carry_span
from hoodie_py.table.bounded import read_bounded

ATTEMPTS = 3
_READ_THREADS = 16

Entries = Mapping[tuple[str, str], ArchivedInstant]


class ArchivedTimeline:
    """Instants that have left the active timeline.

    ``entries``: by (request time, action). ``with_contents``: reads the entries with their contents; None if they have
    them.
    """

    def __init__(self, entries: Entries, with_contents: Callable[[], Entries] | None = None) -> None:
        self._entries = entries
        self._with_contents = with_contents

    @cached_property
    def instants(self) -> tuple[ArchivedInstant, ...]:
        """All archived instants, oldest first."""
        return tuple(self._entries[key] for key in sorted(self._entries))

    @cached_property
    def completion_times(self) -> Mapping[str, str]:
        """Completion times of archived writes, by request time."""
        return {each.request_time: each.completion_time for each in self.instants if each.is_write}

    def read_metadata(self, request_time: str) -> CommitMetadata | None:
        """Return an archived write's commit metadata; None if the archive does not have it.

        Raises:
            CorruptFileError: the archive is damaged.
            StorageError: the archive cannot be read.
        """
        if request_time not in self.completion_times:
            return None
        found = self._writes.get(request_time)
        return None if found is None or not found.has_metadata else found.parse_commit_metadata()

    def iterate_writes_back_from(self, request_time: str) -> Iterator[tuple[str, CommitMetadata]]:
        """Yield archived writes up to a request time with their metadata, newest first; errors as ``read_metadata``."""
        for each in reversed(self._full):
            if each.request_time <= request_time:
                yield each.request_time, each.parse_commit_metadata()

    @cached_property
    def _writes(self) -> Mapping[str, ArchivedInstant]:
        return {each.request_time: each for each in self._full}

    @cached_property
    def _full(self) -> tuple[ArchivedInstant, ...]:
        entries = self._with_contents() if self._with_contents is not None else self._entries
        return tuple(entries[key] for key in sorted(entries) if entries[key].is_write)


def load_archive(files: TableFiles, config: TableConfig) -> ArchivedTimeline:
    """Read a table's archived timeline; a table that never archived has an empty one.

    Raises:
        CorruptFileError: a file of the archive is damaged.
        InvalidTableError: the archive names files that do not exist.
        StorageError: reading failed.
    """
    if config.timeline_layout < 2:
        return ArchivedTimeline(_read_archive_logs(files, config.find_history_folder()))
    times = _read_history(files, config, contents=False)
    return ArchivedTimeline(times, partial(_read_history, files, config, contents=True))


def iterate_archive_files(
    files: TableFiles, config: TableConfig, may_count: Callable[[str, str], bool]
) -> Iterator[list[ArchivedInstant]]:
    """Yield the instants of each file of the archive with their contents, the newest file first.

    ``may_count``: called with the greatest and the least time of a file of timeline layout 2, just before it is read;
    False skips the file. If several files have an instant, the newer file's entry counts. FileMissingError means that
    the history was compacted meanwhile; other errors as ``load_archive``.
    """
    folder = config.find_history_folder()
    if config.timeline_layout < 2:
        for path in _find_archive_logs(files, folder):
            yield from _parse_files(files, [path], parse_archived_log)
        return
    for path in _iterate_history_files(files, folder, may_count):
        yield from _parse_files(files, [path], parse_history_parquet)


def _read_archive_logs(files: TableFiles, folder: str) -> Entries:
    return keep_newest_entries(_parse_files(files, _find_archive_logs(files, folder), parse_archived_log))


def _find_archive_logs(files: TableFiles, folder: str) -> list[str]:
    """Return the paths of the archive files of layout 1, newest first."""
    numbered = [
        (parse_archive_file_name(info.name), info.path) for info in files.list_or_empty(folder) if not info.is_dir
    ]
    return [path for _, path in sorted(((n, path) for n, path in numbered if n is not None), reverse=True)]


def _read_history(files: TableFiles, config: TableConfig, *, contents: bool) -> Entries:
    folder = config.find_history_folder()
    # The history may be compacted meanwhile, which deletes files that its manifest listed.
    for _ in range(ATTEMPTS):
        try:
            paths = list(_iterate_history_files(files, folder))
            parsed = _parse_files(files, paths, partial(parse_history_parquet, contents=contents))
        except FileMissingError:
            continue
        return keep_newest_entries(parsed)
    raise make_missing_error(config)


def make_missing_error(config: TableConfig) -> InvalidTableError:
    """Return the error for a history whose files stay missing, however often its manifest is read."""
    return InvalidTableError(
        "The manifest of the archived timeline names a missing file.", path=config.find_history_folder()
    )


@dataclass(frozen=True, slots=True)
class History:
    """The contents of the history's folder, in timeline layout 2.

    ``version``: number of the current manifest; 0 without one. ``files``: the files that it lists. ``manifests``: the
    paths of all manifests by number. ``names``: all names in the folder.
    """

    version: int = 0
    files: tuple[HistoryFile, ...] = ()
    manifests: Mapping[int, str] = field(default_factory=dict)
    names: frozenset[str] = frozenset()


def load_history(files: TableFiles, folder: str) -> History:
    """Read which history files count.

    Raises:
        CorruptFileError: the manifest is damaged.
        FileMissingError: another writer replaced the manifest meanwhile.
        StorageError: the store refused.
    """
    listing = files.list_or_empty(folder)
    names = frozenset(info.name for info in listing if not info.is_dir)
    manifests = {number: info.path for info in listing if (number := parse_manifest_name(info.name)) is not None}
    if not manifests:
        return History(names=names)
    version = _read_version(files, folder) if VERSION_FILE in names else None
    version = version if version is not None and version in manifests else max(manifests)
    return History(version, read_manifest(files, manifests[version]), manifests, names)


def read_manifest(files: TableFiles, path: str) -> tuple[HistoryFile, ...]:
    """Read the files that a manifest lists; errors as ``load_history``."""
    with locate_errors(path=path):
        return parse_history_manifest(read_bounded(files, path))


def _read_version(files: TableFiles, folder: str) -> int | None:
    try:
        return parse_history_version(read_bounded(files, f"{folder}/{VERSION_FILE}"))
    except FileMissingError:  # Java removes the file and writes it anew
        return None


def _iterate_history_files(
    files: TableFiles, folder: str, may_count: Callable[[str, str], bool] | None = None
) -> Iterator[str]:
    """Yield the paths of the history files that count and are wanted, newest first.

    Raises:
        FileMissingError: a file does not exist. The listing shows that, so a long manifest costs no request per file.
    """
    history = load_history(files, folder)
    for each in sorted(history.files, key=lambda each: each.max_time, reverse=True):
        if may_count is not None and not may_count(each.max_time, each.min_time):
            continue
        path = f"{folder}/{each.name}"
        if each.name not in history.names:
            raise FileMissingError("The manifest of the archived timeline names it.", path=path)
        yield path


def _parse_files(
    files: TableFiles, paths: Sequence[str], parse: Callable[[bytes], list[ArchivedInstant]]
) -> list[list[ArchivedInstant]]:
    def read(path: str) -> list[ArchivedInstant]:
        with locate_errors(path=path):
            return parse(read_bounded(files, path, "archive_bytes"))

    if len(paths) < 2:
        return [read(path) for path in paths]
    with ThreadPoolExecutor(min(_READ_THREADS, len(paths)), "hoodie-archive") as pool:
        return list(pool.map(carry_span(read), paths))
