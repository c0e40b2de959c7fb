"""Bounds go into the unions of the metadata table and come back as values of the column's type, or as unknown."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.formats.indexes.bounds import V1, V2, ValueKind, ValueType, make_value_types, unwrap_values, wrap_values
from hoodie_py.formats.indexes.ranges import BOUND_TYPE as UNION

T = ValueType
INSTANT = pa.timestamp("us", "UTC")


def member(wrapped: pa.Array) -> dict[str, Any]:
    """Return the wrappers of the first value that have one, by their numbers."""
    return {name: value["value"] for name, value in wrapped[0].as_py().items() if value is not None}


def round_trip(value: Any, kind: ValueKind, type_: pa.DataType, version: int, **options: Any) -> tuple[Any, bool]:
    wrapped = wrap_values([value], [kind], version, UNION)
    kinds = make_value_types([kind], version)
    found = unwrap_values(wrapped, kinds, type_, **options)
    assert found.values.type == type_
    return found.values[0].as_py(), bool(found.known[0])


CASES = [
    (True, ValueKind(T.BOOLEAN), pa.bool_(), True, "member0", "member0"),
    (-5, ValueKind(T.INT), pa.int32(), -5, "member1", "member1"),
    (-5, ValueKind(T.INT), pa.int64(), -5, "member1", "member1"),
    (1 << 60, ValueKind(T.LONG), pa.int64(), 1 << 60, "member2", "member2"),
    (1.5, ValueKind(T.FLOAT), pa.float32(), 1.5, "member3", "member3"),
    (-0.0, ValueKind(T.DOUBLE), pa.float64(), -0.0, "member4", "member4"),
    ("é", ValueKind(T.STRING), pa.string(), "é", "member6", "member6"),
    (-1, ValueKind(T.DATE), pa.date32(), date(1969, 12, 31), "member7", "member1"),
    (-12345, ValueKind(T.DECIMAL, 10, 2), pa.decimal128(10, 2), Decimal("-123.45"), "member8", "member5"),
    (128, ValueKind(T.DECIMAL, 10, 2), pa.decimal128(12, 4), Decimal("1.28"), "member8", "member5"),
    (1, ValueKind(T.TIME_MILLIS), pa.int32(), 1, "member1", "member1"),
    (1, ValueKind(T.TIME_MICROS), pa.int64(), 1, "member2", "member2"),
    (1, ValueKind(T.TIMESTAMP_MICROS), INSTANT, datetime(1970, 1, 1, 0, 0, 0, 1, UTC), "member2", "member2"),
    (
        -7,
        ValueKind(T.LOCAL_TIMESTAMP_MICROS),
        pa.timestamp("us"),
        datetime(1969, 12, 31, 23, 59, 59, 999993),
        *["member2"] * 2,
    ),
]


@pytest.mark.parametrize(("value", "kind", "type_", "expected", "first", "second"), CASES)
def test_bounds_come_back(
    value: Any, kind: ValueKind, type_: pa.DataType, expected: Any, first: str, second: str
) -> None:
    for version, name in ((V1, first), (V2, second)):
        assert list(member(wrap_values([value], [kind], version, UNION))) == [name]
        assert round_trip(value, kind, type_, version) == (expected, True)


def test_millis_and_nanos_have_their_unit_in_version_2_only() -> None:
    at = datetime(1970, 1, 1, 0, 0, 0, 2000, UTC)
    assert round_trip(2, ValueKind(T.TIMESTAMP_MILLIS), INSTANT, V2, millis=True) == (at, True)
    assert round_trip(2, ValueKind(T.TIMESTAMP_MILLIS), INSTANT, V1, millis=True) == (None, False)
    assert round_trip(2_000_000, ValueKind(T.TIMESTAMP_NANOS), INSTANT, V2) == (at, True)
    assert round_trip(2_000_001, ValueKind(T.TIMESTAMP_NANOS), INSTANT, V2) == (None, False)
    assert round_trip(1 << 62, ValueKind(T.TIMESTAMP_MILLIS), INSTANT, V2) == (None, False)


@pytest.mark.parametrize(
    ("value", "kind", "type_"),
    [
        (math.nan, ValueKind(T.DOUBLE), pa.float64()),
        (0.1, ValueKind(T.FLOAT), pa.float64()),
        ("\ue000", ValueKind(T.STRING), pa.string()),
        ("a😀", ValueKind(T.STRING), pa.string()),
        (b"ab", ValueKind(T.BYTES), pa.binary()),
        (b"ab", ValueKind(T.FIXED), pa.binary()),
        ("0" * 36, ValueKind(T.UUID), pa.string()),
        (5, ValueKind(T.LONG), INSTANT),
        (5, ValueKind(T.INT), pa.date32()),
        (5, ValueKind(T.INT), pa.string()),
        (1 << 40, ValueKind(T.LONG), pa.int32()),
        (5, ValueKind(T.DATE), pa.int32()),
        (12345, ValueKind(T.DECIMAL, 10, 3), pa.decimal128(10, 2)),
    ],
)
def test_what_may_be_no_bound_is_unknown(value: Any, kind: ValueKind, type_: pa.DataType) -> None:
    assert round_trip(value, kind, type_, V2) == (None, False)


def test_no_bound_is_known_to_be_none() -> None:
    wrapped = wrap_values([None], [ValueKind(T.NULL)], V2, UNION)
    assert wrapped.null_count == 1
    found = unwrap_values(wrapped, make_value_types([ValueKind(T.NULL)], V2), pa.int32())
    assert found.values.to_pylist() == [None]
    assert found.known.tolist() == [True]


def test_decimals_are_javas_bytes() -> None:
    kind = ValueKind(T.DECIMAL, 38, 0)
    for number, expected in ((0, b"\0"), (127, b"\x7f"), (128, b"\0\x80"), (-128, b"\x80"), (-129, b"\xff\x7f")):
        assert member(wrap_values([number], [kind], V2, UNION)) == {"member5": expected}


def test_one_column_may_have_values_of_several_kinds() -> None:
    kinds = [ValueKind(T.INT), ValueKind(T.LONG), ValueKind(T.NULL), ValueKind(T.DECIMAL, 5, 1), ValueKind(T.STRING)]
    wrapped = wrap_values([1, 2, None, 3, "x"], kinds, V2, UNION)
    found = unwrap_values(wrapped, make_value_types(kinds, V2), pa.int64())
    assert found.values.to_pylist() == [1, 2, None, None, None]
    assert found.known.tolist() == [True, True, True, False, False]


def test_what_a_table_may_say_wrongly_is_unknown() -> None:
    wrapped = wrap_values([1, 1, b"\x01" * 40], [ValueKind(T.INT)] * 2 + [ValueKind(T.BYTES)], V2, UNION)
    kinds = pa.array(
        [(99, None), (3, "x,y"), (10, "38,99999")],
        pa.struct([("typeOrdinal", pa.int32()), ("additionalInfo", pa.string())]),
    )
    found = unwrap_values(wrapped, kinds, pa.int32())
    assert found.values.to_pylist() == [None, 1, None]
    assert unwrap_values(wrapped, kinds, pa.decimal128(38, 0)).known.tolist() == [False] * 3


def test_old_unions_without_later_wrappers_do() -> None:
    union = pa.struct(list(UNION)[:11])
    wrapped = wrap_values([7], [ValueKind(T.DATE)], V1, union)
    assert unwrap_values(wrapped, None, pa.date32()).values.to_pylist() == [date(1970, 1, 8)]


@given(st.lists(st.one_of(st.none(), st.integers(-(10**30), 10**30 - 1)), max_size=20), st.integers(0, 8))
def test_decimals_round_trip(numbers: list[int | None], scale: int) -> None:
    kinds = [ValueKind(T.DECIMAL, 38, scale)] * len(numbers)
    wrapped = wrap_values(numbers, kinds, V2, UNION)
    found = unwrap_values(wrapped, make_value_types(kinds, V2), pa.decimal128(38, scale))
    expected = [None if number is None else Decimal(f"{number}e-{scale}") for number in numbers]
    assert found.values.to_pylist() == expected
    assert found.known.all()


@given(st.lists(st.one_of(st.none(), st.floats(width=64)), max_size=20))
def test_doubles_round_trip(numbers: list[float | None]) -> None:
    kinds = [ValueKind(T.DOUBLE)] * len(numbers)
    found = unwrap_values(wrap_values(numbers, kinds, V2, UNION), make_value_types(kinds, V2), pa.float64())
    missing = [each is None or math.isnan(each) for each in numbers]
    assert [each is None for each in found.values.to_pylist()] == missing
    assert found.known.tolist() == [each is None or not math.isnan(each) for each in numbers]
    assert np.array_equal(
        [each for each in numbers if each is not None and not math.isnan(each)],
        found.values.drop_null().to_numpy(zero_copy_only=False),
    )
