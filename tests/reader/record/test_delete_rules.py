"""Ordering values of delete blocks beside the types of the table's ordering fields: what has the class of a column's
values in Java's Spark reader, and what compares with nothing.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.formats.deletes.decoder import DeleteRecords
from hoodie_py.formats.deletes.ordering_value import OrderingKind as Kind
from hoodie_py.reader.record.delete_rules import make_delete_ordering_column
from hoodie_py.reader.record.ordering import ForeignValue, OrderingColumn
from hoodie_py.reader.record.record import DEFAULT_ORDERING

MOMENT = datetime(2024, 1, 15, 10, tzinfo=UTC)
MILLIS = 1_705_312_800_000
UTC_MILLIS, UTC_MICROS = pa.timestamp("ms", "UTC"), pa.timestamp("us", "UTC")
NUMBERS = (Kind.NONE, Kind.INT, Kind.LONG, Kind.DATE, Kind.TIME_MICROS, Kind.TIMESTAMP_MICROS)


def deletes(*given: tuple[Kind, Any]) -> DeleteRecords:
    """Deletes with these ordering values, as a block is decoded."""
    kinds = np.array([kind for kind, _ in given], np.int8)
    values = [value for _, value in given]
    whole = all(kind in NUMBERS for kind, _ in given)
    numbers = np.array([value or 0 for value in values], np.int64) if whole else None
    return DeleteRecords(pa.array(["k"] * len(given), pa.string()), kinds, values, numbers)


def orders(type_: pa.DataType, *given: tuple[Kind, Any]) -> list[Any]:
    """Ordering values of deletes in a table with one ordering field."""
    return make_delete_ordering_column(deletes(*given), [type_]).to_pylist()


@pytest.mark.parametrize("alone", [True, False], ids=["alone", "beside a text"])
@pytest.mark.parametrize(
    ("type_", "given", "expected"),
    [
        (UTC_MILLIS, (Kind.LONG, MILLIS), MOMENT),
        (UTC_MILLIS, (Kind.LONG, MILLIS * 1000), MOMENT),  # Spark's writer, in a table of Flink's
        (UTC_MILLIS, (Kind.LONG, 9_999_999_999_999), datetime(2286, 11, 20, 17, 46, 39, 999000, tzinfo=UTC)),
        (UTC_MILLIS, (Kind.LONG, 10_000_000_000_000), datetime(1970, 4, 26, 17, 46, 40, tzinfo=UTC)),
        (UTC_MILLIS, (Kind.LONG, -1), datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=UTC)),
        (UTC_MICROS, (Kind.LONG, MILLIS * 1000), MOMENT),
        (UTC_MICROS, (Kind.LONG, MILLIS), datetime(1970, 1, 20, 17, 41, 52, 800000, tzinfo=UTC)),
        (pa.timestamp("us"), (Kind.LONG, MILLIS * 1000), MOMENT.replace(tzinfo=None)),
        (pa.date32(), (Kind.INT, 19737), date(2024, 1, 15)),
        (pa.int32(), (Kind.INT, 7), 7),
        (pa.int64(), (Kind.LONG, 7), 7),
        (pa.int64(), (Kind.NONE, None), DEFAULT_ORDERING),
        (UTC_MILLIS, (Kind.NONE, None), DEFAULT_ORDERING),
    ],
    ids=str,
)
def test_numbers_of_the_class_that_rows_have(
    type_: pa.DataType, given: tuple[Kind, Any], expected: Any, alone: bool
) -> None:
    others = () if alone else ((Kind.STRING, "x"),)
    assert orders(type_, given, *others)[0] == expected


@pytest.mark.parametrize(
    ("type_", "given"),
    [
        (pa.date32(), (Kind.DATE, 19737)),
        (pa.date32(), (Kind.LONG, 19737)),
        (UTC_MICROS, (Kind.TIMESTAMP_MICROS, MILLIS * 1000)),
        (pa.timestamp("us"), (Kind.TIMESTAMP_MICROS, MILLIS * 1000)),
        (UTC_MILLIS, (Kind.TIMESTAMP_MICROS, MILLIS * 1000)),
        (pa.int64(), (Kind.TIME_MICROS, 7)),
        (pa.int64(), (Kind.INT, 7)),
        (pa.int32(), (Kind.LONG, 7)),
        (pa.float64(), (Kind.FLOAT, 7.0)),
        (pa.float32(), (Kind.DOUBLE, 7.0)),
        (pa.string(), (Kind.BYTES, b"x")),
        (pa.decimal128(10, 2), (Kind.STRING, "7")),
    ],
    ids=str,
)
def test_values_of_a_class_of_their_own_compare_with_nothing(type_: pa.DataType, given: tuple[Kind, Any]) -> None:
    assert orders(type_, given) == [ForeignValue(given[0].name.lower(), given[1])]


def test_local_milliseconds_are_compared_as_they_are() -> None:
    [found] = orders(pa.timestamp("ms"), (Kind.LONG, MILLIS))
    assert found == datetime(1970, 1, 20, 17, 41, 52, 800000)  # as if they were microseconds, in Java, too


def test_times_beyond_any_calendar_are_only_compared() -> None:
    column = make_delete_ordering_column(
        deletes((Kind.LONG, 2**63 - 1), (Kind.LONG, -(2**63)), (Kind.STRING, "")), [UTC_MICROS]
    )
    numbers = column.parts[0].values.cast(pa.int64())
    assert numbers.to_pylist() == [2**63 - 1, -(2**63), None]


def test_decimals_keep_their_digits() -> None:
    big = Decimal("999999999999999.999999999999999")
    assert orders(pa.decimal128(38, 15), (Kind.DECIMAL, big)) == [big]
    assert orders(pa.decimal128(10, 2), (Kind.DECIMAL, Decimal("1.500000000000000"))) == [Decimal("1.50")]
    for value in ("1.505", "123456789"):
        with pytest.raises(UnsupportedFeatureError, match="does not fit into"):
            orders(pa.decimal128(10, 2), (Kind.DECIMAL, Decimal(value)))


def test_several_fields_are_each_of_their_own_class() -> None:
    types = [UTC_MILLIS, pa.int64()]
    given = (Kind.ARRAY, ((Kind.LONG, MILLIS), (Kind.LONG, 5)))
    assert make_delete_ordering_column(deletes(given), types).to_pylist() == [(MOMENT, 5)]
    dated = (Kind.ARRAY, ((Kind.DATE, 19737), (Kind.LONG, 5)))
    [found] = make_delete_ordering_column(deletes(dated), [pa.date32(), pa.int64()]).to_pylist()
    assert isinstance(found, ForeignValue)
    whole = make_delete_ordering_column(deletes((Kind.NONE, None)), types)
    assert isinstance(whole, OrderingColumn)
    assert whole.to_pylist() == [DEFAULT_ORDERING]
