"""Changes, done again to the rows from before them: they must lead to the rows after each commit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from integration.histories.rules import Row

Key = tuple[str, str]
"""Partition and id."""


class WrongChange(Exception):
    """A change that cannot be: the text says why."""


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """A row of change data: the operation, the commit, and the row before and after it."""

    op: str
    commit: str
    before: Row | None
    after: Row | None


def replay(
    rows: Mapping[Key, Row], changes: Iterable[ChangeRow], partitioned: bool, order: Sequence[str]
) -> dict[str, dict[Key, Row]]:
    """Do changes to rows, commit by commit, and return the rows after each.

    Of one commit a row may be deleted and inserted: it moved to another file group.

    Args:
        rows: before the first commit.
        changes: in any order.
        partitioned: whether a key is one of its partition only.
        order: all commits of the range in the order in which they landed.

    Raises:
        WrongChange: an insert of a row that is there, an image that is not the row, a change of another commit.
    """
    now = dict(rows)
    states: dict[str, dict[Key, Row]] = {}
    by_commit = {
        commit: list(some)
        for commit, some in groupby(sorted(changes, key=lambda each: each.commit), key=lambda each: each.commit)
    }
    if stray := by_commit.keys() - set(order):
        raise WrongChange(f"changes of commits outside the range: {sorted(stray)}")
    for commit in order:
        some = sorted(by_commit.get(commit, ()), key=lambda each: each.op)  # deletes first
        seen: set[tuple[Key, str]] = set()
        for each in some:
            key = _apply(now, each, partitioned)
            if (key, each.op) in seen or (each.op == "u" and (key, "i") in seen):
                raise WrongChange(f"{each} is a second change of its key")
            seen.add((key, each.op))
        states[commit] = dict(now)
    return states


def _apply(rows: dict[Key, Row], change: ChangeRow, partitioned: bool) -> Key:
    if change.op not in ("i", "u", "d"):
        raise WrongChange(f"{change} has no known operation")
    if (change.before is None) != (change.op == "i") or (change.after is None) != (change.op == "d"):
        raise WrongChange(f"{change} does not have the images of its operation")
    row = change.after or change.before
    assert row is not None
    key = (row.part if partitioned else "", row.id)
    if change.before is not None and change.after is not None and change.before.id != change.after.id:
        raise WrongChange(f"{change} is of two keys")
    there = rows.get(key)
    if there != change.before:
        raise WrongChange(f"{change}: the row before it is {there}")
    if change.after is None:
        del rows[key]
    else:
        rows[key] = change.after
    return key
