"""Parse and format dates and timestamps by Spark's rules (``SparkDateTimeUtils``), over the whole range of both types.

A date is a number of days since 1970-01-01, a timestamp a number of microseconds since 1970-01-01T00:00:00. The
calendar is the proleptic Gregorian one; Python's ``datetime`` ends at year 9999, so the arithmetic is done here. Words
such as ``now``, and times without a date, are refused: their value would depend on the day of the query.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import NamedTuple
from zoneinfo import ZoneInfo

MICROS_PER_SECOND = 1_000_000
MICROS_PER_DAY = 86_400 * MICROS_PER_SECOND

#: The characters that Spark's UTF8String.trimAll removes from both ends.
BLANKS = "".join(map(chr, range(33))) + "\x7f"

_DATE = re.compile(r"([+-]?)(\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?", re.ASCII | re.DOTALL)
_TIMESTAMP = re.compile(
    r"([+-]?)(\d{4,6})(?:-(\d{1,2})(?:-(\d{1,2})"
    r"(?:[ T](\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?(?P<zone>\s*[^\s\d.:].*)?)?)?)?)?)?",
    re.ASCII | re.DOTALL,
)
_TIME_ALONE = re.compile(r"T?\d{1,2}:", re.ASCII)
_MOMENT = re.compile(r"(?:epoch|now|today|tomorrow|yesterday)(?:\s.*)?", re.ASCII | re.IGNORECASE)
_OFFSET = re.compile(
    r"(?:UTC|GMT|UT)?(?:([+-])(?:(\d{1,2})(?::(\d{1,2})(?::(\d{2}))?)?|(\d{2})(\d{2})(\d{2})?))?", re.ASCII
)
_REGION = re.compile(r"[A-Za-z]{2,20}(?:/[A-Za-z_+\-0-9]{1,30}){1,2}")


def parse_date(text: str) -> int | None:
    """Parse ``yyyy``, ``yyyy-[m]m`` or ``yyyy-[m]m-[d]d`` (a blank or T and more may follow); None if not a date."""
    match = _DATE.fullmatch(text.strip(BLANKS))
    if match is None:
        return None
    sign, year, month, day = match.groups()
    return _count_days(int(sign + year), int(month or 1), int(day or 1))


def parse_timestamp(text: str, *, zoned: bool) -> int | None:
    """Parse a date with an optional time and zone; None if the text is not a timestamp.

    If ``zoned``, a zone shifts the result to UTC; otherwise it is only checked.
    """
    found = split_timestamp(text)
    if found is None:
        return None
    micros = found.clock - (found.offset or 0 if zoned else 0)
    return micros if -(2**63) <= micros < 2**63 else None


class TimestampText(NamedTuple):
    """The clock time in a text, and the UTC offset of the zone in it, in microseconds; None without a zone."""

    clock: int
    offset: int | None


def split_timestamp(text: str) -> TimestampText | None:
    """Parse a date with an optional time and zone; None if the text is not a timestamp."""
    match = _TIMESTAMP.fullmatch(text.strip(BLANKS))
    if match is None:
        return None
    sign, year, month, day, hour, minute, second, fraction = match.groups()[:8]
    days = _count_days(int(sign + year), int(month or 1), int(day or 1))
    hours, minutes, seconds = int(hour or 0), int(minute or 0), int(second or 0)
    if days is None or hours > 23 or minutes > 59 or seconds > 59:
        return None
    micros = days * MICROS_PER_DAY + (hours * 3600 + minutes * 60 + seconds) * MICROS_PER_SECOND
    micros += int(((fraction or "") + "000000")[:6])
    if match["zone"] is None:
        return TimestampText(micros, None) if -(2**63) <= micros < 2**63 else None
    offset = _find_zone_offset(match["zone"].strip(BLANKS), micros)
    return None if offset is None else TimestampText(micros, offset * MICROS_PER_SECOND)


def may_be_timestamp(text: str) -> bool:
    """Say whether Spark may accept a text that ``split_timestamp`` refuses: a time of today, or a zone unknown here."""
    plain = text.strip(BLANKS)
    match = _TIMESTAMP.fullmatch(plain)
    return _TIME_ALONE.match(plain) is not None or (match is not None and match["zone"] is not None)


def names_moment(text: str) -> bool:
    """Say whether a text names a day or time relative to now, as Spark's constants may."""
    return _MOMENT.fullmatch(text.strip(BLANKS)) is not None


def format_date(days: int) -> str:
    """Print a date as ``yyyy-MM-dd``; a year above 9999 has a plus sign, one before 0 a minus."""
    year, month, day = _to_calendar_date(days)
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04d}-{month:02d}-{day:02d}"


def format_timestamp(micros: int) -> str:
    """Print a timestamp as ``yyyy-MM-dd HH:mm:ss`` with as many decimals as needed."""
    days, rest = divmod(micros, MICROS_PER_DAY)
    seconds, fraction = divmod(rest, MICROS_PER_SECOND)
    decimals = f".{fraction:06d}".rstrip("0") if fraction else ""
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{format_date(days)} {clock}{decimals}"


def _find_zone_offset(zone: str, micros: int) -> int | None:
    """Return a zone's offset from UTC in seconds at a local time; None if Spark does not know the zone."""
    if zone == "Z":
        return 0
    match = _OFFSET.fullmatch(zone)
    if match is not None:
        sign = match[1]
        hours, minutes, seconds = (int(match[i] or match[i + 3] or 0) for i in (2, 3, 4))
        offset = hours * 3600 + minutes * 60 + seconds
        valid = minutes < 60 and seconds < 60 and offset <= 18 * 3600
        return None if not valid else -offset if sign == "-" else offset
    return _find_region_offset(zone, micros)


def _find_region_offset(zone: str, micros: int) -> int | None:
    year, month, day = _to_calendar_date(micros // MICROS_PER_DAY)
    if _REGION.fullmatch(zone) is None or not 1 < year < 9999:
        return None
    seconds = micros % MICROS_PER_DAY // MICROS_PER_SECOND
    try:
        info = ZoneInfo(zone)
    except (LookupError, ValueError, OSError):
        return None
    local = datetime(year, month, day, seconds // 3600, seconds // 60 % 60, seconds % 60, tzinfo=info)
    offset = local.utcoffset()
    return None if offset is None else int(offset.total_seconds())


def _count_days(year: int, month: int, day: int) -> int | None:
    """Count the days since 1970-01-01; None if the calendar has no such day, or int32 cannot hold the number."""
    if not 1 <= month <= 12 or not 1 <= day <= _count_month_days(year, month):
        return None
    shifted = year - (month <= 2)  # years begin in March here, so that the leap day is the last day of a year
    era, year_of_era = divmod(shifted, 400)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    days = era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468
    return days if -(2**31) <= days < 2**31 else None


def _to_calendar_date(days: int) -> tuple[int, int, int]:
    """Return year, month and day: the inverse of ``_count_days``."""
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted_month + 2) // 5 + 1
    month = (shifted_month + 2) % 12 + 1
    return year_of_era + era * 400 + (month <= 2), month, day


def _count_month_days(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31
