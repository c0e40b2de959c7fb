"""Settle a table before its version changes (Hudi ``UpgradeDowngradeUtils.rollbackFailedWritesAndCompact``).

Failed writes are rolled back, and all log files merged into base files, so that no log is read by the rules of another
version. Pending compactions are run. Pending clusterings stay, with the logs of their file groups.
"""

from __future__ import annotations

from dataclasses import replace

from hoodie_py.errors import ConflictError
from hoodie_py.formats.timeline.instants import CLEAN, INDEXING, INFLIGHT, RESTORE, ROLLBACK
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.lock.heartbeat import is_alive, read_life
from hoodie_py.writer.rollback.recovery import undo_failed_writes
from hoodie_py.writer.services.compaction import Compaction
from hoodie_py.writer.services.log_compaction import LogCompaction
from hoodie_py.writer.settings import PlanSettings
from hoodie_py.writer.timeline.session import WriteSession
from hoodie_py.writer.transaction.pending import list_pending_rollbacks, list_pending_writes
from hoodie_py.writer.upkeep.stale_plans import run_or_take_back

_STRATEGY = "UnBoundedCompactionStrategy"


def settle_table(session: WriteSession, merger: Merger | None = None) -> Snapshot:
    """Roll failed writes back and compact all file groups that may be compacted; return the table after that.

    Raises:
        HoodieError: as a rollback and a compaction.
    """
    snapshot = session.look()
    if needs_rollback(snapshot):
        snapshot = undo_failed_writes(session)
    if not snapshot.config.is_merge_on_read:
        return snapshot
    for each in snapshot.timeline.select_pending_log_compactions():
        LogCompaction().run(session, each.request_time)
    for each in session.look().timeline.select_pending_compactions():
        run_or_take_back(session, each.request_time, merger=merger)
    snapshot = session.look()
    if count_logs(snapshot):
        unbounded = replace(session, settings=replace(session.settings, plan=PlanSettings(strategies=(_STRATEGY,))))
        instant = Compaction().schedule(unbounded)
        if instant is not None:
            Compaction().run(session, instant, merger=merger)
    return session.look()


def needs_rollback(snapshot: Snapshot) -> bool:
    """Whether there are incomplete or partly rolled back writes."""
    undone = snapshot.timeline.undone
    return bool(undone or list_pending_writes(snapshot) or list_pending_rollbacks(snapshot))


def count_logs(snapshot: Snapshot) -> int:
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
