"""The active timeline from the names in its folder, without writes that a rollback has undone.

* One listing gives the timeline, and names alone hold all facts. So listings with the same names give the same
  timeline. New names are added to the timeline of the earlier listing, so listing again costs only what has changed.
* If a name is gone - a rollback or an archival took place - the timeline is built anew.
* A write that is both completed and rolled back does not count.

Such a write comes from a writer that paused just before it completed the write. Another writer considered it dead and
rolled the write back, with all files. Then the first writer resumed and wrote the completed file. Usually it notices
and deletes that file; if it dies first, the file stays. Java Hudi takes it for a completed write whose files are gone.
Here the rollback counts. Readers skip the write, and the next writer deletes the completed file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from hoodie_py.errors import FileMissingError, InvalidTableError, locate_errors
from hoodie_py.files import TableFiles
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.timeline.instants import COMMIT, ROLLBACK, Instant, locate_instant, parse_instant_name
from hoodie_py.formats.timeline.timeline import Timeline
from hoodie_py.table.bounded import read_bounded


@dataclass(frozen=True, slots=True)
class TimelineListing:
    """A timeline and the names that it was made from.

    ``folder``: where the names are. ``layout``: how to read them. ``lone``: the completed writes without a requested or
    inflight file, by request time.
    """

    folder: str
    layout: int
    names: frozenset[str]
    lone: Mapping[str, Instant]
    timeline: Timeline


def list_timeline(files: TableFiles, config: TableConfig, earlier: TimelineListing | None = None) -> TimelineListing:
    """List the active timeline, without writes that are both completed and rolled back.

    ``earlier``: a listing of the same table.

    Raises:
        InvalidTableError: there is a folder in the place of an instant's file.
        CorruptFileError: the file of a rollback is damaged, and what it undid matters.
        StorageError: the store refused.
    """
    folder, layout = config.find_timeline_folder(), config.timeline_layout
    names = files.list_names(folder)
    if earlier is None or (earlier.folder, earlier.layout) != (folder, layout) or earlier.timeline.undone:
        return _build(files, config, names)
    if names == earlier.names:
        return earlier
    gone = earlier.names - names
    if any(parse_instant_name(name, layout) is not None for name in gone):
        return _build(files, config, names)
    return _extend(files, config, names, earlier)


def make_empty_listing(config: TableConfig) -> TimelineListing:
    """Return the listing of a timeline without any file."""
    folder, layout = config.find_timeline_folder(), config.timeline_layout
    return TimelineListing(folder, layout, frozenset(), {}, Timeline([], layout))


def _build(files: TableFiles, config: TableConfig, names: frozenset[str]) -> TimelineListing:
    instants = _parse(config, names)
    lone = _find_lone_writes(instants, config)
    undone = _find_undone_writes(files, config, instants, lone)
    kept = [each for each in instants if each not in undone] if undone else instants
    timeline = Timeline(kept, config.timeline_layout, undone)
    return TimelineListing(config.find_timeline_folder(), config.timeline_layout, names, lone, timeline)


def _extend(files: TableFiles, config: TableConfig, names: frozenset[str], earlier: TimelineListing) -> TimelineListing:
    """Add the new names; the writes of the earlier listing must not have been undone."""
    instants = _parse(config, names - earlier.names)
    before = [each for new in instants for each in earlier.timeline.find_all(new.request_time)]
    if any(each.is_completed for each in before):  # a second action of the same time, or a file that came late
        return _build(files, config, names)
    timeline = earlier.timeline.add(instants)
    begun = {each.request_time for each in (*before, *instants) if each.is_write and not each.is_completed}
    lone = {time: each for time, each in earlier.lone.items() if time not in begun}
    lone.update(_find_lone_writes([*before, *instants], config))
    if _find_undone_writes(files, config, timeline, lone):
        return _build(files, config, names)
    return TimelineListing(earlier.folder, earlier.layout, names, lone, timeline)


def _parse(config: TableConfig, names: Iterable[str]) -> list[Instant]:
    instants = []
    for name in sorted(names):  # so that nothing depends on the order of a set
        instant = parse_instant_name(name.rstrip("/"), config.timeline_layout)
        if instant is None:
            continue
        if name.endswith("/"):
            raise InvalidTableError(
                "A folder is in the place of an instant's file.",
                path=f"{config.find_timeline_folder()}/{name.rstrip('/')}",
            )
        instants.append(instant)
    return instants


def _find_lone_writes(instants: Collection[Instant], config: TableConfig) -> dict[str, Instant]:
    """Return the completed writes that have no requested or inflight file, by request time.

    ``instants``: one for each file of the timeline, so one for each state.
    """
    begun = {each.request_time for each in instants if each.is_write and not each.is_completed}
    return {
        each.request_time: each for each in instants if _may_be_undone(each, config) and each.request_time not in begun
    }


def _find_undone_writes(
    files: TableFiles, config: TableConfig, instants: Iterable[Instant], lone: Mapping[str, Instant]
) -> list[Instant]:
    """Return which of the writes in ``lone`` (``_find_lone_writes``) a rollback among ``instants`` has undone.

    Two facts identify such a write. It has a completed file but no requested or inflight file, which the rollback
    deleted. And a completed rollback names it and was requested after its completion time. (A compaction that was
    rolled back and run again completed after the rollback.)

    Raises:
        CorruptFileError: the file of a rollback that may name such a write is damaged.
        StorageError: the store refused.
    """
    if not lone:
        return []
    oldest = min(lone)
    undone: list[Instant] = []
    for rollback in instants:
        if rollback.action == ROLLBACK and rollback.is_completed and rollback.request_time > oldest:
            targets = (lone.get(time) for time in _read_rolled_back(files, config, rollback))
            undone += [
                each for each in targets if each and rollback.request_time > (each.completion_time or each.request_time)
            ]
    return undone


def _may_be_undone(instant: Instant, config: TableConfig) -> bool:
    """Say whether the instant is a completed write with a known order against rollbacks.

    Up to version 6 the time when a compaction completed is unknown, so compactions are left out there.
    """
    if not (instant.is_completed and instant.is_write):
        return False
    untimed = config.timeline_layout == 1 or instant.is_legacy
    return not (untimed and instant.action == COMMIT and config.is_merge_on_read)


def _read_rolled_back(files: TableFiles, config: TableConfig, rollback: Instant) -> tuple[str, ...]:
    """Return request times of the instants that a completed rollback undid.

    Raises:
        CorruptFileError: its file is damaged or too large, so it is unknown which writes count.
        StorageError: the store refused.
    """
    from hoodie_py.formats.timeline.plans import RollbackMetadata

    path = locate_instant(config, rollback)
    with locate_errors(path=path, instant=rollback.request_time), suppress(FileMissingError):
        return RollbackMetadata.from_bytes(read_bounded(files, path)).commits_rolled_back
    return ()  # the rollback was archived since the listing, and so were the instants that it undid
