"""JSON texts of rows: both of Java's styles, for every type, against Python's parser."""

from __future__ import annotations

import base64
import datetime
import json
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie_py.table.changes.json_text import AVRO, JACKSON, JsonStyle, write_json

TYPE = pa.struct(
    [
        ("s", pa.string()),
        ("b", pa.bool_()),
        ("i", pa.int32()),
        ("f", pa.float32()),
        ("d", pa.float64()),
        ("dec", pa.decimal128(20, 4)),
        ("bin", pa.binary()),
        ("dt", pa.date32()),
        ("tm", pa.timestamp("us", "UTC")),
        ("l", pa.list_(pa.float64())),
        ("m", pa.map_(pa.string(), pa.int32())),
        ("st", pa.struct([("x", pa.int32()), ("y", pa.list_(pa.struct([("z", pa.string())])))])),
    ]
)
ROW = {
    "s": 'q"\\/\n\t\x01é😀',
    "b": True,
    "i": -5,
    "f": 1.1,
    "d": 1e10,
    "bin": b"\x00\xff\x01abc",
    "dt": datetime.date(2024, 1, 2),
    "tm": datetime.datetime(2024, 1, 2, 3, 4, 5, 678901, tzinfo=datetime.UTC),
    "l": [1, None, 3],
    "m": [("a", 1), ("b", None)],
    "st": {"x": None, "y": [{"z": "z"}]},
}


def write(rows: list[Any], style: JsonStyle, type_: pa.DataType = TYPE) -> list[str | None]:
    return write_json(pa.array(rows, type_), style).to_pylist()


def test_texts_are_those_that_java_prints() -> None:
    jackson, avro = write([ROW], JACKSON)[0], write([ROW], AVRO)[0]
    assert jackson == (
        '{"s":"q\\"\\\\/\\n\\t\\u0001é😀","b":true,"i":-5,"f":1.1,"d":1.0E10,"bin":"AP8BYWJj","dt":19724,'
        '"tm":1704164645678901,"l":[1.0,null,3.0],"m":{"a":1},"st":{"y":[{"z":"z"}]}}'
    )
    assert avro == (
        '{"s": "q\\"\\\\/\\n\\t\\u0001é😀", "b": true, "i": -5, "f": 1.1, "d": 1.0E10, "dec": null, '
        '"bin": "\\u0000ÿ\\u0001abc", "dt": 19724, "tm": 1704164645678901, "l": [1.0, null, 3.0], '
        '"m": {"a": 1, "b": null}, "st": {"x": null, "y": [{"z": "z"}]}}'
    )


@pytest.mark.parametrize("style", [AVRO, JACKSON], ids=["avro", "jackson"])
def test_a_null_row_has_no_text_and_nulls_have_theirs(style: JsonStyle) -> None:
    assert write([None, {}], style, pa.struct([("a", pa.int32())])) == [
        None,
        '{"a": null}' if style.shows_nulls else "{}",
    ]
    assert write([], style) == []


def test_decimals_are_numbers() -> None:
    texts = write([{"dec": Decimal("1.5")}, {"dec": Decimal("-0.0001")}], JACKSON)
    assert [json.loads(str(text), parse_float=Decimal)["dec"] for text in texts] == [Decimal("1.5"), Decimal("-0.0001")]


@pytest.mark.parametrize("value", [0.0, -0.0, 1.0, 123456789.0, 1e300, 1e-300, 0.1, 5e-324, math.pi])
def test_floats_stay_floats(value: float) -> None:
    for style in (AVRO, JACKSON):
        text = write([{"d": value}], style, pa.struct([("d", pa.float64())]))[0]
        found = json.loads(str(text))["d"]
        assert isinstance(found, float)
        assert (found, math.copysign(1, found)) == (value, math.copysign(1, value))


def test_what_is_no_number_is_text() -> None:
    values = [math.nan, math.inf, -math.inf]
    texts = write([{"d": value} for value in values], JACKSON, pa.struct([("d", pa.float64())]))
    assert texts == ['{"d":"NaN"}', '{"d":"Infinity"}', '{"d":"-Infinity"}']


values = st.fixed_dictionaries(
    {},
    optional={
        "s": st.none() | st.text(),
        "i": st.none() | st.integers(-(2**31), 2**31 - 1),
        "d": st.none() | st.floats(allow_nan=False, allow_infinity=False),
        "bin": st.none() | st.binary(max_size=9),
        "l": st.none() | st.lists(st.none() | st.floats(allow_nan=False, allow_infinity=False), max_size=4),
        "m": st.none() | st.dictionaries(st.text(max_size=3), st.none() | st.integers(0, 9), max_size=4).map(
            lambda each: list(each.items())
        ),
        "st": st.none() | st.fixed_dictionaries({}, optional={"x": st.none() | st.integers(0, 9), "y": st.just([])}),
    },
)  # fmt: skip


def expect(row: dict[str, Any] | None, style: JsonStyle, fields: list[str]) -> Any:
    if row is None:
        return None
    found: dict[str, Any] = {}
    for name in fields:
        value = row.get(name)
        if value is None:
            if style.shows_nulls:
                found[name] = None
        elif name == "bin":
            found[name] = base64.b64encode(value).decode() if style.base64 else value.decode("latin-1")
        elif name == "m":
            found[name] = {k: v for k, v in value if style.shows_nulls or v is not None}
        elif name == "st":
            found[name] = expect(value, style, ["x", "y"])
        else:
            found[name] = value
    return found


@settings(deadline=None)
@given(st.lists(st.none() | values, max_size=6), st.integers(0, 3))
def test_texts_parse_to_the_rows(rows: list[dict[str, Any] | None], start: int) -> None:
    array = pa.array(rows, TYPE).slice(start)
    for style in (AVRO, JACKSON):
        texts = write_json(array, style).to_pylist()
        assert [None if text is None else json.loads(text) for text in texts] == [
            expect(each, style, TYPE_NAMES) for each in rows[start:]
        ]


TYPE_NAMES = [field.name for field in TYPE]
