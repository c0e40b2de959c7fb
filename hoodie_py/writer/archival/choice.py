"""Choose the instants that leave the active timeline (Hudi ``TimelineArchiverV1``, ``TimelineArchiverV2``).

If there are more than ``hoodie.keep.max.commits`` completed commits, the oldest are archived until
``hoodie.keep.min.commits`` are left. If cleans retain more commits than that, both numbers grow (Hudi
``ArchivalUtils``). In layout 2 of the timeline, cleans and rollbacks before the last archived commit are archived. In
layout 1 each kind is counted like commits. Savepoints, restores and index builds always stay.

A barrier is a time: commits requested then or later stay, for one of these reasons:

* There is a savepoint, unless commits beyond it are archived on request; then only commits with a savepoint stay.
* A write is pending. The commit before it stays as well, so that the timeline has no hole.
* The trigger of compactions counts delta commits since the last one (Hudi ``CompactionUtils``).
* A replace commit names file groups that no clean has removed yet. Without it they would be part of the table again
  (Hudi ``ClusteringUtils``).
* The metadata table's log files contain entries of commits since its last compaction, and only completed instants of
  the table make them valid. Without a compaction nothing is archived.
* In the metadata table: the table around it still has the commit in its active timeline, or may roll it back (Hudi
  ``TimelineUtils.getEarliestInstantForMetadataArchival``).
* Only on request: the last clean retained the commit's files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from hoodie_py.errors import CorruptFileError, FileMissingError
from hoodie_py.formats.indexes.definitions import FILES_PARTITION
from hoodie_py.formats.timeline import instants as kinds
from hoodie_py.formats.timeline.instants import Instant, locate_instant, locate_requested
from hoodie_py.formats.timeline.plans import CleanMetadata, CleanPlan
from hoodie_py.formats.timeline.timeline import Timeline
from hoodie_py.options.write import KEEP_LATEST_COMMITS, KEEP_LATEST_FILE_VERSIONS, SAVEPOINTED
from hoodie_py.table.bounded import read_bounded
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.timeline.loader import load_timeline
from hoodie_py.writer.indexes.undo import METADATA_TABLE
from hoodie_py.writer.settings import ArchivalSettings

_COUNTING_TRIGGERS = ("NUM_COMMITS", "NUM_AND_TIME")


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
    return _choose(snapshot.timeline, settings, lambda: _iterate_barriers(snapshot, settings))


def choose_metadata_instants(metadata: Timeline, data: Timeline, settings: ArchivalSettings) -> Choice:
    """Return the instants that a metadata table may archive. The settings are the metadata table's."""

    def iterate_own() -> Iterator[_Barrier]:
        if metadata.undone:
            yield _Barrier("", "a write of the metadata table is both completed and rolled back", holds_services=True)
        yield from _find_pending_barrier(metadata)
        yield from _find_compaction_barrier(metadata, settings)
        yield from _find_data_barrier(data, beyond_savepoint=settings.beyond_savepoint)

    return _choose(metadata, settings, iterate_own)


def _choose(timeline: Timeline, settings: ArchivalSettings, iterate: Callable[[], Iterator[_Barrier]]) -> Choice:
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


def _explain(barrier: _Barrier) -> str:
    return barrier.why if not barrier.time else f"commits from {barrier.time} on stay: {barrier.why}"


def _select_commits(timeline: Timeline, settings: ArchivalSettings, barriers: Iterable[_Barrier]) -> list[Instant]:
    commits = timeline.select_writes().instants
    until = min((each.time for each in barriers), default=None)
    saved = (
        {each.request_time for each in timeline.select_actions(kinds.SAVEPOINT)} if settings.beyond_savepoint else set()
    )
    may_go = [
        each for each in commits if each.request_time not in saved and (until is None or each.request_time < until)
    ]
    return may_go[: max(0, len(commits) - settings.min_commits)]


def _find_savepoint_barrier(timeline: Timeline, settings: ArchivalSettings) -> Iterator[_Barrier]:
    first = next(iter(timeline.select_completed().select_actions(kinds.SAVEPOINT)), None)
    if first is not None and not settings.beyond_savepoint:
        yield _Barrier(first.request_time, "it has a savepoint")


def _select_services(timeline: Timeline, settings: ArchivalSettings) -> list[Instant]:
    found: list[Instant] = []
    for action in (kinds.CLEAN, kinds.ROLLBACK):
        some = timeline.select_completed().select_actions(action).instants
        if len(some) > settings.max_commits:
            found += some[: len(some) - settings.min_commits]
    return found


def _list_services(timeline: Timeline) -> Iterator[Instant]:
    return iter(timeline.select_completed().select_actions(kinds.CLEAN, kinds.ROLLBACK))


def _keep_retained(timeline: Timeline, settings: ArchivalSettings) -> ArchivalSettings:
    """Return settings that keep the commits retained by cleans, and two more (Hudi ``ArchivalUtils``)."""
    commits = timeline.select_writes().instants
    if settings.clean_policy != KEEP_LATEST_COMMITS or len(commits) <= settings.clean_commits:
        return settings
    earliest = commits[len(commits) - settings.clean_commits].request_time
    pending = (each for each in timeline.select_pending() if each.is_write)
    first = next(
        (each.request_time for each in pending if each.action not in (kinds.COMPACTION, kinds.LOG_COMPACTION)), None
    )
    if first is not None and first < earliest:
        earliest = max((each.request_time for each in commits if each.request_time < first), default="")
    if not earliest:
        return settings
    least = sum(each.request_time > earliest for each in commits) + 2
    if settings.min_commits >= least:
        return settings
    most = least + settings.max_commits - settings.min_commits
    return replace(settings, min_commits=least, max_commits=most)


@dataclass(frozen=True, slots=True)
class _Barrier:
    """Commits requested at ``time`` or later stay; "" keeps all. ``holds_services``: so do cleans and rollbacks."""

    time: str
    why: str
    holds_services: bool = False


def _iterate_barriers(snapshot: Snapshot, settings: ArchivalSettings) -> Iterator[_Barrier]:
    """Yield the barriers of a table, starting with the ones that cost no request.

    Raises:
        CorruptFileError: the plan of a clean is damaged.
        StorageError: the store refused.
    """
    timeline = snapshot.timeline
    if timeline.undone:
        yield _Barrier("", "a write was rolled back and has a completed file, which the next write removes", True)
    yield from _find_pending_barrier(timeline)
    if snapshot.config.is_merge_on_read:
        yield from _find_compaction_barrier(timeline, settings)
    yield from _find_replacement_barrier(snapshot, settings)
    if settings.after_clean:
        yield from _find_clean_barrier(snapshot)
    if FILES_PARTITION in snapshot.config.metadata_partitions:
        yield from _find_metadata_barrier(snapshot)


def _find_pending_barrier(timeline: Timeline) -> Iterator[_Barrier]:
    """Yield the last commit before the first pending write, or the pending write if there is no commit before it."""
    pending = next((each for each in timeline.select_pending() if each.is_write), None)
    if pending is None:
        return
    before = [each.request_time for each in timeline.select_writes() if each.request_time < pending.request_time]
    yield _Barrier(
        before[-1] if before else pending.request_time, f"{pending.action} {pending.request_time} is pending"
    )


def _find_compaction_barrier(timeline: Timeline, settings: ArchivalSettings) -> Iterator[_Barrier]:
    """Yield the first commit that counts for the trigger of the next compaction."""
    if settings.trigger not in _COUNTING_TRIGGERS:
        return
    deltas = list(timeline.select_actions(kinds.DELTA_COMMIT))
    last = timeline.select_completed().select_actions(kinds.COMMIT).last
    since = [each for each in deltas if last is None or _is_after(each, last)]
    if len(since) >= settings.delta_commits:
        found = since[len(since) - settings.delta_commits]
    elif last is not None:
        found = last
    elif since:
        found = since[0]
    else:
        return
    yield _Barrier(found.request_time, "the commits since then count for the next compaction")


def _find_data_barrier(data: Timeline, *, beyond_savepoint: bool) -> Iterator[_Barrier]:
    """Yield the first commit or pending instant of the table, for its metadata table."""
    saved = {each.request_time for each in data.select_actions(kinds.SAVEPOINT)} if beyond_savepoint else set()
    first = next((each for each in data if _is_commit(each) and each.request_time not in saved), None)
    pending = next(iter(data.select_pending()), None)
    times = [each.request_time for each in (first, pending) if each is not None]
    if times:
        yield _Barrier(min(times), "the table around the metadata table has it in its active timeline", True)


def _find_replacement_barrier(snapshot: Snapshot, settings: ArchivalSettings) -> Iterator[_Barrier]:
    timeline = snapshot.timeline
    replacing = list(timeline.select_actions(kinds.REPLACE_COMMIT, kinds.CLUSTERING))
    if not replacing:
        return
    last = timeline.select_completed().select_actions(kinds.CLEAN).last
    bound = "" if last is None else _find_cleaned_until(snapshot, last, settings)
    found = next((each for each in replacing if each.request_time >= bound), None)
    if found is not None:
        yield _Barrier(found.request_time, f"the files that {found.request_time} replaces are not cleaned")


def _find_cleaned_until(snapshot: Snapshot, clean: Instant, settings: ArchivalSettings) -> str:
    """Return the time before which replaced file groups are certainly gone; "" if it is unknown."""
    path = locate_requested(snapshot.config, clean)
    try:
        plan = CleanPlan.from_bytes(read_bounded(snapshot.files, path))
    except FileMissingError:  # removed by an archival that died before it came to the completed file
        return ""
    except CorruptFileError as error:
        raise error.locate(path=path, instant=clean.request_time) from error.__cause__
    earliest = plan.earliest_instant_to_retain
    if settings.clean_policy != KEEP_LATEST_FILE_VERSIONS and earliest is not None:
        saved = min((each for each in plan.extra_metadata.get(SAVEPOINTED, "").split(",") if each), default="")
        replacing = snapshot.timeline.select_completed().select_actions(kinds.REPLACE_COMMIT)
        if saved and any(saved <= each.request_time <= earliest for each in replacing):
            return saved  # the clean kept the savepoint's files, and went past the replace commit
    return earliest or clean.request_time


def _find_clean_barrier(snapshot: Snapshot) -> Iterator[_Barrier]:
    last = snapshot.timeline.select_completed().select_actions(kinds.CLEAN).last
    if last is None:
        return
    path = locate_instant(snapshot.config, last)
    earliest = CleanMetadata.from_bytes(read_bounded(snapshot.files, path)).earliest_commit_to_retain
    if earliest:
        yield _Barrier(earliest, f"clean {last.request_time} retained what it wrote")


def _find_metadata_barrier(snapshot: Snapshot) -> Iterator[_Barrier]:
    metadata = load_timeline(snapshot.files.sub(METADATA_TABLE), snapshot.config)
    last = metadata.select_completed().select_actions(kinds.COMMIT, kinds.REPLACE_COMMIT).last
    if last is None:
        yield _Barrier("", "the metadata table has not been compacted yet", True)
        return
    why = f"the metadata table was last compacted at {last.request_time}"
    if snapshot.config.timeline_layout == 1:
        yield _Barrier(last.request_time, why, True)
        return
    found = next((each for each in snapshot.timeline.select_writes() if _is_after(each, last)), None)
    if found is not None:
        yield _Barrier(found.request_time, why)


def _is_after(each: Instant, last: Instant) -> bool:
    """Whether an instant changed the table after ``last`` was requested: it completed later, or began later."""
    if each.completion_time is None:
        return each.request_time > last.request_time
    return each.completion_time > last.request_time and each.request_time != last.request_time


def _is_commit(each: Instant) -> bool:
    return each.action in (kinds.COMMIT, kinds.DELTA_COMMIT, kinds.REPLACE_COMMIT, kinds.CLUSTERING)
