"""Commit metadata that was read, for all states of one table that are loaded one after the other.

The rules:

* Only metadata that cannot become other ones are kept: those of instants whose names are never used again. Since
  timeline layout 2 the name has the completion time. In layout 1 a compaction, a log compaction and a clustering may
  run again at the same time after a rollback, and so may any commit of a metadata table. Other writes take a new time.
* What is kept is bounded, and what was added first is forgotten first.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock

from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.timeline.commit_metadata import CommitMetadata, WriteStat
from hoodie_py.formats.timeline.instants import COMMIT, DELTA_COMMIT, Instant

_MOST_COMMITS = 8192
_MOST_STATS = 1 << 16  # some 1 KB each
_UNKNOWN = "UNKNOWN"  # an empty file, which may still be written


class KnownCommits:
    """Commit metadata by instant, bounded; safe to use from several threads.

    ``stats_of_logs`` has what the one commit of a time said of each file, for log files that are named after it.
    """

    def __init__(self) -> None:
        self.stats_of_logs: dict[str, Mapping[str, tuple[WriteStat, ...]]] = {}
        self._found: dict[Instant, CommitMetadata] = {}
        self._stats = 0
        self._lock = Lock()

    def get(self, instant: Instant) -> CommitMetadata | None:
        """Return the metadata of an instant, if they are kept."""
        return self._found.get(instant)

    def add(self, instant: Instant, metadata: CommitMetadata, config: TableConfig) -> None:
        """Keep the metadata of a completed instant, if they last and are not too many."""
        size = _count_stats(metadata)
        if size > _MOST_STATS or not _is_lasting(instant, metadata, config):
            return
        with self._lock:
            if instant in self._found:
                return
            self._found[instant] = metadata
            self._stats += size
            while self._stats > _MOST_STATS or len(self._found) > _MOST_COMMITS:
                oldest = next(iter(self._found))
                self._stats -= _count_stats(self._found.pop(oldest))
                self.stats_of_logs.pop(oldest.request_time, None)


def _count_stats(metadata: CommitMetadata) -> int:
    return sum(map(len, metadata.write_stats.values())) + sum(map(len, metadata.replaced_file_ids.values()))


def _is_lasting(instant: Instant, metadata: CommitMetadata, config: TableConfig) -> bool:
    """Say whether the instant's name is never used again."""
    if instant.is_legacy:
        return False
    if config.timeline_layout > 1:
        return True
    plain = instant.action in (COMMIT, DELTA_COMMIT) and not metadata.moves_rows
    return plain and metadata.operation_type != _UNKNOWN and not config.is_metadata_table
