"""Casts: spellings of numbers (the expected values are Spark's), exactness, and that errors are errors."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hoodie_py.errors import InvalidQueryError
from hoodie_py.table.filter.ansi_casts import can_cast, cannot_fail, cast
from tests.table.filter_rows import SCHEMA, rows

SMALL = pa.decimal128(5, 1)
BAD = None


def converted(value: Any, source: pa.DataType, target: pa.DataType) -> Any:
    """Cast one value; BAD when that is an error."""
    try:
        return cast(pa.array([value], source), target)[0].as_py()
    except InvalidQueryError:
        return BAD


@pytest.mark.parametrize(
    ("text", "bigint", "double", "decimal"),
    [
        (" 1 ", 1, 1.0, "1.0"),
        ("+1", 1, 1.0, "1.0"),
        ("1.5", BAD, 1.5, "1.5"),
        ("1.", BAD, 1.0, "1.0"),
        (".5", BAD, 0.5, "0.5"),
        ("1E3", BAD, 1000.0, "1000.0"),
        ("0x10", BAD, BAD, BAD),
        ("1L", BAD, BAD, BAD),
        ("1d", BAD, 1.0, BAD),
        ("nan", BAD, math.nan, BAD),
        ("INF", BAD, math.inf, BAD),
        ("+Infinity", BAD, math.inf, BAD),
        ("-inf", BAD, -math.inf, BAD),
        ("-nan", BAD, BAD, BAD),
        ("", BAD, BAD, BAD),
        ("-", BAD, BAD, BAD),
        (".", BAD, BAD, BAD),
        ("9223372036854775807", 2**63 - 1, 2.0**63, BAD),
        ("9223372036854775808", BAD, 2.0**63, BAD),
        ("-9223372036854775808", -(2**63), -(2.0**63), BAD),
        ("1_000", BAD, BAD, BAD),
        ("00012", 12, 12.0, "12.0"),
        ("1e400", BAD, math.inf, BAD),
        ("1e-400", BAD, 0.0, "0.0"),
        ("1e5d", BAD, 100000.0, BAD),
        ("--1", BAD, BAD, BAD),
        ("1 2", BAD, BAD, BAD),
        ("1\u00a0", BAD, BAD, BAD),
        ("\x005", 5, 5.0, "5.0"),
        ("9999.95", BAD, 9999.95, BAD),
        ("9999.94", BAD, 9999.94, "9999.9"),
        ("0.05", BAD, 0.05, "0.1"),
        ("-0.05", BAD, -0.05, "-0.1"),
        ("1e999999999", BAD, math.inf, BAD),
    ],
)
def test_spellings_of_numbers(text: str, bigint: int | None, double: float | None, decimal: str | None) -> None:
    """What text is a bigint, a double, a decimal(5,1)."""
    assert converted(text, pa.string(), pa.int64()) == bigint
    assert repr(converted(text, pa.string(), pa.float64())) == repr(double)
    assert converted(text, pa.string(), SMALL) == (None if decimal is None else Decimal(decimal))


@pytest.mark.parametrize(
    ("value", "source", "text"),
    [
        (1e7, pa.float64(), "1.0E7"),
        (12345678.9, pa.float64(), "1.23456789E7"),
        (1e-3, pa.float64(), "0.001"),
        (1e-4, pa.float64(), "1.0E-4"),
        (100000.0, pa.float64(), "100000.0"),
        (-0.0, pa.float64(), "-0.0"),
        (math.inf, pa.float64(), "Infinity"),
        (math.nan, pa.float64(), "NaN"),
        (1.7976931348623157e308, pa.float64(), "1.7976931348623157E308"),
        (0.1, pa.float32(), "0.1"),
        (9.999999e-5, pa.float32(), "9.999999E-5"),
        (123456.7, pa.float32(), "123456.7"),
        (Decimal("1.50"), pa.decimal128(10, 2), "1.50"),
        (Decimal("0E-10"), pa.decimal128(20, 10), "0.0000000000"),
        (True, pa.bool_(), "true"),
        (-5, pa.int8(), "-5"),
        (4_000_000, pa.date32(), "+12921-08-18"),
        (b"\xc3\x9f", pa.binary(), "ß"),
        (b"\xff", pa.binary(), BAD),
    ],
)
def test_values_as_text(value: Any, source: pa.DataType, text: str | None) -> None:
    """How values print."""
    assert converted(value, source, pa.string()) == text


@pytest.mark.parametrize(
    ("value", "source", "target", "expected"),
    [
        (1.99, pa.float64(), pa.int32(), 1),
        (-1.99, pa.float64(), pa.int8(), -1),
        (2147483647.9, pa.float64(), pa.int32(), 2147483647),
        (2147483648.0, pa.float64(), pa.int32(), BAD),
        (2.0**63, pa.float64(), pa.int64(), 2**63 - 1),
        (9.3e18, pa.float64(), pa.int64(), BAD),
        (math.nan, pa.float64(), pa.int32(), BAD),
        (128.0, pa.float64(), pa.int8(), BAD),
        (300, pa.int32(), pa.int8(), BAD),
        (0.15, pa.float64(), SMALL, Decimal("0.2")),
        (0.25, pa.float64(), SMALL, Decimal("0.3")),
        (-0.25, pa.float64(), SMALL, Decimal("-0.3")),
        (math.nan, pa.float64(), SMALL, None),
        (1e10, pa.float64(), SMALL, BAD),
        (12345, pa.int32(), SMALL, BAD),
        (True, pa.bool_(), pa.decimal128(1, 1), BAD),
        (Decimal("-1.99"), pa.decimal128(5, 2), pa.int32(), -1),
        (Decimal("-0.99"), pa.decimal128(2, 2), pa.int64(), 0),
        (Decimal("0." + "9" * 38), pa.decimal128(38, 38), pa.int8(), 0),
        (Decimal("9" * 18), pa.decimal128(38, 0), pa.int64(), int("9" * 18)),
        (Decimal("0.4"), SMALL, pa.bool_(), True),
        (math.nan, pa.float64(), pa.bool_(), True),
        (2**63 - 1, pa.int64(), pa.float32(), 2.0**63),
        (16777217, pa.int32(), pa.float32(), 16777216.0),
        (1e40, pa.float64(), pa.float32(), math.inf),
    ],
)
def test_numbers(value: Any, source: pa.DataType, target: pa.DataType, expected: Any) -> None:
    """Truncation, saturation, rounding half up, and overflow."""
    assert converted(value, source, target) == expected


@given(st.decimals(min_value=-(10**19), max_value=10**19, places=18))
def test_decimal_to_double_is_the_nearest(value: Decimal) -> None:
    """Not off by one unit in the last place, as a multiplication by a power of ten would be."""
    assert converted(value, pa.decimal128(38, 18), pa.float64()) == float(value)


@given(st.integers(-(10**15) + 1, 10**15 - 1), st.integers(0, 15))
def test_short_decimals_to_double(unscaled: int, scale: int) -> None:
    """The vectorised way for at most 15 digits gives the same as Python's own conversion."""
    value = Decimal(unscaled).scaleb(-scale)
    assert converted(value, pa.decimal128(15, scale), pa.float64()) == float(value)


@given(st.decimals(min_value=-(10**6), max_value=10**6, places=6), st.integers(0, 6))
def test_decimals_round_half_up(value: Decimal, scale: int) -> None:
    """Away from zero at the half, whatever the sign."""
    expected = value.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP)
    assert converted(value, pa.decimal128(13, 6), pa.decimal128(13, scale)) == expected


@given(st.floats(width=32, allow_nan=False))
@example(3.4028234663852886e38)
@example(-3.4028234663852886e38)
def test_text_to_float_is_the_nearest(value: float) -> None:
    """What a float prints reads back as itself."""
    text = converted(value, pa.float32(), pa.string())
    assert converted(text, pa.string(), pa.float32()) == value
    assert np.float32(float(text)) == np.float32(value)


@pytest.mark.parametrize("source", sorted({field.type for field in SCHEMA}, key=str), ids=str)
@pytest.mark.parametrize("target", sorted({field.type for field in SCHEMA}, key=str), ids=str)
def test_casts_that_cannot_fail_do_not(source: pa.DataType, target: pa.DataType) -> None:
    """Whatever claims to be safe is, on every extreme value; nulls stay null unless the value has no number."""
    values = rows()[next(field.name for field in SCHEMA if field.type == source)]
    if not can_cast(source, target):
        with pytest.raises(InvalidQueryError, match="Cannot cast"):
            cast(values, target)
    elif cannot_fail(source, target):
        result = cast(values, target)
        assert result.type == target
        assert result.is_null().equals(values.is_null())
