"""Check that a table can still show an instant of the past (Hudi's ``TimelineUtils.validateTimestampAsOf``).

The rule: an instant is refused if a commit at or before it is unfinished, because the answer could change later, or if
the cleaner no longer keeps the files of that time.
"""

from __future__ import annotations

from hoodie_py.errors import InvalidQueryError
from hoodie_py.table.timeline_loader import TableTimeline

_WRITES = ("commit", "deltacommit", "replacecommit")


def check_travel(timeline: TableTimeline, as_of: str) -> None:
    """Refuse an instant that the table cannot show.

    Raises:
        InvalidQueryError: a commit is unfinished, or files were cleaned.
    """
    unfinished = next(
        (
            each.request_time
            for each in timeline
            if not each.is_completed
            and each.comparable_action in _WRITES
            and each.action not in ("clustering", "compaction", "logcompaction")
        ),
        None,
    )
    if unfinished is not None and as_of >= unfinished:
        raise InvalidQueryError(
            f"As of {as_of} is not settled: the commit {unfinished} has not finished.",
            hint="Ask for an earlier instant, or wait for the commit to finish or be rolled back.",
        )
    retained = timeline.find_earliest_retained()
    if retained is not None and as_of < retained:
        raise InvalidQueryError(
            f"The files of {as_of} were cleaned; the table is kept from {retained} on.",
            hint=f"Ask for {retained} or a later instant.",
        )
