"""The files of instants that are about to leave the active timeline (Hudi ``ActiveAction``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo

from hoodie_py.files import TableFiles
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.timeline import instants as kinds
from hoodie_py.formats.timeline.instants import Instant, locate_instant, parse_instant_name
from hoodie_py.table.bounded import read_bounded


@dataclass(frozen=True, slots=True)
class ActiveTimeline:
    """A timeline that is archived: a table's, or its metadata table's.

    ``names`` are the names in its folder. ``zone`` is the zone of its times.
    """

    files: TableFiles
    config: TableConfig
    names: frozenset[str]
    zone: tzinfo = UTC

    def locate(self, state: Instant) -> str:
        """Return the path of a state's file."""
        return locate_instant(self.config, state)

    def read(self, state: Instant | None) -> bytes:
        """Return the content of a state's file; empty for None.

        Raises:
            CorruptFileError: the file is too large.
            StorageError: the file is missing, or the store refused.
        """
        return b"" if state is None else read_bounded(self.files, self.locate(state))


@dataclass(frozen=True, slots=True)
class ActiveFiles:
    """All states of an instant that have a file.

    ``instant`` is the completed state that counts. Two writers may have completed one clean, so ``states`` may contain
    several completed ones.
    """

    instant: Instant
    states: tuple[Instant, ...]

    @property
    def pending(self) -> tuple[Instant, ...]:
        """The requested and the inflight state."""
        return tuple(each for each in self.states if not each.is_completed)

    @property
    def completed(self) -> tuple[Instant, ...]:
        """The completed states."""
        return tuple(each for each in self.states if each.is_completed)

    def find(self, state: str) -> Instant | None:
        """Return the requested or inflight state; None if it has no file."""
        return next((each for each in self.pending if each.state == state), None)

    @property
    def requested(self) -> Instant | None:
        """The requested state."""
        return self.find(kinds.REQUESTED)

    @property
    def inflight(self) -> Instant | None:
        """The inflight state."""
        return self.find(kinds.INFLIGHT)


def collect_active_files(timeline: ActiveTimeline, instants: Sequence[Instant]) -> list[ActiveFiles]:
    """Return the files of completed instants, in the order of ``instants``."""
    wanted = {(each.request_time, each.comparable_action): each for each in instants}
    states: dict[tuple[str, str], list[Instant]] = {key: [] for key in wanted}
    for each in _iterate_states(timeline.names, timeline.config.timeline_layout):
        key = each.request_time, each.comparable_action
        if key in wanted:
            states[key].append(each)
    order = {state: at for at, state in enumerate(kinds.STATES)}
    return [
        ActiveFiles(wanted[key], tuple(sorted(some, key=lambda one: (order[one.state], one.completion_time or ""))))
        for key, some in states.items()
        if any(one.state == kinds.COMPLETED for one in some)
    ]


def _iterate_states(names: Iterable[str], layout: int) -> Iterator[Instant]:
    return (each for name in names if (each := parse_instant_name(name, layout)) is not None)
