"""Convert between instants and the clock times of a time zone, over the whole range of timestamps.

The rules are Java's (``ZonedDateTime.of``, ``LocalDate.atStartOfDay``), with which Spark computes: of a clock time that
occurs twice the first is taken, a skipped one is shifted by as much as the clocks moved, and a day whose midnight is
skipped begins with its first instant.

A zone's changes are looked up year by year, only for the years of the values. Times before year 3 and after year 9600
are outside Python's range: early ones have the zone's first offset, late ones are shifted back by cycles of 400 years,
in which the calendar repeats with the same days of the week.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt

from hoodie_py.errors import InvalidQueryError, UnsupportedFeatureError

UTC_ZONE = "UTC"
_SECOND = 1_000_000
_DAY = 86_400 * _SECOND
_CYCLE = 146_097 * _DAY  # 400 years
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_YEAR, _LAST_YEAR = 3, 9600
_SAFE = 2**63 - 3 * _DAY  # beyond it, the time in another zone may not fit
_UTC_NAMES = frozenset({"UTC", "GMT", "UT", "Z", "Etc/UTC", "Etc/GMT", "Etc/UCT", "Etc/Zulu", "Etc/Universal"})
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?", re.ASCII)
#: Names that have another meaning in Java (``ZoneId.SHORT_IDS``).
_JAVA_SHORT_NAMES = frozenset({
    "EST", "MST", "HST", "ACT", "AET", "AGT", "ART", "AST", "BET", "BST", "CAT", "CNT", "CST", "CTT", "EAT", "ECT",
    "IET", "IST", "JST", "MIT", "NET", "NST", "PLT", "PNT", "PRT", "PST", "SST", "VST",
})  # fmt: skip
Times = npt.NDArray[np.int64]


class _Changes(NamedTuple):
    """Instants of changes, ascending, and the offsets before and after them, all in microseconds."""

    at: Times
    before: Times
    after: Times


@lru_cache(maxsize=64)
def find_zone(name: str) -> ZoneInfo | timedelta:
    """Return a zone by its name or offset in Java's spelling; a fixed offset is a ``timedelta``.

    Raises:
        UnsupportedFeatureError: the name is not known here; Java may know it.
    """
    if name in _UTC_NAMES:
        return timedelta(0)
    match = _OFFSET.fullmatch(name)
    if match is not None:
        hours, minutes, seconds = (int(each or 0) for each in match.groups()[1:])
        offset = timedelta(hours=hours, minutes=minutes, seconds=seconds)
        if minutes < 60 and seconds < 60 and offset <= timedelta(hours=18):
            return -offset if match[1] == "-" else offset
    elif name not in _JAVA_SHORT_NAMES:
        try:
            return ZoneInfo(name)
        except (LookupError, ValueError, OSError):
            pass
    raise UnsupportedFeatureError(
        f"The time zone {name!r} for filters.", hint="Use the name of a region, such as 'Europe/Berlin', or 'UTC'."
    )


def is_fixed(name: str) -> bool:
    """Say whether a zone has one offset for all times."""
    return isinstance(find_zone(name), timedelta)


def to_clock(instants: Times, name: str) -> Times:
    """Return the zone's clock times at instants, both in microseconds since 1970.

    Raises:
        InvalidQueryError: a time is at the end of the range.
    """
    return instants + _find_offsets(instants, name, by_clock=False)


def to_instants(clock: Times, name: str) -> Times:
    """Return the instants of the zone's clock times. Raises as ``to_clock``."""
    return clock - _find_offsets(clock, name, by_clock=True)


def start_days(days: Times, name: str) -> Times:
    """Return the first instants of days, given as days since 1970. Raises as ``to_clock``."""
    if len(days) and int(np.abs(days).max()) > _SAFE // _DAY:
        raise InvalidQueryError("A date is out of the range of timestamps.")
    clock = days * _DAY
    found = to_instants(clock, name)
    shown = to_clock(found, name)
    skipped = np.flatnonzero(shown != clock)
    for at in skipped.tolist():  # midnights that the clocks skip: rare
        changes = _find_changes(name, found[at : at + 1])
        real = changes.at[changes.before != changes.after]
        found[at] = real[np.searchsorted(real, found[at], "right") - 1]
    return found


def _find_offsets(times: Times, name: str, *, by_clock: bool) -> Times:
    """Return the zone's offsets at instants, or at clock times."""
    zone = find_zone(name)
    if len(times) and max(-int(times.min()), int(times.max())) > _SAFE:
        raise InvalidQueryError(f"A timestamp is at the end of the range, where the zone {name} cannot be applied.")
    if isinstance(zone, timedelta):
        return np.full(len(times), zone // timedelta(microseconds=1), np.int64)
    folded = _fold(times)
    changes = _find_changes(name, folded)
    starts = changes.at
    if by_clock:  # keep it ascending: a change may be within hours of the beginning of a year
        starts = np.maximum.accumulate(changes.at + np.maximum(changes.before, changes.after))
    offsets: Times = changes.after[np.maximum(np.searchsorted(starts, folded, "right") - 1, 0)]
    return offsets


def _fold(times: Times) -> Times:
    """Move times into the range of Python's years, to times at which zones have the same offsets."""
    low, high = (_count_micros(year) for year in (_FIRST_YEAR, _LAST_YEAR))
    cycles = np.maximum(0, (times - high) // _CYCLE + 1)
    folded: Times = np.maximum(times - cycles * _CYCLE, low)
    return folded


def _find_changes(name: str, times: Times) -> _Changes:
    """Return a zone's changes in the years of some times and in the neighbouring years."""
    years = np.unique(times.astype("M8[us]").astype("M8[Y]").astype(np.int64) + 1970)
    wanted = sorted({near for year in years.tolist() for near in (year - 1, year, year + 1)})
    rows = [row for year in wanted for row in _list_changes(name, year)] or [(0, 0, 0)]
    table = np.array(rows, np.int64)
    return _Changes(table[:, 0], table[:, 1], table[:, 2])


@lru_cache(maxsize=4096)
def _list_changes(name: str, year: int) -> list[tuple[int, int, int]]:
    """Return (instant, offset before, offset after) for the beginning of a year and for each change in it."""
    zone = find_zone(name)
    assert isinstance(zone, ZoneInfo)
    start = datetime(year, 1, 1, tzinfo=UTC)
    days = 366 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 365
    offset = _get_offset(zone, start)
    found = [(_count_micros(year), _get_offset(zone, start - timedelta(seconds=1)), offset)]
    for day in range(1, days + 1):
        now = start + timedelta(days=day)
        # Compares day by day; a difference is then narrowed down to the second.
        if _get_offset(zone, now) != offset:
            low, high = (day - 1) * 86_400, day * 86_400  # seconds; the change is after low, at high or before
            while high - low > 1:
                middle = (low + high) // 2
                is_early = _get_offset(zone, start + timedelta(seconds=middle)) == offset
                low, high = (middle, high) if is_early else (low, middle)
            if high < days * 86_400:  # else it is the beginning of the next year
                after = _get_offset(zone, start + timedelta(seconds=high))
                found.append((_count_micros(year) + high * _SECOND, offset, after))
                offset = after
    return found


def _get_offset(zone: ZoneInfo, instant: datetime) -> int:
    offset = instant.astimezone(zone).utcoffset()
    assert offset is not None
    return offset // timedelta(microseconds=1)


def _count_micros(year: int) -> int:
    return (datetime(year, 1, 1, tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
