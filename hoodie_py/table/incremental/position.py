"""Position: how far a consumer has read a table, as a short text that it stores.

* A position names the table and the time of a commit. All commits up to that time have been read, none after it.
* The time is a completion time or, up to table version 6, a request time, as in ranges of commits.
* The commit must still be in the table's timeline or archive. So a position of a table that was deleted and made again,
  or restored to an earlier state, is an error rather than a gap in the rows.
* A position survives compaction, clustering, cleaning, archiving and an upgrade, which keeps request times.

The text is ``trips@completed:20260102030405678``, ``trips@requested:...`` or, before any commit, ``trips@start``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import quote, unquote

from hoodie_py.errors import InvalidQueryError
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.table.incremental.commit_range import describe_available, get_time
from hoodie_py.table.timeline.loader import TableTimeline

_START, _COMPLETED, _REQUESTED = "start", "completed", "requested"
_TEXT = re.compile(rf"([^@\s]{{1,2000}})@(?:{_START}|({_COMPLETED}|{_REQUESTED}):([0-9]{{1,32}}))")


@dataclass(frozen=True, slots=True)
class Position:
    """A place between two commits of a table.

    ``table``: the table's name with its database. ``time``: of the last commit before the place; empty before the first
    commit. ``by_request_time``: whether it is the commit's request time.
    """

    table: str
    time: str
    by_request_time: bool = False

    def to_text(self) -> str:
        """Return the text that ``parse_position`` reads: printable, on one line and without blanks."""
        table = quote(self.table, safe="")
        if not self.time:
            return f"{table}@{_START}"
        return f"{table}@{_REQUESTED if self.by_request_time else _COMPLETED}:{self.time}"


def identify_table(config: TableConfig) -> str:
    """Return the table's name in positions: after its database, if it has one."""
    return f"{config.database}.{config.name}" if config.database else config.name


def is_position(text: object) -> bool:
    """Say whether a value has the form of a position's text, which no time has."""
    return isinstance(text, str) and "@" in text


def parse_position(text: str, config: TableConfig) -> Position:
    """Read the text of a position of the table.

    Raises:
        InvalidQueryError: the text is not a position, or a position of another table.
    """
    match = _TEXT.fullmatch(text)
    if match is None:
        raise InvalidQueryError(
            f"{text[:100]!r} is no position in a table.",
            hint="Give the text as it was handed out, such as 'trips@completed:20260102030405678'.",
        )
    position = Position(unquote(match[1]), match[3] or "", match[2] == _REQUESTED)
    own = identify_table(config)
    if position.table != own:
        raise InvalidQueryError(
            f"The position is of the table {position.table[:100]!r}, not of {own!r}.",
            hint="Give a position of this table, or start with 'earliest' or a time.",
        )
    return position


def locate_position(position: Position, timeline: TableTimeline, by_request_time: bool) -> str:
    """Return the start of the range of commits that continues at a position; empty for the beginning.

    ``by_request_time``: which times the range compares. They differ from the position's after an upgrade.

    Raises:
        InvalidQueryError: the table does not have the position's commit, or an upgrade changed the order of commits.
    """
    if not position.time:
        return ""
    if not _is_known(position, timeline):
        kind = _REQUESTED if position.by_request_time else _COMPLETED
        raise InvalidQueryError(
            f"The table has no commit that was {kind} at {position.time}, where the position is. It was made anew or "
            "restored since, or its history was deleted.",
            hint=f"Read the table from 'earliest', or from a time. {describe_available(timeline, by_request_time)}",
            table=position.table,
        )
    if position.by_request_time == by_request_time:
        return position.time
    if not by_request_time:
        return _find_completion_time(position, timeline)
    raise InvalidQueryError(
        f"The position {position.time} is a completion time, but commits are compared by request times here.",
        hint=f"Start with a request time. {describe_available(timeline, by_request_time)}",
        table=position.table,
    )


def _is_known(position: Position, timeline: TableTimeline) -> bool:
    active = (get_time(each, position.by_request_time) for each in timeline.list_completed_writes())
    if position.time in active:
        return True
    archived = timeline.read_archive().completion_times
    return position.time in (archived.keys() if position.by_request_time else archived.values())


def _find_completion_time(position: Position, timeline: TableTimeline) -> str:
    """Return the completion time that separates the same commits as the position's request time.

    Raises:
        InvalidQueryError: there is none, as commits completed in another order than they were requested in.
    """
    times = {each.request_time: get_time(each, False) for each in timeline.list_completed_writes()}
    if position.time not in times:
        times = {**timeline.read_archive().completion_times, **times}
    for chosen in (times, _leave_out_services(times, timeline)):
        reached = max((chosen[each] for each in chosen if each <= position.time), default="")
        if all(each <= position.time or time > reached for each, time in chosen.items()):
            return reached
    raise InvalidQueryError(
        f"The position {position.time} is from before the table's upgrade, and commits completed in another order than "
        "they were requested in.",
        hint="Start with a completion time and expect rows of some commits again. "
        + describe_available(timeline, by_request_time=False),
        table=position.table,
    )


def _leave_out_services(times: Mapping[str, str], timeline: TableTimeline) -> dict[str, str]:
    """Return the times without those of compactions and clusterings, which add no rows."""
    services = {
        each.request_time for each in timeline.list_completed_writes() if timeline.read_metadata(each).moves_rows
    }
    return {request: time for request, time in times.items() if request not in services}


def find_last_time(times: Iterable[str], limit: str) -> str:
    """Return the greatest time not after a limit; empty if there is none."""
    return max((each for each in times if each <= limit), default="")
