"""The active timeline: the actions on a table, and the state of each.

Every action has one file per state; only the highest state of each (request time, comparable action) counts. Instants
sort by request time, then action (Hudi BaseHoodieTimeline, TimelineLayout). Times compare as strings, so a 14-digit
instant is before every 17-digit one of the same second.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice, takewhile

from hoodie_py.formats.timeline.instants import (
    CLUSTERING,
    COMPACTION,
    COMPLETED_ACTION,
    LOG_COMPACTION,
    REPLACE_COMMIT,
    SAVEPOINT,
    Instant,
    InstantFile,
    parse_instant_file,
)

__all__ = ["Instant", "InstantFile", "Timeline", "parse_instant_file"]

_SHOWN = 30  # instants in a notebook


class Timeline:
    """Instants of a table, oldest first; immutable.

    Instants come in any order, of every state that has a file. ``undone`` are completed writes that are left out,
    because a rollback has undone them.

    Examples:
        >>> [instant.action for instant in trips.timeline]
        ['deltacommit', 'deltacommit']
        >>> trips.timeline.last.is_completed
        True
    """

    def __init__(self, instants: Iterable[Instant] = (), layout: int = 2, undone: Sequence[Instant] = ()) -> None:
        highest: dict[tuple[str, str], Instant] = {}
        for instant in instants:
            key = instant.request_time, instant.comparable_action
            known = highest.get(key)
            if known is None or _outranks(instant, known):
                highest[key] = instant
        self._instants = tuple(sorted(highest.values(), key=lambda instant: instant.sort_key))
        self.layout = layout
        self.undone = tuple(undone)

    @classmethod
    def from_file_names(cls, names: Iterable[str], layout: int) -> Timeline:
        """Build the timeline from the names in its directory; other names are ignored."""
        files = (parse_instant_file(name, layout) for name in names)
        return cls((file.instant for file in files if file is not None), layout)

    def add(self, instants: Sequence[Instant]) -> Timeline:
        """Return the timeline with more instants, of any state, at the cost of a copy.

        Results that this timeline has computed carry over.
        """
        known = list(self._instants)
        for instant in instants:
            at = bisect_left(known, _make_place(instant), key=_make_place)
            if at == len(known) or _make_place(known[at]) != _make_place(instant):
                known.insert(at, instant)
            elif _outranks(instant, known[at]):
                known[at] = instant
        found = Timeline((), self.layout, self.undone)
        found._instants = tuple(known)
        found._keep_findings(self, instants)
        return found

    def _keep_findings(self, before: Timeline, instants: Sequence[Instant]) -> None:
        """Carry over what ``before``, the timeline without ``instants``, has computed."""
        found, times = vars(before), {each.request_time for each in instants}
        of_times = {time: self._find_from(time) for time in times}
        if "_by_time" in found:
            self._by_time = {**before._by_time, **of_times}
        if "_committed" in found:
            self._committed = before._committed | {
                time for time in times if any(each.is_completed and each.is_write for each in of_times[time])
            }
        if "newest_time" in found and not any(each.is_completed for time in times for each in before._find_from(time)):
            ends = [each.completion_time or "" for some in of_times.values() for each in some]
            self.newest_time = max([before.newest_time, *ends, *times])
        if "_writes" in found:
            self._writes = before._writes.add([each for each in instants if each.is_completed and each.is_write])
        if "_pending" in found:
            others = [each for each in before._pending if each.request_time not in times]
            begun = [each for some in of_times.values() for each in some if not each.is_completed]
            self._pending = Timeline([*others, *begun], self.layout)

    def _find_from(self, time: str) -> tuple[Instant, ...]:
        at = bisect_left(self._instants, (time, ""), key=_make_place)
        return tuple(takewhile(lambda each: each.request_time == time, islice(self._instants, at, None)))

    def __iter__(self) -> Iterator[Instant]:
        return iter(self._instants)

    def __len__(self) -> int:
        return len(self._instants)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Timeline) and (self._instants, self.layout) == (other._instants, other.layout)

    def __hash__(self) -> int:
        return hash((self._instants, self.layout))

    def __reduce__(self) -> tuple[object, ...]:
        return Timeline, (self._instants, self.layout)

    def __repr__(self) -> str:
        span = f", {self._instants[0].request_time} to {self._instants[-1].request_time}" if self._instants else ""
        return f"Timeline({len(self)} instants{span})"

    def _repr_html_(self) -> str:
        shown = self._instants[-_SHOWN:]
        more = f", the last {len(shown)}" if len(shown) < len(self) else ""
        head = "<tr><th>requested</th><th>completed</th><th>action</th><th>state</th></tr>"
        cells = ((each.request_time, each.completion_time or "", each.action, each.state) for each in shown)
        rows = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in cells)
        return f"<table><caption>Timeline of {len(self)} instants{more}</caption>{head}{rows}</table>"

    @property
    def instants(self) -> tuple[Instant, ...]:
        """All instants, oldest first."""
        return self._instants

    @property
    def last(self) -> Instant | None:
        """The newest instant, by request time."""
        return self._instants[-1] if self._instants else None

    def filter(self, keep: Callable[[Instant], bool]) -> Timeline:
        """Return the timeline of the instants that ``keep`` accepts."""
        return self._of_sorted(filter(keep, self._instants))

    def select_actions(self, *actions: str) -> Timeline:
        """Return the instants of these actions, as named on disk."""
        if len(actions) == 1:
            return self._by_action.get(actions[0]) or Timeline((), self.layout)
        return self.filter(lambda instant: instant.action in actions)

    def select_completed(self) -> Timeline:
        """Return the completed instants."""
        return self.filter(lambda instant: instant.is_completed)

    def select_pending(self) -> Timeline:
        """Return the instants that are requested or inflight."""
        return self._pending

    @cached_property
    def pending_times(self) -> frozenset[str]:
        """Request times of pending instants other than savepoints.

        A savepoint has the time of its commit, which is complete even if the savepoint is not.
        """
        return frozenset(each.request_time for each in self._pending if each.action != SAVEPOINT)

    def select_writes(self) -> Timeline:
        """Return completed commits, delta commits and replace commits: what a query can see."""
        return self._writes

    def select_pending_compactions(self) -> Timeline:
        """Return the pending compactions; each starts a new file slice for the file groups in its plan."""
        return self.select_pending().select_actions(COMPACTION)

    def select_pending_log_compactions(self) -> Timeline:
        """Return the pending log compactions."""
        return self.select_pending().select_actions(LOG_COMPACTION)

    def select_pending_replacements(self) -> Timeline:
        """Return pending clusterings and replace commits; in layout 1, only the plan shows which one it is."""
        return self.select_pending().select_actions(CLUSTERING, REPLACE_COMMIT)

    @property
    def last_visible(self) -> Instant | None:
        """The last completed write or pending compaction, which a snapshot reads; None without one."""
        visible = (each for each in reversed(self._instants) if each.is_write)
        return next((each for each in visible if each.is_completed or each.action == COMPACTION), None)

    @cached_property
    def newest_time(self) -> str:
        """The latest request or completion time, "" for an empty timeline."""
        return max((max(each.request_time, each.completion_time or "") for each in self._instants), default="")

    def find(self, time: str, *actions: str) -> Instant | None:
        """Find the instant requested at ``time``, of one of ``actions`` if given; savepoints come last."""
        found = [
            instant
            for instant in self._by_time.get(time, ())
            if not actions or instant.action in actions or instant.comparable_action in actions
        ]
        return min(found, key=lambda instant: instant.action == SAVEPOINT, default=None)

    def find_all(self, time: str) -> tuple[Instant, ...]:
        """Return all instants requested at ``time``."""
        return self._by_time.get(time, ())

    def select_after(self, time: str) -> Timeline:
        """Return the instants requested after ``time``."""
        return self.filter(lambda instant: instant.request_time > time)

    @cached_property
    def first_active_time(self) -> str | None:
        """The request time at which the active timeline starts: its first write without a savepoint.

        Archival keeps instants with a savepoint, so instants between them and this time are archived, not missing.
        None when there are no writes.
        """
        writes = (instant.request_time for instant in self._instants if instant.is_write)
        saved = {instant.request_time for instant in self.select_actions(SAVEPOINT) if instant.is_completed}
        first = next(writes, None)
        return first if first not in saved else next((time for time in writes if time not in saved), first)

    def is_archived_before(self, time: str) -> bool:
        """Return whether ``time`` is before the start of the active timeline.

        An instant from then is archived, and completed, as only completed instants are archived.
        """
        first = self.first_active_time
        return first is not None and time < first

    def is_committed(self, time: str) -> bool:
        """Return whether a write requested at ``time`` is completed, in the active timeline or archived.

        Savepoints do not count: they have their commit's time, and may be left unfinished.
        """
        if time in self._committed:
            return True
        known = any(instant.action != SAVEPOINT for instant in self._by_time.get(time, ()))
        return not known and self.is_archived_before(time)

    @cached_property
    def _writes(self) -> Timeline:
        return self.filter(lambda instant: instant.is_completed and instant.is_write)

    @cached_property
    def _pending(self) -> Timeline:
        return self.filter(lambda instant: not instant.is_completed)

    @cached_property
    def _by_action(self) -> dict[str, Timeline]:
        found: dict[str, list[Instant]] = {}
        for instant in self._instants:
            found.setdefault(instant.action, []).append(instant)
        return {action: self._of_sorted(some) for action, some in found.items()}

    def _of_sorted(self, instants: Iterable[Instant]) -> Timeline:
        """Return a timeline of some of the instants, in their order."""
        found = Timeline((), self.layout)
        found._instants = tuple(instants)  # sorted already, and one for each action
        return found

    @cached_property
    def _by_time(self) -> dict[str, tuple[Instant, ...]]:
        found: dict[str, tuple[Instant, ...]] = {}
        for instant in self._instants:
            found[instant.request_time] = (*found.get(instant.request_time, ()), instant)
        return found

    @cached_property
    def _committed(self) -> frozenset[str]:
        return frozenset(
            instant.request_time for instant in self._instants if instant.is_completed and instant.is_write
        )


def _make_place(instant: Instant) -> tuple[str, str]:
    return instant.request_time, instant.comparable_action


def _outranks(instant: Instant, known: Instant) -> bool:
    rank, known_rank = instant.sort_key[2], known.sort_key[2]
    return rank > known_rank if rank != known_rank else _make_tie_key(instant) < _make_tie_key(known)


def _make_tie_key(instant: Instant) -> tuple[bool, str, bool, str]:
    """Make the key that ranks files of the same state: with completion time, earlier completion, table service."""
    service = instant.action in COMPLETED_ACTION
    return instant.is_legacy, instant.completion_time or "", not service, instant.action
