"""GroupStates: the slice that a file group's rows were read from, before and after each commit.

* The files are those of the listing, sliced as snapshots are (``view.slicing``). So a state is what a snapshot of the
  past would read now, after compactions that have completed since.
* The slice of a pending compaction has no base file yet, so the slice below it belongs to it.
* Log files count if their commit came before. Up to table version 6 a log file may have blocks of several commits;
  there the reader leaves out later blocks. A table that was upgraded since has such log files, too: they have the base
  file's instant in their names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.table.changes.steps import State
from hoodie_py.table.timeline.loader import TableTimeline
from hoodie_py.table.view.file_groups import FileGroup
from hoodie_py.table.view.file_system_view import FileSystemView
from hoodie_py.table.view.slicing import make_all_slices


class GroupStates:
    """The states of one listed file group.

    Positions are completion times, or request times with ``by_request_time``.
    """

    def __init__(
        self, group: FileGroup, view: FileSystemView, timeline: TableTimeline, *, by_request_time: bool
    ) -> None:
        self._group = group
        self._view = view
        self._timeline = timeline
        self._by_request_time = by_request_time
        self._positions: dict[str, str] = {}

    @cached_property
    def _slices(self) -> list[FileSlice]:
        return make_all_slices(self._group, self._view.visibility)

    @cached_property
    def _log_paths(self) -> list[set[str]]:
        return [{log.path for log in each.log_files} for each in self._slices]

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of all files that exist."""
        paths = (*(each.path for each in self._group.base_files), *(each.path for each in self._group.log_files))
        return frozenset(path.rpartition("/")[2] for path in paths)

    def find_before(self, instant: str, position: str) -> State | None:
        """Return the group's state before a commit that began a new slice or ended the group."""
        older = [number for number, each in enumerate(self._slices) if each.base_instant < instant]
        if not older:
            return None
        found = self._complete(older[-1])
        return self._make_state(found, position, inclusive=False)

    def find_log_state(self, paths: Sequence[str], position: str) -> tuple[str, State] | None:
        """Return the slice that has some log files of a commit, as it was when the commit completed, after its key.

        None if one of the files is gone.
        """
        for number, file_slice in enumerate(self._slices):
            if self._log_paths[number].issuperset(paths):
                return file_slice.base_instant, self._make_state(self._complete(number), position, inclusive=True)
        return None

    def _complete(self, number: int) -> FileSlice:
        """Return a slice, joined with the slice below it if it has no base file.

        Such a slice belongs to a pending compaction.
        """
        found = self._slices[number]
        if found.base_file is not None or not number:
            return found
        below = self._complete(number - 1)
        logs = sorted((*below.log_files, *found.log_files), key=lambda log: log.name.sort_key)
        return replace(below, log_files=tuple(logs))

    def _make_state(self, file_slice: FileSlice, position: str, *, inclusive: bool) -> State:
        """Return a slice as it was when the commits up to a position had completed."""
        base = file_slice.base_file
        readable = self._view.make_readable(file_slice)
        if self._view.visibility.logs_carry_base_instant:
            return State(readable)
        logs = tuple(
            log for log in file_slice.log_files if not self._is_later(log.name.instant, position, inclusive=inclusive)
        )
        without: tuple[str, ...] = ()
        if base is not None and any(log.name.instant == base.instant for log in logs):
            writes = (each.request_time for each in self._timeline.list_completed_writes())
            later = (each for each in writes if each > base.instant)
            without = tuple(each for each in later if self._is_later(each, position, inclusive=inclusive))
        return State(replace(readable, log_files=logs), without)

    def _is_later(self, instant: str, position: str, *, inclusive: bool) -> bool:
        own = self._positions.get(instant)
        if own is None:
            completed = None if self._by_request_time else self._timeline.find_completion_time(instant)
            own = self._positions[instant] = completed or instant
        return own > position if inclusive else own >= position
