"""Columns are brought to the wanted schema by name and widened as Hudi allows; all else is refused.

Type changes of schema-on-read; the values are those that Java Hudi 1.2.0 gave for them.
"""

from __future__ import annotations

import datetime
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py.arrow.java_text import format_java_float
from hoodie_py.errors import CorruptFileError, UnsupportedFeatureError
from hoodie_py.formats.logical_types import name_type
from hoodie_py.formats.logical_types.variant import VARIANT_TYPE
from hoodie_py.formats.logical_types.vector import Vector
from hoodie_py.reader.schema_evolution.by_name import Conformer, conform_array, conform_batch, convert_values

US = pa.timestamp("us", "UTC")


@pytest.mark.parametrize(
    ("values", "source", "target", "expected"),
    [
        ([1, None], pa.int32(), pa.int64(), [1, None]),
        ([1, 2**53 + 1], pa.int64(), pa.float64(), [1.0, float(2**53)]),
        (
            [1.1, None, float("inf"), -0.0, 1.4e-45],
            pa.float32(),
            pa.float64(),
            [1.1, None, float("inf"), -0.0, 1.4e-45],
        ),
        ([7, -1, None], pa.int64(), pa.string(), ["7", "-1", None]),
        ([1.0, 1e10, 1.5e-5], pa.float64(), pa.string(), ["1.0", "1.0E10", "1.5E-5"]),
        ([True], pa.bool_(), pa.string(), ["true"]),
        ([datetime.date(1969, 12, 31)], pa.date32(), pa.string(), ["1969-12-31"]),
        (["é"], pa.string(), pa.binary(), ["é".encode()]),
        ([b"x"], pa.binary(), pa.string(), ["x"]),
        ([Decimal("1.50")], pa.decimal128(5, 2), pa.decimal128(20, 4), [Decimal("1.5000")]),
        ([3], pa.int32(), pa.decimal128(12, 2), [Decimal("3.00")]),
        ([None, None], pa.null(), pa.list_(pa.int32()), [None, None]),
        ([["a"], None, []], pa.list_(pa.string()), pa.list_(pa.field("element", pa.string())), [["a"], None, []]),
    ],
)
def test_promotions(values: list[Any], source: pa.DataType, target: pa.DataType, expected: list[Any]) -> None:
    result = conform_array(pa.array(values, source), target)
    assert result.type == target
    assert result.to_pylist() == expected


def test_timestamps_change_their_unit() -> None:
    millis = pa.array([1, -1], pa.timestamp("ms", "UTC"))
    assert conform_array(millis, US).cast(pa.int64()).to_pylist() == [1000, -1000]
    nanos = pa.array([1999], pa.timestamp("ns"))
    assert conform_array(nanos, pa.timestamp("us")).cast(pa.int64()).to_pylist() == [1]


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (pa.int64(), pa.int32()),
        (pa.float64(), pa.int64()),
        (pa.string(), pa.int32()),
        (pa.list_(pa.int32()), pa.int32()),
        (pa.struct([("a", pa.int32())]), pa.string()),
        (US, pa.int64()),
    ],
)
def test_what_does_not_widen_is_refused(source: pa.DataType, target: pa.DataType) -> None:
    with pytest.raises(UnsupportedFeatureError, match="not readable"):
        conform_array(pa.nulls(1, source), target)


def test_nested_fields_go_by_name_at_every_depth_even_in_slices() -> None:
    source = pa.struct([("b", pa.int32()), ("a", pa.string())])
    target = pa.struct([("a", pa.string()), ("c", pa.float64()), ("b", pa.int64())])
    rows: list[Any] = [{"b": 1, "a": "x"}, None, {"b": None, "a": None}, {"b": 4, "a": "y"}]
    want: list[Any] = [
        {"a": "x", "c": None, "b": 1},
        None,
        {"a": None, "c": None, "b": None},
        {"a": "y", "c": None, "b": 4},
    ]
    array = pa.array(rows, source)
    assert conform_array(array, target).to_pylist() == want
    assert conform_array(array.slice(1, 2), target).to_pylist() == want[1:3]
    lists = pa.array([[rows[0], rows[3]], None, [], [None]], pa.list_(source))
    assert conform_array(lists.slice(1), pa.list_(target)).to_pylist() == [None, [], [None]]
    assert conform_array(lists, pa.list_(target)).to_pylist()[0] == [want[0], want[3]]
    maps = pa.array([[("k", rows[0])], None, [("m", None), ("n", rows[3])]], pa.map_(pa.string(), source))
    assert conform_array(maps.slice(2), pa.map_(pa.string(), target)).to_pylist() == [[("m", None), ("n", want[3])]]


def test_missing_columns_are_null_or_their_default_and_order_is_the_schemas() -> None:
    batch = pa.RecordBatch.from_pydict({"a": pa.array([1, 2], pa.int32()), "extra": [0, 0]})
    schema = pa.schema([("new", pa.int64()), ("a", pa.int64()), ("other", pa.string())])
    result = conform_batch(batch, schema, {"new": 5})
    assert result.to_pydict() == {"new": [5, 5], "a": [1, 2], "other": [None, None]}
    assert conform_batch(batch, pa.schema([])).num_rows == 2


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (100.0, "100.0"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (1234567.0, "1234567.0"),
        (12345678.0, "1.2345678E7"),
        (1e7, "1.0E7"),
        (9999999.5, "9999999.5"),
        (-2.5e300, "-2.5E300"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        (123.456, "123.456"),
        (4.9e-324, "4.9E-324"),
    ],
)
def test_floats_print_as_in_java(value: float, text: str) -> None:
    assert format_java_float(value, single=False) == text


def test_single_floats_print_their_own_shortest_text() -> None:
    assert format_java_float(float(pa.scalar(0.1, pa.float32()).as_py()), single=True) == "0.1"


def test_a_null_struct_needs_no_values_in_its_required_fields() -> None:
    target = pa.struct([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.string())])
    source = pa.struct([("b", pa.string()), ("a", pa.int32())])
    result = conform_array(pa.array([None, {"a": 1, "b": None}], source), target)
    assert result.type == target
    assert result.to_pylist() == [None, {"a": 1, "b": None}]
    with pytest.raises(UnsupportedFeatureError, match="no value in its field 'a'"):
        conform_array(pa.array([{"a": None, "b": "x"}], source), target)


def test_vectors_come_as_bytes_and_shredded_variants_not_at_all() -> None:
    vector = Vector(2, "INT8")
    schema = pa.schema([vector.mark(pa.field("v", vector.arrow))])
    batch = pa.RecordBatch.from_pydict({"v": pa.array([b"\x01\xff", None], pa.binary(2))})
    assert Conformer(schema)(batch).to_pydict() == {"v": [[1, -1], None]}
    with pytest.raises(CorruptFileError, match="has a value of 3 bytes") as raised:
        conform_batch(pa.RecordBatch.from_pydict({"v": pa.array([b"\x01\xff\x00"])}), schema)
    assert raised.value.where["column"] == "v"
    fields = [("metadata", pa.binary()), ("value", pa.binary()), ("typed_value", pa.int64())]
    shredded = pa.RecordBatch.from_arrays([pa.nulls(1, pa.struct(fields))], ["x"])
    variant = name_type(pa.field("x", VARIANT_TYPE), "VARIANT")
    for column in (variant, pa.field("s", pa.struct([variant]))):
        rows = shredded if column is variant else pa.RecordBatch.from_arrays([shredded.to_struct_array()], ["s"])
        with pytest.raises(UnsupportedFeatureError, match="Shredded variants"):
            conform_batch(rows, pa.schema([column]))


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
