"""A block decoded in parts gives what it gives at once, and fails as it does."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.errors import CorruptFileError, HoodieError
from hoodie_py.formats.avro.data_blocks import AvroSchema, count_records, decode_avro_data, decode_avro_parts
from hoodie_py.formats.parquet.decoder import count_parquet_rows, decode_parquet_data, decode_parquet_parts
from tests.formats.log_writer import avro_data

SCHEMA = AvroSchema.parse(
    '{"type":"record","name":"r","fields":[{"name":"a","type":"long"},{"name":"s","type":["null","string"]}]}'
)
RECORDS = st.lists(
    st.fixed_dictionaries({"a": st.integers(-(2**63), 2**63 - 1), "s": st.none() | st.text()}), max_size=60
)


def outcome(decode: Any) -> Any:
    try:
        return decode()
    except HoodieError as error:
        return type(error), error.message, error.where


def in_parts(content: bytes, size: int) -> Any:
    return [row for batch in decode_avro_parts(memoryview(content), SCHEMA, None, size) for row in batch.to_pylist()]


@given(RECORDS, st.sampled_from([1, 20, 100, 10_000]))
def test_parts_are_the_whole(records: list[dict[str, Any]], size: int) -> None:
    content = avro_data(SCHEMA.text, records)
    assert in_parts(content, size) == records
    assert count_records(memoryview(content)) == len(records)


def test_parts_are_of_the_size_asked_for() -> None:
    content = avro_data(SCHEMA.text, [{"a": 1, "s": "x" * 90}] * 50 + [{"a": 2, "s": "y" * 900}])
    sizes = [batch.num_rows for batch in decode_avro_parts(memoryview(content), SCHEMA, ["a"], 500)]
    assert sum(sizes) == 51
    assert max(sizes) == 6


@given(RECORDS.filter(len), st.sampled_from([1, 50]), st.data())
def test_damage_is_found_where_it_is(records: list[dict[str, Any]], size: int, data: st.DataObject) -> None:
    content = bytearray(avro_data(SCHEMA.text, records))
    place = data.draw(st.integers(4, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    cut = bytes(content[: len(content) - data.draw(st.integers(0, 3))])
    whole = outcome(lambda: decode_avro_data(memoryview(cut), SCHEMA, None).to_pylist())
    parts = outcome(lambda: in_parts(cut, size))
    assert isinstance(whole, list) == isinstance(parts, list)
    if isinstance(whole, list):
        assert parts == whole
    elif "record" in whole[2] and "record" in parts[2]:
        assert parts[2]["record"] == whole[2]["record"]


def test_too_many_records_for_the_bytes() -> None:
    with pytest.raises(CorruptFileError, match="cannot have 9 records"):
        count_records(memoryview(b"\0\0\0\3\0\0\0\x09" + b"\0" * 8))


@pytest.mark.parametrize("size", [1, 2000, 1 << 30])
@pytest.mark.parametrize("columns", [None, ["b"], []])
def test_parquet_in_parts(size: int, columns: list[str] | None) -> None:
    table = pa.table({"a": range(1000), "b": [str(n) for n in range(1000)]})
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=300)
    content = sink.getvalue()
    batches = list(decode_parquet_parts(content, columns, size))
    whole = decode_parquet_data(content, columns)
    assert sum(batch.num_rows for batch in batches) == count_parquet_rows(content) == 1000
    assert batches[0].schema == whole.schema
    if columns != []:
        assert pa.concat_batches(batches).equals(whole)
        assert (len(batches) > 1) == (size < 1 << 30)


def test_parquet_without_rows_and_damaged() -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"a": pa.array([], pa.int64())}), sink)
    assert [batch.num_rows for batch in decode_parquet_parts(sink.getvalue(), None, 10)] == [0]
    with pytest.raises(CorruptFileError, match="damaged"):
        list(decode_parquet_parts(sink.getvalue()[:-9], None, 10))
