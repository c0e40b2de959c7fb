"""Parse numeric and binary literals to the value and type that Spark's parser (``AstBuilder``) gives them."""

from __future__ import annotations

import math
from decimal import Decimal, InvalidOperation

import pyarrow as pa

from hoodie_py.table.filter.predicate import Literal
from hoodie_py.table.filter.types import INTEGRAL_BOUNDS, MAX_PRECISION, find_literal_decimal

_SUFFIX_TYPES = {"Y": pa.int8(), "S": pa.int16(), "L": pa.int64()}


def parse_hex(text: str) -> bytes | None:
    """Parse hexadecimal digits; with an odd number of them, the first digit is a byte. None for other text."""
    digits = text.zfill(len(text) + len(text) % 2)
    try:
        return bytes.fromhex(digits) if digits.isalnum() or not digits else None
    except ValueError:
        return None


def parse_number(text: str) -> Literal | None:
    """Parse a number: its suffix gives the type, else int, bigint or decimal; an exponent makes it a double."""
    if text.endswith("BD"):
        return _parse_decimal(text[:-2])
    if text[-1] in _SUFFIX_TYPES:
        type_, text = _SUFFIX_TYPES[text[-1]], text[:-1]
        low, high = INTEGRAL_BOUNDS[type_]
        value = int(text) if text.lstrip("-").isdecimal() and len(text) <= 40 else None
        return Literal(value, type_) if value is not None and low <= value <= high else None
    if text[-1] in "DF" or "E" in text:
        return _parse_real(text)
    if "." in text or len(text) > 20:
        return _parse_decimal(text)
    whole = int(text)
    for type_ in (pa.int32(), pa.int64()):
        if INTEGRAL_BOUNDS[type_][0] <= whole <= INTEGRAL_BOUNDS[type_][1]:
            return Literal(whole, type_)
    return _parse_decimal(text)


def _parse_decimal(text: str) -> Literal | None:
    try:
        value = Decimal(text)
    except InvalidOperation:
        return None
    exponent = int(value.as_tuple().exponent)
    if exponent > MAX_PRECISION or exponent < -MAX_PRECISION:
        return None
    if exponent > 0:
        value = Decimal(int(value))
    type_ = find_literal_decimal(value)
    return None if type_ is None else Literal(value, type_)


def _parse_real(text: str) -> Literal | None:
    single = text.endswith("F")
    value = float(text.rstrip("DF"))
    if single:
        value = pa.scalar(value, pa.float64()).cast(pa.float32(), safe=False).as_py()
    return Literal(value, pa.float32() if single else pa.float64()) if math.isfinite(value) else None
