"""Tests of vectors: as bytes and as lists, their names, and what of them is refused."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.errors import CorruptFileError, InvalidTableError, UnsupportedFeatureError
from hoodie_py.formats.avro.data_blocks import AvroSchema, decode_avro_data
from hoodie_py.formats.avro.encoder import encode_records
from hoodie_py.formats.logical_types.vector import (
    Vector,
    find_list_type,
    find_vector,
    mark_columns,
    parse_descriptor,
    read_columns,
    write_columns,
    write_vector,
)

_DTYPES = {"FLOAT": "<f4", "DOUBLE": "<f8", "INT8": "i1"}
_VECTORS = st.builds(Vector, st.integers(1, 9), st.sampled_from(sorted(_DTYPES)))


@st.composite
def _columns(draw: st.DrawFn) -> tuple[Vector, list[bytes | None]]:
    vector = draw(_VECTORS)
    value = st.binary(min_size=vector.size, max_size=vector.size)
    return vector, draw(st.lists(st.none() | value, max_size=80))


def _numbers(vector: Vector, stored: bytes | None) -> list[Any] | None:
    return None if stored is None else np.frombuffer(stored, _DTYPES[vector.element]).tolist()


@given(_columns(), st.integers(0, 3), st.sampled_from(["fixed", "binary", "large", "dictionary"]))
def test_bytes_become_lists_and_bytes_again(column: tuple[Vector, list[bytes | None]], skip: int, layout: str) -> None:
    vector, values = column
    types = {"fixed": pa.binary(vector.size), "large": pa.large_binary()}
    stored = pa.array(values, types.get(layout, pa.binary()))
    stored = (stored.dictionary_encode() if layout == "dictionary" else stored).slice(skip)
    lists = vector.to_lists(stored)
    lists.validate(full=True)
    assert lists.type.equals(vector.arrow)
    assert repr(lists.to_pylist()) == repr([_numbers(vector, value) for value in values[skip:]])  # NaN is not NaN
    again = vector.to_bytes(pa.concat_arrays([lists, lists]).slice(len(lists)))
    assert again.equals(pa.array(values[skip:], pa.binary(vector.size)))


@given(_columns())
def test_log_blocks_keep_vectors(column: tuple[Vector, list[bytes | None]]) -> None:
    vector, values = column
    field = {"name": "v", "type": ["null", write_vector(vector)]}
    schema = AvroSchema.parse(json.dumps({"type": "record", "name": "r", "namespace": "n", "fields": [field]}))
    assert find_vector(schema.arrow.field("v")) == vector
    rows = pa.RecordBatch.from_arrays([vector.to_lists(pa.array(values, pa.binary()))], schema=schema.arrow)
    found = decode_avro_data(encode_records(rows, schema), schema)
    assert vector.to_bytes(found.column(0)).equals(pa.array(values, pa.binary(vector.size)))
    assert find_vector(found.schema.field("v")) == vector


def test_bytes_behind_nulls_do_not_count() -> None:
    data = pa.py_buffer(b"ab" + b"x" * 5 + b"cd")
    offsets = pa.py_buffer(np.array([0, 2, 7, 9], np.int32))
    stored = pa.Array.from_buffers(pa.binary(), 3, [pa.py_buffer(b"\x05"), offsets, data])
    assert Vector(2, "INT8").to_lists(stored).to_pylist() == [[97, 98], None, [99, 100]]


@pytest.mark.parametrize("stored", [pa.array([b"12345678"], pa.binary(8)), pa.array([None, b"12345678"])])
def test_another_dimension_is_an_error(stored: pa.Array) -> None:
    with pytest.raises(CorruptFileError, match=r"VECTOR\(3\) has a value of 8 bytes, not 12"):
        Vector(3, "FLOAT").to_lists(stored)


def test_lists_of_another_length_or_with_nulls_are_errors() -> None:
    vector = Vector(2, "FLOAT")
    for values, problem in (([[1.0, 2.0], [1.0]], "of 1 elements"), ([[1.0, None]], "null element")):
        lists = pa.array(values, pa.list_(pa.float32()))
        with pytest.raises(InvalidTableError, match=problem):
            vector.to_bytes(lists)
        with pytest.raises(CorruptFileError, match=problem):
            vector.to_lists(lists)
    assert vector.to_lists(pa.array([[1, 2], None], pa.list_(pa.float32(), 2))).to_pylist() == [[1.0, 2.0], None]
    with pytest.raises(UnsupportedFeatureError, match="not readable as"):
        vector.to_lists(pa.array(["text"]))


@given(st.dictionaries(st.text("abc_1", min_size=1), _VECTORS, max_size=4))
def test_footers_name_columns(vectors: dict[str, Vector]) -> None:
    assert read_columns(write_columns(vectors)) == vectors
    assert all(parse_descriptor(vector.descriptor) == vector for vector in vectors.values())


def test_names_are_javas() -> None:
    vectors = {"e1": Vector(128, "FLOAT"), "e2": Vector(128, "DOUBLE"), "e3": Vector(128, "INT8")}
    assert write_columns(vectors) == "e1:VECTOR(128),e2:VECTOR(128, DOUBLE),e3:VECTOR(128, INT8)"
    assert parse_descriptor(" vector( 3 , int8, fixed_bytes ) ") == Vector(3, "INT8")
    assert parse_descriptor("BLOB") is None


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("VECTOR", CorruptFileError),
        ("VECTOR(0)", CorruptFileError),
        ("VECTOR(3, HALF)", CorruptFileError),
        ("VECTOR(99999999999)", CorruptFileError),
        ("VECTOR(3, FLOAT, PARQUET_LIST)", UnsupportedFeatureError),
        ("VECTOR(900000000, DOUBLE)", UnsupportedFeatureError),
    ],
)
def test_types_that_cannot_be(text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        parse_descriptor(text)


@pytest.mark.parametrize("text", ["v", "v:", "v:VECTOR(2),", "v:BLOB", "v:VECTOR(2)w:VECTOR(2)", ":VECTOR(2)"])
def test_a_damaged_footer_is_an_error(text: str) -> None:
    if text == "v:VECTOR(2),":  # a last comma does no harm
        assert read_columns(text) == {"v": Vector(2, "FLOAT")}
        return
    with pytest.raises(CorruptFileError, match=r"hoodie\.vector\.columns"):
        read_columns(text)


@pytest.mark.parametrize(
    "changes",
    [{"dimension": None}, {"dimension": 3}, {"dimension": "x"}, {"dimension": True}, {"elementType": 5}, {"size": 9}],
)
def test_schemas_that_contradict_themselves_are_errors(changes: dict[str, Any]) -> None:
    field = {"name": "v", "type": {**write_vector(Vector(2, "FLOAT")), **changes}}
    with pytest.raises(CorruptFileError):
        AvroSchema.parse(json.dumps({"type": "record", "name": "r", "fields": [field]}))


def test_a_default_is_a_list() -> None:
    field = {"name": "v", "type": write_vector(Vector(2, "INT8")), "default": "\u0001\u00ff"}
    assert AvroSchema.parse(json.dumps({"type": "record", "name": "r", "fields": [field]})).defaults == {"v": [1, -1]}


def test_a_footer_makes_columns_vectors() -> None:
    schema = pa.schema([("id", pa.int32()), ("v", pa.binary(8))])
    marked = mark_columns(schema, {b"hoodie.vector.columns": b"v:VECTOR(2),gone:VECTOR(4)"})
    assert marked.field("v").type.equals(Vector(2, "FLOAT").arrow)
    assert find_vector(marked.field("v")) == Vector(2, "FLOAT")
    assert mark_columns(schema, None) is schema


def test_lists_of_a_fixed_size_are_vectors() -> None:
    assert find_list_type(pa.list_(pa.float64(), 3)) == Vector(3, "DOUBLE")
    assert find_list_type(pa.list_(pa.int16(), 3)) is None
    assert find_list_type(pa.list_(pa.float32())) is None
