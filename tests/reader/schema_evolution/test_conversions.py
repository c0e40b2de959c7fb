"""Type changes of schema-on-read; the values are those that Java Hudi 1.2.0 gave for them."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py.errors import CorruptFileError, UnsupportedFeatureError
from hoodie_py.reader.schema_evolution.conversions import convert_values

F32, F64, TEXT = pa.float32(), pa.float64(), pa.string()


def decimal(precision: int, scale: int) -> pa.DataType:
    return pa.decimal128(precision, scale)


JAVA: list[tuple[pa.DataType, pa.DataType, dict[Any, Any]]] = [
    (pa.int32(), pa.int64(), {2147483647: 2147483647}),
    (pa.int32(), F32, {2147483647: 2147483648.0, 16777217: 16777216.0}),
    (pa.int32(), F64, {16777217: 16777217.0}),
    (pa.int32(), TEXT, {-7: "-7", None: None}),
    (pa.int32(), decimal(12, 2), {2147483647: Decimal("2147483647.00"), None: None}),
    (pa.int64(), F32, {-70000000000: -70000001024.0, 123456789: 123456792.0}),
    (pa.int64(), F64, {9007199254740993: 9007199254740992.0}),
    (pa.int64(), TEXT, {9007199254740993: "9007199254740993"}),
    (pa.int64(), decimal(22, 1), {-(2**63): Decimal("-9223372036854775808.0")}),
    (F32, F64, {1.1: 1.1, 16777216.0: 16777216.0, 3.4e10: 33999999000.0, 1.0e-5: 1.0e-5, None: None}),
    (F32, TEXT, {1.1: "1.1", 16777216.0: "1.6777216E7", 3.4e10: "3.3999999E10", 1.0e-5: "1.0E-5"}),
    (F32, decimal(20, 3), {1.1: Decimal("1.100"), 3.4e10: Decimal("33999999000.000"), 1.0e-5: Decimal("0.000")}),
    (F64, TEXT, {-0.0001: "-1.0E-4", 1.0e10: "1.0E10", 123456.785: "123456.785", 0.001: "0.001"}),
    (F64, decimal(20, 3), {-0.0001: Decimal("0.000"), 5.0e-4: Decimal("0.001"), 123456.785: Decimal("123456.785")}),
    (pa.date32(), TEXT, {date(9999, 12, 31): "9999-12-31", date(1900, 3, 1): "1900-03-01"}),
    (decimal(10, 2), TEXT, {Decimal("-99999999.99"): "-99999999.99", Decimal("0.00"): "0.00"}),
    (decimal(10, 2), decimal(12, 2), {Decimal("100.00"): Decimal("100.00")}),
    (decimal(10, 2), decimal(14, 4), {Decimal("-99999999.99"): Decimal("-99999999.9900")}),
    (TEXT, pa.date32(), {"1999-12-31": date(1999, 12, 31), "2000-2-29": date(2000, 2, 29), None: None}),
    (TEXT, decimal(10, 2), {"12.345": Decimal("12.35"), "-0.005": Decimal("-0.01"), "1e3": Decimal("1000.00")}),
    (TEXT, decimal(10, 2), {"2.675": Decimal("2.68"), "0.125": Decimal("0.13"), "7": Decimal("7.00")}),
]


@pytest.mark.parametrize(("source", "target", "values"), JAVA, ids=str)
def test_values_of_java(source: pa.DataType, target: pa.DataType, values: dict[Any, Any]) -> None:
    array = pa.array([*values, *values], source)
    assert convert_values(array, target).to_pylist() == [*values.values(), *values.values()]
    assert convert_values(array.slice(1), target).to_pylist() == [*values.values(), *values.values()][1:]
    if not pa.types.is_decimal(source):
        assert convert_values(array.dictionary_encode(), target).to_pylist() == [*values.values(), *values.values()]


UNFIT: list[tuple[pa.DataType, pa.DataType, Any]] = [
    (pa.int32(), decimal(3, 0), 5000),
    (F64, decimal(3, 0), 5000.0),
    (F64, decimal(3, 0), float("nan")),
    (TEXT, decimal(3, 0), "many"),
    (TEXT, decimal(3, 0), "1e99999999"),
    (TEXT, decimal(3, 0), "9" * 1000),
    (decimal(10, 2), decimal(4, 2), Decimal("12345.00")),
    (TEXT, pa.date32(), "today"),
    (TEXT, pa.date32(), "2021-13-01"),
    (TEXT, pa.date32(), "2021-02-30"),
]


@pytest.mark.parametrize(("source", "target", "value"), UNFIT, ids=str)
def test_values_that_do_not_fit(source: pa.DataType, target: pa.DataType, value: Any) -> None:
    with pytest.raises(CorruptFileError):
        convert_values(pa.array([value], source), target)


def test_changes_that_hudi_does_not_know() -> None:
    for source, target in ((TEXT, pa.int32()), (pa.int64(), pa.int32()), (F64, F32), (TEXT, pa.bool_())):
        with pytest.raises(UnsupportedFeatureError):
            convert_values(pa.array([None], source), target)
