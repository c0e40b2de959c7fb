"""Compare two sets of keyed values in bounded memory: what should be there, and what is there.

Both are sorted on disk (``SortedRecords``) and read side by side, window by window up to a common greatest key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.arrays import from_numpy, to_booleans
from hoodie_py.writer.metadata_build.sorted_records import SortedRecords

Note = Callable[[str, bytes, bytes | None, bytes | None], None]
"""Told the problem ("missing", "extra", "wrong"), the key, the value that should be there, the value that is."""

_TOLD_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Counts:
    """How many keys are right, and of each problem."""

    right: int
    missing: int
    extra: int
    wrong: int


def compare(expected: SortedRecords, found: SortedRecords, note: Note) -> Counts:
    """Compare; the first problems of each window are told."""
    right = missing = extra = wrong = 0
    for wanted, there in _pair(expected.iterate(0), found.iterate(0)):
        at = pc.index_in(wanted[0], value_set=there[0])
        known = to_booleans(pc.is_valid(at))
        missing += int((~known).sum())
        _tell(note, "missing", wanted[0], wanted[1], None, np.flatnonzero(~known))
        surplus = ~to_booleans(pc.is_in(there[0], value_set=wanted[0]))
        extra += int(surplus.sum())
        _tell(note, "extra", there[0], None, there[1], np.flatnonzero(surplus))
        places = from_numpy(np.flatnonzero(known))
        keys, values, others = wanted[0].take(places), wanted[1].take(places), there[1].take(at.drop_null())
        unlike = to_booleans(pc.not_equal(values, others))
        wrong += int(unlike.sum())
        right += int((~unlike).sum())
        _tell(note, "wrong", keys, values, others, np.flatnonzero(unlike))
    return Counts(right, missing, extra, wrong)


Rows = tuple[pa.Array, pa.Array]


def _pair(expected: Iterator[Rows], found: Iterator[Rows]) -> Iterator[tuple[Rows, Rows]]:
    """Yield the rows of both sides up to the same key."""
    none = pa.array([], pa.large_binary())
    heads: list[Rows | None] = [next(expected, None), next(found, None)]
    sides = (expected, found)
    while any(head is not None for head in heads):
        bound = min(head[0][-1].as_py() for head in heads if head is not None)
        window: list[Rows] = []
        for number, head in enumerate(heads):
            if head is None:
                window.append((none, none))
                continue
            upto = int(to_booleans(pc.less_equal(head[0], pa.scalar(bound, pa.large_binary()))).sum())
            window.append((head[0].slice(0, upto), head[1].slice(0, upto)))
            rest = (head[0].slice(upto), head[1].slice(upto))
            heads[number] = rest if len(rest[0]) else next(sides[number], None)
        yield window[0], window[1]


def _tell(
    note: Note, problem: str, keys: pa.Array, wanted: pa.Array | None, there: pa.Array | None, places: np.ndarray
) -> None:
    for at in places[:_TOLD_AT_ONCE].tolist():
        note(
            problem,
            keys[at].as_py(),
            None if wanted is None else wanted[at].as_py(),
            None if there is None else there[at].as_py(),
        )
