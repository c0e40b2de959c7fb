"""Builds the file slices of a file group, and finds the slice that a query reads at an instant.

The rules (Hudi ``HoodieFileGroup``, ``AbstractTableFileSystemView``, ``CompletionTimeQueryView``):

* The keys of slices are instants: of the group's committed base files, of a pending compaction that plans the group,
  and, for log files without an earlier key, the instant in the log file's name.
* A log file belongs to the greatest key that is not later than the *completion* of the commit that wrote it. Up to
  version 6 the name of a log file has the slice's base instant, which is the key.
* Files of commits that never completed, or were rolled back, do not count. Nor does the partial output of a running
  compaction or clustering. Uncommitted base files make no key. So a completed log file that was written at the same
  time stays with the committed slice below it. (Hudi 1.2.0 assigns it to the uncommitted base file and loses both.)
* A query at instant Q reads the slice with the greatest key <= Q. If that is the key of the pending compaction, the
  query also reads the next lower slice: its base file, and the log files of both slices.
* From version 8 on, log files of commits later than Q are left out. Below version 8 the reader leaves out their blocks
  instead.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass, field

from hoodie_py.reader.file_slice import BaseFile, FileSlice, LogFile
from hoodie_py.table.view.file_groups import FileGroup
from hoodie_py.table.view.visibility import Visibility


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


def make_slice(group: FileGroup, commits: Visibility, query_instant: str | None = None) -> FileSlice | None:
    """Return the slice of ``group`` that a query reads at ``query_instant`` (None: now); None without visible files."""
    pending = commits.find_pending_compaction(group.key)
    if pending is None and not group.log_files and len(group.base_files) == 1:  # the fast path, for most groups
        [only] = group.base_files
        visible = commits.is_committed(only.instant) and (query_instant is None or only.instant <= query_instant)
        return FileSlice(group.partition_path, group.file_id, only.instant, only, ()) if visible else None
    keyed = _group_by_key(group, commits)
    key = keyed.keys[-1] if query_instant is None and keyed.keys else keyed.find_greatest(query_instant or "")
    if key is None:
        return None
    base_instant, base, logs = key, keyed.bases.get(key), list(keyed.logs.get(key, ()))
    if key == pending:
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


def make_all_slices(group: FileGroup, commits: Visibility) -> list[FileSlice]:
    """Return every slice of ``group`` that a query may read, oldest first, with only the files that count.

    The slice of a pending compaction has the log files written since its plan, possibly none.
    """
    keyed = _group_by_key(group, commits)
    found = []
    for key in keyed.keys:
        logs = sorted(keyed.logs.get(key, ()), key=lambda log: log.name.sort_key)
        found.append(FileSlice(group.partition_path, group.file_id, key, keyed.bases.get(key), tuple(logs)))
    return found


def find_base_file(group: FileGroup, commits: Visibility, query_instant: str | None = None) -> BaseFile | None:
    """Return the newest committed base file at ``query_instant``, which a read-optimised query reads."""
    bases = _find_committed_bases(group, commits)
    visible = [instant for instant in bases if query_instant is None or instant <= query_instant]
    return bases[max(visible)] if visible else None


def _find_committed_bases(group: FileGroup, commits: Visibility) -> dict[str, BaseFile]:
    by_instant: dict[str, list[BaseFile]] = {}
    pending = commits.find_pending_compaction(group.key)
    for base in group.base_files:
        if base.instant != pending and commits.is_committed(base.instant):
            by_instant.setdefault(base.instant, []).append(base)
    return {
        instant: files[0] if len(files) == 1 else commits.pick_base_file(group.partition_path, files)
        for instant, files in by_instant.items()
    }


def _group_by_key(group: FileGroup, commits: Visibility) -> _SlicesByKey:
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


def _find_key(instant: str, keyed: _SlicesByKey, commits: Visibility) -> str:
    if not keyed.keys:
        return instant
    newest = keyed.keys[-1]
    completed = instant if newest <= instant else commits.find_completion_time(instant, newest)
    return keyed.find_greatest(completed) or instant
