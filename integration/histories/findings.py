"""What a run of histories has seen, and how it says that a table is not what its model says."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any


class Difference(AssertionError):
    """The table is not what the model says."""


@dataclass
class Counts:
    """What a run has seen."""

    steps: int = 0
    histories: int = 0
    operations: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    cut_short: int = 0
    landed: int = 0
    refusals: Counter[str] = field(default_factory=Counter)
    reads: int = 0
    looks_back: int = 0
    overlaps: Counter[str] = field(default_factory=Counter)
    ranges: Counter[str] = field(default_factory=Counter)


def tell_apart(what: str, found: list[Any], want: list[Any]) -> None:
    """Compare what a table gave with what its model says.

    Raises:
        Difference: they differ.
    """
    if found != want:
        mine, theirs = Counter(want), Counter(found)
        lacks, has = list((mine - theirs).elements()), list((theirs - mine).elements())
        raise Difference(f"{what} lacks {lacks}, has {has}")


def tell_bounds(what: str, found: list[Any], least: list[Any], most: list[Any]) -> None:
    """Compare what a table gave with what it must give and with what it may give.

    Raises:
        Difference: rows are missing, or there are others.
    """
    there = Counter(found)
    lacks, has = list((Counter(least) - there).elements()), list((there - Counter(most)).elements())
    if lacks or has:
        raise Difference(f"{what} lacks {lacks}, has {has}")
