"""Tests of variants as JSON: what goes in comes out, Spark prints the same, and hostile bytes are refused quickly."""

from __future__ import annotations

import json
import struct
import time
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py import variant_to_json
from hoodie_py.errors import CorruptFileError, HoodieError, InvalidQueryError, UnsupportedFeatureError
from hoodie_py.formats.logical_types.variant import VARIANT_TYPE
from hoodie_py.formats.logical_types.variant_json import MOST_LEVELS, print_variant
from tests.formats.variants import encode_variant

_EMPTY = b"\x01\x00\x00"
_LEAVES = (
    st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 63) - 1) | st.text(max_size=80)
    | st.floats(allow_nan=False, allow_infinity=False)
)  # fmt: skip
_VALUES = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner, max_size=5),
    max_leaves=20,
)


@given(_VALUES, st.booleans())
def test_what_goes_in_comes_out(value: Any, large: bool) -> None:
    assert json.loads(print_variant(*encode_variant(value, large=large))) == value


@pytest.mark.parametrize(
    ("kind", "data", "text"),
    [
        (3, b"\xfe", "-2"),
        (4, b"\x00\x80", "-32768"),
        (5, b"\x01\x00\x00\x00", "1"),
        (7, struct.pack("<d", float("nan")), '"NaN"'),
        (7, struct.pack("<d", float("-inf")), '"-Infinity"'),
        (7, struct.pack("<d", 1.0), "1.0"),
        (14, struct.pack("<f", 0.1), "0.1"),
        (8, b"\x02" + struct.pack("<i", 12345), "123.45"),
        (8, b"\x02" + struct.pack("<i", 12300), "123"),
        (9, b"\x03" + struct.pack("<q", -5), "-0.005"),
        (10, b"\x26" + (10**37).to_bytes(16, "little"), "0.1"),
        (10, b"\x00" + (10**37).to_bytes(16, "little"), "1" + "0" * 37),
        (11, struct.pack("<i", -1), '"1969-12-31"'),
        (11, struct.pack("<i", 5_000_000), '"+15659-07-15"'),
        (12, struct.pack("<q", 1_500_000), '"1970-01-01 00:00:01.5+00:00"'),
        (13, struct.pack("<q", -1), '"1969-12-31 23:59:59.999999"'),
        (18, struct.pack("<q", 1), '"1970-01-01 00:00:00.000000001+00:00"'),
        (19, struct.pack("<q", 0), '"1970-01-01 00:00:00"'),
        (17, struct.pack("<q", 1_000_001), '"00:00:01.000001"'),
        (15, struct.pack("<I", 3) + b"abc", '"YWJj"'),
        (16, struct.pack("<I", 3) + b'a"\n', '"a\\"\\n"'),
        (20, bytes(range(16)), '"00010203-0405-0607-0809-0a0b0c0d0e0f"'),
    ],
)
def test_primitives(kind: int, data: bytes, text: str) -> None:
    assert print_variant(_EMPTY, bytes([kind << 2]) + data) == text


def test_columns_keep_nulls_and_slices() -> None:
    made = [encode_variant(value) for value in ({"a": 1}, None, [2])]
    parts = [pa.array([each[i] for each in made], pa.binary()) for i in (0, 1)]
    mask = pa.array([False, False, True])
    column = pa.StructArray.from_arrays(parts, fields=list(VARIANT_TYPE), mask=mask)
    assert variant_to_json(column).to_pylist() == ['{"a":1}', "null", None]
    assert variant_to_json(column.slice(1)).to_pylist() == ["null", None]
    chunks = variant_to_json(pa.chunked_array([column, column.slice(2)]))
    assert chunks.type == pa.string()
    assert chunks.to_pylist() == ['{"a":1}', "null", None, None]


def test_other_columns_are_refused() -> None:
    with pytest.raises(InvalidQueryError, match="no column of variants"):
        variant_to_json(pa.array(["{}"]))
    fields = [("metadata", pa.binary()), ("value", pa.binary()), ("typed_value", pa.int64())]
    with pytest.raises(UnsupportedFeatureError, match="Shredded"):
        variant_to_json(pa.nulls(1, pa.struct(fields)))


def _make_column(metadata: bytes, value: bytes) -> pa.StructArray:
    return pa.StructArray.from_arrays([pa.array([metadata]), pa.array([value])], fields=list(VARIANT_TYPE))


@pytest.mark.parametrize(
    ("metadata", "value"),
    [
        (b"", b"\0"),
        (b"\x02\x00\x00", b"\0"),
        (b"\x01\xff\x00", b"\0"),
        (b"\x01\x01\x01\x00", b"\0"),
        (b"\x01\x01\x00\x02a", b"\0"),
        (b"\x01\x01\x00\x01\xff", b"\0"),
        (_EMPTY, b""),
        (_EMPTY, b"\x0dab"),
        (_EMPTY, b"\x05\xff"),
        (_EMPTY, bytes([16 << 2]) + b"\xff\xff\xff\xff"),
        (_EMPTY, bytes([8 << 2]) + b"\x27\x01\x00\x00\x00"),
        (_EMPTY, bytes([13 << 2]) + b"\0" * 7 + b"\x80"),
        (_EMPTY, bytes([17 << 2]) + b"\xff" * 8),
        (_EMPTY, b"\x02\x01\x00\x00\x01\x00"),
        (_EMPTY, b"\x03\x02\x00\x00\x00"),
    ],
)
def test_damaged_bytes_name_their_row(metadata: bytes, value: bytes) -> None:
    with pytest.raises(CorruptFileError) as raised:
        variant_to_json(_make_column(metadata, value))
    assert raised.value.where["row"] == 0


def test_an_unknown_primitive_is_refused_by_number() -> None:
    with pytest.raises(UnsupportedFeatureError, match="primitive type 33"):
        print_variant(_EMPTY, bytes([33 << 2]))


def test_values_that_share_bytes_do_not_unfold() -> None:
    value = b"\x00"
    for _ in range(60):  # each level has 200 times the level below it
        value = b"\x03" + bytes([200]) + b"\0" * 201 + value
    began = time.process_time()
    with pytest.raises(CorruptFileError, match="more values than bytes"):
        print_variant(_EMPTY, value)
    assert time.process_time() - began < 5


def test_depth_and_length_are_bounded() -> None:
    value: Any = None
    for _ in range(MOST_LEVELS):
        value = [value]
    assert print_variant(*encode_variant(value)) == "[" * MOST_LEVELS + "null" + "]" * MOST_LEVELS
    with pytest.raises(UnsupportedFeatureError, match="levels"):
        print_variant(*encode_variant([value]))
    name = "n" * 60_000
    with pytest.raises(UnsupportedFeatureError, match="characters"):
        print_variant(*encode_variant([{name: None}] * 5_000, large=True))


@given(_VALUES, st.data())
def test_damage_is_an_error_or_another_value(value: Any, data: st.DataObject) -> None:
    parts = list(encode_variant(value))
    which = data.draw(st.integers(0, 1))
    at = data.draw(st.integers(0, len(parts[which]) - 1))
    bad = bytearray(parts[which])
    bad[at] ^= 1 << data.draw(st.integers(0, 7))
    parts[which] = bytes(bad[:at]) if data.draw(st.booleans()) else bytes(bad)
    try:
        json.loads(print_variant(*parts))
    except HoodieError:
        return


@pytest.mark.spark
def test_pyspark_prints_the_same() -> None:
    pyspark = pytest.importorskip("pyspark.sql")
    for text in ('{"b":[1,2.5,{"x":null}],"a":true}', "-5", "1e300", '"é"', "[]", "12345678901234567890"):
        variant = pyspark.VariantVal.parseJson(text)
        assert json.loads(print_variant(variant.metadata, variant.value)) == json.loads(variant.toJson())
