"""The history of timeline layout 2: an LSM tree of Parquet files (Hudi ``LSMTimelineWriter``, ``LSMTimeline``).

Each archival adds a file of level 0. Once a level has ten files, the oldest are merged into one of the next level.
Every change writes a new manifest, then its number into ``_version_``. Until then a new file does not count, so a
writer may die at any time: the next one replaces the manifest and the files that it left.

The last manifests, and the files that they name, stay for readers that have begun.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pyarrow as pa

from hoodie_py.errors import ConflictError, InvalidTableError, locate_errors
from hoodie_py.files import TableFiles
from hoodie_py.formats.timeline import archive
from hoodie_py.formats.timeline.archive import ArchivedInstant, HistoryFile
from hoodie_py.formats.timeline.instants import CLEAN, CLUSTERING, COMPACTION, LOG_COMPACTION, REPLACE_COMMIT, Instant
from hoodie_py.table.bounded import read_bounded
from hoodie_py.table.timeline.archive import History, load_history, read_manifest
from hoodie_py.writer.archival.active_files import ActiveFiles, ActiveTimeline
from hoodie_py.writer.settings import ArchivalSettings

_THREADS = 16
_LAST_LEVEL = 9  # Java's file names have one digit for the level


@dataclass(frozen=True, slots=True)
class HistoryArchive:
    """Writes the history of a timeline. ``ensure_held`` raises a ConflictError once the table's lock is lost."""

    timeline: ActiveTimeline
    settings: ArchivalSettings
    ensure_held: Callable[[], None]

    @property
    def files(self) -> TableFiles:
        """The table's files."""
        return self.timeline.files

    @property
    def folder(self) -> str:
        """Path of the history."""
        return self.timeline.config.find_history_folder()

    def find_archived(self, active: Sequence[ActiveFiles]) -> set[Instant]:
        """Return the instants that an archival which died has already written. ``active``: oldest first.

        Raises:
            CorruptFileError: the history is damaged.
            StorageError: the history cannot be read.
        """
        oldest = active[0].instant.request_time
        found: set[tuple[str, str, str]] = set()
        for each in load_history(self.files, self.folder).files:
            if each.max_time >= oldest:
                with locate_errors(path=f"{self.folder}/{each.name}"):
                    rows = archive.parse_history_parquet(self._read(each), contents=False)
                found.update((row.request_time, row.action, row.completion_time) for row in rows)
        # By completion time, too: a metadata table's partitions begin with the same few request times at each build.
        instants = (each.instant for each in active)
        return {each for each in instants if (each.request_time, each.action, _find_completion(each)) in found}

    def add(self, active: Sequence[ActiveFiles]) -> str:
        """Add a file of instants, oldest first, and return its path.

        Raises:
            CorruptFileError: an instant's file is too large.
            ConflictError: another writer changed the history, or the lock is lost.
            CommitStateUnknownError: the store did not say whether it wrote a file.
            StorageError: the store refused.
        """
        with ThreadPoolExecutor(min(_THREADS, len(active)), "hoodie-archive") as pool:
            return self.add_instants(list(pool.map(partial(_read_row, self.timeline), active)))

    def add_instants(self, instants: Sequence[ArchivedInstant]) -> str:
        """Add a file of instants with their contents; ``instants`` oldest first, errors as for ``add``."""
        now = load_history(self.files, self.folder)
        name = _choose_name(now, [each.request_time for each in instants], 0)
        added = self._create(now, name, [archive.make_history_rows(instants)])
        self._replace(now, [*now.files, added])
        return f"{self.folder}/{name}"

    def tidy(self) -> None:
        """Merge the files of each level that has enough of them, then remove files that no reader needs.

        Raises:
            CorruptFileError: a file is damaged.
            UnsupportedFeatureError: a file has rows of a newer version.
            ConflictError: another writer changed the history, or the lock is lost.
            StorageError: the store refused.
        """
        merged = 0
        for level in range(_LAST_LEVEL):
            if not self._merge(level):
                break
            merged += 1
        self._remove_old(self.settings.versions + merged)

    def _merge(self, level: int) -> bool:
        now = load_history(self.files, self.folder)
        chosen = choose_merged(now.files, level, self.settings.batch, self.settings.file_bytes)
        if not chosen:
            return False
        name = _choose_name(now, [time for each in chosen for time in (each.min_time, each.max_time)], level + 1)
        batches = (rows for each in chosen for rows in self._iterate_rows(each))
        merged = self._create(now, name, batches)
        self._replace(now, [*(each for each in now.files if each not in chosen), merged])
        return True

    def _iterate_rows(self, file: HistoryFile) -> Iterable[pa.Table]:
        with locate_errors(path=f"{self.folder}/{file.name}"):
            yield from archive.read_history_batches(self._read(file))

    def _read(self, file: HistoryFile) -> bytes:
        return read_bounded(self.files, f"{self.folder}/{file.name}", "archive_bytes")

    def _create(self, now: History, name: str, batches: Iterable[pa.Table]) -> HistoryFile:
        """Write a file that does not count yet."""
        path = f"{self.folder}/{name}"
        made = archive.parse_history_file_name(name)
        if made is None:
            raise InvalidTableError("An instant's time does not fit into the name of a history file.", file=name)
        with tempfile.TemporaryDirectory(prefix="hoodie_py-history-") as place:
            local = Path(place, "history.parquet")
            archive.write_history(str(local), batches)
            if name in now.names:  # left by a writer that died before its manifest
                self.files.delete_with_checksum(path)
            self.files.create_from(path, str(local))
            return replace(made, size=local.stat().st_size)

    def _replace(self, now: History, files: Iterable[HistoryFile]) -> None:
        """Make a new manifest the current one, and check that it still is."""
        number = now.version + 1
        path = f"{self.folder}/{archive.make_manifest_name(number)}"
        listed = tuple(sorted(files, key=lambda each: each.name))
        self.ensure_held()
        if number in now.manifests:  # left by a writer that died before it wrote the number
            self.files.delete_with_checksum(path)
        self.files.put_if_absent(path, archive.encode_manifest(listed))
        if self.files.is_local:
            self.files.delete(f"{self.folder}/.{archive.VERSION_FILE}.crc")  # Hadoop's checksum of the old number
        self.files.put(f"{self.folder}/{archive.VERSION_FILE}", str(number).encode())
        self.ensure_held()
        if read_manifest(self.files, path) != listed:  # this process slept, and another one took over
            raise ConflictError("Another writer archived at the same time.", hint="Try again.", path=path)

    def _remove_old(self, stay: int) -> None:
        now = load_history(self.files, self.folder)
        kept = sorted(now.manifests, reverse=True)[:stay]
        if len(kept) == len(now.manifests):
            return
        named = {each.name for number in kept for each in read_manifest(self.files, now.manifests[number])}
        self.ensure_held()
        # Manifests before files, so that none names a file that is gone.
        for number in sorted(set(now.manifests) - set(kept)):
            self.files.delete_with_checksum(now.manifests[number])
        gone = (name for name in now.names if archive.parse_history_file_name(name) is not None and name not in named)
        for path in map(partial("{}/{}".format, self.folder), sorted(gone)):
            self.files.delete_with_checksum(path)


def _choose_name(now: History, times: Sequence[str], level: int) -> str:
    """Return a name that no file of the history has, on ``level`` or above.

    Several files can contain the same times: each build of a metadata table's partition begins with the same few.
    """
    taken = {each.name for each in now.files}
    for number in range(level, _LAST_LEVEL + 1):
        name = archive.make_history_file_name(times, number)
        if name not in taken:
            return name
    raise InvalidTableError("The history has a file of other instants of these times at each level.", file=name)


def _find_completion(instant: Instant) -> str:
    """Return an instant's completion time as the history stores it."""
    return instant.completion_time or instant.request_time


def _read_row(timeline: ActiveTimeline, active: ActiveFiles) -> ArchivedInstant:
    """Read what the history stores of an instant: its completed file, and the plan of a table service."""
    instant = active.instant
    first = next(iter(active.pending), None)
    action = "" if first is None else first.action
    plan = b""
    if action == CLEAN:
        plan = timeline.read(first)
    elif action in (COMPACTION, LOG_COMPACTION):
        plan = timeline.read(active.requested)
    elif action in (REPLACE_COMMIT, CLUSTERING):
        plan = timeline.read(active.inflight) or timeline.read(active.requested)
    metadata = timeline.read(instant)
    return ArchivedInstant(
        instant.request_time, _find_completion(instant), instant.action, metadata or None, plan or None
    )


def choose_merged(files: Iterable[HistoryFile], level: int, batch: int, most_bytes: int) -> list[HistoryFile]:
    """Return the oldest files of a level, to be merged into one; an empty list if there are too few.

    At most ``batch`` files are chosen, together not much larger than ``most_bytes``.
    """
    of_level = sorted((each for each in files if each.level == level), key=lambda each: each.name)
    if len(of_level) < batch:
        return []
    chosen: list[HistoryFile] = []
    for each in of_level:
        chosen.append(each)
        if len(chosen) >= batch:
            break
        if sum(one.size or 0 for one in chosen) > most_bytes:
            if len(chosen) > 1:
                break
            chosen = []  # this one is large enough
    return chosen if len(chosen) > 1 else []
