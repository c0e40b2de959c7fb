"""Finds the write statistics of log files, reading only few commits.

The name of a log file shows which commits to read. From table version 8 on it has the request time of the one commit
that wrote the file. Up to version 6 it has the slice's base instant, so any later commit may have added to the file. If
many of those commits were not read yet, there is no answer: reading the log then costs less than reading the commits.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping

from hoodie_py.formats.timeline.commit_metadata import WriteStat
from hoodie_py.formats.timeline.timeline import Instant
from hoodie_py.reader.file_slice import LogFile
from hoodie_py.table.timeline.loader import TableTimeline

_MOST_COMMITS = 64


class LogStats:
    """The write statistics of log files, by the completed writes of the active timeline.

    ``most_commits``: most commits, not read yet, that are read for one log file.
    """

    def __init__(self, timeline: TableTimeline, most_commits: int = _MOST_COMMITS) -> None:
        self._most_commits = most_commits
        self._timeline = timeline
        self._writes = timeline.list_completed_writes()
        self._times = [each.request_time for each in self._writes]
        self._lasting = timeline.known.stats_of_logs if timeline.config.has_logs_named_by_commit else {}
        self._known: dict[str, Mapping[str, tuple[WriteStat, ...]]] = {}

    def find(self, log: LogFile) -> tuple[WriteStat, ...]:
        """Return the statistics of a log file, oldest first; none if the commits that wrote it are not read."""
        known = self._known.get(log.name.instant)
        if known is None:
            self.read_ahead([log])
            known = self._known[log.name.instant]
        return known.get(log.path, ())

    def read_ahead(self, logs: Iterable[LogFile]) -> None:
        """Read the commits of many log files at once.

        Raises:
            InvalidTableError: the file of a commit is gone.
            CorruptFileError: it is damaged.
        """
        writers = {}
        for instant in {log.name.instant for log in logs} - self._known.keys():
            lasting = self._lasting.get(instant)
            if lasting is None:
                writers[instant] = self._find_writers(instant)
            else:
                self._known[instant] = lasting
        self._timeline.read_all_metadata(sorted({each for some in writers.values() for each in some}, key=_get_time))
        for instant, some in writers.items():
            found: dict[str, tuple[WriteStat, ...]] = {}
            for write in some:
                for stat in self._timeline.read_metadata(write).iterate_stats():
                    if stat.path is not None:
                        found[stat.path] = (*found.get(stat.path, ()), stat)
            self._known[instant] = found
            if len(some) == 1 and self._timeline.known.get(some[0]) is not None:
                self._lasting[instant] = found

    def _find_writers(self, instant: str) -> list[Instant]:
        """Return the writes that may have written log files with an instant in their names.

        None are returned if they are too many.
        """
        first = bisect_left(self._times, instant)
        if not self._timeline.config.has_logs_named_by_commit:
            some = self._writes[first:]
            most = self._most_commits
            few = len(some) <= most or sum(not self._timeline.is_known(each) for each in some) <= most
            return some if few else []
        return [each for each in self._writes[first : first + 2] if each.request_time == instant]


def _get_time(instant: Instant) -> str:
    return instant.request_time
