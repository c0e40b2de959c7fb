"""Converts values of a column whose type was altered with schema-on-read (``SchemaChangeUtils.isTypeUpdateAllow``).

Beyond the promotions by name (``by_name``): numbers and strings to decimals, decimals to other precisions, strings to
dates. Numbers are converted to decimals through their texts in Java, rounded half up (``HoodieAvroUtils``,
``rewriteRecordWithNewSchema``); a float 1.1 becomes 1.10, not 1.10000002. Each distinct value is converted once.

A value that does not fit the new type is an error: Java makes some of them null, and a compaction would make that
permanent.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from decimal import ROUND_HALF_UP, Context, Decimal, DecimalException
from typing import Any

import pyarrow as pa

from hoodie_py.arrow.arrays import take
from hoodie_py.arrow.fields import is_text
from hoodie_py.arrow.java_text import convert_distinct
from hoodie_py.errors import CorruptFileError
from hoodie_py.reader.schema_evolution.by_name import conform_array

_WIDE = Context(prec=400, Emax=100_000, Emin=-100_000)
_LONGEST_TEXT = 400
_DATE = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})", re.ASCII)


def convert_values(array: pa.Array, target: pa.DataType, *, exact: bool = False) -> pa.Array:
    """Convert primitive values to another type. ``exact``: refuse texts and floats that decimals would round.

    Raises:
        UnsupportedFeatureError: Hudi does not know the change.
        CorruptFileError: a value does not fit the type, or is no number or date.
    """
    if pa.types.is_dictionary(array.type):
        array = take(array.dictionary, array.indices)
    source = array.type
    if is_text(source) and pa.types.is_date32(target):
        return _convert_texts(array, target, _parse_date)
    if pa.types.is_decimal(target) and not source.equals(target):
        if is_text(source):
            return _convert_texts(array, target, lambda text: _round(text, target, exact=exact))
        if pa.types.is_floating(source):
            return _convert_floats(array, target, exact=exact)
        if pa.types.is_integer(source) or pa.types.is_decimal(source):
            return _rescale(array, target)
    return conform_array(array, target)


def _convert_texts(array: pa.Array, target: pa.DataType, convert: Callable[[str], Any]) -> pa.Array:
    coded = array.dictionary_encode()
    try:
        values = pa.array([None if text is None else convert(text) for text in coded.dictionary.to_pylist()], target)
    except (ValueError, OverflowError, DecimalException, pa.ArrowException) as error:
        raise _make_error(array, target, error) from error
    return take(values, coded.indices)


def _convert_floats(array: pa.Array, target: pa.DataType, *, exact: bool) -> pa.Array:
    try:
        return convert_distinct(array, target, lambda text: _round(text, target, exact=exact))
    except (ValueError, DecimalException, pa.ArrowException) as error:
        raise _make_error(array, target, error) from error


def _round(text: str, target: pa.DataType, *, exact: bool) -> Decimal:
    if len(text) > _LONGEST_TEXT:
        raise ValueError("a text that long is no number")
    value = _WIDE.create_decimal(text)
    rounded = value.quantize(Decimal(1).scaleb(-target.scale), ROUND_HALF_UP, _WIDE)
    if exact and rounded != value:
        raise ValueError(f"{text[:40]} has more digits")
    return rounded


def _parse_date(text: str) -> date:
    found = _DATE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text[:40]!r} is no date")
    return date(*map(int, found.groups()))


def _rescale(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Return whole numbers or decimals with another precision and scale."""
    try:
        if pa.types.is_integer(array.type):
            array = array.cast(pa.decimal128(20, 0))
        wide = pa.decimal256(76, max(target.scale, array.type.scale))
        return array.cast(wide).cast(target)
    except pa.ArrowException as error:
        raise _make_error(array, target, error) from error


def _make_error(array: pa.Array, target: pa.DataType, error: Exception) -> CorruptFileError:
    return CorruptFileError(
        f"A value stored as {array.type} does not fit {target}: {error}",
        hint="Alter the column to a type that holds all its values, such as string.",
    )
