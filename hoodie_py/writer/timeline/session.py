"""One call that writes to a table: its settings, the table's lock and a clock (Hudi ``TransactionManager``).

Every decision about the timeline is made under the lock, from a snapshot that was loaded under the lock.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

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
from hoodie_py.writer.timeline.clock import InstantClock
from hoodie_py.writer.timeline.timeline_writer import TimelineWriter

if TYPE_CHECKING:
    from hoodie_py.formats.config.table_config import TableConfig
    from hoodie_py.reader.merge.merger import Merger

RUN_ID = "hoodie_py.run"
"""Extra metadata of a commit: the run that made it. Thus no two commits have the same bytes."""
PLAN_ID = "hoodie_py.plan"
"""Extra metadata of a plan, for the same purpose."""


@dataclass(slots=True)
class Looks:
    """The last snapshot that a session loaded."""

    last: Snapshot | None = None


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
