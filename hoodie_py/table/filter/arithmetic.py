"""Compute + - * / % on arrays as Spark does (Spark's ``Decimal`` and ``DecimalPrecision``).

In ANSI mode overflow and division by zero are errors. Without it, integers keep their low bits, and a decimal that does
not fit and a division by zero are null. Null stays null. Floats follow IEEE, except that division by zero is treated as
for integers. ``%`` has the sign of the dividend. Decimals are computed exactly and then rounded half up to the result
type.
"""

from __future__ import annotations

from decimal import Context, Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pat

from hoodie_py.errors import InvalidQueryError
from hoodie_py.table.filter.ansi_casts import round_decimal
from hoodie_py.table.filter.lenient_casts import fit_decimals

_CHECKED = {"+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked}
_PLAIN = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}
#: Spark divides decimals to this scale before it rounds to the scale of the result type.
_QUOTIENT_SCALE = 39
_EXACT = Context(prec=200)


def compute(operator: str, left: pa.Array, right: pa.Array, result: pa.DataType, *, ansi: bool = True) -> pa.Array:
    """Apply one operator to two arrays of equal length; decimal operands may differ in type.

    Raises:
        InvalidQueryError: a result does not fit in ``result``, or a divisor is zero.
    """
    if operator in "/%":
        if ansi:
            _check_divisors(operator, left, right)
        else:
            right = pc.if_else(pc.equal(right, pa.scalar(0, right.type)), pa.scalar(None, right.type), right)
    try:
        if pat.is_decimal(result):
            return _compute_decimals(operator, left, right, result, ansi=ansi)
        if operator == "%":
            return _compute_remainder(left, right)
        if operator == "/":
            return pc.divide(left, right)
        return (_PLAIN if pat.is_floating(result) or not ansi else _CHECKED)[operator](left, right)
    except pa.ArrowInvalid as error:
        raise _make_overflow_error(operator, result) from error


def negate(values: pa.Array, *, ansi: bool = True) -> pa.Array:
    """Negate each value.

    Raises:
        InvalidQueryError: the smallest integer cannot be negated.
    """
    try:
        return pc.negate(values) if pat.is_floating(values.type) or not ansi else pc.negate_checked(values)
    except pa.ArrowInvalid as error:
        raise _make_overflow_error("-", values.type) from error


def can_fail(operator: str, result: pa.DataType) -> bool:
    """Say whether the operator can raise for some operands."""
    return operator in "/%" or not pat.is_floating(result)


def _make_overflow_error(operator: str, result: pa.DataType) -> InvalidQueryError:
    return InvalidQueryError(
        f"The result of {operator} does not fit in {result}.",
        hint="Spark in ANSI mode refuses it as well; cast an operand.",
    )


def _check_divisors(operator: str, left: pa.Array, right: pa.Array) -> None:
    zero = pc.and_(left.is_valid(), pc.equal(right, pa.scalar(0, right.type)))
    if pc.any(zero).as_py():
        raise InvalidQueryError(
            f"{'Division' if operator == '/' else 'Remainder'} by zero.",
            hint="Spark in ANSI mode refuses it as well; test the divisor first.",
        )


def _compute_remainder(left: pa.Array, right: pa.Array) -> pa.Array:
    valid = pc.and_(left.is_valid(), right.is_valid()).to_numpy(zero_copy_only=False)
    dividend = left.fill_null(0).to_numpy(zero_copy_only=False)
    divisor = right.fill_null(1).to_numpy(zero_copy_only=False)
    if pat.is_integer(right.type):
        # x % -1 and x % 1 are both 0, but the smallest integer % -1 overflows in C. Nulls must not divide by 0.
        divisor = np.where(divisor == -1, 1, divisor).astype(divisor.dtype)
        divisor = np.where(valid, divisor, 1).astype(divisor.dtype)
    with np.errstate(all="ignore"):
        return pa.array(np.fmod(dividend, divisor), left.type, mask=~valid)


def _compute_decimals(operator: str, left: pa.Array, right: pa.Array, result: pa.DataType, *, ansi: bool) -> pa.Array:
    p1, s1, p2, s2 = left.type.precision, left.type.scale, right.type.precision, right.type.scale
    needed = p1 + p2 + 1 if operator == "*" else max(p1 - s1, p2 - s2) + max(s1, s2) + 1
    if operator in _PLAIN and needed <= 76:  # Arrow's widest decimal holds the exact result, so its kernels are exact
        exact = _PLAIN[operator](left.cast(pa.decimal256(p1, s1)), right.cast(pa.decimal256(p2, s2)))
        return round_decimal(exact, result) if ansi else fit_decimals(exact, result)
    rows = zip(_unscale(left), _unscale(right), strict=True)
    values = [None if a is None or b is None else _compute_exactly(operator, a, s1, b, s2, result) for a, b in rows]
    # Nulls beyond the operands' nulls are results that do not fit.
    if ansi and values.count(None) > pc.or_(left.is_null(), right.is_null()).true_count:
        raise _make_overflow_error(operator, result)
    return pa.array(values, result)


def _unscale(values: pa.Array) -> list[int | None]:
    scale = values.type.scale
    return [None if value is None else int(_EXACT.scaleb(value, scale)) for value in values.to_pylist()]


def _compute_exactly(operator: str, a: int, s1: int, b: int, s2: int, result: pa.DataType) -> Decimal | None:
    """Compute with unscaled integers, and round half up to the result's scale; None if the result does not fit."""
    unscaled, scale = _divide_unscaled(a, s1, b, s2) if operator == "/" else _compute_unscaled(operator, a, s1, b, s2)
    if scale > result.scale:
        unscaled = _divide_half_up(unscaled, 10 ** (scale - result.scale))
    else:
        unscaled *= 10 ** (result.scale - scale)
    if abs(unscaled) >= 10**result.precision:
        return None
    return _EXACT.scaleb(Decimal(unscaled), -result.scale)


def _divide_unscaled(a: int, s1: int, b: int, s2: int) -> tuple[int, int]:
    shift = _QUOTIENT_SCALE - s1 + s2
    return _divide_half_up(a * 10**shift, b), _QUOTIENT_SCALE


def _compute_unscaled(operator: str, a: int, s1: int, b: int, s2: int) -> tuple[int, int]:
    if operator == "*":
        return a * b, s1 + s2
    scale = max(s1, s2)
    a, b = a * 10 ** (scale - s1), b * 10 ** (scale - s2)
    if operator == "%":
        remainder = abs(a) % abs(b)
        return (-remainder if a < 0 else remainder), scale
    return (a + b if operator == "+" else a - b), scale


def _divide_half_up(dividend: int, divisor: int) -> int:
    quotient, rest = divmod(abs(dividend), abs(divisor))
    quotient += 2 * rest >= abs(divisor)
    return -quotient if (dividend < 0) != (divisor < 0) else quotient
