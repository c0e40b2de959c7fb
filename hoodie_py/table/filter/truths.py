"""Truths: which truth values (true, false, null) a node of a filter may have for some row, for many files at once.

Three masks say it, one bit for each file. Files without rows have none of the three. AND, OR and NOT work as SQL's do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import numpy.typing as npt

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Truths:
    """For each file whether a node may be true, false, or null there."""

    true: Mask
    false: Mask
    null: Mask

    def invert(self) -> Truths:
        """Return what NOT makes of the node."""
        return Truths(self.false, self.true, self.null)


def make_truths(count: int, *, true: bool = False, false: bool = False, null: bool = False) -> Truths:
    """Return the same truth values for all of ``count`` files."""
    return Truths(np.full(count, true), np.full(count, false), np.full(count, null))


def make_any(count: int) -> Truths:
    """Return the truth values of a node of which nothing is known."""
    return make_truths(count, true=True, false=True, null=True)


def join_and(parts: Sequence[Truths]) -> Truths:
    """Return the truth values of AND, from those of its operands: at least one."""
    return reduce(_and, parts)


def join_or(parts: Sequence[Truths]) -> Truths:
    """Return the truth values of OR, from those of its operands: at least one."""
    return join_and([part.invert() for part in parts]).invert()


def _and(a: Truths, b: Truths) -> Truths:
    any_a, any_b = a.true | a.false | a.null, b.true | b.false | b.null
    return Truths(
        a.true & b.true,
        (a.false & any_b) | (b.false & any_a),
        (a.null & (b.true | b.null)) | (a.true & b.null),
    )
