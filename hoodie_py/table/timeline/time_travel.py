"""Instants of the past: parses them as people write them, and checks that a table can still show them.

Rules of Hudi's ``HoodieSqlCommonUtils.formatQueryInstant``: 14 or 17 digits are an instant, if they are a valid time.
10 digits are seconds and 13 digits milliseconds since 1970. A date-time without milliseconds means the last millisecond
of its second, and a date means its midnight. Times without a zone are in the table's zone. In addition to Hudi, a
date-time may have a zone, and a datetime object means the same as its text.

A table refuses an instant if a commit at or before it is unfinished, because the answer could change later, or if the
cleaner no longer keeps the files of that time (Hudi's ``TimelineUtils.validateTimestampAsOf``).
"""

from __future__ import annotations

import datetime
import re
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING

from hoodie_py.errors import HoodieWarning, InvalidQueryError
from hoodie_py.formats.timeline.instants import COMPLETED_ACTION, SAVEPOINT
from hoodie_py.table.timeline.loader import TableTimeline

if TYPE_CHECKING:
    from hoodie_py.table.timeline.cleans import CleanFacts

_DIGITS = re.compile(r"[0-9]+")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DATE_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{3})?(Z|[+-][0-9]{2}:[0-9]{2})?"
)
_INSTANT_LENGTHS = (14, 17)
_EPOCH_PARTS = {10: 1, 13: 1000}  # digits of an epoch number, and how many of its units make a second
_BEFORE_ALL = ("00000000000000", "00000000000001", "00000000000002")  # Hudi's instants of a bootstrap
_HINT = (
    "Write 14 or 17 digits (yyyyMMddHHmmss[SSS]), 'yyyy-MM-dd', 'yyyy-MM-dd HH:mm:ss[.SSS]', also with a zone, or "
    "seconds (10 digits) or milliseconds (13 digits) since 1970."
)
AsOf = str | int | datetime.date | datetime.datetime


def parse_zone(name: str | None, table_zone: str) -> datetime.tzinfo:
    """Return the zone of naive times: UTC if the table says so or no name is given, else the named zone.

    Raises:
        InvalidQueryError: an unknown zone name.
    """
    if table_zone == "UTC" or name is None:
        return datetime.UTC
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise InvalidQueryError(f"Unknown time zone {name!r}.", hint="Use a name such as 'Europe/Berlin'.") from error


def parse_instant(value: AsOf, zone: datetime.tzinfo) -> str:
    """Return an instant in Hudi's digits.

    ``zone``: zone of naive times, and of the result.

    Raises:
        InvalidQueryError: the value is not an instant.
    """
    if isinstance(value, datetime.datetime):
        return format_instant(_move_to_end_of_second(value) if value.microsecond == 0 else value, zone)
    if isinstance(value, datetime.date):
        return format_instant(datetime.datetime.combine(value, datetime.time()), zone)
    text = str(value)
    try:
        found = _parse_text(text, zone)
    except (ValueError, OverflowError, OSError) as error:
        raise _make_error(text) from error
    if found is None:
        raise _make_error(text)
    return found


def _parse_text(text: str, zone: datetime.tzinfo) -> str | None:
    """Return the instant that a text means; None if the form is unknown, ValueError for an impossible date."""
    if _DIGITS.fullmatch(text):
        return _parse_digits(text, zone)
    if _DATE.fullmatch(text):
        return format_instant(datetime.datetime.fromisoformat(text), zone)
    match = _DATE_TIME.fullmatch(text)
    if match is None:
        return None
    moment = datetime.datetime.fromisoformat(text)
    return format_instant(moment if match[1] else _move_to_end_of_second(moment), zone)


def _parse_digits(text: str, zone: datetime.tzinfo) -> str | None:
    if text in _BEFORE_ALL:
        return text
    if len(text) in _EPOCH_PARTS:
        seconds, rest = divmod(int(text), _EPOCH_PARTS[len(text)])
        return format_instant(datetime.datetime.fromtimestamp(seconds, zone).replace(microsecond=rest * 1000), zone)
    if len(text) not in _INSTANT_LENGTHS:
        return None
    day, time = f"{text[:4]}-{text[4:6]}-{text[6:8]}", f"{text[8:10]}:{text[10:12]}:{text[12:14]}"
    datetime.datetime.fromisoformat(f"{day} {time}")  # fails where there is no such time
    return text


def _move_to_end_of_second(moment: datetime.datetime) -> datetime.datetime:
    return moment.replace(microsecond=999_000)


def format_instant(moment: datetime.datetime, zone: datetime.tzinfo) -> str:
    """Return a moment in Hudi's 17 digits, in a zone; a naive moment is already in that zone."""
    local = moment.astimezone(zone) if moment.tzinfo is not None else moment
    return f"{local:%Y%m%d%H%M%S}{local.microsecond // 1000:03d}"


def _make_error(text: str) -> InvalidQueryError:
    return InvalidQueryError(f"{text[:100]!r} is not an instant.", hint=_HINT)


def check_travel(timeline: TableTimeline, as_of: str) -> list[CleanFacts]:
    """Refuse an instant that the table cannot show; return the cleans that leave the question open.

    Raises:
        InvalidQueryError: a commit is unfinished, or files were cleaned.
    """
    pending = (each for each in timeline.select_pending() if each.is_write)
    unfinished = next((each.request_time for each in pending if each.action not in COMPLETED_ACTION), None)
    if unfinished is not None and as_of >= unfinished:
        raise InvalidQueryError(
            f"As of {as_of} is not settled: the commit {unfinished} has not finished.",
            hint="Ask for an earlier instant, or wait for the commit to finish or be rolled back.",
        )
    if _is_saved(timeline, as_of):
        return []
    from hoodie_py.table.timeline.cleans import may_be_archived, read_active_cleans, read_archived_cleans

    cleans = read_active_cleans(timeline, as_of)
    _check_retained(timeline, cleans, as_of)
    if may_be_archived(timeline, as_of, cleans):
        archived = read_archived_cleans(timeline, as_of)
        _check_retained(timeline, archived, as_of)
        cleans += archived
    return [each for each in cleans if each.retained is None]


def warn_of_empty_past(timeline: TableTimeline, as_of: str) -> None:
    """Warn of an instant before the first commit: as in Java the result has no rows, and nothing else says why."""
    first = next((each.request_time for each in timeline.list_completed_writes()), None)
    if first is None or as_of >= first:
        return
    first = min(timeline.read_archive().completion_times, default=first)
    if as_of < first:
        text = f"{as_of} is before the first commit of table {timeline.config.name}, {first}: there are no rows."
        warnings.warn(HoodieWarning(text), stacklevel=2)


def _check_retained(timeline: TableTimeline, cleans: Iterable[CleanFacts], as_of: str) -> None:
    from hoodie_py.table.timeline.cleans import describe_retention

    named = ((each.retained, each.request_time) for each in cleans if each.retained is not None)
    retained, clean = max(named, default=("", ""))
    if as_of < retained:
        raise InvalidQueryError(
            f"The files of {as_of} were cleaned by {clean}; the table is kept from {retained} on.",
            hint=f"Ask for {retained} or a later instant. {describe_retention(timeline)}",
        )


def _is_saved(timeline: TableTimeline, as_of: str) -> bool:
    """Whether a savepoint has kept the files of exactly this instant from cleans."""
    found = timeline.find(as_of, SAVEPOINT)
    return found is not None and found.is_completed
