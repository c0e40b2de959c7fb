"""Decide by column statistics which of many files may contain a row that passes a filter.

The answer for a file is False only if no row of it can pass. For each node of a filter this module finds its
``Truths``: the truth values (true, false, null) that the node *may* have for some row, as three masks with one bit for
each file. AND, OR and NOT combine them as in SQL. A node that is not understood may have all three, a file without rows
has none. Statistics are bounds, not values:

* Text and binary bounds may be cut short, so a longer value may begin with the upper bound. Some writers order text by
  UTF-16 units. That order differs from the order of bytes from U+D800 on, so bounds with such characters are not used.
* Float statistics ignore NaN, and NaN is greater than all values. Zero may have either sign. A NaN bound is unknown.
* A missing bound or null count is unknown. A null count of 0 is certain.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pat

from hoodie_py.arrow.arrays import is_valid, to_booleans, to_numbers
from hoodie_py.errors import InvalidQueryError
from hoodie_py.table.filter import predicate as nodes
from hoodie_py.table.filter.ansi_casts import cannot_fail, cast
from hoodie_py.table.filter.datetime_text import MICROS_PER_DAY
from hoodie_py.table.filter.like_pattern import find_literal_prefix
from hoodie_py.table.filter.predicate import Column, Literal, Node, Predicate
from hoodie_py.table.filter.time_zones import is_fixed
from hoodie_py.table.filter.types import is_datetime, is_integral, is_text
from hoodie_py.table.filter.zoned_casts import depends_on_zone

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Truths:
    """For each file, whether a node may be true, false or null in it."""

    true: Mask
    false: Mask
    null: Mask

    def invert(self) -> Truths:
        """Return the truth values of NOT."""
        return Truths(self.false, self.true, self.null)


def make_truths(count: int, *, true: bool = False, false: bool = False, null: bool = False) -> Truths:
    """Return the same truth values for all of ``count`` files."""
    return Truths(np.full(count, true), np.full(count, false), np.full(count, null))


def make_any(count: int) -> Truths:
    """Return the truth values of an unknown node: all three."""
    return make_truths(count, true=True, false=True, null=True)


def join_and(parts: Sequence[Truths]) -> Truths:
    """Return the truth values of AND for one or more operands."""
    return reduce(_and, parts)


def join_or(parts: Sequence[Truths]) -> Truths:
    """Return the truth values of OR for one or more operands."""
    return join_and([part.invert() for part in parts]).invert()


def _and(a: Truths, b: Truths) -> Truths:
    any_a, any_b = a.true | a.false | a.null, b.true | b.false | b.null
    # A false operand makes AND false, but only in files where the other one has a truth value, and so has rows.
    return Truths(
        a.true & b.true,
        (a.false & any_b) | (b.false & any_a),
        (a.null & (b.true | b.null)) | (a.true & b.null),
    )


UNKNOWN = -1  # an unknown count
_SLACK = MICROS_PER_DAY
_FEW = 8  # values of a list; up to so many are compared one by one with all files
_Sides = tuple[Mask, Mask, Mask]


@dataclass(frozen=True, slots=True)
class ColumnBounds:
    """Known facts about a column in many files, one entry for each file.

    ``low`` and ``high`` bound the non-null values; an entry is null if it is unknown, and None means that all are. An
    unknown entry of ``nulls`` and ``rows``, which count nulls and rows, is ``UNKNOWN``; None means that all are.
    """

    low: pa.Array | None = None
    high: pa.Array | None = None
    nulls: npt.NDArray[np.int64] | None = None
    rows: npt.NDArray[np.int64] | None = None


def find_candidates(predicate: Predicate, columns: Mapping[str, ColumnBounds], count: int) -> Mask:
    """Return which of ``count`` files may contain rows that pass; a column without bounds may have any value.

    ``columns`` maps columns, and functions of a column (``name_expression``), to their bounds.
    """
    return _find_truths(predicate.root, _Files(columns, count)).true


def name_expression(node: Node) -> str | None:
    """Return the name of a node's bounds: ``a.b`` of a column, ``upper(a)`` of a function; None for other nodes."""
    if isinstance(node, Column):
        return ".".join(node.path)
    if isinstance(node, nodes.Function) and isinstance(node.child, Column):
        return f"{node.name}({'.'.join(node.child.path)})"
    return None


@dataclass(frozen=True, slots=True)
class _Files:
    columns: Mapping[str, ColumnBounds]
    count: int


def _find_truths(node: Node, files: _Files) -> Truths:
    """Return the truth values that a node may have for rows within the statistics."""
    if isinstance(node, nodes.Not):
        return _find_truths(node.children[0], files).invert()
    if isinstance(node, (nodes.And, nodes.Or)):
        join = join_and if isinstance(node, nodes.And) else join_or
        return join([_find_truths(child, files) for child in node.children])
    if isinstance(node, Literal):
        return make_truths(files.count, true=node.value is True, false=node.value is False, null=node.value is None)
    if isinstance(node, Column) and pat.is_boolean(node.type):
        return _find_comparison_truths(nodes.Comparison("=", node, Literal(True, node.type)), files)
    find = _FINDERS.get(type(node))
    return make_any(files.count) if find is None else find(node, files)


@dataclass(frozen=True, slots=True)
class _Ends:
    """One bound in each file: numbers, or an array of Python objects; and whether it is known."""

    values: npt.NDArray[Any]
    known: Mask


@dataclass(frozen=True, slots=True)
class _Ranges:
    """Bounds of an expression in each file, and whether it may be null there, or may have a value."""

    low: _Ends
    high: _Ends
    may_be_null: Mask
    may_have_value: Mask
    type: pa.DataType


def _find_ranges(node: Node, files: _Files) -> _Ranges | None:
    """Find the ranges of a column, or of casts of it that keep its order."""
    casts: list[nodes.Cast] = []
    while isinstance(node, nodes.Cast) and _keeps_order(node):
        casts.append(node)
        node = node.child
    name = name_expression(node)
    known = None if name is None else files.columns.get(name)
    if known is None:
        return None
    casts.reverse()
    low = _make_ends(known.low, node.type, casts, files.count, -_SLACK)
    high = _make_ends(known.high, node.type, casts, files.count, _SLACK)
    nulls = np.full(files.count, UNKNOWN) if known.nulls is None else known.nulls
    rows = np.full(files.count, UNKNOWN) if known.rows is None else known.rows
    all_null = (nulls >= 0) & (rows >= 0) & (rows <= nulls)
    if low.known.any() and high.known.any():
        # Contradicting bounds (low above high) are not trusted.
        trusted = ~(low.known & high.known) | (low.values <= high.values).astype(np.bool_)
        low, high = (_Ends(each.values, each.known & trusted) for each in (low, high))
    return _Ranges(low, high, nulls != 0, ~all_null, casts[-1].type if casts else node.type)


def _keeps_order(node: nodes.Cast) -> bool:
    """Say whether a <= b implies cast(a) <= cast(b), for casts inserted by comparisons, apart from ``_moves_back``."""
    source, target = node.child.type, node.type
    if not node.ansi and not cannot_fail(source, target):  # a value may become null, or keep its low bits
        return False
    if is_integral(source):
        return bool(is_integral(target) or pat.is_decimal(target) or pat.is_floating(target))
    if pat.is_decimal(source):
        return bool(pat.is_decimal(target) or pat.is_floating(target))
    if pat.is_floating(source):
        return bool(pat.is_float64(target))
    return is_datetime(source) and is_datetime(target)


def _moves_back(node: nodes.Cast) -> bool:
    """Say whether a cast follows the clocks of a zone, which are sometimes set back, by a day at most."""
    is_zoned = depends_on_zone(node.child.type, node.type) and not pat.is_date32(node.child.type)
    return is_zoned and not is_fixed(node.zone)


def _make_ends(ends: pa.Array | None, type_: pa.DataType, casts: Sequence[nodes.Cast], count: int, slack: int) -> _Ends:
    """Return bounds of a column after casts; unknown if missing or not usable, such as bounds of nested types."""
    if ends is None or pat.is_nested(type_):
        return _Ends(np.zeros(count, np.int64), np.zeros(count, np.bool_))
    ends = ends if ends.type == type_ else _convert_ends(ends, type_, lambda some: cast(some, type_))
    for node in casts:
        ends = _convert_ends(ends, node.type, partial(_cast_ends, node=node, slack=slack))
    return _to_ends(ends)


def _cast_ends(ends: pa.Array, node: nodes.Cast, slack: int) -> pa.Array:
    if _moves_back(node):
        ends = pc.add_checked(ends.view(pa.int64()), slack).view(ends.type)
    return cast(ends, node.type, node.zone)


def _convert_ends(ends: pa.Array, type_: pa.DataType, convert: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """Convert bounds; a bound that cannot be converted becomes null."""
    try:
        return convert(ends)
    except (InvalidQueryError, pa.ArrowException):
        # Halving finds the bounds at fault; the others stay useful.
        if len(ends) == 1:
            return pa.nulls(1, type_)
        half = len(ends) // 2
        return pa.concat_arrays([_convert_ends(part, type_, convert) for part in (ends[:half], ends[half:])])


def _to_ends(ends: pa.Array) -> _Ends:
    """Return bounds in the form of literal values: dates and times are numbers."""
    type_, known = ends.type, is_valid(ends)
    if pat.is_boolean(type_):
        return _Ends(to_booleans(ends), known)
    if pat.is_floating(type_):
        numbers = to_numbers(ends).astype(np.float64)
        return _Ends(numbers, known & ~np.isnan(numbers))
    if is_integral(type_) or is_datetime(type_):
        width = pa.int32() if pat.is_date32(type_) else pa.int64() if is_datetime(type_) else type_
        return _Ends(to_numbers(ends.view(width)).astype(np.int64), known)
    found: list[Any] = ends.to_pylist()
    if pat.is_string(type_):
        known &= np.array([each is None or _orders_by_bytes(each) for each in found], np.bool_)
    if not known.any():
        return _Ends(np.zeros(len(found), np.int64), known)
    values = np.empty(len(found), object)
    values[:] = found
    values[~known] = values[known][0]  # any value that can be compared
    return _Ends(values, known)


def _orders_by_bytes(text: str) -> bool:
    """Say whether comparisons with this text agree in UTF-16 and UTF-8 order."""
    return text.isascii() or all(character < "\ud800" for character in text)


def _find_null_truths(child: Node, files: _Files) -> Truths:
    where = _find_ranges(child, files)
    if where is None:
        return make_truths(files.count, true=True, false=True)
    return Truths(where.may_be_null, where.may_have_value, np.zeros(files.count, np.bool_))


_MIRRORED = {"=": "=", "<=>": "<=>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _find_comparison_truths(node: nodes.Comparison, files: _Files) -> Truths:
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
    """Return for each file whether values there may be below, equal to, or above a non-null value."""
    low, high = where.low, where.high
    count = len(low.known)
    if pat.is_floating(where.type) and value != value:  # NaN: no value is above it
        return np.ones(count, np.bool_), np.ones(count, np.bool_), np.zeros(count, np.bool_)
    if pat.is_string(where.type) and not _orders_by_bytes(value):
        return np.ones(count, np.bool_), np.ones(count, np.bool_), np.ones(count, np.bool_)
    below = _compare(low, np.less, value)
    above = _compare(high, np.greater, value)
    from_low, to_high = _compare(low, np.less_equal, value), _compare(high, np.greater_equal, value)
    if pat.is_floating(where.type):
        # Statistics ignore NaN, which is above every value.
        return below, from_low & to_high, np.ones(count, np.bool_)
    if is_text(where.type):
        extends = _find_beginnings(high, value)
        return below, from_low & (to_high | extends), above | extends
    return below, from_low & to_high, above


def _compare(ends: _Ends, operator: Callable[..., npt.NDArray[Any]], value: Any) -> Mask:
    """Return where the comparison of a bound with a value holds, or the bound is unknown."""
    if not ends.known.any():
        return ~ends.known
    return ~ends.known | operator(ends.values, value).astype(np.bool_)


def _find_beginnings(high: _Ends, value: str | bytes) -> Mask:
    """Return where the value begins with the upper bound, which may have been cut short."""
    if not high.known.any():
        return high.known
    return high.known & np.array([value.startswith(each) for each in high.values], np.bool_)


def _find_in_list_truths(node: nodes.InList, files: _Files) -> Truths:
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
    """Return for each file whether one of many values may be in it, by binary search in the sorted values."""
    plain = sorted(each for each in members if each == each)
    if len(plain) < len(members) or (pat.is_string(where.type) and not all(map(_orders_by_bytes, plain))):
        return np.ones(len(where.low.known), np.bool_)  # NaN, or text in another order: too rare to look closer
    found = np.zeros(len(where.low.known), np.bool_)
    ends = zip(where.low.values, where.low.known, where.high.values, where.high.known, strict=True)
    for at, (low, has_low, high, has_high) in enumerate(ends):
        first = bisect_left(plain, low) if has_low else 0
        last = bisect_right(plain, high) if has_high else len(plain)
        extends = is_text(where.type) and first <= last < len(plain) and plain[last].startswith(high)
        found[at] = first < last or extends
    return found


def _find_like_truths(node: nodes.Like, files: _Files) -> Truths:
    """Return the truth values of a LIKE: matching values begin with the pattern's literal prefix."""
    where = _find_ranges(node.child, files)
    if where is None:
        return make_any(files.count)
    prefix = find_literal_prefix(node.pattern, node.escape)
    found = where.may_have_value
    if prefix and _orders_by_bytes(prefix):
        low, high = where.low, where.high
        may_reach = _compare(high, np.greater_equal, prefix) | _find_beginnings(high, prefix)
        may_begin = _compare(low, np.less_equal, prefix)
        if low.known.any():
            may_begin |= np.array([each.startswith(prefix) for each in low.values], np.bool_)
        found = found & may_reach & may_begin
    return Truths(found, where.may_have_value, where.may_be_null)


_FINDERS: dict[type[Node], Callable[..., Truths]] = {
    nodes.Comparison: _find_comparison_truths,
    nodes.InList: _find_in_list_truths,
    nodes.IsNull: lambda node, files: _find_null_truths(node.child, files),
    nodes.Like: _find_like_truths,
}
