"""Instants as people write them: digits, ISO dates and date-times, datetime objects.

Hudi's HoodieSqlCommonUtils.formatQueryInstant: 14 or 17 digits stand as they are; a date-time without milliseconds
means
the last millisecond of its second, a date its midnight.  Texts without a zone are in the table's zone.
"""

from __future__ import annotations

import datetime
import re

from hoodie_py.errors import InvalidQueryError

AsOf = str | datetime.date | datetime.datetime
_DIGITS = re.compile(r"\d{14}(\d{3})?")
_SECONDS_LENGTH = len("yyyy-MM-dd HH:mm:ss")


def parse_zone(name: str | None, table_zone: str) -> datetime.tzinfo:
    """Return the zone of naive times: the table's own if it says UTC, else the given one, else UTC.

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

    Args:
        value: 14 or 17 digits, ISO date or date-time text, a date or a datetime.
        zone: zone of times that carry none.

    Raises:
        InvalidQueryError: a text that is no instant.
    """
    if isinstance(value, datetime.datetime):
        return _digits(value, zone)
    if isinstance(value, datetime.date):
        return _digits(datetime.datetime.combine(value, datetime.time()), zone)
    text = str(value).strip()
    if _DIGITS.fullmatch(text):
        return text
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidQueryError(
            f"{text!r} is not an instant.",
            hint="Write 14 or 17 digits (yyyyMMddHHmmss[SSS]), 'yyyy-MM-dd' or 'yyyy-MM-dd HH:mm:ss[.SSS]'.",
        ) from error
    if len(text) == _SECONDS_LENGTH:
        moment = moment.replace(microsecond=999_000)
    return _digits(moment, zone)


def _digits(moment: datetime.datetime, zone: datetime.tzinfo) -> str:
    local = moment.astimezone(zone) if moment.tzinfo is not None else moment
    return f"{local:%Y%m%d%H%M%S}{local.microsecond // 1000:03d}"
