"""The active timeline from the names in its folder; listing again costs only what has changed since.

* One listing gives the timeline, and names alone hold all facts. So listings with the same names give the same
  timeline. New names are added to the timeline of the earlier listing.
* If a name is gone - a rollback or an archival took place - the timeline is built anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hoodie_py.errors import InvalidTableError
from hoodie_py.files import TableFiles
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.timeline.instants import Instant, parse_instant_name
from hoodie_py.formats.timeline.timeline import Timeline
from hoodie_py.table.timeline.undone import find_lone_writes, find_undone_writes


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
    """List the active timeline, without writes that are both completed and rolled back (``undone``).

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


def _build(files: TableFiles, config: TableConfig, names: frozenset[str]) -> TimelineListing:
    instants = _parse(config, names)
    lone = find_lone_writes(instants, config)
    undone = find_undone_writes(files, config, instants, lone)
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
    lone.update(find_lone_writes([*before, *instants], config))
    if find_undone_writes(files, config, timeline, lone):
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
