"""From a file group to the slice that is read at an instant.

Rules (Hudi ``HoodieFileGroup``, ``AbstractTableFileSystemView``, ``CompletionTimeQueryView``):

* A group's slices are keyed by instants: those of its committed base files, that of the pending compaction which
  plans the group, and, for log files that find no key, the time in their name.
* A log file belongs to the greatest key that is not later than the *completion* of the commit that wrote it. Up to
  version 6 names carry the slice's base instant instead, which is its own key (and stands for its completion time
  as well).
* Files of commits that never completed, or were rolled back, do not count; nor does the partial output of a
  compaction or clustering that is under way. Uncommitted base files make no key, so that a completed log file
  written meanwhile stays with the committed slice below (Hudi 1.2.0 hangs it on the uncommitted base file and loses
  both).
* At query instant Q the greatest key <= Q is read. If that is the pending compaction, it is read together with the
  next lower slice: that one's base file and both slices' log files.
* Log files of later commits than Q are left out where names tell the commit (version 8 on); the others lose their
  blocks later.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from hoodie_py.reader.file_slice import BaseFile, FileSlice, LogFile
from hoodie_py.table.file_groups import FileGroup


class Commits(Protocol):
    """What slicing must know about instants."""

    @property
    def logs_carry_base_instant(self) -> bool:
        """Whether log names carry the slice's base instant (table version below 8)."""

    def is_committed(self, instant: str) -> bool:
        """Whether files written by ``instant`` count."""

    def find_completion_time(self, instant: str, beyond: str) -> str:
        """When ``instant`` completed; any answer up to ``beyond`` serves if it completed before that."""

    def find_pending_compaction(self, key: tuple[str, str]) -> str | None:
        """The compaction that is planned for a file group and has not completed."""

    def pick_base_file(self, partition_path: str, candidates: Sequence[BaseFile]) -> BaseFile:
        """The committed one of several base files that one instant left in a group."""


@dataclass(slots=True)
class _SlicesByKey:
    """Slices under construction: sorted keys, a base file and log files per key."""

    keys: list[str] = field(default_factory=list)
    bases: dict[str, BaseFile] = field(default_factory=dict)
    logs: dict[str, list[LogFile]] = field(default_factory=dict)

    def find_greatest(self, instant: str) -> str | None:
        position = bisect_right(self.keys, instant)
        return self.keys[position - 1] if position else None

    def find_lower(self, key: str) -> str | None:
        position = bisect_left(self.keys, key)
        return self.keys[position - 1] if position else None

    def add_log(self, key: str, log: LogFile) -> None:
        if key not in self.logs and key not in self.bases and key not in self.keys:
            insort(self.keys, key)
        self.logs.setdefault(key, []).append(log)


def make_slice(group: FileGroup, commits: Commits, query_instant: str | None = None) -> FileSlice | None:
    """The slice of ``group`` that is read at ``query_instant`` (None: now), None when nothing of it is visible."""
    keyed = _group_by_key(group, commits)
    key = keyed.keys[-1] if query_instant is None and keyed.keys else keyed.find_greatest(query_instant or "")
    if key is None:
        return None
    base_instant, base, logs = key, keyed.bases.get(key), list(keyed.logs.get(key, ()))
    if key == commits.find_pending_compaction(group.key):
        below = keyed.find_lower(key)
        if below is not None:
            base_instant, base = below, keyed.bases.get(below)
            logs = [*keyed.logs.get(below, ()), *logs]
    if query_instant is not None and not commits.logs_carry_base_instant:
        logs = [log for log in logs if log.name.instant <= query_instant]
    if base is None and not logs:
        return None
    logs.sort(key=lambda log: log.name.sort_key)
    return FileSlice(group.partition_path, group.file_id, base_instant, base, tuple(logs))


def make_all_slices(group: FileGroup, commits: Commits) -> list[FileSlice]:
    """Every slice of ``group`` that some query may read, oldest first; files that do not count are in none.

    The slice of a pending compaction has what was written since, perhaps nothing.
    """
    keyed = _group_by_key(group, commits)
    found = []
    for key in keyed.keys:
        logs = sorted(keyed.logs.get(key, ()), key=lambda log: log.name.sort_key)
        found.append(FileSlice(group.partition_path, group.file_id, key, keyed.bases.get(key), tuple(logs)))
    return found


def find_base_file(group: FileGroup, commits: Commits, query_instant: str | None = None) -> BaseFile | None:
    """The newest committed base file of ``group`` at ``query_instant``: what a read-optimised query reads."""
    bases = _find_committed_bases(group, commits)
    visible = [instant for instant in bases if query_instant is None or instant <= query_instant]
    return bases[max(visible)] if visible else None


def _find_committed_bases(group: FileGroup, commits: Commits) -> dict[str, BaseFile]:
    by_instant: dict[str, list[BaseFile]] = {}
    pending = commits.find_pending_compaction(group.key)
    for base in group.base_files:
        if base.instant != pending and commits.is_committed(base.instant):
            by_instant.setdefault(base.instant, []).append(base)
    return {
        instant: files[0] if len(files) == 1 else commits.pick_base_file(group.partition_path, files)
        for instant, files in by_instant.items()
    }


def _group_by_key(group: FileGroup, commits: Commits) -> _SlicesByKey:
    bases = _find_committed_bases(group, commits)
    pending = commits.find_pending_compaction(group.key)
    keyed = _SlicesByKey(sorted({*bases, *((pending,) if pending else ())}), bases)
    for log in group.log_files:
        instant = log.name.instant
        if instant in bases or instant == pending:
            keyed.add_log(instant, log)
        elif commits.is_committed(instant):
            keyed.add_log(_find_key(instant, keyed, commits), log)
    return keyed


def _find_key(instant: str, keyed: _SlicesByKey, commits: Commits) -> str:
    if not keyed.keys:
        return instant
    newest = keyed.keys[-1]
    completed = instant if newest <= instant else commits.find_completion_time(instant, newest)
    return keyed.find_greatest(completed) or instant
