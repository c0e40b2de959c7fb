"""Choose the instants that leave the active timeline (Hudi ``TimelineArchiverV1``, ``TimelineArchiverV2``,
``ArchivalUtils``).

If there are more than ``hoodie.keep.max.commits`` completed commits, the oldest are archived until
``hoodie.keep.min.commits`` are left. If cleans retain more commits than that, both numbers grow. A barrier
(``barriers``) keeps commits from its time on. The first savepoint is a barrier, unless commits beyond it are archived
on request; then only commits with a savepoint stay.

In layout 2 of the timeline, cleans and rollbacks before the last archived commit are archived. In layout 1 each kind is
counted like commits. Savepoints, restores and index builds always stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from hoodie_py.formats.timeline.instants import CLEAN, COMPACTION, LOG_COMPACTION, ROLLBACK, SAVEPOINT, Instant
from hoodie_py.formats.timeline.timeline import Timeline
from hoodie_py.options.write import KEEP_LATEST_COMMITS
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.archival.barriers import (
    Barrier,
    find_compaction_barrier,
    find_data_barrier,
    find_pending_barrier,
    iterate_barriers,
)
from hoodie_py.writer.settings import ArchivalSettings


@dataclass(frozen=True, slots=True)
class Choice:
    """The completed instants to archive, oldest first, and the reason why the others stay.

    ``active`` is the number of completed commits in the active timeline before the archival.
    """

    instants: tuple[Instant, ...]
    active: int
    why: str


def choose_instants(snapshot: Snapshot, settings: ArchivalSettings) -> Choice:
    """Return the instants that a table may archive.

    Nothing is read unless there are more instants than stay.

    Raises:
        CorruptFileError: a file of a clean is damaged.
        StorageError: the store refused.
    """
    return _choose(snapshot.timeline, settings, lambda: iterate_barriers(snapshot, settings))


def choose_metadata_instants(metadata: Timeline, data: Timeline, settings: ArchivalSettings) -> Choice:
    """Return the instants that a metadata table may archive. The settings are the metadata table's."""

    def iterate_own() -> Iterator[Barrier]:
        if metadata.undone:
            yield Barrier("", "a write of the metadata table is both completed and rolled back", holds_services=True)
        yield from find_pending_barrier(metadata)
        yield from find_compaction_barrier(metadata, settings)
        yield from find_data_barrier(data, beyond_savepoint=settings.beyond_savepoint)

    return _choose(metadata, settings, iterate_own)


def _choose(timeline: Timeline, settings: ArchivalSettings, iterate: Callable[[], Iterator[Barrier]]) -> Choice:
    settings = _keep_retained(timeline, settings)
    commits = timeline.select_writes().instants
    few = f"up to {settings.max_commits} commits stay in the active timeline"
    services = _select_services(timeline, settings) if timeline.layout == 1 else []
    if len(commits) <= settings.max_commits and not services:
        return Choice((), len(commits), few)
    barriers = [*iterate(), *_find_savepoint_barrier(timeline, settings)]
    chosen: list[Instant] = []
    if len(commits) > settings.max_commits:
        chosen = _select_commits(timeline, settings, barriers)
    if timeline.layout == 1:
        until = min((each.time for each in barriers if each.holds_services), default=None)
        chosen += [each for each in services if until is None or each.request_time < until]
    elif chosen:
        chosen += [each for each in _list_services(timeline) if each.request_time < chosen[-1].request_time]
    ordered = tuple(sorted(chosen, key=lambda each: each.sort_key))
    lowest = min(barriers, key=lambda each: each.time, default=None)
    return Choice(ordered, len(commits), few if ordered or lowest is None else _explain(lowest))


def _explain(barrier: Barrier) -> str:
    return barrier.why if not barrier.time else f"commits from {barrier.time} on stay: {barrier.why}"


def _select_commits(timeline: Timeline, settings: ArchivalSettings, barriers: Iterable[Barrier]) -> list[Instant]:
    commits = timeline.select_writes().instants
    until = min((each.time for each in barriers), default=None)
    saved = {each.request_time for each in timeline.select_actions(SAVEPOINT)} if settings.beyond_savepoint else set()
    may_go = [
        each for each in commits if each.request_time not in saved and (until is None or each.request_time < until)
    ]
    return may_go[: max(0, len(commits) - settings.min_commits)]


def _find_savepoint_barrier(timeline: Timeline, settings: ArchivalSettings) -> Iterator[Barrier]:
    first = next(iter(timeline.select_completed().select_actions(SAVEPOINT)), None)
    if first is not None and not settings.beyond_savepoint:
        yield Barrier(first.request_time, "it has a savepoint")


def _select_services(timeline: Timeline, settings: ArchivalSettings) -> list[Instant]:
    found: list[Instant] = []
    for action in (CLEAN, ROLLBACK):
        some = timeline.select_completed().select_actions(action).instants
        if len(some) > settings.max_commits:
            found += some[: len(some) - settings.min_commits]
    return found


def _list_services(timeline: Timeline) -> Iterator[Instant]:
    return iter(timeline.select_completed().select_actions(CLEAN, ROLLBACK))


def _keep_retained(timeline: Timeline, settings: ArchivalSettings) -> ArchivalSettings:
    """Return settings that keep the commits retained by cleans, and two more (Hudi ``ArchivalUtils``)."""
    commits = timeline.select_writes().instants
    if settings.clean_policy != KEEP_LATEST_COMMITS or len(commits) <= settings.clean_commits:
        return settings
    earliest = commits[len(commits) - settings.clean_commits].request_time
    pending = (each for each in timeline.select_pending() if each.is_write)
    first = next((each.request_time for each in pending if each.action not in (COMPACTION, LOG_COMPACTION)), None)
    if first is not None and first < earliest:
        earliest = max((each.request_time for each in commits if each.request_time < first), default="")
    if not earliest:
        return settings
    least = sum(each.request_time > earliest for each in commits) + 2
    if settings.min_commits >= least:
        return settings
    most = least + settings.max_commits - settings.min_commits
    return replace(settings, min_commits=least, max_commits=most)
