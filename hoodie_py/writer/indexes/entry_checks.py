"""Comparison of expected with stored entries of the metadata table.

Both sides are sorted together by key, on disk if they are many, so memory stays bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.arrays import from_numpy, join_batches, to_booleans
from hoodie_py.reader.memory.budget import MemoryBudget
from hoodie_py.reader.memory.grouped import GroupedRows, keep_last
from hoodie_py.writer.indexes.verify_report import PartReport

Note = Callable[[str, bytes, bytes | None, bytes | None], None]
"""Takes the problem ("missing", "extra", "wrong"), the key, the expected value, the stored value."""

_NOTED_AT_ONCE = 100
_KEY, _IS_THERE = "key", "is_there"


@dataclass(frozen=True, slots=True)
class Counts:
    """The number of right keys, and of keys with each problem."""

    right: int
    missing: int
    extra: int
    wrong: int


class Comparison:
    """Compares the values that should be there with the values that are there, in bounded memory, as a context manager.

    Add all values that should be there first. If several values have one key, the last one counts.
    """

    def __init__(self, budget: MemoryBudget) -> None:
        self._rows = GroupedRows[None](budget, order=[_KEY])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._rows.close()

    def add(self, keys: pa.Array, values: pa.Array, *, is_there: bool) -> None:
        """Add keys and values, which are texts or bytes."""
        columns = [keys.cast(pa.large_binary()), values.cast(pa.large_binary()), pa.repeat(is_there, len(keys))]
        self._rows.add(None, pa.RecordBatch.from_arrays(columns, [_KEY, "value", _IS_THERE]))

    def compare(self, note: Note) -> Counts:
        """Compare the values of each key, once. ``note`` gets the first problems of each batch."""
        right = missing = extra = wrong = 0
        for rows in self._iterate_pairs():
            keys, values = rows.column(_KEY), rows.column("value")
            is_there = to_booleans(rows.column(_IS_THERE))
            same = to_booleans(pc.equal(keys.slice(1), keys.slice(0, len(keys) - 1)))  # as the key of the row before
            first = np.flatnonzero(same)
            unlike = to_booleans(pc.not_equal(values.take(from_numpy(first)), values.take(from_numpy(first + 1))))
            alone = ~(np.append(same, False) | np.append(False, same))
            places = np.flatnonzero(alone & ~is_there), np.flatnonzero(alone & is_there), first[unlike]
            for at in places[0][:_NOTED_AT_ONCE].tolist():
                note("missing", keys[at].as_py(), values[at].as_py(), None)
            for at in places[1][:_NOTED_AT_ONCE].tolist():
                note("extra", keys[at].as_py(), None, values[at].as_py())
            for at in places[2][:_NOTED_AT_ONCE].tolist():
                note("wrong", keys[at].as_py(), values[at].as_py(), values[at + 1].as_py())
            right += len(first) - len(places[2])
            missing, extra, wrong = missing + len(places[0]), extra + len(places[1]), wrong + len(places[2])
        return Counts(right, missing, extra, wrong)

    def _iterate_pairs(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows by key: the value that should be there, then the one that is; both in one batch."""
        waiting: list[pa.RecordBatch] = []
        for batch in keep_last(self._rows.sort(None), [_KEY, _IS_THERE]):
            rows = join_batches([*waiting, batch])
            cut = rows.num_rows if rows.column(_IS_THERE)[-1].as_py() else rows.num_rows - 1
            waiting = [rows.slice(cut)] if cut < rows.num_rows else []
            if cut:
                yield rows.slice(0, cut)
        yield from waiting


class Facts(NamedTuple):
    """The comparable content of entries: a key each, and a value."""

    keys: pa.Array
    values: pa.Array


def note_difference(report: PartReport, problem: str, key: bytes, wanted: bytes | None, there: bytes | None) -> None:
    """Note one difference between expected and stored entries, as a ``Note``."""
    place = key.replace(b"\0", b"/").decode(errors="replace")[:300]
    said, should = (None if each is None else each.decode(errors="replace")[:200] for each in (there, wanted))
    if problem == "missing":
        text = f"the metadata table has no entry; it should say {should}" if should else "there is no entry"
    elif problem == "extra":
        text = f"the metadata table says {said}; the table has no such thing" if said else "the table has no such thing"
    else:
        text = f"the metadata table says {said}; it should say {should}"
    report.note(problem, place, text)
