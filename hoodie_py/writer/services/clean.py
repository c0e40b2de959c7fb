"""Remove file slices that no query needs any more (Hudi ``CleanActionExecutor``).

A clean saves its plan, deletes the files, and completes by ``commit_protocol``. To delete a file twice is no error, so
the next clean, this package's or Java's, continues an interrupted one by its plan.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from hoodie_py.errors import ConflictError, HoodieError
from hoodie_py.files import TableFiles, list_removable
from hoodie_py.formats.timeline.instants import CLEAN, INFLIGHT, REQUESTED, Instant
from hoodie_py.formats.timeline.plans import CleanedPartition, CleanMetadata, CleanPlan
from hoodie_py.formats.timeline.writers import write_clean_metadata, write_clean_plan
from hoodie_py.runtime.telemetry import carry_span, watch_calls
from hoodie_py.runtime.wording import Sentence
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.indexes.index import MetadataCommit
from hoodie_py.writer.indexes.metadata_table import MetadataTable
from hoodie_py.writer.indexes.undo import undo_metadata_commit
from hoodie_py.writer.services.clean_plan import (
    CleanReport,
    CleanSettings,
    check_cleanable,
    check_plan,
    make_plan,
    read_saved_plan,
)
from hoodie_py.writer.services.clean_sources import check_sources, delete_source
from hoodie_py.writer.timeline.session import WriteSession, find_newest_time
from hoodie_py.writer.transaction.commit_protocol import begin_instant, complete_instant
from hoodie_py.writer.transaction.run_guard import guard_run
from hoodie_py.writer.transaction.unfinished_savepoints import remove_unfinished_savepoints

T = TypeVar("T")

_PARALLEL = 8


@dataclass(frozen=True, slots=True)
class CleanResult(Sentence):
    """Completed cleans; ``instants`` is empty if there was nothing to remove.

    ``earliest`` is the request time of the earliest commit whose files were all kept; None if the policy has none.

    Examples:
        >>> for price in (1.0, 2.0):
        ...     rows = trips.insert_overwrite_table([{"id": "z", "city": "la", "price": price, "ts": 1}]).rows_inserted
        >>> result = trips.clean(retain_commits=1)
        >>> result.files_deleted
        3
    """

    instants: tuple[str, ...] = ()
    earliest: str | None = None
    partitions: int = 0
    files_deleted: int = 0
    seconds: float = 0.0

    @property
    def instant(self) -> str | None:
        """Request time of the last clean."""
        return self.instants[-1] if self.instants else None

    def __str__(self) -> str:
        if not self.instants:
            return "There was nothing to clean."
        resumed = f" (after {len(self.instants) - 1} that were pending)" if len(self.instants) > 1 else ""
        return (
            f"Clean {self.instants[-1]}{resumed} removed {self.files_deleted:,} files from {self.partitions} "
            f"partitions in {self.seconds:.1f} s."
        )


@watch_calls("clean")
def clean(session: WriteSession, retain_commits: int | None = None) -> CleanResult:
    """Finish pending cleans, then plan one and carry it out. ``retain_commits`` commits stay readable; None: the
    options' number.

    Raises:
        UnsupportedFeatureError: the table has a feature, or the options have a policy, that is not handled.
        InvalidQueryError: an option has a bad value.
        InvalidTableError: a pending clean would remove a file that is needed.
        ConflictError: another writer holds the lock, or finished the clean first.
        CommitStateUnknownError: the store did not say whether a timeline file was written.
        StorageError: the store failed; the clean stays pending, and the next one continues it.
    """
    began = time.monotonic()
    settings = CleanSettings.of(session.settings.options, retain_commits)
    snapshot = session.look()
    check_cleanable(snapshot)
    remove_unfinished_savepoints(session, snapshot)
    done = [_run(session, each.request_time) for each in list_pending(snapshot)]
    scheduled = _schedule(session, settings)
    if scheduled is not None:
        done.append(_run(session, scheduled))
    return _make_result(done, began)


def list_pending(snapshot: Snapshot) -> list[Instant]:
    """Return the pending cleans, oldest first."""
    return list(snapshot.timeline.select_pending().select_actions(CLEAN))


@watch_calls("clean")
def finish_clean(session: WriteSession, instant: str) -> CleanResult:
    """Finish a pending clean; errors as for ``clean``."""
    began = time.monotonic()
    check_cleanable(session.look())
    return _make_result([_run(session, instant)], began)


def _make_result(done: Sequence[CleanMetadata | None], began: float) -> CleanResult:
    finished = [each for each in done if each is not None]
    return CleanResult(
        instants=tuple(each.start_clean_time or "" for each in finished),
        earliest=finished[-1].earliest_commit_to_retain if finished else None,
        partitions=len({partition for each in finished for partition in each.partitions}),
        files_deleted=sum(each.total_files_deleted for each in finished),
        seconds=time.monotonic() - began,
    )


def dry_run(session: WriteSession, retain_commits: int | None = None) -> CleanReport:
    """Report what ``clean`` would plan. It writes nothing and takes no lock; errors as for ``clean``."""
    return make_plan(session.look(), CleanSettings.of(session.settings.options, retain_commits)).report


def _schedule(session: WriteSession, settings: CleanSettings) -> str | None:
    with session.hold_lock() as holding:
        snapshot = session.look()
        plan = make_plan(snapshot, settings).plan
        if plan is None:
            return None
        MetadataTable.check(snapshot, session.settings.metadata_mode)
        instant = session.clock.take(find_newest_time(snapshot.timeline))
        content = write_clean_plan(plan, session.files.java_uri)
        holding.ensure_held()
        session.open_timeline(snapshot).request(instant, CLEAN, content)
    return instant


def _run(session: WriteSession, instant: str) -> CleanMetadata | None:
    """Run a pending clean. Return None if its plan is an empty file."""
    began = time.monotonic()
    with guard_run(session, instant) as alive:
        with session.hold_lock() as holding:
            snapshot = session.look()
            pending = _find_pending(snapshot, instant)
            plan = read_saved_plan(snapshot, pending)
            holding.ensure_held()
            if plan is None:
                session.open_timeline(snapshot).remove_pending(pending)  # as Java does; it has removed nothing
                return None
            check_plan(snapshot, plan)
            sources = check_sources(snapshot, plan, session.settings.options)
            MetadataTable.check(snapshot, session.settings.metadata_mode)
            if pending.state == REQUESTED:
                begin_instant(session, snapshot, pending, alive, holding)
        _delete_files(session.files, plan)
        _run_all(partial(delete_source, session.files), sources)
        metadata = CleanMetadata(
            start_clean_time=instant,
            total_files_deleted=sum(map(len, plan.files.values())),
            earliest_commit_to_retain=plan.earliest_instant_to_retain,
            last_completed_commit_timestamp=plan.last_completed_commit_timestamp,
            partitions={
                partition: CleanedPartition(tuple(names), (), False, plan.policy or "")
                for partition, names in plan.files.items()
            },
            time_taken_ms=round((time.monotonic() - began) * 1000),
            extra_metadata=plan.extra_metadata,
            sources=plan.sources,
        )
        complete_instant(session, alive, _CleanCompletion(session, snapshot, instant, plan, metadata))
        return metadata


@dataclass(frozen=True, slots=True)
class _CleanCompletion:
    """How a clean completes."""

    session: WriteSession
    snapshot: Snapshot
    instant: str
    plan: CleanPlan
    metadata: CleanMetadata
    adds_files: bool = False
    can_run_again: bool = False  # both runs tell the metadata table the same
    known_rollbacks: frozenset[str] = frozenset()

    def describe(self) -> MetadataCommit:
        """Return the removed files."""
        return MetadataCommit(self.session, self.snapshot, self.instant, "clean", deleted=self.plan.files)

    def check_still_ours(self, now: Snapshot) -> Instant:
        """Check that no other writer finished the clean or took it back."""
        inflight = _find_pending(now, self.instant)
        if inflight.state != INFLIGHT:
            raise ConflictError("Another writer took the clean back while it ran.", instant=self.instant)
        return inflight

    def settle_files(self, now: Snapshot, ensure_own: Callable[[], None]) -> None:
        """Take back what an earlier attempt told the metadata table, if it ended right after that."""
        ensure_own()
        undo_metadata_commit(self.session.files, self.instant, ensure_own)

    def make_content(self, now: Snapshot) -> bytes:
        """Return the clean metadata."""
        return write_clean_metadata(self.metadata)

    def check_overlap(self, before: Snapshot, after: Snapshot) -> None:
        """Do nothing: a clean goes with every commit."""


def _find_pending(snapshot: Snapshot, instant: str) -> Instant:
    found = snapshot.timeline.find(instant, CLEAN)
    if found is None or found.is_completed:
        raise ConflictError("Another writer finished the clean, or took it back.", instant=instant)
    return found


def _delete_files(files: TableFiles, plan: CleanPlan) -> None:
    paths = [f"{partition}/{name}" if partition else name for partition, names in plan.files.items() for name in names]
    _run_all(files.delete_with_checksum, list_removable(files, paths))


def _run_all(delete: Callable[[T], None], files: Sequence[T]) -> None:
    with ThreadPoolExecutor(_PARALLEL, "hoodie-clean") as pool:
        failures = [each for each in pool.map(carry_span(partial(_try, delete)), files) if each is not None]
    if failures:  # every file was tried
        raise failures[0]


def _try(delete: Callable[[T], None], file: T) -> HoodieError | None:
    try:
        delete(file)
    except HoodieError as error:
        return error
    return None
