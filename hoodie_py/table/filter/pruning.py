"""Decide by partition values or column statistics whether a row of a partition or file can pass a filter.

The answer is False only if no row can pass. For a partition, this module computes the set of truth values (true, false,
null) that each node of the filter may have. A node that is not understood may have all three.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import types as pat

from hoodie_py.arrow.arrays import from_texts
from hoodie_py.errors import InvalidQueryError, UnsupportedFeatureError
from hoodie_py.table.filter import predicate as nodes
from hoodie_py.table.filter.bounds import ColumnBounds, find_candidates
from hoodie_py.table.filter.evaluate import evaluate
from hoodie_py.table.filter.predicate import Column, Literal, Node, Predicate
from hoodie_py.table.filter.types import is_integral

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

    ``values`` maps partition columns to their values in Python (or as ``pyarrow.Scalar``), None for null. Other columns
    may have any value.
    """
    if predicate.columns and predicate.columns.isdisjoint(values):
        return True
    return True in _find_truths_of_values(predicate.root, values)


def names_partition(predicate: Predicate, fields: Sequence[str]) -> bool:
    """Say whether a filter fixes the value of every partition field.

    If so, Java builds the partition's path from the values (``HoodieFileIndex``). So the values are compared with whole
    path segments, even with segments that contain an equals sign or ``%XX``.
    """
    return bool(fields) and find_fixed_values(predicate).keys() >= set(fields)


def find_fixed_values(predicate: Predicate) -> dict[str, Any]:
    """Return the columns that a filter fixes to one value, by ``=`` or by ``in`` with one value, and these values.

    Spark makes an equality of ``in`` with one value.
    """
    fixed: dict[str, Any] = {}
    for part in predicate.conjuncts:
        node = part.root
        if isinstance(node, nodes.Comparison) and node.operator == "=":
            sides = (node.left, node.right) if isinstance(node.left, Column) else (node.right, node.left)
            if isinstance(sides[0], Column) and isinstance(sides[1], Literal):
                fixed[".".join(sides[0].path)] = sides[1].value
        elif isinstance(node, nodes.InList) and isinstance(node.child, Column) and len(set(node.values)) == 1:
            fixed[".".join(node.child.path)] = node.values[0]
    return fixed


def may_match_statistics(predicate: Predicate, statistics: Mapping[str, tuple[Any, ...]]) -> bool:
    """Say whether rows of a file with these statistics may pass; ``bounds`` has the rules.

    ``statistics`` maps top-level columns to (minimum, maximum, null count[, row count]), None for unknown. Other
    columns may have any value.
    """
    bounds = {
        node.path[0]: _make_bounds(ColumnStatistics(*statistics[node.path[0]]), node.type)
        for node in nodes.iterate_nodes(predicate.root)
        if isinstance(node, Column) and len(node.path) == 1 and node.path[0] in statistics
    }
    return bool(find_candidates(predicate, bounds, 1)[0])


def lies_outside(listed: nodes.ListedValues, low: Any, high: Any) -> bool:
    """Say whether all listed values are outside the bounds of a file: ``may_match_statistics`` without its arrays.

    Only for bounds that are ASCII texts or whole numbers, which need no further rules; False for all others.
    """
    kind = type(low)
    if kind is not type(high) or not (pat.is_string(listed.type) if kind is str else is_integral(listed.type)):
        return False
    if kind is str and not (low.isascii() and high.isascii()):
        return False
    if kind not in (str, int) or low > high:
        return False
    if kind is int:
        return all(type(value) is int and not low <= value <= high for value in listed.values)
    return all(
        # The upper bound may have been cut short, so a value that begins with it may be inside.
        type(value) is str and value.isascii() and (value < low or (value > high and not value.startswith(high)))
        for value in listed.values
    )


def _make_bounds(known: ColumnStatistics, type_: pa.DataType) -> ColumnBounds:
    low, high = (_make_bound(value, type_) for value in (known.minimum, known.maximum))
    nulls, rows = (None if each is None else np.array([each]) for each in (known.null_count, known.row_count))
    return ColumnBounds(low, high, nulls, rows)


def _make_bound(value: Any, type_: pa.DataType) -> pa.Array | None:
    """Return a bound as an array of the column's type; None if it is missing or cannot be converted."""
    if value is None or pat.is_nested(type_):
        return None
    try:
        array = _make_single(value, type_)
        return array if array.type == type_ else array.cast(type_)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None


def _find_truths_of_values(node: Node, values: Mapping[str, Any]) -> _Truths:
    """Return the truth values of a node in rows in which some columns have one known value."""
    if isinstance(node, (nodes.And, nodes.Or, nodes.Not)) and not Predicate(node).columns <= values.keys():
        return _combine(node, [_find_truths_of_values(child, values) for child in node.children])
    columns = Predicate(node).columns
    if not columns <= values.keys():
        return _ANY
    types = {
        each.path[0]: each.type
        for each in nodes.iterate_nodes(node)
        if isinstance(each, Column) and len(each.path) == 1
    }
    try:
        arrays = [_make_single(values[name], types.get(name)) for name in columns]
        row = pa.RecordBatch.from_arrays(arrays, list(columns)) if columns else pa.RecordBatch.from_pydict({"row": [0]})
        return frozenset({evaluate(Predicate(node), row)[0].as_py()})
    except (InvalidQueryError, UnsupportedFeatureError, pa.ArrowException, TypeError, ValueError, OverflowError):
        # A node that cannot be computed may have any truth value.
        return _ANY


def _make_single(value: Any, type_: pa.DataType | None) -> pa.Array:
    if isinstance(value, pa.Scalar):
        return pa.repeat(value, 1)
    if isinstance(value, str) and type_ == pa.string():
        return from_texts([value], type_)
    return pa.array([value], type_) if type_ is not None else pa.array([value])


def _combine(node: nodes.And | nodes.Or | nodes.Not, parts: list[_Truths]) -> _Truths:
    """Combine the parts' truth values in every way by three-valued logic."""
    if isinstance(node, nodes.Not):
        return frozenset(None if truth is None else not truth for truth in parts[0])
    decisive = isinstance(node, nodes.Or)  # a true operand decides OR, a false one AND
    result = parts[0]
    for part in parts[1:]:
        result = frozenset(
            decisive if decisive in (a, b) else None if None in (a, b) else not decisive for a in result for b in part
        )
    return result
