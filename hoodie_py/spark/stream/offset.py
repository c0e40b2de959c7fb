"""StreamOffset: how far a stream has read a table, as Spark keeps it in a checkpoint.

A position is a time, like the start of an incremental query: a completion time from table version 8 on, a request time
up to version 6. Everything up to it was read. The offset also names the table and the last commit at or before the
position. A table made anew at the same path does not have that commit, and neither does a table that was restored to an
earlier savepoint. So a checkpoint that does not belong to the table's history is an error, and no rows are skipped.
Java: ``HoodieSourceOffset``, which has only the position.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hoodie_py.errors import InvalidQueryError
from hoodie_py.options.read import STREAM_START
from hoodie_py.table.incremental.commit_range import get_time
from hoodie_py.table.timeline.loader import TableTimeline

BEGINNING = ""
"""The position before all commits."""

_FORMAT = 1
_LONGEST_TIME = 32
_NEW_CHECKPOINT = f"Start the query with another checkpoint; {STREAM_START} says where it begins."


@dataclass(frozen=True, slots=True)
class StreamOffset:
    """A position in the history of a table.

    ``commit``: request time of the last commit at or before the position; None if there is none.
    """

    table: str
    position: str
    by_request_time: bool
    commit: str | None = None

    @classmethod
    def make(cls, timeline: TableTimeline, position: str, by_request_time: bool) -> StreamOffset:
        """Return the offset of a position in a table."""
        return cls(timeline.config.name, position, by_request_time, _find_commit(timeline, position, by_request_time))

    @classmethod
    def from_json(cls, value: Any) -> StreamOffset:
        """Parse an offset that Spark kept.

        Raises:
            InvalidQueryError: the offset was not made by this package.
        """
        if not isinstance(value, Mapping) or value.get("hoodie_py") != _FORMAT:
            raise InvalidQueryError("The checkpoint has offsets of another source.", hint=_NEW_CHECKPOINT)
        said: Any = [value.get(name) for name in ("table", "position", "times", "commit")]
        table, position, times, commit = said
        if not (
            isinstance(table, str)
            and _is_time(position, empty=True)
            and times in ("request", "completion")
            and (commit is None or _is_time(commit))
        ):
            raise InvalidQueryError("An offset of the checkpoint is damaged.", hint=_NEW_CHECKPOINT)
        return cls(table, position, times == "request", commit)

    def to_json(self) -> dict[str, Any]:
        """Return the offset in the form that Spark keeps. Equal offsets give equal texts."""
        return {
            "hoodie_py": _FORMAT,
            "table": self.table,
            "times": "request" if self.by_request_time else "completion",
            "position": self.position,
            "commit": self.commit,
        }

    def check(self, timeline: TableTimeline, by_request_time: bool) -> None:
        """Check that the offset belongs to a table.

        ``by_request_time``: which times the stream compares now.

        Raises:
            InvalidQueryError: the checkpoint is of another table, or of another history of this one.
        """
        name = timeline.config.name
        if self.table != name:
            raise InvalidQueryError(
                f"The checkpoint is of a stream of table {self.table!r}, and this is table {name!r}.",
                hint=_NEW_CHECKPOINT,
            )
        if self.by_request_time != by_request_time:
            raise InvalidQueryError(
                f"The checkpoint counts {_name_times(self.by_request_time)}, but the stream now counts "
                f"{_name_times(by_request_time)}: the table was upgraded, downgraded or made anew, or options changed.",
                hint=_NEW_CHECKPOINT,
                table=name,
            )
        if self.commit is not None and not self._is_known(timeline, self.commit):
            raise InvalidQueryError(
                f"The commit {self.commit}, up to which the stream has read, is not in the table's history: the table "
                "was made anew or restored to an earlier state, or the checkpoint is of another table.",
                hint=_NEW_CHECKPOINT,
                table=name,
            )

    def _is_known(self, timeline: TableTimeline, commit: str) -> bool:
        for instant in timeline.list_completed_writes():
            if instant.request_time == commit:
                return get_time(instant, self.by_request_time) <= self.position
        completed = timeline.read_archive().completion_times.get(commit)
        return completed is not None and (self.by_request_time or completed <= self.position)


def _find_commit(timeline: TableTimeline, position: str, by_request_time: bool) -> str | None:
    """Return the request time of the last commit at or before a position; only the active timeline is searched."""
    before = [
        (get_time(each, by_request_time), each.request_time)
        for each in timeline.list_completed_writes()
        if get_time(each, by_request_time) <= position
    ]
    return max(before)[1] if before else None


def _is_time(value: Any, *, empty: bool = False) -> bool:
    if not isinstance(value, str) or len(value) > _LONGEST_TIME:
        return False
    return (empty and not value) or (value.isascii() and value.isdecimal())


def _name_times(by_request_time: bool) -> str:
    return "request times" if by_request_time else "completion times"
