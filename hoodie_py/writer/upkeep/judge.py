"""Judge what no saved plan does: failed writes to undo, plans and indexes to finish, the metadata table, the archival.

A writer whose heartbeat is fresh is at work, and so is one that began a short time ago without one; its instants wait.
Plans that are only requested wait for nobody, as in Java.
"""

from __future__ import annotations

from dataclasses import dataclass

from hoodie_py.formats.timeline.instants import INDEXING, REQUESTED, Instant
from hoodie_py.options.write import FAILED_WRITES_POLICY, METADATA_MODE
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.archival.choice import choose_instants
from hoodie_py.writer.clustering.cluster import Clustering
from hoodie_py.writer.index_jobs.services import list_due
from hoodie_py.writer.rollback.recovery import is_rolled_back, list_rollbacks_to_finish, read_pending_life
from hoodie_py.writer.services.clean import Clean
from hoodie_py.writer.services.compaction import Compaction
from hoodie_py.writer.services.due_service import DueService, State
from hoodie_py.writer.services.log_compaction import LogCompaction
from hoodie_py.writer.services.planned_service import AnyService
from hoodie_py.writer.timeline.session import WriteSession
from hoodie_py.writer.transaction.pending import list_pending_writes
from hoodie_py.writer.transaction.unfinished_savepoints import list_unfinished_savepoints

FAILED_WRITES, PENDING_PLANS, INDEX_BUILDS = "failed writes", "pending plans", "index builds"
METADATA, ARCHIVAL = "metadata table", "archival"

PLANNED: tuple[AnyService, ...] = (Compaction(), LogCompaction(), Clustering(), Clean())
"""The services that save plans, in the order in which they run. Two judge otherwise than where the options switch them
on after each write: a clustering needs two small file groups to put together, or a bucket to split or merge, unless it
sorts or the options say otherwise; a log compaction is due only while no compaction is."""


@dataclass(frozen=True, slots=True)
class PendingPlan:
    """A plan that has not been carried out; ``is_held``: its writer is at work."""

    service: AnyService
    instant: Instant
    is_held: bool

    def __str__(self) -> str:
        state = "a writer is at work on it" if self.is_held else self.instant.state
        return f"{self.service.name} {self.instant.request_time} ({state})"


def judge_failed_writes(session: WriteSession, snapshot: Snapshot) -> DueService:
    """Judge pending writes by their heartbeats, and rollbacks that were cut short."""
    undone = len(snapshot.timeline.undone)
    rollbacks = list_rollbacks_to_finish(snapshot)
    savepoints = len(list_unfinished_savepoints(session, snapshot))
    pending = list_pending_writes(snapshot)
    dead: list[Instant] = []
    alive: list[Instant] = []
    for each in pending:
        over = read_pending_life(session, snapshot, each).is_over or is_rolled_back(snapshot, each)
        (dead if over else alive).append(each)
    figures = {
        "failed": len(dead),
        "at work": len(alive),
        "rollbacks": len(rollbacks),
        "undone": undone,
        "savepoints": savepoints,
    }
    texts = [
        _say(dead, "without a heartbeat: its writer died", "without a heartbeat: their writers died"),
        f"{len(rollbacks)} rollbacks are not finished" if rollbacks else "",
        f"{undone} rolled back writes have a completed file" if undone else "",
        f"{savepoints} savepoints were not finished" if savepoints else "",
        _say(alive, "whose writer may be at work", "whose writers may be at work"),
    ]
    why = "; ".join(text for text in texts if text) or "no write is pending"
    times = tuple(each.request_time for each in dead)
    if dead and FAILED_WRITES_POLICY.read(session.settings.options) == "NEVER":
        return DueService(FAILED_WRITES, "not due", f"{why}; {FAILED_WRITES_POLICY} is NEVER", figures, times)
    state: State = "due" if dead or rollbacks or undone or savepoints else "waits" if alive else "not due"
    return DueService(FAILED_WRITES, state, why, figures, times)


def _say(instants: list[Instant], one: str, more: str) -> str:
    if not instants:
        return ""
    times = ", ".join(each.request_time for each in instants[:3])
    return f"write {times} {one}" if len(instants) == 1 else f"{len(instants)} writes ({times}, ...) {more}"


def list_plans(session: WriteSession, snapshot: Snapshot) -> list[PendingPlan]:
    """Return the pending plans in the order in which they are carried out."""
    return [
        PendingPlan(service, each, _is_held(session, snapshot, each))
        for service in PLANNED
        for each in service.list_pending(snapshot)
    ]


def _is_held(session: WriteSession, snapshot: Snapshot, instant: Instant) -> bool:
    life = read_pending_life(session, snapshot, instant)
    return life.is_alive or (instant.state != REQUESTED and not life.is_over)


def judge_plans(session: WriteSession, snapshot: Snapshot) -> DueService:
    """Judge plans that others left."""
    plans = list_plans(session, snapshot)
    free = [each for each in plans if not each.is_held]
    figures: dict[str, int | float | str] = {}
    for each in plans:
        name = each.service.name
        figures[name] = int(figures.get(name, 0)) + 1
    shown = ", ".join(map(str, plans[:4])) + (f" and {len(plans) - 4} more" if len(plans) > 4 else "")
    times = tuple(each.instant.request_time for each in free)
    state: State = "due" if free else "waits" if plans else "not due"
    return DueService(PENDING_PLANS, state, shown or "no plan is pending", figures, times)


def judge_index_builds(snapshot: Snapshot) -> DueService:
    """Judge partitions of the metadata table that a build left unfinished."""
    config = snapshot.config
    names = sorted({*config.metadata_partitions_inflight} - {*config.metadata_partitions})
    java = snapshot.timeline.select_pending().select_actions(INDEXING)
    if len(java):
        first = java.instants[0].request_time
        why = f"Java Hudi builds an index since {first}, or was killed; dropping that index removes its plan"
        return DueService(INDEX_BUILDS, "waits", why, {"unfinished": len(names)}, (first,))
    if names:
        return DueService(INDEX_BUILDS, "due", f"unfinished: {', '.join(names)}", {"unfinished": len(names)})
    return DueService(INDEX_BUILDS, "not due", "no index is unfinished")


def judge_metadata(session: WriteSession, snapshot: Snapshot) -> DueService:
    """Judge the services of the metadata table itself."""
    if not snapshot.config.metadata_partitions:
        return DueService(METADATA, "not due", "the table has none")
    if session.settings.metadata_mode != "auto":
        return DueService(METADATA, "not due", f"{METADATA_MODE} is {session.settings.metadata_mode}")
    due = list_due(session, snapshot)
    return DueService(METADATA, "due" if due else "not due", "; ".join(due) or "nothing of it is old enough")


def judge_archival(session: WriteSession, snapshot: Snapshot) -> DueService:
    """Judge by the number of active commits, and by what keeps them."""
    settings = session.settings.archival
    choice = choose_instants(snapshot, settings)
    figures = {"commits": choice.active, "most": settings.max_commits, "instants": len(choice.instants)}
    active = f"{choice.active} commits are active"
    if not choice.instants:
        return DueService(ARCHIVAL, "not due", f"{active}; {choice.why}", figures)
    why = f"{active}, over the limit of {settings.max_commits}; {len(choice.instants)} instants can go"
    return DueService(ARCHIVAL, "due", why, figures)
