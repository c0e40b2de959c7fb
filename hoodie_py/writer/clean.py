"""Remove file slices that nobody needs any more (Hudi ``CleanActionExecutor``).

A plan is saved, then its files are deleted, then the metadata table is told, then the clean completes. Deleting is
idempotent, so whoever finds a clean that was cut short - this package or Java - carries on with its plan.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

from hoodie_py.errors import ConflictError, HoodieError
from hoodie_py.files import TableFiles
from hoodie_py.formats.instants import CLEAN, INFLIGHT, REQUESTED, Instant
from hoodie_py.formats.metadata_writers import write_clean_metadata, write_clean_plan
from hoodie_py.formats.plans import CleanedPartition, CleanMetadata, CleanPlan
from hoodie_py.table.bounded import read_bounded
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.clean_plan import CleanReport, CleanSettings, check_cleanable, check_plan, make_plan
from hoodie_py.writer.metadata_table import MetadataTable, undo_metadata_commit
from hoodie_py.writer.run_guard import GuardedRun, guard_run
from hoodie_py.writer.second_look import CompletedInstant
from hoodie_py.writer.session import WriteSession, find_newest_time
from hoodie_py.writer.timeline_writer import delete_with_checksum

_PARALLEL = 8


@dataclass(frozen=True, slots=True)
class CleanResult:
    """Completed cleans; ``instants`` is empty when there was nothing to remove.

    ``earliest`` is the request time of the earliest commit whose files were all kept, None where the policy knows none.
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


@dataclass(frozen=True, slots=True)
class _CompletedClean:
    instant: str
    metadata: CleanMetadata


def clean(session: WriteSession, retain_commits: int | None = None) -> CleanResult:
    """Finish pending cleans, then plan one and carry it out.

    Args:
        session: of the writing call.
        retain_commits: how many commits stay readable; None for what the options say.

    Raises:
        UnsupportedFeatureError: the table has a feature, or the options a policy, that is not handled.
        InvalidQueryError: a bad option.
        InvalidTableError: a pending clean would remove a file that is needed.
        ConflictError: another writer holds the lock, or finished the clean first.
        CommitStateUnknownError: the store did not say whether a timeline file was written.
        StorageError: the store failed; the clean stays pending, and the next one carries on.
    """
    began = time.monotonic()
    settings = CleanSettings.of(session.settings.options, retain_commits)
    snapshot = session.look()
    check_cleanable(snapshot)
    done = [
        _run(session, each.request_time) for each in snapshot.timeline.timeline.select_pending().select_actions(CLEAN)
    ]
    scheduled = _schedule(session, settings)
    if scheduled is not None:
        done.append(_run(session, scheduled))
    finished = [each for each in done if each is not None]
    return CleanResult(
        instants=tuple(each.instant for each in finished),
        earliest=finished[-1].metadata.earliest_commit_to_retain if finished else None,
        partitions=len({partition for each in finished for partition in each.metadata.partitions}),
        files_deleted=sum(each.metadata.total_files_deleted for each in finished),
        seconds=time.monotonic() - began,
    )


def dry_run(session: WriteSession, retain_commits: int | None = None) -> CleanReport:
    """Say what ``clean`` would plan; writes nothing and takes no lock. Raises as ``clean``."""
    return make_plan(session.look(), CleanSettings.of(session.settings.options, retain_commits)).report


def _schedule(session: WriteSession, settings: CleanSettings) -> str | None:
    with session.hold_lock() as holding:
        snapshot = session.look()
        plan = make_plan(snapshot, settings).plan
        if plan is None:
            return None
        MetadataTable.check(snapshot, session.settings.metadata_mode)
        instant = session.clock.take(find_newest_time(snapshot.timeline.timeline))
        content = write_clean_plan(plan, _location(session.files))
        holding.ensure_held()
        session.open_timeline(snapshot).request(instant, CLEAN, content)
    return instant


def _run(session: WriteSession, instant: str) -> _CompletedClean | None:
    """Carry out a pending clean; None if it was an empty file that planned nothing."""
    began = time.monotonic()
    with guard_run(session, instant) as alive:
        return _run_guarded(session, instant, alive, began)


def _run_guarded(session: WriteSession, instant: str, alive: GuardedRun, began: float) -> _CompletedClean | None:
    with session.hold_lock() as holding:
        snapshot = session.look()
        pending = _find_pending(snapshot, instant)
        plan = _read_plan(snapshot, pending)
        holding.ensure_held()
        if plan is None:
            _discard(session, snapshot, pending)
            return None
        check_plan(snapshot, plan)
        MetadataTable.check(snapshot, session.settings.metadata_mode)
        if pending.state == REQUESTED:
            session.open_timeline(snapshot).begin(pending)
    _delete_files(session.files, plan)
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
    )
    _complete(session, instant, alive, metadata, plan)
    return _CompletedClean(instant, metadata)


def _complete(session: WriteSession, instant: str, alive: GuardedRun, metadata: CleanMetadata, plan: CleanPlan) -> None:
    with session.hold_lock() as holding:
        snapshot = session.look()
        inflight = _find_pending(snapshot, instant)
        if inflight.state != INFLIGHT:
            raise ConflictError("Another writer took the clean back while it ran.", instant=instant)
        alive.ensure_own(holding)
        undo_metadata_commit(
            session.files, instant, partial(alive.ensure_own, holding)
        )  # of an attempt that ended right after it
        metadata_table = MetadataTable(session, snapshot)
        metadata_table.commit(instant, added={}, deleted=plan.files)
        completion_time = session.clock.take(find_newest_time(snapshot.timeline.timeline))
        alive.ensure_own(holding)
        done = session.open_timeline(snapshot).complete(inflight, completion_time, write_clean_metadata(metadata))
        completed = CompletedInstant(session, snapshot, metadata_table, inflight, done)
        doubt = completed.find_doubt(holding, alive)
    if doubt is not None:
        raise completed.settle(doubt)


def _find_pending(snapshot: Snapshot, instant: str) -> Instant:
    found = snapshot.timeline.timeline.find(instant, CLEAN)
    if found is None or found.is_completed:
        raise ConflictError("Another writer finished the clean, or took it back.", instant=instant)
    return found


def _read_plan(snapshot: Snapshot, pending: Instant) -> CleanPlan | None:
    config = snapshot.config
    name = replace(pending, state=REQUESTED).file_name(config.timeline_layout)
    path = f"{config.find_timeline_folder()}/{name}"
    try:
        data = read_bounded(snapshot.files, path)
        return CleanPlan.from_bytes(data) if data else None
    except HoodieError as error:
        raise error.locate(path=path, instant=pending.request_time) from error.__cause__


def _discard(session: WriteSession, snapshot: Snapshot, pending: Instant) -> None:
    """Take a clean without a plan off the timeline, as Java does: nothing was and will be removed by it."""
    timeline = session.open_timeline(snapshot)
    for state in (INFLIGHT, REQUESTED):
        timeline.remove(replace(pending, state=state))


def _delete_files(files: TableFiles, plan: CleanPlan) -> None:
    paths = [f"{partition}/{name}" if partition else name for partition, names in plan.files.items() for name in names]
    with ThreadPoolExecutor(_PARALLEL, "hoodie-clean") as pool:
        _raise_first(list(pool.map(lambda path: _try_delete(files, path), paths)))


def _try_delete(files: TableFiles, path: str) -> HoodieError | None:
    try:
        delete_with_checksum(files, path)
    except HoodieError as error:
        return error
    return None


def _raise_first(outcomes: Sequence[HoodieError | None]) -> None:
    """Raise the first failure, once every file was tried."""
    for outcome in outcomes:
        if outcome is not None:
            raise outcome


def _location(files: TableFiles) -> str:
    """Return the base path as Java would open it: plans name whole paths."""
    local = files.local_path("")
    if local is not None:
        return f"file:{local}"
    return f"s3a:{files.uri.removeprefix('s3:')}" if files.uri.startswith("s3:") else files.uri
