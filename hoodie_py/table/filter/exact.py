"""Nodes for filters of other libraries: a node is built only if it means the same there for every row, else None.

The cast rules of other libraries are not Spark's. So the column's own type must hold a literal exactly, and values are
only cast in ways that cannot fail or round.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyarrow import types as pat

from hoodie_py.errors import InvalidQueryError
from hoodie_py.table.filter.binding import find_column
from hoodie_py.table.filter.predicate import And, Cast, Comparison, InList, IsNull, Literal, Node, Not
from hoodie_py.table.filter.types import INTEGRAL_BOUNDS, is_atomic, is_integral, to_spark_type

_EXACT_IN_DOUBLE = 2**53
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_ORDERED = frozenset(_FLIPPED)


def find_exact_column(path: Sequence[str], schema: pa.Schema) -> Node | None:
    """Return a column, or a field of structs, of a type that filters can use; None if there is none."""
    try:
        column = find_column(path, schema)
    except InvalidQueryError:
        return None
    return column if is_atomic(column.type) else None


def widen(child: Node, target: pa.DataType) -> Node | None:
    """Cast numbers to a type that holds all of them, or rounds them as every library does (long to double)."""
    if child.type == target:
        return child
    if is_integral(child.type) and is_integral(target):
        return Cast(child, target) if INTEGRAL_BOUNDS[target][1] > INTEGRAL_BOUNDS[child.type][1] else None
    if pat.is_float64(target) and (is_integral(child.type) or pat.is_float32(child.type)):
        return Cast(child, target)
    return None


def compare(operator: str, left: Node | pa.Array, right: Node | pa.Array) -> Node | None:
    """Compare two nodes, or a node with an array of one value; ``operator`` is one of = != <=> < <= > >=."""
    if isinstance(left, pa.Array):
        if isinstance(right, pa.Array):
            return None
        return compare(_FLIPPED.get(operator, operator), right, left)
    if isinstance(right, pa.Array):
        values = find_exact_values(right, left.type)
        if values is None or len(values) != 1:
            return None
        right = Literal(values[0], left.type)
    if left.type != right.type or (pat.is_boolean(left.type) and operator in _ORDERED):
        return None
    if operator == "!=":
        return Not(Comparison("=", left, right))
    return Comparison(operator, left, right)


def belong(child: Node, members: pa.Array) -> Node | None:
    """Test whether a value equals one of ``members``. Not for floats: libraries differ on NaN and -0.0."""
    values = None if pat.is_floating(child.type) else find_exact_values(members, child.type)
    if values is None:
        return None
    return InList(child, tuple(values)) if values else None


def is_true_or_false(child: Node) -> Node:
    """Return a test that is false, not null, where the tested value is null."""
    tested = child.child if isinstance(child, InList) else child
    return And((Not(IsNull(tested)), child))


def find_exact_values(values: pa.Array, wanted: pa.DataType) -> list[Any] | None:
    """Return the values as literals of a column's type; None if one is null or the type cannot hold it exactly."""
    if values.null_count:
        return None
    found = to_spark_type(values.type)
    if pat.is_decimal(wanted):
        return _find_decimals(values, wanted)
    if is_integral(wanted):
        return _find_integers(values, wanted)
    if pat.is_floating(wanted):
        return _find_floats(values, wanted)
    if found != wanted:
        return None
    if pat.is_timestamp(wanted):
        return _find_times(values)
    if pat.is_date32(wanted):
        return list(values.cast(pa.int32()).to_pylist())
    return list(values.cast(wanted).to_pylist())


def _find_integers(values: pa.Array, wanted: pa.DataType) -> list[Any] | None:
    if not pat.is_integer(values.type):
        return None
    least, most = INTEGRAL_BOUNDS[wanted]
    numbers = values.to_pylist()
    return numbers if all(least <= number <= most for number in numbers) else None


def _find_floats(values: pa.Array, wanted: pa.DataType) -> list[Any] | None:
    if pat.is_integer(values.type) and pat.is_float64(wanted):
        numbers = values.to_pylist()
        return [float(each) for each in numbers] if all(abs(each) <= _EXACT_IN_DOUBLE for each in numbers) else None
    return list(values.to_pylist()) if values.type == wanted else None


def _find_times(values: pa.Array) -> list[Any] | None:
    try:
        return list(values.cast(pa.timestamp("us", values.type.tz)).cast(pa.int64()).to_pylist())
    except pa.ArrowInvalid:  # nanoseconds, or a year outside the range of microseconds
        return None


def _find_decimals(values: pa.Array, wanted: pa.DataType) -> list[Any] | None:
    if not (pat.is_decimal(values.type) or pat.is_integer(values.type)):
        return None
    found = [_rescale(Decimal(each), wanted) for each in values.to_pylist()]
    return None if None in found else found


def _rescale(value: Decimal, wanted: pa.DataType) -> Decimal | None:
    """Return a decimal with as many decimal places as a type has; None if the type cannot hold it exactly."""
    sign, digits, exponent = value.as_tuple()
    shift = int(exponent) + wanted.scale
    whole = int("".join(map(str, digits)))
    if shift < 0:
        whole, rest = divmod(whole, 10**-shift)
        if rest:
            return None
    else:
        whole *= 10**shift
    texts = tuple(map(int, str(whole)))
    return Decimal((sign, texts, -wanted.scale)) if len(texts) <= wanted.precision else None
