"""Convert arrays between types as Spark's ``cast`` does in ANSI mode (the default of Spark 4).

A value that the target cannot hold, or a text that does not spell one, raises InvalidQueryError; null stays null. Text is
read and written one distinct value at a time; the common spellings and all numbers go through vectorised kernels.
Double to text follows Java 19 and later (the shortest digits that read back; older JVMs print a few values longer).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pat

from hoodie_py.errors import InvalidQueryError
from hoodie_py.table.datetime_text import (
    BLANKS,
    MICROS_PER_DAY,
    MICROS_PER_SECOND,
    date_text,
    parse_date,
    parse_timestamp,
    timestamp_text,
)
from hoodie_py.table.predicate import type_text
from hoodie_py.table.predicate_types import INTEGRAL_BOUNDS, decimal_of, is_integral, is_numeric

_SHORT_INTEGER = r"\A[+-]?[0-9]{1,18}\z"
_SHORT_FRACTION = r"\A-?[0-9]{1,15}(?:\.[0-9]{1,15})?\z"
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_REAL = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[dDfF]?", re.ASCII)
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,9})?", re.ASCII)
_SPECIAL_REALS = {"inf": math.inf, "infinity": math.inf, "nan": math.nan}
_TRUE, _FALSE = {"t", "true", "y", "yes", "1"}, {"f", "false", "n", "no", "0"}
_WIDE = Context(prec=1000, rounding=ROUND_HALF_UP)


def can_cast(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether this module converts one type to the other."""
    return source == target or pat.is_null(source) or _kernel(source, target) is not None


def cannot_fail(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether no value of the source type can make the cast raise."""
    if source == target or pat.is_null(source) or pat.is_string(target):
        return not pat.is_binary(source) or source == target
    if pat.is_decimal(target) and (is_integral(source) or pat.is_decimal(source)):
        held = decimal_of(source)
        return bool(target.scale >= held.scale and target.precision - target.scale >= held.precision - held.scale)
    if is_integral(source) and is_integral(target):
        return bool(target.bit_width >= source.bit_width)
    if pat.is_floating(target) or pat.is_boolean(target) or pat.is_binary(target):
        return not pat.is_string(source) or pat.is_binary(target)
    return bool(pat.is_timestamp(source) and (pat.is_date32(target) or pat.is_timestamp(target)))


def cast(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Convert an array.

    Raises:
        InvalidQueryError: a value does not fit, or there is no such cast.
    """
    source = values.type
    if source == target:
        return values
    if values.null_count == len(values):
        return pa.nulls(len(values), target)
    kernel = _kernel(source, target)
    if kernel is None:
        raise InvalidQueryError(f"Cannot cast {type_text(source)} to {type_text(target)}")
    try:
        return kernel(values, target)
    except (pa.ArrowInvalid, OverflowError) as error:
        raise InvalidQueryError(
            f"A value of type {type_text(source)} does not fit in {type_text(target)}: {error}"
        ) from error


def round_decimal(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Bring a decimal array to another precision and scale, rounding half away from zero.

    Raises:
        pyarrow.ArrowInvalid: a value does not fit.
    """
    source = values.type
    if target.scale < source.scale:
        values = values.cast(pa.decimal256(min(76, source.precision + 1), source.scale))
        values = pc.round(values, ndigits=target.scale, round_mode="half_towards_infinity")
    return values.cast(target)


_Kernel = Callable[[pa.Array, pa.DataType], pa.Array]


def _kernel(source: pa.DataType, target: pa.DataType) -> _Kernel | None:
    if pat.is_string(source):
        return _from_string(target)
    if pat.is_string(target):
        return _to_string(source)
    if pat.is_boolean(source):
        return _boolean_to_number if is_numeric(target) else None
    if is_numeric(source):
        return _from_number(source, target)
    if pat.is_date32(source) and pat.is_timestamp(target):
        return _date_to_timestamp
    if pat.is_timestamp(source):
        return _from_timestamp(source, target)
    return None


def _from_string(target: pa.DataType) -> _Kernel | None:
    if is_integral(target):
        return _string_to_integer
    if pat.is_floating(target):
        return _string_to_real
    if pat.is_decimal(target):
        return lambda values, to: _each(values, lambda text: _decimal_of_text(text, to), to)
    if pat.is_boolean(target):
        return lambda values, to: _each(values, _boolean_of_text, to)
    if pat.is_date32(target):
        return lambda values, to: _each(values, parse_date, to)
    if pat.is_timestamp(target):
        return lambda values, to: _each(values, lambda text: parse_timestamp(text, zoned=bool(to.tz)), to)
    return _arrow_cast if pat.is_binary(target) else None


def _to_string(source: pa.DataType) -> _Kernel | None:
    if is_integral(source) or pat.is_boolean(source) or pat.is_binary(source):
        return _arrow_cast
    if pat.is_decimal(source):
        return lambda values, to: _each(values, lambda value: f"{value:f}", to)
    if pat.is_floating(source):
        return lambda values, to: _each(values, _java_text_of(source), to)
    if pat.is_date32(source):
        return lambda values, to: _each(values.view(pa.int32()), date_text, to)
    if pat.is_timestamp(source):
        return lambda values, to: _each(values.view(pa.int64()), timestamp_text, to)
    return None


def _from_number(source: pa.DataType, target: pa.DataType) -> _Kernel | None:
    if pat.is_boolean(target):
        return lambda values, _: pc.not_equal(values, pa.scalar(0, values.type))
    if is_integral(source):
        if pat.is_timestamp(target):
            return _seconds_to_timestamp
        return _integer_to_decimal if pat.is_decimal(target) else _real_cast if is_numeric(target) else None
    if not is_numeric(target):
        return None
    if pat.is_decimal(source):
        if pat.is_decimal(target):
            return round_decimal
        return _decimal_to_integer if is_integral(target) else _decimal_to_real
    if pat.is_decimal(target):
        return lambda values, to: _each(values, lambda value: _decimal_of_real(value, to), to)
    return _real_to_integer if is_integral(target) else _real_cast


def _from_timestamp(source: pa.DataType, target: pa.DataType) -> _Kernel | None:
    if pat.is_date32(target):
        return _timestamp_to_date
    if pat.is_timestamp(target):
        return lambda values, to: values.view(pa.int64()).view(to)
    if source.tz and (is_integral(target) or pat.is_floating(target)):
        return _timestamp_to_number
    return None


def _each(values: pa.Array, convert: Callable[[Any], Any], target: pa.DataType) -> pa.Array:
    """Convert every distinct value in Python; a None from ``convert`` is a refusal, NotImplemented a null."""
    coded = values.dictionary_encode()
    converted = []
    for value in coded.dictionary.to_pylist():
        result = convert(value)
        if result is None:
            raise _refusal(value, values.type, target)
        converted.append(None if result is NotImplemented else result)
    return pa.array(converted, target).take(coded.indices)


def _refusal(value: Any, source: pa.DataType, target: pa.DataType) -> InvalidQueryError:
    shown = repr(value) if len(repr(value)) <= 60 else repr(value)[:60] + "..."
    return InvalidQueryError(
        f"The value {shown} of type {type_text(source)} cannot be cast to {type_text(target)}",
        hint="Spark in ANSI mode refuses it as well.",
    )


def _arrow_cast(values: pa.Array, target: pa.DataType) -> pa.Array:
    return values.cast(target)


def _real_cast(values: pa.Array, target: pa.DataType) -> pa.Array:
    return values.cast(target, safe=is_integral(target))


def _string_to_integer(values: pa.Array, target: pa.DataType) -> pa.Array:
    if pc.all(pc.match_substring_regex(values, _SHORT_INTEGER)).as_py():
        return pc.replace_substring_regex(values, r"\A\+", "").cast(pa.int64()).cast(target)
    low, high = INTEGRAL_BOUNDS[target]

    def convert(text: str) -> int | None:
        text = text.strip(BLANKS)
        if _INTEGER.fullmatch(text) is None or len(text.lstrip("+-0")) > 19:
            return None
        value = int(text.lstrip("+-0") or "0") * (-1 if text[0] == "-" else 1)
        return value if low <= value <= high else None

    return _each(values, convert, target)


def _string_to_real(values: pa.Array, target: pa.DataType) -> pa.Array:
    if pat.is_float64(target):
        if pc.all(pc.match_substring_regex(values, _SHORT_FRACTION)).as_py():
            return values.cast(target)
        return _each(values, _real_of_text, target)
    return _each(values, lambda text: None if (real := _real_of_text(text)) is None else _single(real, text), target)


def _real_of_text(text: str) -> float | None:
    text = text.strip(BLANKS)
    match = _REAL.fullmatch(text)
    if match is not None:
        return float(match[1])
    word = text.lower()
    if word[:1] in ("+", "-"):
        return math.copysign(math.inf, -1 if word[0] == "-" else 1) if word[1:] in ("inf", "infinity") else None
    return _SPECIAL_REALS.get(word)


def _single(real: float, text: str) -> float:
    """Round a decimal text to the nearest float32, without the double rounding that going by float64 can cause."""
    guess = np.float32(real)
    match = _REAL.fullmatch(text.strip(BLANKS))
    if match is None or not np.isfinite(guess):
        return float(guess)
    exact = Decimal(match[1])
    near = [np.nextafter(guess, np.float32(-math.inf)), guess, np.nextafter(guess, np.float32(math.inf))]
    candidates = [value for value in near if np.isfinite(value)]
    with np.errstate(all="ignore"):
        best = min(candidates, key=lambda v: (_WIDE.abs(_WIDE.subtract(Decimal(float(v)), exact)), v.view(np.uint32) & 1))
    return float(best)


def _boolean_of_text(text: str) -> bool | None:
    word = text.strip(BLANKS).lower()
    return True if word in _TRUE else False if word in _FALSE else None


def _decimal_of_text(text: str, target: pa.DataType) -> Decimal | None:
    text = text.strip(BLANKS)
    if _DECIMAL.fullmatch(text) is None:
        return None
    return _fit(Decimal(text), target)


def _decimal_of_real(value: float, target: pa.DataType) -> Any:
    return _fit(Decimal(repr(value)), target) if math.isfinite(value) else NotImplemented


def _fit(value: Decimal, target: pa.DataType) -> Decimal | None:
    if value and value.adjusted() > target.precision - target.scale:
        return None
    if value.adjusted() < -target.scale - 1:
        value = Decimal(0)
    try:
        rounded = value.quantize(Decimal(1).scaleb(-target.scale), context=_WIDE)
    except InvalidOperation:
        return None
    return rounded if rounded == 0 or rounded.adjusted() < target.precision - target.scale else None


def _java_text_of(source: pa.DataType) -> Callable[[float], str]:
    """Java's Double.toString or Float.toString."""
    kind: Any = np.float32 if pat.is_float32(source) else np.float64

    def convert(value: float) -> str:
        if math.isnan(value):
            return "NaN"
        if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        sign = "-" if math.copysign(1, value) < 0 else ""
        if value == 0:
            return sign + "0.0"
        mantissa, exponent_text = np.format_float_scientific(kind(abs(value)), unique=True, trim="-").split("e")
        digits, exponent = mantissa.replace(".", ""), int(exponent_text)
        if not -3 <= exponent < 7:
            return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"
        if exponent < 0:
            return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
        digits = digits.ljust(exponent + 1, "0")
        return f"{sign}{digits[: exponent + 1]}.{digits[exponent + 1 :] or '0'}"

    return convert


def _boolean_to_number(values: pa.Array, target: pa.DataType) -> pa.Array:
    bits = values.cast(pa.int8())
    return round_decimal(bits.cast(pa.decimal128(3, 0)), target) if pat.is_decimal(target) else bits.cast(target)


def _integer_to_decimal(values: pa.Array, target: pa.DataType) -> pa.Array:
    return round_decimal(values.cast(decimal_of(values.type)), target)


def _decimal_to_integer(values: pa.Array, target: pa.DataType) -> pa.Array:
    return pc.round(values, ndigits=0, round_mode="towards_zero").cast(target)


def _decimal_to_real(values: pa.Array, target: pa.DataType) -> pa.Array:
    source = values.type
    if pat.is_float32(target):
        return _each(values, lambda value: _single(float(value), f"{value:f}"), target)
    if source.precision > 15:
        return _each(values, float, target)
    whole = values.cast(pa.decimal256(source.precision + source.scale, source.scale))
    shifted = pc.multiply(whole, pa.scalar(Decimal(10**source.scale), pa.decimal256(source.scale + 1, 0)))
    return pc.divide(shifted.cast(pa.int64()).cast(target), float(10**source.scale))


def _real_to_integer(values: pa.Array, target: pa.DataType) -> pa.Array:
    low, high = INTEGRAL_BOUNDS[target]
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    reals = values.cast(pa.float64()).fill_null(0).to_numpy(zero_copy_only=False)
    bad = ~((np.floor(reals) <= float(high)) & (np.ceil(reals) >= float(low)))
    if bad.any():
        raise _refusal(float(reals[bad][0]), values.type, target)
    saturated = reals >= 2.0**63
    whole = np.where(saturated, 0.0, np.trunc(reals)).astype(np.int64)
    return pa.array(np.where(saturated, high, whole), pa.int64(), mask=~valid).cast(target)


def _seconds_to_timestamp(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Seconds since 1970; those beyond the range become the first or last timestamp, as in Java's TimeUnit."""
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
    return _floor_divide(values.view(pa.int64()), MICROS_PER_DAY).cast(pa.int32()).view(target)


def _timestamp_to_number(values: pa.Array, target: pa.DataType) -> pa.Array:
    micros = values.view(pa.int64())
    if pat.is_floating(target):
        seconds = pc.divide(micros.cast(pa.float64(), safe=False), float(MICROS_PER_SECOND))
        return seconds.cast(target, safe=False)
    return _floor_divide(micros, MICROS_PER_SECOND).cast(target)


def _floor_divide(values: pa.Array, divisor: int) -> pa.Array:
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    whole = values.fill_null(0).to_numpy(zero_copy_only=False) // divisor
    return pa.array(whole, pa.int64(), mask=~valid)
