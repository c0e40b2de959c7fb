"""Which log files held rows that counted when a snapshot was taken, of those that are gone by now.

Up to table version 6 the name of a log file has the slice's base instant, not that of the commit that wrote it. So a
slice's listing may show log files of writes that have not completed; whoever takes such a write back removes them. To a
reader they say nothing, there or gone. Whether a file that is gone was one of those, only the commits' statistics tell,
which are read only then.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from hoodie_py.files import TableFiles
from hoodie_py.formats.commit_metadata import CommitMetadata
from hoodie_py.formats.table_config import TableConfig
from hoodie_py.reader.file_slice import BlockRules, LogFile
from hoodie_py.table.timeline_loader import TableTimeline


@dataclass(frozen=True, slots=True)
class CommittedLogs:
    """Tells log files that commits of a snapshot wrote from those of writes that had not completed; picklable.

    Args:
        files: the table's files.
        config: its properties.
        rules: which commits had completed.
    """

    files: TableFiles
    config: TableConfig
    rules: BlockRules

    def find_committed(self, log_files: Collection[LogFile]) -> set[str]:
        """Return paths of those log files that a completed commit names; all where a commit is gone since the snapshot.

        Raises:
            InvalidTableError: the timeline is broken.
            StorageError: it cannot be read.
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
        """Whether a commit that counted is on no timeline any more: somebody rolled it back, or restored the table."""
        counted = {time for time in self.rules.completed or () if time >= oldest}
        gone = counted - {each.request_time for each in timeline.list_completed_writes()}
        return bool(gone and gone - timeline.read_archive().completion_times.keys())

    def _iterate_commits(self, timeline: TableTimeline, oldest: str) -> Iterator[CommitMetadata]:
        """Yield what the commits say that may have written to slices of an instant or later, newest first."""
        for instant in reversed(timeline.list_completed_writes()):
            if instant.request_time >= oldest and self.rules.accepts(instant.request_time):
                yield timeline.read_metadata(instant)
        first = timeline.timeline.first_active_time
        if first is not None and oldest < first:
            for time, metadata in timeline.read_archive().iterate_writes_back_from(first):
                if time < oldest:
                    return
                if self.rules.accepts(time):
                    yield metadata
