"""Resolves a commit given as the start or end of a range: the result of a write, an instant, or its request time.

From table version 8 on ranges compare completion times. A request time in their place would include the commit itself,
as it completed later. Java 1.2.0 does so, and so do its options here. In arguments the request time of a commit means
that commit, and so does an object that has its times. A time at which a commit completed stays that time, even if
another commit was requested in the same millisecond: rows may come again there, but none is left out.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Protocol

from hoodie_py.errors import InvalidQueryError
from hoodie_py.table.incremental.commit_range import compares_request_times, is_asked_as_java
from hoodie_py.table.timeline.loader import TableTimeline
from hoodie_py.table.timeline.time_travel import AsOf

_SHORTEST = 14  # digits of an instant; shorter numbers, such as 000, stand for no commit


class CommitResult(Protocol):
    """What a change of the table returned, with the commit's request time and completion time."""

    @property
    def instant(self) -> str | None:
        """Request time of the commit; None if nothing was committed."""

    @property
    def completion_time(self) -> str | None:
        """When it completed."""


class TimelineInstant(Protocol):
    """An instant of ``table.timeline``."""

    @property
    def request_time(self) -> str:
        """When it was requested."""

    @property
    def completion_time(self) -> str | None:
        """When it completed."""


Commit = CommitResult | TimelineInstant
RangeEnd = AsOf | Commit


def find_time(timeline: TableTimeline, value: RangeEnd | None, options: Mapping[str, str]) -> AsOf | None:
    """Return the time of a commit that the table's ranges compare; other values unchanged.

    Raises:
        InvalidQueryError: a result without a commit, an instant that has not completed, or something else.
    """
    if value is None or isinstance(value, (str, int, datetime.date)):
        if value is None or is_asked_as_java(options) or compares_request_times(timeline.config, options):
            return value
        return _find(timeline, value)
    request_time = getattr(value, "request_time", None) or getattr(value, "instant", None)
    if not isinstance(request_time, str):
        raise InvalidQueryError(
            f"{value!s:.200} names no commit.", hint="Give a time, an instant, or the result of a write that wrote."
        )
    if compares_request_times(timeline.config, options):
        return request_time
    completed = getattr(value, "completion_time", None)
    if not isinstance(completed, str):
        raise InvalidQueryError("The commit has not completed.", instant=request_time)
    return completed


def _find(timeline: TableTimeline, value: str | int | datetime.date) -> AsOf:
    """Return the completion time of the commit requested at a time; the time itself if there is none."""
    text = str(value)
    if not (text.isascii() and text.isdecimal()):
        return value
    writes = timeline.list_completed_writes()
    if any(each.completion_time == text for each in writes):
        return value
    known = next((each.completion_time for each in writes if each.request_time == text), None)
    may_be_archived = timeline.is_archived_before(text) and len(text) >= _SHORTEST
    if known is None and not may_be_archived:
        return value
    # A commit that completed in the millisecond of the other's request may be in the archive by now.
    archived = timeline.read_archive().completion_times
    if text in archived.values():
        return value
    return known or archived.get(text) or value
