"""Hides commits: shows a timeline as if some of its commits had not completed.

Readers of commits as they land need this for log compactions, which give their own commit time to the rows that they
rewrite, while compactions and clusterings keep it. A range with a log compaction, but without all commits that it
joined, would return rows of earlier commits again. So followers and streams hide the log compactions of a range, and
end it there: base files made later from their rows do not show which commit wrote these.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import replace

from hoodie_py.formats.timeline.instants import INFLIGHT, Instant
from hoodie_py.formats.timeline.timeline import Timeline
from hoodie_py.table.incremental.commit_range import CommitRange, get_time, read_range_metadata
from hoodie_py.table.timeline.loader import TableTimeline


def find_log_compactions(timeline: TableTimeline, commit_range: CommitRange) -> frozenset[Instant]:
    """Return the log compactions of a range; a copy-on-write table has none.

    Raises:
        CorruptFileError: a commit's metadata is damaged.
    """
    if not timeline.config.is_merge_on_read:
        return frozenset()
    found = zip(commit_range.commits, read_range_metadata(timeline, commit_range), strict=True)
    return frozenset(each.instant for each, metadata in found if metadata.is_log_compaction)


def hide_later(
    timeline: Timeline, position: str, by_request_time: bool, without: AbstractSet[Instant] = frozenset()
) -> Timeline:
    """Return a timeline as it was at a position: later writes, and those in ``without``, are unfinished."""

    def hide(instant: Instant) -> Instant:
        later = instant.is_completed and instant.is_write and get_time(instant, by_request_time) > position
        if later or instant in without:
            return replace(instant, state=INFLIGHT, completion_time=None)
        return instant

    return Timeline(map(hide, timeline), timeline.layout, timeline.undone)
