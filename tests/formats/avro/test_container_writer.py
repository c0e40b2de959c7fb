from __future__ import annotations

import io
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.formats.avro.container import encode_record, read_single, write_single
from tests.formats.avro_writing import encode, long

SCHEMA: dict[str, Any] = {
    "type": "record", "name": "Thing", "fields": [
        {"name": "text", "type": ["null", "string"]}, {"name": "number", "type": "long"},
        {"name": "more", "type": {"type": "map", "values": {"type": "array", "items": "double"}}},
    ],
}  # fmt: skip
things = st.fixed_dictionaries(
    {
        "text": st.none() | st.text(),
        "number": st.integers(-(1 << 63), (1 << 63) - 1),
        "more": st.dictionaries(st.text(), st.lists(st.floats(allow_nan=False))),
    }
)


@given(things)
def test_records_read_back(record: dict[str, Any]) -> None:
    data = write_single(record, SCHEMA)
    assert read_single(data, "Thing") == record
    (found,) = fastavro.reader(io.BytesIO(data))
    assert found == record


def test_the_bytes_are_those_of_the_specification() -> None:
    record = {"text": None, "number": -2, "more": {}}
    schema = '{"type":"record","name":"T","fields":[{"name":"a","type":"long"}]}'
    data = write_single({"a": -2}, schema)
    sync = data[-16:]
    header = b"Obj\x01" + long(1) + long(11) + b"avro.schema" + long(len(schema)) + schema.encode() + long(0)
    assert data == header + sync + long(1) + long(1) + b"\x03" + sync
    assert encode_record({"a": -2}, schema) == b"\x03"
    assert write_single(record, SCHEMA)[-19:-16] == encode(SCHEMA, record)


def test_the_same_record_gives_the_same_bytes() -> None:
    records = [{"text": "x", "number": number, "more": {"a": [1.0]}} for number in (1, 1, 2)]
    one, same, other = (write_single(record, SCHEMA) for record in records)
    assert one == same
    assert one[-16:] != other[-16:]


@pytest.mark.parametrize(
    "record",
    [{}, {"text": None, "number": 1}, {"text": None, "number": 1, "more": {}, "extra": 1},
     {"text": 1, "number": 1, "more": {}}, {"text": None, "number": "1", "more": {}},
     {"text": None, "number": 1 << 63, "more": {}}, {"text": None, "number": 1, "more": [1]}],
)  # fmt: skip
def test_a_record_that_does_not_fit_is_refused(record: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="does not fit"):
        write_single(record, SCHEMA)
