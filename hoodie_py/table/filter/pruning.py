"""Decide by partition values or column statistics whether a row of a partition or file can pass a filter.

The rule: the answer is False only when no row can pass. For each node of a filter, this module computes the set of
truth values (true, false, null) that the node *may* have for some row. A node that it does not understand may have all
three. Statistics are bounds, not values:

* Text and binary bounds may be cut short, so a longer value may begin with the upper bound. Some writers order text by
  UTF-16 units. That order differs from the order of bytes from U+D800 on, so bounds with such characters are not used.
* Float statistics leave NaN out, and NaN is above all values. Zero may have either sign. A bound of NaN says nothing.
* A missing bound or null count is unknown. A null count of 0 is certain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pat

from hoodie_py.arrow.arrays import from_texts
from hoodie_py.errors import InvalidQueryError
from hoodie_py.table.filter.ansi_casts import cast
from hoodie_py.table.filter.evaluate import evaluate
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
    iterate_nodes,
    split_conjuncts,
)
from hoodie_py.table.filter.types import is_datetime, is_integral, is_text

_TRUE, _FALSE, _NULL = frozenset({True}), frozenset({False}), frozenset({None})
_ANY: frozenset[bool | None] = frozenset({True, False, None})
_Truths = frozenset[bool | None]


class ColumnStatistics(NamedTuple):
    """Known facts about a column in a file: bounds of its non-null values, null count, row count."""

    minimum: Any = None
    maximum: Any = None
    null_count: int | None = None
    row_count: int | None = None


def may_match_partition(predicate: Predicate, values: Mapping[str, Any]) -> bool:
    """Say whether rows with these partition values may pass.

    ``values``: partition column -> its value as Python (or a ``pyarrow.Scalar``), None for null. Other columns may have
    any value.
    """
    if predicate.columns and predicate.columns.isdisjoint(values):
        return True
    return True in _find_truths_of_values(predicate.root, values)


def names_partition(predicate: Predicate, fields: Sequence[str]) -> bool:
    """Say whether a filter fixes the value of every partition field.

    Java then builds the partition's path from these values (``HoodieFileIndex``). So the values are compared with whole
    path segments, also with those that have an equals sign.
    """
    named = set()
    for part in split_conjuncts(predicate):
        node = part.root
        if isinstance(node, Comparison) and node.operator == "=":
            sides = (node.left, node.right) if isinstance(node.left, Column) else (node.right, node.left)
            if isinstance(sides[0], Column) and isinstance(sides[1], Literal):
                named.add(".".join(sides[0].path))
    return bool(fields) and named.issuperset(fields)


def may_match_statistics(predicate: Predicate, statistics: Mapping[str, tuple[Any, ...]]) -> bool:
    """Say whether rows of a file with these statistics may pass.

    ``statistics``: top-level column -> (minimum, maximum, null count[, row count]), None for what is not known. Other
    columns may have any value.
    """
    known = {name: ColumnStatistics(*each) for name, each in statistics.items()}
    return True in _find_truths(predicate.root, known)


def _find_truths_of_values(node: Node, values: Mapping[str, Any]) -> _Truths:
    """Return the truth values of a node where some columns have one known value."""
    if isinstance(node, (And, Or, Not)) and not Predicate(node).columns <= values.keys():
        return _combine(node, [_find_truths_of_values(child, values) for child in node.children])
    columns = Predicate(node).columns
    if not columns <= values.keys():
        return _ANY
    types = {
        each.path[0]: each.type for each in iterate_nodes(node) if isinstance(each, Column) and len(each.path) == 1
    }
    try:
        arrays = [_make_single(values[name], types.get(name)) for name in columns]
        row = pa.RecordBatch.from_arrays(arrays, list(columns)) if columns else pa.RecordBatch.from_pydict({"row": [0]})
        return frozenset({evaluate(Predicate(node), row)[0].as_py()})
    except (InvalidQueryError, pa.ArrowException, TypeError, ValueError, OverflowError):
        return _ANY


def _make_single(value: Any, type_: pa.DataType | None) -> pa.Array:
    if isinstance(value, pa.Scalar):
        return pa.repeat(value, 1)
    if isinstance(value, str) and type_ == pa.string():
        return from_texts([value], type_)
    return pa.array([value], type_) if type_ is not None else pa.array([value])


def _find_truths(node: Node, statistics: Mapping[str, ColumnStatistics]) -> _Truths:
    """Return the truth values that a node may have for rows within the statistics."""
    if isinstance(node, (And, Or, Not)):
        return _combine(node, [_find_truths(child, statistics) for child in node.children])
    if isinstance(node, Literal):
        return frozenset({node.value})
    if isinstance(node, Column) and pat.is_boolean(node.type):
        return _find_comparison_truths(Comparison("=", node, Literal(True, node.type)), statistics)
    if isinstance(node, IsNull):
        return _find_null_truths(node.child, statistics)
    if isinstance(node, Comparison):
        return _find_comparison_truths(node, statistics)
    if isinstance(node, InList):
        return _find_in_list_truths(node, statistics)
    if isinstance(node, Like):
        return _find_like_truths(node, statistics)
    return _ANY


def _combine(node: And | Or | Not, parts: list[_Truths]) -> _Truths:
    """Apply three-valued logic to every combination of the parts' truth values."""
    if isinstance(node, Not):
        return frozenset(None if truth is None else not truth for truth in parts[0])
    decisive = isinstance(node, Or)  # one true decides OR, one false decides AND
    result = parts[0]
    for part in parts[1:]:
        result = frozenset(
            decisive if decisive in (a, b) else None if None in (a, b) else not decisive for a in result for b in part
        )
    return result


@dataclass(frozen=True, slots=True)
class _Range:
    """Bounds of an expression's values, as one-element arrays of its type; None for an unknown bound."""

    low: pa.Array | None
    high: pa.Array | None
    may_be_null: bool
    may_have_value: bool
    type: pa.DataType

    @property
    def is_open_above(self) -> bool:
        """Whether a value may be above ``high``: a longer text, or NaN."""
        return is_text(self.type) or bool(pat.is_floating(self.type))


def _find_range(node: Node, statistics: Mapping[str, ColumnStatistics]) -> _Range | None:
    """Find the range of a column, or of a cast that keeps the column's order."""
    if isinstance(node, Column):
        return _find_column_range(node, statistics.get(node.path[0])) if len(node.path) == 1 else None
    if not isinstance(node, Cast) or not _keeps_order(node.child.type, node.type):
        return None
    inner = _find_range(node.child, statistics)
    if inner is None:
        return None
    try:
        low, high = (None if end is None else cast(end, node.type) for end in (inner.low, inner.high))
    except InvalidQueryError:
        return None
    return _Range(low, high, inner.may_be_null, inner.may_have_value, node.type)


def _keeps_order(source: pa.DataType, target: pa.DataType) -> bool:
    """Say whether a <= b implies cast(a) <= cast(b), for the casts that comparisons insert."""
    if is_integral(source):
        return bool(is_integral(target) or pat.is_decimal(target) or pat.is_floating(target))
    if pat.is_decimal(source):
        return bool(pat.is_decimal(target) or pat.is_floating(target))
    if pat.is_floating(source):
        return bool(pat.is_float64(target))
    return is_datetime(source) and is_datetime(target)


def _find_column_range(column: Column, known: ColumnStatistics | None) -> _Range | None:
    if known is None:
        return None
    nulls, rows = known.null_count, known.row_count
    all_null = nulls is not None and rows is not None and 0 <= rows <= nulls
    low, high = (_make_bound(value, column.type) for value in (known.minimum, known.maximum))
    if low is not None and high is not None and pc.greater(low, high)[0].as_py():  # contradictory, so not trusted
        low = high = None
    return _Range(low, high, nulls != 0, not all_null, column.type)


def _make_bound(value: Any, type_: pa.DataType) -> pa.Array | None:
    """Convert a bound to the column's type; None when it is missing or unusable, as the bytes of a vector are."""
    if value is None or pat.is_nested(type_):
        return None
    try:
        array = _make_single(value, type_)
        array = array if array.type == type_ else array.cast(type_)
        usable = not pat.is_string(type_) or _orders_by_bytes(array[0].as_py())
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None
    if array.null_count or not usable or (pat.is_floating(type_) and pc.is_nan(array)[0].as_py()):
        return None
    return array


def _orders_by_bytes(text: str) -> bool:
    """Say whether UTF-16 and UTF-8 order agree for comparisons with this text."""
    return all(character < "\ud800" for character in text)


def _find_null_truths(child: Node, statistics: Mapping[str, ColumnStatistics]) -> _Truths:
    where = _find_range(child, statistics)
    if where is None:
        return frozenset({True, False})
    return (_TRUE if where.may_be_null else frozenset()) | (_FALSE if where.may_have_value else frozenset())


_MIRRORED = {"=": "=", "<=>": "<=>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _find_comparison_truths(node: Comparison, statistics: Mapping[str, ColumnStatistics]) -> _Truths:
    operator, left, right = node.operator, node.left, node.right
    if isinstance(left, Literal):
        operator, left, right = _MIRRORED[operator], right, left
    if not isinstance(right, Literal):
        return _ANY
    if right.value is None:
        return _find_null_truths(left, statistics) if operator == "<=>" else _NULL
    where = _find_range(left, statistics)
    if where is None:
        return _ANY
    truths: _Truths = _find_range_truths(operator, where, right) if where.may_have_value else frozenset()
    return truths | ((_FALSE if operator == "<=>" else _NULL) if where.may_be_null else frozenset())


def _find_range_truths(operator: str, where: _Range, literal: Literal) -> _Truths:
    """Return the truth values of ``value operator literal`` for values in the range."""
    below, equal, above = _find_sides(where, literal)
    truths = {
        "=": (equal, below or above),
        "<=>": (equal, below or above),
        "<": (below, equal or above),
        "<=": (below or equal, above),
        ">": (above, below or equal),
        ">=": (above or equal, below),
    }[operator]
    return (_TRUE if truths[0] else frozenset()) | (_FALSE if truths[1] else frozenset())


def _find_sides(where: _Range, literal: Literal) -> tuple[bool, bool, bool]:
    """Say whether a value in the range may be below, equal to, and above the literal."""
    value, low, high = literal.value, where.low, where.high
    if pat.is_floating(where.type) and value != value:  # NaN: no value is above it
        return True, True, False
    if pat.is_string(where.type) and not _orders_by_bytes(value):
        return True, True, True
    point = _make_single(value, where.type)
    low_order = None if low is None else _compare_x(low, point)
    high_order = None if high is None else _compare_x(high, point)
    extends_to = high is not None and is_text(where.type) and value.startswith(high[0].as_py())
    below = low_order is None or low_order < 0
    above = high_order is None or high_order > 0 or (where.is_open_above and (not is_text(where.type) or extends_to))
    equal = (low_order is None or low_order <= 0) and (high_order is None or high_order >= 0 or extends_to)
    return below, equal, above


def _compare_x(left: pa.Array, right: pa.Array) -> int:
    return -1 if pc.less(left, right)[0].as_py() else 0 if pc.equal(left, right)[0].as_py() else 1


def _find_in_list_truths(node: InList, statistics: Mapping[str, ColumnStatistics]) -> _Truths:
    where = _find_range(node.child, statistics)
    if where is None or not where.may_have_value:
        return _ANY if where is None else _NULL
    members = [Literal(value, node.child.type) for value in node.values if value is not None]
    can_equal = any(_find_sides(where, member)[1] for member in members)
    otherwise = _FALSE if len(members) == len(node.values) else _NULL
    return (_TRUE if can_equal else frozenset()) | otherwise | (_NULL if where.may_be_null else frozenset())


def _find_like_truths(node: Like, statistics: Mapping[str, ColumnStatistics]) -> _Truths:
    """Return the truth values of a LIKE: values that match begin with the pattern's literal prefix."""
    where = _find_range(node.child, statistics)
    if where is None:
        return _ANY
    if not where.may_have_value:
        return _NULL
    prefix = find_literal_prefix(node.pattern, node.escape)
    low, high = where.low, where.high
    if not prefix or not _orders_by_bytes(prefix):
        return _ANY
    lowest = None if low is None else low[0].as_py()
    highest = None if high is None else high[0].as_py()
    too_low = highest is not None and highest < prefix and not prefix.startswith(highest)
    too_high = lowest is not None and lowest > prefix and not lowest.startswith(prefix)
    truths = frozenset() if too_low or too_high else _TRUE
    return truths | _FALSE | (_NULL if where.may_be_null else frozenset())
