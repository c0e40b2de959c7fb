"""Evaluate a bound filter on a batch of rows: a boolean for each row, null where SQL's answer is unknown.

Arrow kernels run over whole columns. A part that can raise (a cast, an overflow, a division) is computed only for the
rows for which Spark computes it: the right side of AND is skipped where the left side is false, the right side of OR
where it is true, and the right operand of an operator where the left one is null. So ``x <> 0 and 10 / x > 1`` is safe,
as in Spark.

Floats follow Spark, not IEEE: NaN equals NaN and is greater than every other value, and -0.0 equals 0.0. Text and
binary are ordered by unsigned bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pat

from hoodie_py.arrow.arrays import from_texts, make_text, to_booleans
from hoodie_py.errors import InvalidQueryError
from hoodie_py.table.filter import ansi_casts, arithmetic
from hoodie_py.table.filter import predicate as nodes
from hoodie_py.table.filter.arrow_expression import evaluate_expression
from hoodie_py.table.filter.date_parts import DATE_PARTS, TIME_PARTS, compute_part
from hoodie_py.table.filter.lenient_casts import cast_leniently
from hoodie_py.table.filter.like_pattern import match_pattern
from hoodie_py.table.filter.predicate import Column, Literal, Node, Predicate


def evaluate(predicate: Predicate, batch: pa.RecordBatch) -> pa.BooleanArray:
    """Return for each row whether it passes: true keeps the row, false and null drop it.

    A column whose type differs from the filter's is cast.

    Raises:
        InvalidQueryError: a cast or computation fails for a row for which Spark computes it, too.
    """
    return _evaluate_node(predicate.root, batch)


def evaluate_value(node: Node, batch: pa.RecordBatch) -> pa.Array:
    """Compute a value for each row. Raises as ``evaluate``."""
    return _evaluate_node(node, batch)


def evaluate_constant(node: Node) -> Literal:
    """Compute a node without columns."""
    if isinstance(node, Literal):
        return node
    row = pa.RecordBatch.from_arrays([pa.array([0])], ["row"])
    value = _evaluate_node(node, row)
    if pat.is_date(value.type) or pat.is_timestamp(value.type):
        value = value.view(pa.int32() if pat.is_date(value.type) else pa.int64())
    return Literal(value[0].as_py(), node.type)


def _evaluate_node(node: Node, batch: pa.RecordBatch) -> pa.Array:
    result = _EVALUATORS[type(node)](node, batch)
    return result.combine_chunks() if isinstance(result, pa.ChunkedArray) else result


def _make_scalar(node: Literal) -> pa.Scalar:
    if isinstance(node.value, str) and node.type == pa.string():
        return make_text(node.value, node.type)
    return pa.scalar(node.value, node.type)


def _evaluate_column(node: Column, batch: pa.RecordBatch) -> pa.Array:
    try:
        values = batch.column(node.path[0])
    except KeyError:
        raise InvalidQueryError(
            f"The rows have no column {node.path[0]!r} to filter on.", column=node.path[0]
        ) from None
    if len(node.path) > 1:
        values = pc.struct_field(values, list(node.path[1:]))
    if values.type == node.type or pat.is_nested(node.type):
        return values
    try:
        return values.cast(node.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidQueryError(
            f"The filter needs {node} as {node.type}, but the rows have {values.type}", column=str(node)
        ) from error


def _evaluate_arithmetic(node: nodes.Arithmetic, batch: pa.RecordBatch) -> pa.Array:
    if node.operator in "/%":  # Spark computes the divisor first
        right, left = _evaluate_both(node.right, node.left, batch)
    else:
        left, right = _evaluate_both(node.left, node.right, batch)
    return arithmetic.compute(node.operator, left, right, node.type, ansi=node.ansi)


def _evaluate_cast(node: nodes.Cast, batch: pa.RecordBatch) -> pa.Array:
    values = _evaluate_node(node.child, batch)
    return (ansi_casts.cast if node.ansi else cast_leniently)(values, node.type, node.zone)


def _evaluate_function(node: nodes.Function, batch: pa.RecordBatch) -> pa.Array:
    values = _evaluate_node(node.child, batch)
    if node.name in DATE_PARTS or node.name in TIME_PARTS:
        return compute_part(node.name, values)
    trim = _TRIMS.get(node.name)
    if trim is not None:
        return trim(values, characters=" ")
    if node.name == "length":
        return pc.binary_length(values) if pat.is_binary(values.type) else pc.utf8_length(values)
    if pc.all(pc.string_is_ascii(values)).as_py() is not False:
        return pc.ascii_upper(values) if node.name == "upper" else pc.ascii_lower(values)
    coded = values.dictionary_encode()
    change = str.upper if node.name == "upper" else str.lower
    return pa.array([change(text) for text in coded.dictionary.to_pylist()], pa.string()).take(coded.indices)


def _evaluate_concat(node: nodes.Concat, batch: pa.RecordBatch) -> pa.Array:
    return pc.binary_join_element_wise(*(_evaluate_node(each, batch) for each in node.operands), "")


def _evaluate_case(node: nodes.Case, batch: pa.RecordBatch) -> pa.Array:
    """Compute each value only for the rows that take it, and each condition only for rows that no earlier one took."""
    left = np.arange(batch.num_rows)
    parts, places = [], []
    for when, then in zip(node.conditions, node.values, strict=True):
        rows = _take_rows(batch, left)
        holds = to_booleans(pc.fill_null(_evaluate_node(when, rows), False))
        if holds.any():
            parts.append(_evaluate_node(then, _take_rows(batch, left[holds])))
            places.append(left[holds])
        left = left[~holds]
    if len(left) or not parts:
        parts.append(_evaluate_node(node.otherwise, _take_rows(batch, left)))
        places.append(left)
    back = np.empty(batch.num_rows, np.int64)
    back[np.concatenate(places)] = np.arange(batch.num_rows)
    return pa.concat_arrays(parts).take(pa.array(back))


def _take_rows(batch: pa.RecordBatch, rows: np.ndarray) -> pa.RecordBatch:
    return batch if len(rows) == batch.num_rows else batch.take(pa.array(rows))


def _evaluate_comparison(node: nodes.Comparison, batch: pa.RecordBatch) -> pa.Array:
    if isinstance(node.right, Literal):
        return _COMPARE[node.operator](_evaluate_node(node.left, batch), _make_scalar(node.right))
    if isinstance(node.left, Literal):
        return _COMPARE[node.operator](_make_scalar(node.left), _evaluate_node(node.right, batch))
    if node.operator == "<=>":
        return _is_same(_evaluate_node(node.left, batch), _evaluate_node(node.right, batch))
    return _COMPARE[node.operator](*_evaluate_both(node.left, node.right, batch))


def _evaluate_in_list(node: nodes.InList, batch: pa.RecordBatch) -> pa.Array:
    values = _evaluate_node(node.child, batch)
    listed = [value for value in node.values if value is not None]
    members = from_texts(listed, values.type) if values.type == pa.string() else pa.array(listed, values.type)
    if pat.is_floating(values.type):
        # is_in compares bits: adding 0.0 turns -0.0 into 0.0.
        values, members = pc.add(values, pa.scalar(0.0, values.type)), pc.add(members, pa.scalar(0.0, values.type))
    found = pc.is_in(values, value_set=members)
    known = values.is_valid() if len(members) == len(node.values) else pc.and_(values.is_valid(), found)
    return pc.if_else(known, found, pa.nulls(1, pa.bool_())[0])


def _evaluate_and(node: nodes.And, batch: pa.RecordBatch) -> pa.Array:
    def join(known: pa.Array, operand: Node) -> pa.Array:
        return pc.and_kleene(known, _evaluate_where_needed(operand, batch, lambda: pc.fill_null(known, True)))

    return reduce(join, node.operands[1:], _evaluate_node(node.operands[0], batch))


def _evaluate_or(node: nodes.Or, batch: pa.RecordBatch) -> pa.Array:
    def join(known: pa.Array, operand: Node) -> pa.Array:
        return pc.or_kleene(known, _evaluate_where_needed(operand, batch, lambda: pc.fill_null(pc.invert(known), True)))

    return reduce(join, node.operands[1:], _evaluate_node(node.operands[0], batch))


def _evaluate_both(first: Node, second: Node, batch: pa.RecordBatch) -> tuple[pa.Array, pa.Array]:
    """Compute two operands, the second one only for rows where the first has a value."""
    values = _evaluate_node(first, batch)
    return values, _evaluate_where_needed(second, batch, values.is_valid)


def _evaluate_where_needed(node: Node, batch: pa.RecordBatch, needed: Callable[[], pa.Array]) -> pa.Array:
    """Compute a node. If it can raise, compute it only for the needed rows, and return null for the others."""
    if not _can_fail(node):
        return _evaluate_node(node, batch)
    mask = needed()
    if pc.all(mask).as_py() is not False:
        return _evaluate_node(node, batch)
    return pc.replace_with_mask(pa.nulls(batch.num_rows, node.type), mask, _evaluate_node(node, batch.filter(mask)))


def _can_fail(root: Node) -> bool:
    for node in nodes.iterate_nodes(root):
        if isinstance(node, nodes.Arithmetic) and node.ansi and arithmetic.can_fail(node.operator, node.type):
            return True
        if isinstance(node, nodes.Negate) and node.ansi and pat.is_integer(node.type):
            return True
        if isinstance(node, nodes.Cast) and not ansi_casts.cannot_fail(node.child.type, node.type):
            return True
    return False


_TRIMS: dict[str, Callable[..., pa.Array]] = {
    "trim": pc.utf8_trim,
    "ltrim": pc.utf8_ltrim,
    "rtrim": pc.utf8_rtrim,
}
_Datum: TypeAlias = Any  # an array or a scalar


def _is_equal(left: _Datum, right: _Datum) -> pa.Array:
    equal = pc.equal(left, right)
    return pc.or_(equal, pc.and_(pc.is_nan(left), pc.is_nan(right))) if pat.is_floating(left.type) else equal


def _is_less(left: _Datum, right: _Datum) -> pa.Array:
    less = pc.less(left, right)
    if not pat.is_floating(left.type):
        return less
    return pc.or_(less, pc.and_(pc.is_nan(right), pc.invert(pc.is_nan(left))))


def _is_less_or_equal(left: _Datum, right: _Datum) -> pa.Array:
    less = pc.less_equal(left, right)
    return pc.or_(less, pc.is_nan(right)) if pat.is_floating(left.type) else less


def _is_same(left: _Datum, right: _Datum) -> pa.Array:
    both_null = pc.and_(pc.is_null(left), pc.is_null(right))
    return pc.or_(pc.fill_null(_is_equal(left, right), False), both_null)


_COMPARE: dict[str, Callable[[_Datum, _Datum], pa.Array]] = {
    "=": _is_equal,
    "<=>": _is_same,
    "<": _is_less,
    "<=": _is_less_or_equal,
    ">": lambda left, right: _is_less(right, left),
    ">=": lambda left, right: _is_less_or_equal(right, left),
}

_EVALUATORS: dict[type[Node], Callable[..., pa.Array]] = {
    Literal: lambda node, batch: pa.repeat(_make_scalar(node), batch.num_rows),
    Column: _evaluate_column,
    nodes.Cast: _evaluate_cast,
    nodes.Arithmetic: _evaluate_arithmetic,
    nodes.Negate: lambda node, batch: arithmetic.negate(_evaluate_node(node.child, batch), ansi=node.ansi),
    nodes.Function: _evaluate_function,
    nodes.Concat: _evaluate_concat,
    nodes.Case: _evaluate_case,
    nodes.Comparison: _evaluate_comparison,
    nodes.InList: _evaluate_in_list,
    nodes.Like: lambda node, batch: match_pattern(_evaluate_node(node.child, batch), node.pattern, node.escape),
    nodes.IsNull: lambda node, batch: _evaluate_node(node.child, batch).is_null(),
    nodes.Not: lambda node, batch: pc.invert(_evaluate_node(node.child, batch)),
    nodes.And: _evaluate_and,
    nodes.Or: _evaluate_or,
    nodes.ArrowFilter: evaluate_expression,
}
