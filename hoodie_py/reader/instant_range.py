"""InstantRange: the commits whose base rows an incremental read takes (Hudi ``InstantRange``).

Rows of other commits are dropped before the merge, so a log record meets no row of an earlier commit (M3.16, M7.20).
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from hoodie_py.arrow.arrays import call, from_texts, index_in, make_text
from hoodie_py.errors import MergeError


class PartialRowsError(MergeError):
    """Log records of a range lack columns that only versions from before the range have."""

    is_failure = False  # the whole slice is read instead


@dataclass(frozen=True, slots=True)
class InstantRange:
    """Request times of commits: from ``first`` to ``last`` except ``others``, or exactly the times in ``only``.

    ``is_open``: leave ``first`` out.
    """

    first: str
    last: str
    is_open: bool = False
    others: tuple[str, ...] = ()
    only: tuple[str, ...] | None = None

    def contains(self, time: str) -> bool:
        """Say whether a commit time is in the range."""
        if self.only is not None:
            return time in self.only
        after = time > self.first if self.is_open else time >= self.first
        return after and time <= self.last and time not in self.others

    def make_mask(self, times: pa.Array) -> pa.Array:
        """Return a bool array: whether each commit time is in the range; null for a null time."""
        if self.only is not None:
            return _find_in(times, self.only)
        low = call("greater" if self.is_open else "greater_equal", times, make_text(self.first, times.type))
        inside = call("and_kleene", low, call("less_equal", times, make_text(self.last, times.type)))
        if not self.others:
            return inside
        return call("and_kleene", inside, call("invert", _find_in(times, self.others)))


def _find_in(times: pa.Array, values: tuple[str, ...]) -> pa.Array:
    return call("is_valid", index_in(times, from_texts(list(values), times.type)))
