"""Keys that readers compute from rows: the texts that Java's rows and delete blocks have."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.errors import CorruptFileError, InvalidTableError, UnsupportedFeatureError
from hoodie_py.reader.record.record_key import RecordKeys

MICROS = st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2200, 1, 1))
VALUES: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.string(), st.text(st.characters(codec="utf-8"), min_size=1)),
    (pa.int16(), st.integers(-(2**15), 2**15 - 1)),
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.bool_(), st.booleans()),
    (pa.date32(), st.dates()),
    (pa.timestamp("us"), MICROS),
    (pa.timestamp("us", "UTC"), MICROS.map(lambda each: each.replace(tzinfo=dt.UTC))),
    (pa.decimal128(20, 9), st.decimals(-(10**10), 10**10, places=9, allow_nan=False)),
    (pa.float64(), st.floats(allow_nan=False)),
    (pa.float32(), st.floats(allow_nan=False, width=32)),
    (pa.binary(), st.binary(min_size=1, max_size=20)),
]


def keys_of(column: pa.Array) -> list[str]:
    keys = RecordKeys.of(False, ("k",)).read_keys(pa.RecordBatch.from_arrays([column], ["k"]))
    assert keys.type == pa.string()
    return list(keys.to_pylist())


@pytest.mark.parametrize(
    ("values", "type_", "texts"),
    [
        ([1, -2], pa.int32(), ["1", "-2"]),
        ([True, False], pa.bool_(), ["true", "false"]),
        ([Decimal("1.5"), Decimal(0)], pa.decimal128(10, 2), ["1.50", "0.00"]),
        ([Decimal("1E-9"), Decimal(0), Decimal("0.1")], pa.decimal128(20, 9), ["1E-9", "0E-9", "0.100000000"]),
        ([Decimal(12345678901234567890)], pa.decimal128(20, 0), ["12345678901234567890"]),
        ([dt.date(1969, 12, 31), dt.date(2021, 1, 1)], pa.date32(), ["-1", "18628"]),
        ([dt.datetime(2021, 1, 1, 0, 0, 0, 1000)], pa.timestamp("us"), ["1609459200001000"]),
        ([-86_400_000], pa.timestamp("ms", "UTC"), ["-86400000000"]),
        ([123456.789, -0.0], pa.float32(), ["123456.79", "-0.0"]),
        ([1234567.891], pa.float64(), ["1234567.891"]),
        ([b"\x00\xff", b"zz"], pa.binary(), ["00ff", "7a7a"]),
        (["a", "b:c,d"], pa.large_string(), ["a", "b:c,d"]),
    ],
)
def test_one_field_gives_the_text_of_its_value(values: list[Any], type_: pa.DataType, texts: list[str]) -> None:
    assert keys_of(pa.array(values, type_)) == texts


def test_dictionaries_give_the_texts_of_their_values() -> None:
    assert keys_of(pa.array([1.5, 2.0, 1.5]).dictionary_encode()) == ["1.5", "2.0", "1.5"]


def test_several_fields_are_named() -> None:
    batch = pa.RecordBatch.from_pydict({"a": ["x", "", None], "st": [{"d": dt.date(1970, 1, 2)}, None, {"d": None}]})
    assert RecordKeys.of(False, ("a", "st.d")).read_keys(batch).to_pylist() == [
        "a:x,st.d:1",
        "a:__empty__,st.d:__null__",
        "a:__null__,st.d:__null__",
    ]


def test_bad_keys() -> None:
    with pytest.raises(CorruptFileError, match="no record key"):
        keys_of(pa.array(["a", None]))
    with pytest.raises(UnsupportedFeatureError, match="list"):
        keys_of(pa.array([[1]]))
    with pytest.raises(InvalidTableError, match="no meta columns"):
        RecordKeys.of(False, ())


@given(st.data(), st.sampled_from(VALUES))
def test_equal_values_have_equal_keys_and_keys_give_the_value(
    data: st.DataObject, kind: tuple[pa.DataType, st.SearchStrategy[Any]]
) -> None:
    type_, values = kind
    column = pa.array(data.draw(st.lists(values, min_size=1, max_size=4)), type_)
    keys, schema, rules = keys_of(column), pa.schema([("k", type_)]), RecordKeys.of(False, ("k",))
    for value, key in zip(column.to_pylist(), keys, strict=True):
        assert rules.make_key({"k": value}, schema) == key
        assert rules.find_key_values(key, schema) == {"k": value}
    distinct = {repr(each) for each in column.to_pylist()}
    assert len(set(keys)) == len(distinct)
