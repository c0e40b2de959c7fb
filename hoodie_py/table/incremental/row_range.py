"""Which rows a range of commits wrote: rows whose ``_hoodie_commit_time`` is the request time of one of its commits.

Up to table version 6, Java compares with the first and the last commit (``MergeOnReadIncrementalRelationV1``); from
version 8 on, with the set of the commits (``V2``). A set of many commits is written as an interval with exceptions,
which is small and equivalent, as rows only have request times of committed writes.
"""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa

from hoodie_py.formats.names import COMMIT_TIME_FIELD
from hoodie_py.reader.file_slice import InstantRange
from hoodie_py.table.filter.predicate import And, Column, Comparison, InList, Literal, Node, Not, Predicate
from hoodie_py.table.incremental.commit_range import CommitRange

_TEXT = pa.string()
_TIME = Column((COMMIT_TIME_FIELD,), _TEXT)


def make_instant_range(commit_range: CommitRange, committed: Collection[str]) -> InstantRange:
    """Return the request times of a range's rows; ``committed`` has the request times of all known writes.

    The range must have commits, or compare request times with both ends in the archive.
    """
    times = [each.request_time for each in commit_range.commits]
    if commit_range.by_request_time:
        first = commit_range.start if commit_range.starts_archived else times[0]
        last = times[-1] if commit_range.end is None or not commit_range.ends_archived else commit_range.end
        return InstantRange(first, last, is_open=commit_range.starts_archived)
    first, last = times[0], times[-1]
    inside = set(times)
    others = sorted(time for time in set(committed) - inside if first < time < last)
    if len(others) > len(times):
        return InstantRange(first, last, only=tuple(times))
    return InstantRange(first, last, others=tuple(others))


def make_row_filter(instants: InstantRange) -> Predicate:
    """Return the filter for rows of these commits."""
    if instants.only is not None:
        return Predicate(InList(_TIME, instants.only))
    if instants.first == instants.last and not instants.is_open:
        return Predicate(_compare("=", instants.first))
    bounds = [_compare(">" if instants.is_open else ">=", instants.first), _compare("<=", instants.last)]
    others: list[Node] = [Not(InList(_TIME, instants.others))] if instants.others else []
    return Predicate(And((*bounds, *others)))


def _compare(operator: str, time: str) -> Comparison:
    return Comparison(operator, _TIME, Literal(time, _TEXT))
