"""Convert arrays between types as Spark's ``cast`` does if ANSI mode is off.

A text that does not spell a value of the target type becomes null, and so does a decimal that does not fit. An integer
that does not fit keeps its low bits; a float becomes the nearest integer of 32 or 64 bits first, as in Java. A
timestamp whose seconds do not fit becomes null. Everything else is converted as in ANSI mode (``ansi_casts``).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pat

from hoodie_py.arrow.arrays import from_numpy, is_valid, to_numbers
from hoodie_py.errors import InvalidQueryError, UnsupportedFeatureError
from hoodie_py.table.filter import ansi_casts, datetime_text
from hoodie_py.table.filter.text_casts import (
    convert_distinct,
    fit_decimal,
    parse_boolean,
    parse_decimal,
    parse_real,
    real_to_decimal,
    round_to_single,
)
from hoodie_py.table.filter.time_zones import UTC_ZONE
from hoodie_py.table.filter.types import INTEGRAL_BOUNDS, is_integral
from hoodie_py.table.filter.zoned_casts import cast_by_zone

# Java converts the digits before a point and only checks those after it (UTF8String.toLong).
_INTEGER = re.compile(r"([+-]?)([0-9]*)(?:\.[0-9]*)?", re.ASCII)


def cast_leniently(values: pa.Array, target: pa.DataType, zone: str = UTC_ZONE) -> pa.Array:
    """Convert an array; ``ansi_casts.can_cast`` must hold for the types.

    Raises:
        UnsupportedFeatureError: Spark may parse a text as a time by rules that are not implemented here.
        InvalidQueryError: a time is at the end of the range.
    """
    source = values.type
    if pat.is_string(source) and pat.is_timestamp(target):
        if target.tz:
            return cast_by_zone(values, target, zone, _refuse_uncertain)
        return convert_distinct(values, _parse_local_timestamp, target, fails=False)
    if source == target or ansi_casts.cannot_fail(source, target):
        if pat.is_decimal(source) and pat.is_string(target):
            return convert_distinct(values, str, target)  # Java's BigDecimal.toString, with exponents
        return ansi_casts.cast(values, target, zone)
    try:
        # Most arrays convert without a failure; only otherwise are the slower lenient rules needed.
        return ansi_casts.cast(values, target, zone)
    except InvalidQueryError:
        convert = _find_kernel(source, target)
        if convert is None:
            raise
        return convert(values, target)


def fit_decimals(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Convert decimals to another precision and scale; a value that does not fit becomes null."""
    try:
        return ansi_casts.round_decimal(values, target)
    except pa.ArrowInvalid:
        found = [None if each is None else fit_decimal(each, target) for each in values.to_pylist()]
        return pa.array(found, target)


def _find_kernel(source: pa.DataType, target: pa.DataType) -> Callable[[pa.Array, pa.DataType], pa.Array] | None:
    if pat.is_string(source):
        parse = _find_parser(target)
        return None if parse is None else lambda values, to: convert_distinct(values, parse, to, fails=False)
    if pat.is_decimal(target):
        if pat.is_decimal(source):
            return fit_decimals
        if pat.is_floating(source):
            return lambda values, to: convert_distinct(values, lambda each: real_to_decimal(each, to), to, fails=False)
        return lambda values, to: fit_decimals(values.cast(pa.int64()).cast(pa.decimal128(20, 0)), to)
    if is_integral(target):
        if is_integral(source):
            return lambda values, to: values.cast(to, safe=False)
        if pat.is_floating(source):
            return _saturate
        if pat.is_decimal(source):
            return lambda values, to: convert_distinct(values, lambda each: _keep_low_bits(int(each), to), to)
        if pat.is_timestamp(source):
            return _keep_seconds
    return None


def _find_parser(target: pa.DataType) -> Callable[[str], Any] | None:
    if is_integral(target):
        low, high = INTEGRAL_BOUNDS[target]
        return lambda text: _parse_integer(text, low, high)
    if pat.is_float32(target):
        return lambda text: None if (real := parse_real(text)) is None else round_to_single(real, text)
    if pat.is_floating(target):
        return parse_real
    if pat.is_decimal(target):
        return lambda text: parse_decimal(text, target)
    if pat.is_boolean(target):
        return parse_boolean
    return datetime_text.parse_date if pat.is_date32(target) else None


def _parse_integer(text: str, low: int, high: int) -> int | None:
    match = _INTEGER.fullmatch(text.strip(datetime_text.BLANKS))
    if match is None or match[0] == match[1]:  # nothing, or a sign alone
        return None
    digits = match[2].lstrip("0")
    if len(digits) > 19:
        return None
    value = int(digits or "0") * (-1 if match[1] == "-" else 1)
    return value if low <= value <= high else None


def _parse_local_timestamp(text: str) -> int | None:
    found = datetime_text.parse_timestamp(text, zoned=False)
    if found is None:
        _refuse_uncertain(text)
    return found


def _refuse_uncertain(text: str) -> None:
    """Refuse a text if it is not certain that Spark casts it to null."""
    if datetime_text.may_be_timestamp(text):
        raise UnsupportedFeatureError(f"A cast of the text {text[:60]!r} to a timestamp while ANSI mode is off.")


def _saturate(values: pa.Array, target: pa.DataType) -> pa.Array:
    wide = pa.int64() if target == pa.int64() else pa.int32()
    low, high = INTEGRAL_BOUNDS[wide]
    reals = np.nan_to_num(to_numbers(values).astype(np.float64), nan=0.0)
    inside = np.clip(reals, float(low), float(high))
    whole = np.where(inside >= 2.0**63, 0.0, np.trunc(inside)).astype(np.int64)
    whole = np.where(reals >= float(high), high, whole)
    return from_numpy(whole, ~is_valid(values)).cast(target, safe=False)


def _keep_low_bits(value: int, target: pa.DataType) -> int:
    bits: int = target.bit_width
    kept = value & ((1 << bits) - 1)
    return kept - (1 << bits) if kept >> (bits - 1) else kept


def _keep_seconds(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Return seconds since 1970; unlike integers, seconds that do not fit become null."""
    seconds = ansi_casts.floor_divide(values.view(pa.int64()), datetime_text.MICROS_PER_SECOND)
    low, high = INTEGRAL_BOUNDS[target]
    fits = pc.and_(pc.greater_equal(seconds, low), pc.less_equal(seconds, high))
    return pc.if_else(fits, seconds, pa.scalar(None, pa.int64())).cast(target)
