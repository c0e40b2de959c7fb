"""Decides whether a missing log file held rows that a snapshot must show (table version 6 and below).

Up to version 6 the name of a log file has the slice's base instant, not the instant of the commit that wrote it. So a
slice's listing may include log files of unfinished writes, and a rollback of such a write deletes them. A reader needs
none of their rows. Only the commits' write statistics distinguish such a file from a lost one. They are read only if a
log file is missing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from hoodie_py.files import TableFiles
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.timeline.commit_metadata import CommitMetadata
from hoodie_py.reader.file_slice import BlockRules, LogFile
from hoodie_py.table.timeline.loader import TableTimeline


@dataclass(frozen=True, slots=True)
class CommittedLogs:
    """Distinguishes log files of completed commits from those of unfinished writes, as of a snapshot; picklable."""

    files: TableFiles
    config: TableConfig
    rules: BlockRules

    def find_committed(self, log_files: Collection[LogFile]) -> set[str]:
        """Return the paths of the log files that a completed commit names.

        If a commit of the snapshot is no longer on any timeline, the answer is unknown, and all paths are returned.

        Raises:
            InvalidTableError: the timeline is broken.
            StorageError: the timeline cannot be read.
        """
        wanted = {log.path for log in log_files}
        oldest = min((log.name.instant for log in log_files), default="")
        timeline = TableTimeline.load(self.files, self.config)
        if self._has_lost_commit(timeline, oldest):
            return wanted
        found: set[str] = set()
        for metadata in self._iterate_commits(timeline, oldest):
            found.update(
                stat.path for stat in metadata.iterate_stats() if stat.path is not None and stat.path in wanted
            )
            if found == wanted:
                break
        return found

    def _has_lost_commit(self, timeline: TableTimeline, oldest: str) -> bool:
        """Say whether a commit of the snapshot is no longer on any timeline, after a rollback or a restore."""
        counted = {time for time in self.rules.completed or () if time >= oldest}
        gone = counted - {each.request_time for each in timeline.list_completed_writes()}
        return bool(gone and gone - timeline.read_archive().completion_times.keys())

    def _iterate_commits(self, timeline: TableTimeline, oldest: str) -> Iterator[CommitMetadata]:
        """Yield metadata of the commits that may have written to slices from ``oldest`` on, newest first."""
        for instant in reversed(timeline.list_completed_writes()):
            if instant.request_time >= oldest and self.rules.accepts(instant.request_time):
                yield timeline.read_metadata(instant)
        first = timeline.first_active_time
        if first is not None and oldest < first:
            for time, metadata in timeline.read_archive().iterate_writes_back_from(first):
                if time < oldest:
                    return
                if self.rules.accepts(time):
                    yield metadata
