"""Find the type that Spark gives to an operation on two types.

The rules follow Spark's ``AnsiTypeCoercion`` (ANSI mode, the default of Spark 4), ``TypeCoercion`` (without it)
and ``DecimalPrecisionTypeCoercion``. ``find_common_type`` is for comparisons, ``find_wider_type`` for lists and
branches, ``find_arithmetic_types`` for arithmetic. None means that Spark refuses the types, or that filters do not
support them.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import pyarrow as pa
from pyarrow import types as pat

MAX_PRECISION = 38
TIMESTAMP = pa.timestamp("us", tz="UTC")
TIMESTAMP_NTZ = pa.timestamp("us")

INTEGRAL_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}
INTEGRAL_BOUNDS = {
    pa.int8(): (-(2**7), 2**7 - 1),
    pa.int16(): (-(2**15), 2**15 - 1),
    pa.int32(): (-(2**31), 2**31 - 1),
    pa.int64(): (-(2**63), 2**63 - 1),
}
_PRECEDENCE = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()]


def to_spark_type(type_: pa.DataType) -> pa.DataType:
    """Return the Arrow type that filters use for a column's type; other types are returned unchanged."""
    if pat.is_dictionary(type_):
        return to_spark_type(type_.value_type)
    if pat.is_large_string(type_) or pat.is_string_view(type_):
        return pa.string()
    if pat.is_large_binary(type_) or pat.is_binary_view(type_) or pat.is_fixed_size_binary(type_):
        return pa.binary()
    if pat.is_timestamp(type_):
        return TIMESTAMP if type_.tz else TIMESTAMP_NTZ
    if pat.is_decimal(type_) and type_.precision <= MAX_PRECISION and 0 <= type_.scale <= type_.precision:
        return pa.decimal128(type_.precision, type_.scale)
    return type_


def is_numeric(type_: pa.DataType) -> bool:
    """Say whether Spark calls the type numeric (boolean is not)."""
    return is_integral(type_) or pat.is_floating(type_) or pat.is_decimal(type_)


def is_integral(type_: pa.DataType) -> bool:
    """Say whether the type is tinyint, smallint, int or bigint."""
    return type_ in INTEGRAL_DIGITS


def is_atomic(type_: pa.DataType) -> bool:
    """Say whether a filter can compute with values of the type."""
    return is_numeric(type_) or pat.is_boolean(type_) or is_text(type_) or is_datetime(type_) or pat.is_null(type_)


def is_text(type_: pa.DataType) -> bool:
    """Say whether the type is string or binary."""
    return bool(pat.is_string(type_) or pat.is_binary(type_))


def is_datetime(type_: pa.DataType) -> bool:
    """Say whether the type is date or one of the two timestamps."""
    return bool(pat.is_date32(type_) or pat.is_timestamp(type_))


def to_decimal_type(type_: pa.DataType) -> pa.DataType:
    """Return the decimal type that holds all values of an integral type; a decimal type is returned unchanged."""
    return type_ if pat.is_decimal(type_) else pa.decimal128(INTEGRAL_DIGITS[type_], 0)


def find_narrowest_decimal(value: int) -> pa.DataType:
    """Return the narrowest decimal type for an integer literal."""
    return pa.decimal128(max(1, len(str(abs(value)))), 0)


def find_literal_decimal(value: Decimal) -> pa.DataType | None:
    """Return the type of a decimal literal with these digits; None if it needs more than 38 digits."""
    _, digits, exponent = value.as_tuple()
    scale = -int(exponent)
    precision = max(len(digits), scale)
    return pa.decimal128(precision, scale) if precision <= MAX_PRECISION else None


def find_common_type(left: pa.DataType, right: pa.DataType, ansi: bool = True) -> pa.DataType | None:
    """Return the type in which Spark compares two types; None if it refuses to.

    Spark's rule is findWiderTypeForTwo in ANSI mode, findCommonTypeForBinaryComparison without it.
    """
    if left == right:
        return left
    if pat.is_null(left) or pat.is_null(right):
        return right if pat.is_null(left) else left
    if is_numeric(left) and is_numeric(right):
        return _find_common_number(left, right, ansi)
    if is_datetime(left) and is_datetime(right):
        return TIMESTAMP if TIMESTAMP in (left, right) else TIMESTAMP_NTZ
    if pat.is_string(left) or pat.is_string(right):
        return _find_common_with_string(right if pat.is_string(left) else left, ansi)
    return None


def find_wider_type(types: Sequence[pa.DataType], ansi: bool = True) -> pa.DataType | None:
    """Return the common type of a list's members or of the branches of CASE in Spark; None if there is none.

    Types are joined from left to right. Without ANSI mode text types come first, and other types beside text become
    text.
    """
    found: pa.DataType | None = pa.null()
    for type_ in types if ansi else sorted(types, key=lambda each: not pat.is_string(each)):
        if found is None:
            return None
        if not ansi and pat.is_string(found) and not (pat.is_string(type_) or pat.is_null(type_)):
            becomes_text = is_numeric(type_) or is_datetime(type_)
            found = found if becomes_text else None
        else:
            found = find_common_type(found, type_, ansi)
    return found


def find_arithmetic_types(
    operator: str, left: pa.DataType, right: pa.DataType, ansi: bool = True
) -> tuple[pa.DataType, pa.DataType] | None:
    """Return (type of the operands, type of the result) of + - * / %; None if Spark refuses the types.

    For decimals the first type is null: each operand keeps its own precision and scale.
    """
    if pat.is_decimal(left) and pat.is_decimal(right):
        return pa.null(), _find_decimal_result(operator, left, right)
    if not ansi:
        left, right = (pa.float64() if pat.is_string(each) else each for each in (left, right))
    operands = find_common_type(left, right, ansi)
    if operands is None or not is_numeric(operands):
        return None
    if operator == "/" and not pat.is_decimal(operands):
        operands = pa.float64()
    return operands, operands


def _find_common_number(left: pa.DataType, right: pa.DataType, ansi: bool) -> pa.DataType:
    if pat.is_decimal(left) or pat.is_decimal(right):
        if pat.is_floating(left) or pat.is_floating(right):
            return pa.float64()
        return _find_wider_decimal(to_decimal_type(left), to_decimal_type(right))
    wider = _PRECEDENCE[max(_PRECEDENCE.index(left), _PRECEDENCE.index(right))]
    return pa.float64() if ansi and wider == pa.float32() else wider


def _find_common_with_string(other: pa.DataType, ansi: bool) -> pa.DataType | None:
    if ansi and is_integral(other):
        return pa.int64()
    if is_numeric(other) and (ansi or pat.is_decimal(other)):
        return pa.float64()
    return other if is_atomic(other) else None


def _find_wider_decimal(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """Return a type for both; beyond 38 digits decimal places are cut (DecimalType.boundedPreferIntegralDigits)."""
    scale = max(left.scale, right.scale)
    integral = max(left.precision - left.scale, right.precision - right.scale)
    if integral + scale > MAX_PRECISION:
        return pa.decimal128(MAX_PRECISION, max(0, MAX_PRECISION - integral))
    return pa.decimal128(integral + scale, scale)


def _find_decimal_result(operator: str, left: pa.DataType, right: pa.DataType) -> pa.DataType:
    p1, s1, p2, s2 = left.precision, left.scale, right.precision, right.scale
    if operator in "+-":
        scale = max(s1, s2)
        precision = max(p1 - s1, p2 - s2) + scale + 1
    elif operator == "*":
        scale, precision = s1 + s2, p1 + p2 + 1
    elif operator == "/":
        scale = max(6, s1 + p2 + 1)
        precision = p1 - s1 + s2 + scale
    else:
        scale = max(s1, s2)
        precision = min(p1 - s1, p2 - s2) + scale
    if precision > MAX_PRECISION:
        integral = precision - scale
        scale = max(MAX_PRECISION - integral, min(scale, 6))
        precision = MAX_PRECISION
    return pa.decimal128(max(precision, 1), scale)
