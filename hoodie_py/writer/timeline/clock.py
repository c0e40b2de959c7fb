"""Instant times: 17 digits of wall-clock time in the table's zone, strictly increasing (Hudi
``HoodieInstantTimeGenerator``, ``SkewAdjustingTimeGenerator``).

A new time must be later than every time on the timeline, or files would sort wrongly. If the timeline is a little ahead
(another machine's clock), the clock waits. If it is further ahead, the call fails with a ``ConflictError`` and may
succeed later. If it is so far ahead that a clock or a zone must be wrong, the call fails with an
``UnsupportedFeatureError``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo

from hoodie_py.errors import ConflictError, HoodieError, UnsupportedFeatureError

DEFAULT_SKEW_MS = 200

_LONGEST_WAIT = timedelta(seconds=5)
_LONGEST_SKEW = timedelta(minutes=10)  # less than the difference of any two time zones
_PRECISION = timedelta(milliseconds=1)


class InstantClock:
    """Makes instant and completion times for one call that writes to a table.

    All writers of a table use the same ``zone``. ``skew_ms``: the largest expected difference of their clocks.
    """

    def __init__(
        self,
        zone: tzinfo = UTC,
        skew_ms: int = DEFAULT_SKEW_MS,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._zone = zone
        self._skew = skew_ms / 1000
        self._now = now
        self._sleep = sleep
        self._last = ""

    def peek(self, beyond: str = "") -> str:
        """Return a time that ``take`` could return; another writer may take the same. Errors as for ``take``."""
        return self._read_later_than(max(beyond, self._last))

    def take(self, beyond: str = "") -> str:
        """Return a new time. Call it while the table's lock is held. ``beyond`` is the latest time on the timeline.

        Raises:
            ConflictError: the timeline is ahead of this machine's clock, by so little that trying again helps.
            UnsupportedFeatureError: it is ahead by more.
        """
        taken = self._read_later_than(max(beyond, self._last))
        self._last = taken
        # The caller holds the lock: after this sleep the next holder's clock is past this time, even if it is behind.
        self._sleep(self._skew)
        return taken

    def _read_later_than(self, bound: str) -> str:
        taken = self._read_digits()
        if taken > bound:
            return taken
        until = _parse_moment(bound)
        here = self._now().astimezone(self._zone).replace(tzinfo=None)
        if until is None or until - here > _LONGEST_WAIT:
            raise _make_behind_error(bound, taken, None if until is None else until - here)
        while taken <= bound:
            self._sleep(_PRECISION.total_seconds())
            taken = self._read_digits()
        return taken

    def _read_digits(self) -> str:
        return _to_digits(self._now().astimezone(self._zone))


def _make_behind_error(bound: str, taken: str, gap: timedelta | None) -> HoodieError:
    problem = f"Writing to a timeline that is ahead of this machine's clock: {bound} is not before {taken}."
    if gap is not None and gap <= _LONGEST_SKEW:
        hint = f"Another writer's clock is ahead. Try again in {gap.seconds + 1} seconds, and set the clocks right."
        return ConflictError(problem, hint=hint)
    return UnsupportedFeatureError(
        problem, hint="Set the clock right. If the table's zone is LOCAL, give the writers' zone as timezone=."
    )


def _to_digits(moment: datetime) -> str:
    return f"{moment:%Y%m%d%H%M%S}{moment.microsecond // 1000:03d}"


def _parse_moment(digits: str) -> datetime | None:
    try:
        whole = datetime.strptime(digits[:14], "%Y%m%d%H%M%S")  # noqa: DTZ007 - digits in the clock's own zone
    except ValueError:
        return None
    return whole + timedelta(milliseconds=int(digits[14:17] or "999"))
