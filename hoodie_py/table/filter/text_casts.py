"""Cast between text and other types by the rules of Spark's ANSI mode.

Columns in a common spelling go through one Arrow kernel. Otherwise Python converts each distinct value once. Floats are
printed as in Java 19 and later (``arrow/java_text.py``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pat

from hoodie_py.arrow.java_text import make_float_formatter
from hoodie_py.errors import InvalidQueryError
from hoodie_py.table.filter.datetime_text import BLANKS, format_date, format_timestamp, parse_date, parse_timestamp
from hoodie_py.table.filter.sql_text import format_type
from hoodie_py.table.filter.types import INTEGRAL_BOUNDS, is_integral

#: Converts an array to a type; raises InvalidQueryError or pyarrow.ArrowInvalid for a value that does not fit.
Kernel: TypeAlias = Callable[[pa.Array, pa.DataType], pa.Array]

_SHORT_INTEGER = r"\A[+-]?[0-9]{1,18}\z"
_SHORT_FRACTION = r"\A-?[0-9]{1,15}(?:\.[0-9]{1,15})?\z"
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_REAL = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[dDfF]?", re.ASCII)
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,9})?", re.ASCII)
_SPECIAL_REALS = {"inf": math.inf, "infinity": math.inf, "nan": math.nan}
_TRUE, _FALSE = {"t", "true", "y", "yes", "1"}, {"f", "false", "n", "no", "0"}
_WIDE = Context(prec=1000, rounding=ROUND_HALF_UP)


def find_cast_from_string(target: pa.DataType) -> Kernel | None:
    """Return the conversion of text to a type; None if there is none."""
    if is_integral(target):
        return _string_to_integer
    if pat.is_floating(target):
        return _string_to_real
    if pat.is_decimal(target):
        return lambda values, to: convert_distinct(values, lambda text: parse_decimal(text, to), to)
    if pat.is_boolean(target):
        return lambda values, to: convert_distinct(values, parse_boolean, to)
    if pat.is_date32(target):
        return lambda values, to: convert_distinct(values, parse_date, to)
    if pat.is_timestamp(target):
        return lambda values, to: convert_distinct(values, lambda text: parse_timestamp(text, zoned=bool(to.tz)), to)
    return _cast_with_arrow if pat.is_binary(target) else None


def find_cast_to_string(source: pa.DataType) -> Kernel | None:
    """Return the conversion of a type to text; None if there is none."""
    if is_integral(source) or pat.is_boolean(source) or pat.is_binary(source):
        return _cast_with_arrow
    if pat.is_decimal(source):
        return lambda values, to: convert_distinct(values, lambda value: f"{value:f}", to)
    if pat.is_floating(source):
        return lambda values, to: convert_distinct(values, make_float_formatter(source), to)
    if pat.is_date32(source):
        return lambda values, to: convert_distinct(values.view(pa.int32()), format_date, to)
    if pat.is_timestamp(source):
        return lambda values, to: convert_distinct(values.view(pa.int64()), format_timestamp, to)
    return None


def convert_distinct(
    values: pa.Array, convert: Callable[[Any], Any], target: pa.DataType, *, fails: bool = True
) -> pa.Array:
    """Convert every distinct value in Python.

    ``convert`` returns None for a value that does not fit, which is an error unless ``fails`` is False, and
    NotImplemented for a value that becomes null.
    """
    coded = values.dictionary_encode()
    converted = []
    for value in coded.dictionary.to_pylist():
        result = convert(value)
        if result is None and fails:
            raise make_cast_error(value, values.type, target)
        converted.append(None if result is NotImplemented else result)
    return pa.array(converted, target).take(coded.indices)


def make_cast_error(value: Any, source: pa.DataType, target: pa.DataType) -> InvalidQueryError:
    """Make the error for a value that does not fit the target type."""
    shown = repr(value) if len(repr(value)) <= 60 else repr(value)[:60] + "..."
    return InvalidQueryError(
        f"The value {shown} of type {format_type(source)} cannot be cast to {format_type(target)}.",
        hint="Spark in ANSI mode refuses it as well.",
    )


def _cast_with_arrow(values: pa.Array, target: pa.DataType) -> pa.Array:
    return values.cast(target)


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

    return convert_distinct(values, convert, target)


def _string_to_real(values: pa.Array, target: pa.DataType) -> pa.Array:
    if pat.is_float64(target):
        if pc.all(pc.match_substring_regex(values, _SHORT_FRACTION)).as_py():
            return values.cast(target)
        return convert_distinct(values, parse_real, target)
    return convert_distinct(
        values, lambda text: None if (real := parse_real(text)) is None else round_to_single(real, text), target
    )


def parse_real(text: str) -> float | None:
    """Parse a number as a double; None if the text is not a number."""
    text = text.strip(BLANKS)
    match = _REAL.fullmatch(text)
    if match is not None:
        return float(match[1])
    word = text.lower()
    if word[:1] in ("+", "-"):
        return math.copysign(math.inf, -1 if word[0] == "-" else 1) if word[1:] in ("inf", "infinity") else None
    return _SPECIAL_REALS.get(word)


def round_to_single(real: float, text: str) -> float:
    """Round a decimal text to the nearest float32.

    Rounding to float64 first and then to float32 may give a neighbour of the nearest value. So the neighbours are
    compared with the exact decimal; on a tie the even mantissa wins.
    """
    with np.errstate(over="ignore"):  # a value too large for a single becomes infinite
        guess = np.float32(real)
    match = _REAL.fullmatch(text.strip(BLANKS))
    if match is None or not np.isfinite(guess):
        return float(guess)
    exact = Decimal(match[1])
    with np.errstate(all="ignore"):
        near = [np.nextafter(guess, np.float32(-math.inf)), guess, np.nextafter(guess, np.float32(math.inf))]
        candidates = [value for value in near if np.isfinite(value)]
        best = min(
            candidates, key=lambda v: (_WIDE.abs(_WIDE.subtract(Decimal(float(v)), exact)), v.view(np.uint32) & 1)
        )
    return float(best)


def parse_boolean(text: str) -> bool | None:
    """Parse a boolean; None if the text is not one."""
    word = text.strip(BLANKS).lower()
    return True if word in _TRUE else False if word in _FALSE else None


def parse_decimal(text: str, target: pa.DataType) -> Decimal | None:
    """Parse a decimal; None if the text is not one, or does not fit the type."""
    text = text.strip(BLANKS)
    if _DECIMAL.fullmatch(text) is None:
        return None
    return fit_decimal(Decimal(text), target)


def real_to_decimal(value: float, target: pa.DataType) -> Any:
    """Convert a double through its shortest digits; NaN and infinity become null."""
    return fit_decimal(Decimal(repr(value)), target) if math.isfinite(value) else NotImplemented


def fit_decimal(value: Decimal, target: pa.DataType) -> Decimal | None:
    """Round a decimal half away from zero to a type; None if it does not fit."""
    if value and value.adjusted() > target.precision - target.scale:
        return None
    if value.adjusted() < -target.scale - 1:
        value = Decimal(0)
    try:
        rounded = value.quantize(Decimal(1).scaleb(-target.scale), context=_WIDE)
    except InvalidOperation:
        return None
    return rounded if rounded == 0 or rounded.adjusted() < target.precision - target.scale else None
