"""Casts where ANSI mode is off; the values are Spark's. ``test_filter_spark_oracle`` asks Spark for many more."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.table.filter.lenient_casts import cast_leniently


@pytest.mark.parametrize(
    ("value", "source", "target", "expected"),
    [
        ("1.9", pa.string(), pa.int32(), 1),
        ("-.5", pa.string(), pa.int32(), 0),
        (".", pa.string(), pa.int32(), 0),
        ("+", pa.string(), pa.int32(), None),
        ("300", pa.string(), pa.int8(), None),
        ("x", pa.string(), pa.float64(), None),
        ("x", pa.string(), pa.bool_(), None),
        ("2020-13-01", pa.string(), pa.date32(), None),
        ("1234.5", pa.string(), pa.decimal128(4, 1), None),
        (2**40 + 5, pa.int64(), pa.int32(), 5),
        (300, pa.int32(), pa.int8(), 44),
        (1e10, pa.float64(), pa.int32(), 2**31 - 1),
        (1e10, pa.float64(), pa.int8(), -1),
        (1e30, pa.float64(), pa.int64(), 2**63 - 1),
        (float("nan"), pa.float64(), pa.int32(), 0),
        (Decimal(99999999999999999999), pa.decimal128(38, 0), pa.int64(), 7766279631452241919),
        (Decimal("123.4"), pa.decimal128(10, 1), pa.decimal128(3, 1), None),
        (1000, pa.int32(), pa.decimal128(3, 0), None),
        (Decimal("0.0000001"), pa.decimal128(10, 7), pa.string(), "1E-7"),
        (2**60, pa.timestamp("us", "UTC"), pa.int32(), None),
    ],
)
def test_what_does_not_fit_is_null_or_cut(value: Any, source: pa.DataType, target: pa.DataType, expected: Any) -> None:
    values = pa.array([value, None], pa.int64()).view(source) if pa.types.is_timestamp(source) else None
    cast = cast_leniently(pa.array([value, None], source) if values is None else values, target)
    assert (cast.type, cast.to_pylist()) == (target, [expected, None])


def test_a_text_that_spark_may_read_in_other_ways_is_refused() -> None:
    target = pa.timestamp("us", "UTC")
    known = cast_leniently(pa.array(["x", "2020-13-01 00:00:00", None]), target, "Europe/Berlin")
    assert known.null_count == 3
    for text in ("12:30:00", "2020-01-01 00:00:00 PST"):
        with pytest.raises(UnsupportedFeatureError, match="ANSI mode is off"):
            cast_leniently(pa.array([text]), target)
