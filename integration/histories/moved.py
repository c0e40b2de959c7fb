"""Would the answer be another one, had a compaction come at another time?

Two causes are told apart. A delete without ordering value is forgotten as soon as a later version in the same log
replaces it, and the base row counts again (merge.md M7.4); a compaction before that version would have carried it out.
And a delete with an ordering value is forgotten when a compaction has carried it out, so that a late row comes back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from integration.histories.model import DoubleKey, Kind, replayed
from integration.histories.operations import Event, Plan, Run, Unplan
from integration.histories.rules import COMMIT_TIME, Row

_ELSEWHERE = "elsewhere"


@dataclass(frozen=True, slots=True)
class Moved:
    """What moving the compactions of a history does.

    Attributes:
        compactions: that were carried out in it.
        placements: other places that were tried.
        other_answers: of these, how many lead to other rows in the end.
        forgotten: of these, how many do only because deletes without ordering value are forgotten.
    """

    compactions: int = 0
    placements: int = 0
    other_answers: int = 0
    forgotten: int = 0


def moved(kind: Kind, events: Sequence[Event]) -> Moved:
    """Try every other place for every compaction of a history.

    Args:
        kind: of the table.
        events: of the history.
    """
    done = [event.name for event in events if isinstance(event, Run)]
    if not done or kind.mode == COMMIT_TIME:
        return Moved(len(done))
    answer = replayed(kind, events).rows()
    placements = others = forgotten = 0
    for variant in _variants(events, done):
        try:
            rows = replayed(kind, variant).rows()
            if rows != answer:
                others += 1
                forgotten += _remembered(kind, variant) == _remembered(kind, events)
            placements += 1
        except DoubleKey:
            continue
    return Moved(len(done), placements, others, forgotten)


def _remembered(kind: Kind, events: Sequence[Event]) -> list[Row] | None:
    try:
        return replayed(kind, events, remembers=True).rows()
    except DoubleKey:
        return None


def _variants(events: Sequence[Event], names: Sequence[str]) -> Iterator[list[Event]]:
    for name in names:
        about = [number for number, event in enumerate(events) if _is_about(event, name)]
        rest = [event for number, event in enumerate(events) if number not in about]
        for place in range(1, len(rest) + 1):
            if place != about[0]:
                yield [*rest[:place], Plan(_ELSEWHERE), Run(_ELSEWHERE), *rest[place:]]


def _is_about(event: Event, name: str) -> bool:
    return isinstance(event, Plan | Run | Unplan) and event.name == name
