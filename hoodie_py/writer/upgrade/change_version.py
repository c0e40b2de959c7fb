"""Bring a table to another version (Hudi ``UpgradeDowngrade``).

1. The steps are planned, and features that a version cannot hold are refused, before anything is written.
2. The table is settled: failed writes are rolled back, and log files compacted.
3. Under the table's lock, step by step: indexes that do not stay are dropped; the metadata table moves, then the
   timeline, into folders where they do not count yet; then the properties change in one step, and the old files are
   removed.

Readers see the table before or after a step, and never in between. A run that died is finished by the next one, which
begins its step anew, or by one to the same version, which removes what is left.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from types import ModuleType

from hoodie_py.errors import ConflictError, InvalidQueryError, UnsupportedFeatureError
from hoodie_py.formats.config.table_config import TIMELINE_LAYOUT, WRITABLE_VERSIONS, TableConfig
from hoodie_py.formats.timeline.instants import CLEAN, INDEXING, INFLIGHT, RESTORE, ROLLBACK
from hoodie_py.options.write import COMPLEX_KEY_CHECK
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.runtime.wording import Sentence
from hoodie_py.table.indexes.view import read_definitions
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.timeline.time_travel import parse_zone
from hoodie_py.writer.commit.stale_plans import run_or_take_back
from hoodie_py.writer.lock.heartbeat import is_alive, read_life
from hoodie_py.writer.lock.lock import HeldLock
from hoodie_py.writer.rollback.recovery import undo_failed_writes
from hoodie_py.writer.services.compaction import Compaction
from hoodie_py.writer.services.log_compaction import LogCompaction
from hoodie_py.writer.settings import PlanSettings
from hoodie_py.writer.timeline.session import WriteSession
from hoodie_py.writer.timeline.table_properties import change_properties
from hoodie_py.writer.transaction.pending import list_pending_rollbacks, list_pending_writes
from hoodie_py.writer.transaction.run_guard import forget_finished
from hoodie_py.writer.upgrade import eight_to_nine, eight_to_six, metadata, nine_to_eight, six_to_eight, up_to_six
from hoodie_py.writer.upgrade.step import Facts, Step, apply_changes, check_key_generator
from hoodie_py.writer.upgrade.timeline_move import TimelineMove, list_leftovers, list_states

_UP: dict[int, ModuleType] = {**dict.fromkeys(range(1, 6), up_to_six), 6: six_to_eight, 8: eight_to_nine}
_FIRST = 6  # versions below it are not written here
_DOWN: dict[int, ModuleType] = {9: nine_to_eight, 8: eight_to_six}
_ATTEMPTS = 3

_STRATEGY = "UnBoundedCompactionStrategy"


@dataclass(frozen=True, slots=True)
class VersionChange(Sentence):
    """What an upgrade or downgrade did, or would do.

    Attributes:
        before, after: table versions.
        actions: the actions, one sentence each.
        seconds: wall-clock time.
        dry_run: whether nothing was done.

    Examples:
        >>> change = trips.downgrade(to=8, dry_run=True)
        >>> change.before, change.after, change.dry_run
        (9, 8, True)
    """

    before: int
    after: int
    actions: tuple[str, ...] = ()
    seconds: float = 0.0
    dry_run: bool = False

    def __str__(self) -> str:
        if self.before == self.after and not self.actions:
            return f"The table has version {self.after} already."
        if self.dry_run:
            head = f"From version {self.before} to {self.after}, this would be done:"
        else:
            head = f"The table has version {self.after} now (it had {self.before}), after {self.seconds:.1f} s:"
        return "\n".join((head, *(f"  {each}" for each in self.actions)))


def change_version(
    session: WriteSession, to: int, *, upwards: bool, merger: Merger | None = None, dry_run: bool = False
) -> VersionChange:
    """Bring the table to a version; with ``dry_run`` only return what would be done.

    Raises:
        InvalidQueryError: there is no such version, or it lies in the other direction.
        UnsupportedFeatureError: the other version cannot hold a feature of the table.
        ConflictError: another writer holds the lock or is at work.
        CorruptFileError: a file of the timeline or of the archive is damaged.
        CommitStateUnknownError: the store did not say whether a file was written.
        StorageError: the store refused; the next run goes on.
    """
    began = time.monotonic()
    snapshot = session.look()
    before = snapshot.config.version
    _check_request(snapshot, to, upwards=upwards)
    steps = plan_steps(snapshot, to, session)
    if dry_run:
        return VersionChange(before, to, tuple(_describe(snapshot, steps)), dry_run=True)
    run = _Run(session, to)
    if before < _FIRST:
        with session.hold_lock() as holding:
            run.leave_old_versions(holding)
        snapshot = session.look()
    if snapshot.config.version != to:
        run.told += list(_describe_settling(snapshot))
        _settle_and_run(run, merger, upwards=upwards)
    else:
        with session.hold_lock() as holding:
            run.finish(holding)
    return VersionChange(before, to, tuple(run.told), time.monotonic() - began)


def plan_steps(snapshot: Snapshot, to: int, session: WriteSession) -> list[Step]:
    """Return the steps to a version, each planned from the properties that the one before leaves.

    Errors as ``change_version``.
    """
    options = session.settings.options
    config = snapshot.config
    if config.version != to and COMPLEX_KEY_CHECK.read(options):
        check_key_generator(config)
    facts = _gather(session, snapshot)
    steps: list[Step] = []
    while facts.config.version != to:
        step = _find_step(facts, to)
        steps.append(step)
        after = TableConfig.from_properties(apply_changes(facts.config.properties, step.changes))
        facts = Facts(after, step.definitions or facts.definitions, options)
    return steps


def _gather(session: WriteSession, snapshot: Snapshot) -> Facts:
    config = snapshot.config
    old = config.version < _FIRST
    paths = tuple(each.partition.path for each in snapshot.view.list_partitions()) if old else ()
    return Facts(config, read_definitions(session.files, config), session.settings.options, paths)


def _find_step(facts: Facts, to: int) -> Step:
    version = facts.config.version
    step: Step = (_UP if to > version else _DOWN)[version].plan_step(facts)
    return step


def _check_request(snapshot: Snapshot, to: int, *, upwards: bool) -> None:
    config = snapshot.config
    if config.is_metadata_table:
        raise UnsupportedFeatureError(
            "Changing the version of a metadata table itself.", hint="Change that of the table that it belongs to."
        )
    if to not in WRITABLE_VERSIONS:
        raise InvalidQueryError(f"There is no way to table version {to}.", hint="The versions are 6, 8 and 9.")
    if (to < config.version) if upwards else (to > config.version):
        other = "downgrade" if upwards else "upgrade"
        raise InvalidQueryError(
            f"The table has version {config.version}; {to} is {'below' if upwards else 'above'} that.",
            hint=f"Use {other}.",
        )


def _settle_and_run(run: _Run, merger: Merger | None, *, upwards: bool) -> None:
    for _ in range(_ATTEMPTS):
        settled = settle_table(run.session, merger)
        with run.session.hold_lock() as holding:
            now = run.session.look()
            if list(now.timeline) != list(settled.timeline):
                continue  # another writer came in between
            _check_request(now, run.to, upwards=upwards)
            check_settled(run.session, now)
            while now.config.version != run.to:
                run.perform(now, _find_step(_gather(run.session, now), run.to), holding)
                now = run.session.look()
            run.finish(holding)
            return
    raise ConflictError("Other writers keep changing the table.", hint="Stop them for a while.")


@dataclass(slots=True)
class _Run:
    """One run. ``told`` describes what it did."""

    session: WriteSession
    to: int
    told: list[str] = field(default_factory=list)

    def leave_old_versions(self, holding: HeldLock) -> None:
        """Bring a table from a version that is only read to the first one that is written.

        The caller holds the table's lock. Writes that have not completed stay, as in Hudi: the next writer rolls them
        back.
        """
        session = self.session
        snapshot = session.look()
        if snapshot.config.version >= _FIRST:
            return  # another run came in between
        step = _find_step(_gather(session, snapshot), self.to)
        holding.ensure_held()
        metadata.forget_metadata_table(session, snapshot)
        up_to_six.remove_plan_copies(session.files)
        holding.ensure_held()
        change_properties(session.files, step.changes)
        self.told += _describe_step(step, 0)
        self.told += metadata.finish_metadata_table(session, holding)

    def perform(self, snapshot: Snapshot, step: Step, holding: HeldLock) -> None:
        """Do one step. The caller holds the table's lock."""
        session, config, check = self.session, snapshot.config, holding.ensure_held
        after = TableConfig.from_properties(apply_changes(config.properties, step.changes))
        moves = after.timeline_layout != config.timeline_layout
        check()
        metadata.drop_partitions(session, snapshot, step)
        snapshot = session.look()
        complete = metadata.set_aside(session, snapshot, check) if moves else snapshot.config.metadata_partitions
        snapshot = session.look()
        zone = parse_zone(session.timezone, config.timezone)
        if complete:
            metadata.move_metadata_table(session, step, zone, check, moves=moves)
        move = TimelineMove(session.files, snapshot.config, after, zone, session.settings.archival, check)
        copied = move.copy() if moves else 0
        check()
        # From here on the new version counts. Readers do not see what comes before, and what comes after only tidies.
        change_properties(session.files, {**step.changes, **metadata.name_partitions(snapshot, complete, step)})
        if moves:
            move.remove_old()
        self.told += _describe_step(step, copied)

    def finish(self, holding: HeldLock) -> None:
        """Do the work after the change of the properties, also for a run that died there."""
        snapshot = self.session.look()
        forget_finished(self.session, snapshot)
        for path in list_leftovers(self.session.files, snapshot.config):
            holding.ensure_held()
            self.session.files.delete_with_checksum(path)
        self.told += metadata.finish_metadata_table(self.session, holding)
        if snapshot.config.version < 8:
            metadata.add_empty_commit(self.session, holding.ensure_held)


def _describe(snapshot: Snapshot, steps: list[Step]) -> Iterator[str]:
    if steps and snapshot.config.version >= _FIRST:
        yield from _describe_settling(snapshot)
    layout = snapshot.config.timeline_layout
    for step in steps:
        moves = step.changes.get(TIMELINE_LAYOUT) not in (None, str(layout))
        yield from _describe_step(step, len(list_states(snapshot.files, snapshot.config)) if moves else 0)


def _describe_settling(snapshot: Snapshot) -> Iterator[str]:
    pending = list_pending_writes(snapshot)
    if _needs_rollback(snapshot):
        yield f"Roll back {len(pending)} failed writes."
    logs = _count_logs(snapshot)
    if logs:
        yield f"Compact {logs} log files."


def _describe_step(step: Step, copied: int) -> Iterator[str]:
    if step.dropped:
        yield f"Drop {', '.join(step.dropped)} of the metadata table, which version {step.to} does not know."
    if copied:
        yield f"Move {copied} files of the timeline, and its archive, to the layout of version {step.to}."
    there = [f"{key}={value}" for key, value in step.changes.items() if value is not None]
    gone = [key for key, value in step.changes.items() if value is None]
    yield f"Set {', '.join(there)}."
    if gone:
        yield f"Remove {', '.join(gone)}."


def settle_table(session: WriteSession, merger: Merger | None = None) -> Snapshot:
    """Roll failed writes back and compact all file groups that may be compacted; return the table after that.

    All log files are merged into base files, so that no log is read by the rules of another version. Pending
    compactions are run. Pending clusterings stay, with the logs of their file groups (Hudi
    ``UpgradeDowngradeUtils.rollbackFailedWritesAndCompact``).

    Raises:
        HoodieError: as a rollback and a compaction.
    """
    snapshot = session.look()
    if _needs_rollback(snapshot):
        snapshot = undo_failed_writes(session)
    if not snapshot.config.is_merge_on_read:
        return snapshot
    for each in snapshot.timeline.select_pending_log_compactions():
        LogCompaction().run(session, each.request_time)
    for each in session.look().timeline.select_pending_compactions():
        run_or_take_back(session, each.request_time, merger=merger)
    snapshot = session.look()
    if _count_logs(snapshot):
        unbounded = replace(session, settings=replace(session.settings, plan=PlanSettings(strategies=(_STRATEGY,))))
        instant = Compaction().schedule(unbounded)
        if instant is not None:
            Compaction().run(session, instant, merger=merger)
    return session.look()


def _needs_rollback(snapshot: Snapshot) -> bool:
    """Whether there are incomplete or partly rolled back writes."""
    undone = snapshot.timeline.undone
    return bool(undone or list_pending_writes(snapshot) or list_pending_rollbacks(snapshot))


def _count_logs(snapshot: Snapshot) -> int:
    """Return the number of log files in the newest slices."""
    if not snapshot.config.is_merge_on_read:
        return 0
    return sum(len(each.log_files) for each in snapshot.view.list_slices())


def check_settled(session: WriteSession, snapshot: Snapshot) -> None:
    """Refuse to go on beside other work on the table. The caller holds the table's lock.

    Raises:
        ConflictError: names the instant.
    """
    timeline = snapshot.timeline
    pending = list_pending_writes(snapshot)
    blocking = timeline.select_pending().select_actions(INDEXING, RESTORE).instants
    for each in (*pending, *blocking):
        raise ConflictError(
            "The version of a table cannot change while an instant is pending.",
            hint="Let its writer finish, or roll it back; finish a restore, or a build of an index.",
            action=each.action,
            instant=each.request_time,
        )
    for each in timeline.select_pending().select_actions(CLEAN, ROLLBACK):
        # A running one writes to the metadata table what it prepared for the old version. A dead one is finished later.
        if each.state == INFLIGHT and is_alive(session.files, each.request_time, session.settings.options):
            raise ConflictError(f"A {each.action} is running.", hint="Let it finish.", instant=each.request_time)
    for each in timeline.select_pending():
        if each.state == INFLIGHT and each.is_write:
            path = session.open_timeline(snapshot).locate(each)
            if not read_life(session.files, each.request_time, path, session.settings.options).is_over:
                raise ConflictError(
                    f"A {each.action} is running, or was a short time ago.",
                    hint="Let it finish.",
                    instant=each.request_time,
                )
