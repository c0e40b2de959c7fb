"""One call that writes to a table: its settings, the table's lock and a clock (Hudi ``TransactionManager``).

Every decision about the timeline is made under the lock, from a snapshot that was loaded under the lock.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING

from hoodie_py.errors import ConflictError, HoodieError, UnsupportedFeatureError
from hoodie_py.files import TableFiles
from hoodie_py.formats.timeline.timeline import Timeline
from hoodie_py.reader.merge.registry import is_merger_of
from hoodie_py.runtime.telemetry import watch
from hoodie_py.table.snapshot import Snapshot, open_snapshot
from hoodie_py.table.timeline.time_travel import parse_zone
from hoodie_py.writer.lock.choice import choose_lock, read_wait_seconds
from hoodie_py.writer.lock.lock import HeldLock, Lock, NoLock, hold
from hoodie_py.writer.lock.machine import MachineLock
from hoodie_py.writer.settings import WriteSettings
from hoodie_py.writer.timeline.timeline_writer import TimelineWriter

if TYPE_CHECKING:
    from hoodie_py.formats.config.table_config import TableConfig
    from hoodie_py.reader.merge.merger import Merger

RUN_ID = "hoodie_py.run"
"""Extra metadata of a commit: the run that made it. Thus no two commits have the same bytes."""
PLAN_ID = "hoodie_py.plan"
"""Extra metadata of a plan, for the same purpose."""

_DEFAULT_SKEW_MS = 200

_LONGEST_WAIT = timedelta(seconds=5)
_LONGEST_SKEW = timedelta(minutes=10)  # less than the difference of any two time zones
_PRECISION = timedelta(milliseconds=1)


@dataclass(slots=True)
class Looks:
    """The last snapshot that a session loaded, and the last one that it loaded after it completed an instant."""

    last: Snapshot | None = None
    after_commit: Snapshot | None = None

    def find_after(self, instant: str | None) -> Snapshot | None:
        """Return the table right after an instant was completed; None if the session has looked again since.

        Table services look before they change the table, so the last look may lack what they planned or did.
        """
        known = self.after_commit if self.last is self.after_commit else None
        found = None if known is None or instant is None else known.timeline.find(instant)
        return known if found is not None and found.is_completed else None


@dataclass(frozen=True, slots=True)
class WriteSession:
    """What a writing call works with.

    Attributes:
        files: the table's files.
        timezone: zone of new instants if the table's zone is LOCAL; None for UTC.
        settings: the options of the call.
        clock: makes the instants.
        lock: the table's lock.
        multi_writer: whether the options declare other writers, or name a lock that others may share.
        looks: the last snapshot, which the next look starts from.
        merger: the merger that the caller gave.
    """

    files: TableFiles
    timezone: str | None
    settings: WriteSettings
    clock: InstantClock
    lock: Lock
    multi_writer: bool = False
    looks: Looks = field(default_factory=Looks, compare=False, repr=False)
    merger: Merger | None = field(default=None, compare=False, repr=False)

    @classmethod
    def open(
        cls,
        snapshot: Snapshot,
        *,
        options: Mapping[str, object] | None = None,
        strategy: str | None = None,
        lock: Lock | None = None,
        merger: Merger | None = None,
    ) -> WriteSession:
        """Prepare a call; nothing is written yet.

        ``strategy``, of a compaction, and the caller's own ``lock`` take precedence over the options. ``merger``
        decides wherever the call reads, builds or folds.

        Raises:
            InvalidQueryError: an option's value is out of range, or the time zone is unknown.
            UnsupportedFeatureError: a lock provider that is not handled.
        """
        settings = WriteSettings.from_options(options, strategy)
        zone = parse_zone(snapshot.timezone, snapshot.config.timezone)
        clock = InstantClock(zone, settings.clock_skew_ms)
        chosen = choose_lock(settings.options, snapshot.files, lock)
        others = settings.multi_writer or not isinstance(chosen, MachineLock | NoLock)
        return cls(snapshot.files, snapshot.timezone, settings, clock, chosen, others, Looks(snapshot), merger)

    def find_own_merger(self, config: TableConfig) -> Merger | None:
        """Return the caller's merger if it is the table's own, else None: indexes and logs are stored as all readers
        merge.
        """
        return self.merger if self.merger is not None and is_merger_of(self.merger, config) else None

    def look(self) -> Snapshot:
        """Load the current table. What an earlier look has loaded is not read again."""
        found = open_snapshot(self.files, timezone=self.timezone, earlier=self.looks.last)
        self.looks.last = found
        return found

    @contextmanager
    def hold_lock(self) -> Iterator[HeldLock]:
        """Hold the table's lock.

        Raises:
            ConflictError: another writer holds it, or this one lost it.
        """
        with hold(self.lock, read_wait_seconds(self.settings.options), watch("lock", self.files)) as holding:
            yield holding

    def open_timeline(self, snapshot: Snapshot) -> TimelineWriter:
        """Return the writer of the table's timeline files."""
        return TimelineWriter(self.files, snapshot.config)


def find_newest_time(timeline: Timeline) -> str:
    """Return the latest request or completion time on a timeline, "" for an empty one."""
    return timeline.newest_time


class InstantClock:
    """Makes instant and completion times for one call that writes to a table.

    Instant times are 17 digits of wall-clock time in the table's zone, strictly increasing (Hudi
    ``HoodieInstantTimeGenerator``, ``SkewAdjustingTimeGenerator``). A new time must be later than every time on the
    timeline, or files would sort wrongly. If the timeline is a little ahead (another machine's clock), the clock waits.
    If it is further ahead, the call fails with a ``ConflictError`` and may succeed later. If it is so far ahead that a
    clock or a zone must be wrong, the call fails with an ``UnsupportedFeatureError``.

    All writers of a table use the same ``zone``. ``skew_ms``: the largest expected difference of their clocks.
    """

    def __init__(
        self,
        zone: tzinfo = UTC,
        skew_ms: int = _DEFAULT_SKEW_MS,
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
