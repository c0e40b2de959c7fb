"""Convert arrays between types as Spark's ``cast`` does in ANSI mode (the default of Spark 4).

A value that the target type cannot hold, or a text that does not spell such a value, raises InvalidQueryError. Null
stays null. The results must agree with Spark's ``Cast``.
"""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pat

from hoodie_py.errors import InvalidQueryError
from hoodie_py.table.filter.datetime_text import MICROS_PER_DAY, MICROS_PER_SECOND
from hoodie_py.table.filter.sql_text import format_type
from hoodie_py.table.filter.text_casts import (
    Kernel,
    convert_distinct,
    find_cast_from_string,
    find_cast_to_string,
    make_cast_error,
    real_to_decimal,
    round_to_single,
)
from hoodie_py.table.filter.time_zones import UTC_ZONE
from hoodie_py.table.filter.types import INTEGRAL_BOUNDS, is_integral, is_numeric, to_decimal_type
from hoodie_py.table.filter.zoned_casts import cast_by_zone, depends_on_zone


def can_cast(source: pa.DataType, target: pa.DataType) -> bool:
    """Say whether one type is converted to the other."""
    return source == target or pat.is_null(source) or _find_kernel(source, target) is not None


def cannot_fail(source: pa.DataType, target: pa.DataType) -> bool:
    """Say whether the cast succeeds for every value of the source type."""
    if source == target or pat.is_null(source) or pat.is_string(target):
        return not pat.is_binary(source) or source == target
    if pat.is_decimal(target) and (is_integral(source) or pat.is_decimal(source)):
        held = to_decimal_type(source)
        return bool(target.scale >= held.scale and target.precision - target.scale >= held.precision - held.scale)
    if is_integral(source) and is_integral(target):
        return bool(target.bit_width >= source.bit_width)
    if pat.is_floating(target) or pat.is_boolean(target) or pat.is_binary(target):
        return not pat.is_string(source) or pat.is_binary(target)
    return bool(pat.is_timestamp(source) and (pat.is_date32(target) or pat.is_timestamp(target)))


def cast(values: pa.Array, target: pa.DataType, zone: str = UTC_ZONE) -> pa.Array:
    """Convert an array; ``zone`` is the zone assumed for times without one.

    Raises:
        InvalidQueryError: a value does not fit, or the cast does not exist.
    """
    source = values.type
    if source == target:
        return values
    if values.null_count == len(values):
        return pa.nulls(len(values), target)
    kernel = _find_kernel(source, target)
    if kernel is None:
        raise InvalidQueryError(f"Cannot cast {format_type(source)} to {format_type(target)}.")
    try:
        if zone != UTC_ZONE and depends_on_zone(source, target):
            return cast_by_zone(values, target, zone)
        return kernel(values, target)
    except (pa.ArrowInvalid, OverflowError) as error:
        raise InvalidQueryError(
            f"A value of type {format_type(source)} does not fit in {format_type(target)}: {error}"
        ) from error


def round_decimal(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Convert a decimal array to another precision and scale, rounding half away from zero.

    Raises:
        pyarrow.ArrowInvalid: a value does not fit.
    """
    source = values.type
    if target.scale < source.scale:
        values = pc.round(_widen_for_rounding(values), ndigits=target.scale, round_mode="half_towards_infinity")
    return values.cast(target)


def _find_kernel(source: pa.DataType, target: pa.DataType) -> Kernel | None:
    if pat.is_string(source):
        return find_cast_from_string(target)
    if pat.is_string(target):
        return find_cast_to_string(source)
    if pat.is_boolean(source):
        return _boolean_to_number if is_numeric(target) else None
    if is_numeric(source):
        return _find_kernel_from_number(source, target)
    if pat.is_date32(source) and pat.is_timestamp(target):
        return _date_to_timestamp
    if pat.is_timestamp(source):
        return _find_kernel_from_timestamp(source, target)
    return None


def _find_kernel_from_number(source: pa.DataType, target: pa.DataType) -> Kernel | None:
    if pat.is_boolean(target):
        return lambda values, _: pc.not_equal(values, pa.scalar(0, values.type))
    if is_integral(source):
        if pat.is_timestamp(target):
            return _seconds_to_timestamp
        return _integer_to_decimal if pat.is_decimal(target) else _cast_real if is_numeric(target) else None
    if not is_numeric(target):
        return None
    if pat.is_decimal(source):
        if pat.is_decimal(target):
            return round_decimal
        return _decimal_to_integer if is_integral(target) else _decimal_to_real
    if pat.is_decimal(target):
        return lambda values, to: convert_distinct(values, lambda value: real_to_decimal(value, to), to)
    return _real_to_integer if is_integral(target) else _cast_real


def _find_kernel_from_timestamp(source: pa.DataType, target: pa.DataType) -> Kernel | None:
    if pat.is_date32(target):
        return _timestamp_to_date
    if pat.is_timestamp(target):
        return lambda values, to: values.view(pa.int64()).view(to)
    if source.tz and (is_integral(target) or pat.is_floating(target)):
        return _timestamp_to_number
    return None


def _cast_real(values: pa.Array, target: pa.DataType) -> pa.Array:
    return values.cast(target, safe=is_integral(target))


def _boolean_to_number(values: pa.Array, target: pa.DataType) -> pa.Array:
    bits = values.cast(pa.int8())
    return round_decimal(bits.cast(pa.decimal128(3, 0)), target) if pat.is_decimal(target) else bits.cast(target)


def _integer_to_decimal(values: pa.Array, target: pa.DataType) -> pa.Array:
    return round_decimal(values.cast(to_decimal_type(values.type)), target)


def _decimal_to_integer(values: pa.Array, target: pa.DataType) -> pa.Array:
    return pc.round(_widen_for_rounding(values), ndigits=0, round_mode="towards_zero").cast(target)


def _widen_for_rounding(values: pa.Array) -> pa.Array:
    """Add one digit of precision, which Arrow needs when rounding carries (0.99 becomes 1.0)."""
    source = values.type
    return values.cast(pa.decimal256(min(76, source.precision + 1), source.scale))


def _decimal_to_real(values: pa.Array, target: pa.DataType) -> pa.Array:
    source = values.type
    if pat.is_float32(target):
        return convert_distinct(values, lambda value: round_to_single(float(value), f"{value:f}"), target)
    if source.precision > 15:
        return convert_distinct(values, float, target)
    # A double holds up to 15 digits exactly. So the unscaled integer and the power of ten are exact, and their quotient
    # is the nearest double, as Java rounds.
    whole = values.cast(pa.decimal256(source.precision + source.scale, source.scale))
    shifted = pc.multiply(whole, pa.scalar(Decimal(10**source.scale), pa.decimal256(source.scale + 1, 0)))
    return pc.divide(shifted.cast(pa.int64()).cast(target), float(10**source.scale))


def _real_to_integer(values: pa.Array, target: pa.DataType) -> pa.Array:
    low, high = INTEGRAL_BOUNDS[target]
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    reals = values.cast(pa.float64()).fill_null(0).to_numpy(zero_copy_only=False)
    bad = ~((np.floor(reals) <= float(high)) & (np.ceil(reals) >= float(low)))
    if bad.any():
        raise make_cast_error(float(reals[bad][0]), values.type, target)
    saturated = reals >= 2.0**63  # float64 rounds 2**63 - 1 up to 2**63, which int64 cannot hold
    whole = np.where(saturated, 0.0, np.trunc(reals)).astype(np.int64)
    return pa.array(np.where(saturated, high, whole), pa.int64(), mask=~valid).cast(target)


def _seconds_to_timestamp(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Convert seconds since 1970. Values out of range become the first or last timestamp, as in Java's TimeUnit."""
    low, high = (bound // MICROS_PER_SECOND for bound in INTEGRAL_BOUNDS[pa.int64()])
    seconds = values.cast(pa.int64())
    inside = pc.and_(pc.greater(seconds, low), pc.less_equal(seconds, high))
    limit = pc.if_else(pc.greater(seconds, 0), *INTEGRAL_BOUNDS[pa.int64()][::-1])
    micros = pc.multiply(pc.if_else(inside, seconds, 0), MICROS_PER_SECOND)
    return pc.if_else(inside, micros, limit).view(target)


def _date_to_timestamp(values: pa.Array, target: pa.DataType) -> pa.Array:
    days = values.view(pa.int32()).cast(pa.int64())
    return pc.multiply_checked(days, MICROS_PER_DAY).view(target)


def _timestamp_to_date(values: pa.Array, target: pa.DataType) -> pa.Array:
    return floor_divide(values.view(pa.int64()), MICROS_PER_DAY).cast(pa.int32()).view(target)


def _timestamp_to_number(values: pa.Array, target: pa.DataType) -> pa.Array:
    micros = values.view(pa.int64())
    if pat.is_floating(target):
        seconds = pc.divide(micros.cast(pa.float64(), safe=False), float(MICROS_PER_SECOND))
        return seconds.cast(target, safe=False)
    return floor_divide(micros, MICROS_PER_SECOND).cast(target)


def floor_divide(values: pa.Array, divisor: int) -> pa.Array:
    """Divide integers, rounded down."""
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    whole = values.fill_null(0).to_numpy(zero_copy_only=False) // divisor
    return pa.array(whole, pa.int64(), mask=~valid)
