"""Decide by column statistics which of many files may have a row that passes a filter.

The rule: the answer for a file is False only when no row of it can pass. For each node of a filter this module finds
the truth values that the node *may* have for some row (``truths``). A node that it does not understand may have all
three. Statistics are bounds, not values:

* Text and binary bounds may be cut short, so a longer value may begin with the upper bound. Some writers order text by
  UTF-16 units. That order differs from the order of bytes from U+D800 on, so bounds with such characters are not used.
* Float statistics leave NaN out, and NaN is above all values. Zero may have either sign. A bound of NaN says nothing.
* A missing bound or null count is unknown. A null count of 0 is certain.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pat

from hoodie_py.arrow.arrays import from_numpy, from_texts, is_valid, to_booleans
from hoodie_py.errors import InvalidQueryError
from hoodie_py.table.filter.ansi_casts import cast
from hoodie_py.table.filter.like_pattern import find_literal_prefix
from hoodie_py.table.filter.predicate import (
    And,
    Cast,
    Column,
    Comparison,
    InList,
    IsNull,
    Like,
    Literal,
    Node,
    Not,
    Or,
    Predicate,
)
from hoodie_py.table.filter.truths import Mask, Truths, join_and, join_or, make_any, make_truths
from hoodie_py.table.filter.types import is_datetime, is_integral, is_text

UNKNOWN = -1  # of a count
_FEW = 8  # values of a list that are compared one by one with all files
_LONGEST_PREFIX = 1000  # characters of a text whose every beginning is looked for
_OTHER_ORDER = "[\\x{D800}-\\x{10FFFF}]"  # characters that UTF-8 and UTF-16 order otherwise
_Sides = tuple[Mask, Mask, Mask]


@dataclass(frozen=True, slots=True)
class ColumnBounds:
    """Known facts about a column in many files, one entry for each file.

    ``low`` and ``high`` bound the values that are not null; null where they are unknown, None where all are. Counts of
    nulls and of rows are ``UNKNOWN`` where they are; None where all are.
    """

    low: pa.Array | None = None
    high: pa.Array | None = None
    nulls: npt.NDArray[np.int64] | None = None
    rows: npt.NDArray[np.int64] | None = None


def find_candidates(predicate: Predicate, columns: Mapping[str, ColumnBounds], count: int) -> Mask:
    """Return which of ``count`` files may have rows that pass; a column without bounds may have any value."""
    return _find_truths(predicate.root, _Files(columns, count)).true


class _Files(NamedTuple):
    columns: Mapping[str, ColumnBounds]
    count: int


def _find_truths(node: Node, files: _Files) -> Truths:
    """Return the truth values that a node may have for rows within the statistics."""
    if isinstance(node, Not):
        return _find_truths(node.children[0], files).invert()
    if isinstance(node, (And, Or)):
        join = join_and if isinstance(node, And) else join_or
        return join([_find_truths(child, files) for child in node.children])
    if isinstance(node, Literal):
        return make_truths(files.count, true=node.value is True, false=node.value is False, null=node.value is None)
    if isinstance(node, Column) and pat.is_boolean(node.type):
        return _find_comparison_truths(Comparison("=", node, Literal(True, node.type)), files)
    find = _FINDERS.get(type(node))
    return make_any(files.count) if find is None else find(node, files)


@dataclass(frozen=True, slots=True)
class _Ranges:
    """Bounds of an expression's values in each file, null where unknown; and whether it may be null, or not null."""

    low: pa.Array
    high: pa.Array
    may_be_null: Mask
    may_have_value: Mask
    type: pa.DataType


def _find_ranges(node: Node, files: _Files) -> _Ranges | None:
    """Find the ranges of a column, or of a cast that keeps the column's order."""
    if isinstance(node, Column):
        known = files.columns.get(".".join(node.path))
        return None if known is None else _make_ranges(known, node.type, files.count)
    if not isinstance(node, Cast) or not _keeps_order(node.child.type, node.type):
        return None
    inner = _find_ranges(node.child, files)
    if inner is None:
        return None
    low, high = (_cast_ends(end, node.type) for end in (inner.low, inner.high))
    return _Ranges(low, high, inner.may_be_null, inner.may_have_value, node.type)


def _cast_ends(ends: pa.Array, type_: pa.DataType) -> pa.Array:
    """Convert bounds; null where one cannot be."""
    try:
        return cast(ends, type_)
    except InvalidQueryError:
        if len(ends) == 1:
            return pa.nulls(1, type_)
        half = len(ends) // 2
        return pa.concat_arrays([_cast_ends(part, type_) for part in (ends[:half], ends[half:])])


def _keeps_order(source: pa.DataType, target: pa.DataType) -> bool:
    """Say whether a <= b implies cast(a) <= cast(b), for the casts that comparisons insert."""
    if is_integral(source):
        return bool(is_integral(target) or pat.is_decimal(target) or pat.is_floating(target))
    if pat.is_decimal(source):
        return bool(pat.is_decimal(target) or pat.is_floating(target))
    if pat.is_floating(source):
        return bool(pat.is_float64(target))
    return is_datetime(source) and is_datetime(target)


def _make_ranges(known: ColumnBounds, type_: pa.DataType, count: int) -> _Ranges:
    nulls = np.full(count, UNKNOWN) if known.nulls is None else known.nulls
    rows = np.full(count, UNKNOWN) if known.rows is None else known.rows
    all_null = (nulls >= 0) & (rows >= 0) & (rows <= nulls)
    low, high = (_make_ends(each, type_, count) for each in (known.low, known.high))
    contradicted = to_booleans(pc.fill_null(pc.greater(low, high), False))  # so not trusted
    if contradicted.any():
        mask = from_numpy(~contradicted)
        low, high = (pc.if_else(mask, each, pa.scalar(None, type_)) for each in (low, high))
    return _Ranges(low, high, nulls != 0, ~all_null, type_)


def _make_ends(ends: pa.Array | None, type_: pa.DataType, count: int) -> pa.Array:
    """Return bounds in a column's type, null where they are missing or not usable, as the bytes of a vector are."""
    if ends is None or pat.is_nested(type_):
        return pa.nulls(count, type_)
    if ends.type != type_:
        try:
            ends = ends.cast(type_)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return pa.nulls(count, type_)
    if pat.is_string(type_):
        return _null_where(ends, pc.match_substring_regex(ends, _OTHER_ORDER))
    return _null_where(ends, pc.is_nan(ends)) if pat.is_floating(type_) else ends


def _null_where(values: pa.Array, mask: pa.Array) -> pa.Array:
    found = pc.fill_null(mask, False)
    return pc.if_else(found, pa.scalar(None, values.type), values) if found.true_count else values


def _orders_by_bytes(text: str) -> bool:
    """Say whether UTF-16 and UTF-8 order agree for comparisons with this text."""
    return all(character < "\ud800" for character in text)


def _find_null_truths(child: Node, files: _Files) -> Truths:
    where = _find_ranges(child, files)
    if where is None:
        return make_truths(files.count, true=True, false=True)
    return Truths(where.may_be_null, where.may_have_value, np.zeros(files.count, np.bool_))


_MIRRORED = {"=": "=", "<=>": "<=>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _find_comparison_truths(node: Comparison, files: _Files) -> Truths:
    operator, left, right = node.operator, node.left, node.right
    if isinstance(left, Literal):
        operator, left, right = _MIRRORED[operator], right, left
    if not isinstance(right, Literal):
        return make_any(files.count)
    if right.value is None:
        return _find_null_truths(left, files) if operator == "<=>" else make_truths(files.count, null=True)
    where = _find_ranges(left, files)
    if where is None:
        return make_any(files.count)
    below, equal, above = (side & where.may_have_value for side in _find_sides(where, right.value))
    true, false = {
        "=": (equal, below | above),
        "<=>": (equal, below | above),
        "<": (below, equal | above),
        "<=": (below | equal, above),
        ">": (above, below | equal),
        ">=": (above | equal, below),
    }[operator]
    if operator == "<=>":
        return Truths(true, false | where.may_be_null, np.zeros(files.count, np.bool_))
    return Truths(true, false, where.may_be_null)


def _find_sides(where: _Ranges, value: Any) -> _Sides:
    """Say for each file whether a value there may be below, equal to, and above a value that is not null."""
    count = len(where.low)
    always, never = np.ones(count, np.bool_), np.zeros(count, np.bool_)
    if pat.is_floating(where.type) and value != value:  # NaN: no value is above it
        return always, always, never
    if pat.is_string(where.type) and not _orders_by_bytes(value):
        return always, always, always
    point = _make_single(value, where.type)[0]
    below = _holds(pc.less(where.low, point))
    above = _holds(pc.greater(where.high, point))
    equal = _holds(pc.less_equal(where.low, point)) & _holds(pc.greater_equal(where.high, point))
    if pat.is_floating(where.type):
        return below, equal, always
    if is_text(where.type):
        extends = _find_beginnings(where.high, value)
        return below, (equal | extends) & _holds(pc.less_equal(where.low, point)), above | extends
    return below, equal, above


def _holds(condition: pa.Array) -> Mask:
    """Return where a condition holds, or a bound is unknown."""
    return to_booleans(condition) | ~is_valid(condition)


def _make_single(value: Any, type_: pa.DataType) -> pa.Array:
    return from_texts([value], type_) if isinstance(value, str) and type_ == pa.string() else pa.array([value], type_)


def _find_beginnings(highs: pa.Array, value: str | bytes) -> Mask:
    """Say where a text begins with an upper bound, which may have been cut short."""
    if len(value) > _LONGEST_PREFIX:
        return np.ones(len(highs), np.bool_)
    beginnings = from_texts([value[:length] for length in range(len(value) + 1)], highs.type)
    return to_booleans(pc.is_in(highs, value_set=beginnings, skip_nulls=True))


def _find_in_list_truths(node: InList, files: _Files) -> Truths:
    where = _find_ranges(node.child, files)
    if where is None:
        return make_any(files.count)
    members = [value for value in node.values if value is not None]
    if len(members) > _FEW:
        found = _may_have_one(where, members)
    else:
        found = np.zeros(files.count, np.bool_)
        for member in members:
            found |= _find_sides(where, member)[1]
    outside = where.may_have_value
    if len(members) == len(node.values):
        return Truths(found & outside, outside, where.may_be_null)
    return Truths(found & outside, np.zeros(files.count, np.bool_), outside | where.may_be_null)


def _may_have_one(where: _Ranges, members: Sequence[Any]) -> Mask:
    """Say for each file whether one of many values may be there, by halving the sorted values."""
    plain = [each for each in members if each == each]
    if len(plain) < len(members) or (pat.is_string(where.type) and not all(map(_orders_by_bytes, plain))):
        return np.ones(len(where.low), np.bool_)  # NaN, or a text of another order: too rare to look closer
    low, high = (_to_literals(each) for each in (where.low, where.high))
    ordered = sorted(plain)
    found = np.zeros(len(where.low), np.bool_)
    for at, (least, greatest) in enumerate(zip(low, high, strict=True)):
        first = 0 if least is None else bisect_left(ordered, least)
        last = len(ordered) if greatest is None else bisect_right(ordered, greatest)
        extends = is_text(where.type) and last < len(ordered) and last >= first and ordered[last].startswith(greatest)
        found[at] = first < last or extends
    return found


def _to_literals(values: pa.Array) -> list[Any]:
    """Return values as literals have them: times as numbers."""
    if is_datetime(values.type):
        values = values.view(pa.int32() if pat.is_date32(values.type) else pa.int64())
    found: list[Any] = values.to_pylist()
    return found


def _find_like_truths(node: Like, files: _Files) -> Truths:
    """Return the truth values of a LIKE: values that match begin with the pattern's literal prefix."""
    where = _find_ranges(node.child, files)
    prefix = find_literal_prefix(node.pattern, node.escape)
    if where is None or not is_text(where.type):
        return make_any(files.count)
    found = where.may_have_value
    if prefix and _orders_by_bytes(prefix):
        point = _make_single(prefix, where.type)[0]
        too_low = to_booleans(pc.less(where.high, point)) & ~_find_beginnings(where.high, prefix)
        too_high = to_booleans(pc.greater(where.low, point)) & ~to_booleans(pc.starts_with(where.low, prefix))
        found = found & ~too_low & ~too_high
    return Truths(found, where.may_have_value, where.may_be_null)


_FINDERS: dict[type[Node], Callable[..., Truths]] = {
    Comparison: _find_comparison_truths,
    InList: _find_in_list_truths,
    IsNull: lambda node, files: _find_null_truths(node.child, files),
    Like: _find_like_truths,
}
