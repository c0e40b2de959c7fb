"""Parquet types, column chunks and data blocks."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.errors import CorruptFileError, HoodieError, UnsupportedFeatureError
from hoodie_py.formats.parquet.decoder import (
    convert_to_spark_schema,
    convert_to_spark_type,
    decode_parquet_data,
    find_column_chunk_ranges,
    read_file_schema,
)
from tests.formats.spark_rows import to_schema

UTC_TYPE, NTZ_TYPE = pa.timestamp("us", "UTC"), pa.timestamp("us")
LIST = pa.list_(pa.field("element", pa.string()))

TYPES = [
    *((t, t) for t in (pa.bool_(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string(), pa.binary())),
    *((t, t) for t in (pa.null(), pa.date32(), pa.decimal128(38, 10), UTC_TYPE, NTZ_TYPE, LIST)),
    *((t, pa.int32()) for t in (pa.int8(), pa.int16(), pa.uint8(), pa.uint16(), pa.time32("s"), pa.time32("ms"))),
    *((t, pa.int64()) for t in (pa.uint32(), pa.time64("us"), pa.time64("ns"))),
    (pa.uint64(), pa.decimal128(20, 0)),
    (pa.float16(), pa.float32()),
    (pa.date64(), pa.date32()),
    *((t, pa.string()) for t in (pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string()))),
    *((t, pa.binary()) for t in (pa.large_binary(), pa.binary_view(), pa.binary(16), pa.uuid())),
    (pa.dictionary(pa.int32(), pa.large_string()), pa.string()),
    (pa.run_end_encoded(pa.int32(), pa.int8()), pa.int32()),
    (pa.decimal256(38, 2), pa.decimal128(38, 2)),
    (pa.decimal32(5, 2), pa.decimal128(5, 2)),
    (pa.timestamp("ns", "Europe/Rome"), UTC_TYPE),
    (pa.timestamp("ms", "UTC"), UTC_TYPE),
    (pa.timestamp("s"), NTZ_TYPE),
    (pa.list_(pa.field("item", pa.large_string())), LIST),
    (pa.large_list(pa.string()), LIST),
    (pa.list_(pa.string(), 3), LIST),
    (pa.list_view(pa.string()), LIST),
    (pa.list_(pa.field("array", pa.int8(), nullable=False)), pa.list_(pa.field("element", pa.int32(), nullable=False))),
    (pa.map_(pa.large_string(), pa.timestamp("ns")), pa.map_(pa.string(), NTZ_TYPE)),
    (
        pa.struct([pa.field("a", pa.int8(), nullable=False, metadata={"k": "v"}), ("b", pa.list_(pa.uint32()))]),
        pa.struct([pa.field("a", pa.int32(), nullable=False), ("b", pa.list_(pa.field("element", pa.int64())))]),
    ),
]


@pytest.mark.parametrize(("given_type", "expected"), TYPES, ids=str)
def test_spark_types(given_type: pa.DataType, expected: pa.DataType) -> None:
    assert convert_to_spark_type(given_type) == expected
    assert str(convert_to_spark_type(given_type)) == str(expected)
    assert convert_to_spark_type(expected) == expected


@pytest.mark.parametrize(
    "t",
    [pa.duration("us"), pa.decimal256(39, 0), pa.month_day_nano_interval(), pa.dense_union([pa.field("a", "int8")])],
)
def test_types_that_spark_has_not(t: pa.DataType) -> None:
    with pytest.raises(UnsupportedFeatureError) as caught:
        convert_to_spark_schema(pa.schema([("a", pa.int8()), ("b", pa.list_(t))]))
    assert caught.value.where == {"column": "b"}


def test_schemas_keep_names_and_nullability() -> None:
    schema = pa.schema([pa.field("a", pa.int8(), nullable=False, metadata={"k": "v"}), ("b", pa.large_string())])
    expected = pa.schema([pa.field("a", pa.int32(), nullable=False), ("b", pa.string())])
    assert convert_to_spark_schema(schema.with_metadata({"x": "y"})).equals(expected, check_metadata=True)


VALUES: list[tuple[pa.Array, list[Any]]] = [
    (pa.array([1, None], pa.uint64()), [Decimal(1), None]),
    (pa.array([-1], pa.timestamp("ns", "UTC")), [datetime(1969, 12, 31, 23, 59, 59, 999999, UTC)]),
    (pa.array([-1], pa.timestamp("ms")), [datetime(1969, 12, 31, 23, 59, 59, 999000)]),
    (pa.array([3], pa.time32("ms")), [3]),
    (pa.array([3], pa.time64("ns")), [3]),
    (pa.array(["a", None, "a"], pa.large_string()).dictionary_encode(), ["a", None, "a"]),
    (pa.array([["a"], None, [None]], pa.large_list(pa.large_string())), [["a"], None, [None]]),
    (pa.array([b"0123"], pa.binary(4)), [b"0123"]),
    (pa.array([[("a", 1)]], pa.map_(pa.large_string(), pa.int8())), [[("a", 1)]]),
    (
        pa.array([{"x": 1, "y": ["z"]}], pa.struct([("x", pa.int16()), ("y", pa.list_(pa.string()))])),
        [{"x": 1, "y": ["z"]}],
    ),
    (pa.array([1, 1, 2], pa.int8()), [1, 1, 2]),
    (pa.array([1.5], pa.float16()), [1.5]),
]


@pytest.mark.parametrize(("array", "expected"), VALUES, ids=lambda value: str(getattr(value, "type", ""))[:40])
def test_values_are_converted(array: pa.Array, expected: list[Any]) -> None:
    batch = pa.RecordBatch.from_arrays([array, array], ["a", "b"])
    converted = to_schema(batch, convert_to_spark_schema(batch.schema))
    converted.validate(full=True)
    assert converted.schema == convert_to_spark_schema(batch.schema)
    assert converted.column("b").to_pylist() == expected
    decoded = decode_parquet_data(parquet_bytes(pa.table({"a": array})))
    assert decoded.column("a").to_pylist() == expected


def parquet_bytes(table: pa.Table, **options: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, **options)
    return out.getvalue()


TABLE = pa.table(
    {
        "id": ["a", "b", "c"] * 20,
        "st": [{"x": 1, "y": 2}] * 60,
        "n.m": range(60),
        "l": [[1, 2]] * 60,
    }
)


def test_old_timestamps_are_points_in_time() -> None:
    moments = pa.table({"t": pa.array([-1, None], pa.timestamp("us"))})
    data = parquet_bytes(moments, use_deprecated_int96_timestamps=True)
    assert read_file_schema(pq.read_metadata(io.BytesIO(data))).field("t").type == UTC_TYPE
    assert decode_parquet_data(data).column(0) == pa.array([-1, None], UTC_TYPE)


def test_blocks_are_projected() -> None:
    data = parquet_bytes(TABLE, row_group_size=7)
    assert decode_parquet_data(memoryview(data)).to_pylist() == TABLE.to_pylist()
    assert decode_parquet_data(data, ["n.m", "id", "nosuch"]).schema.names == ["id", "n.m"]
    assert decode_parquet_data(data, []).num_rows == 60
    assert decode_parquet_data(parquet_bytes(TABLE[:0])).num_rows == 0


def test_chunk_ranges_cover_what_a_reader_reads() -> None:
    class Recorder(io.BytesIO):
        reads: list[tuple[int, int]]

        def read(self, size: int | None = -1, /) -> bytes:
            start = self.tell()
            data = super().read(size)
            self.reads.append((start, start + len(data)))
            return data

    data = parquet_bytes(TABLE, row_group_size=25)
    meta = pq.read_metadata(io.BytesIO(data))
    for columns in (None, ["id"], ["st", "l"], ["n.m"], ["id", "n.m"], ["nosuch"]):
        for group in range(meta.num_row_groups):
            ranges = find_column_chunk_ranges(meta, group, columns)
            assert ranges == sorted(ranges)
            recorder = Recorder(data)
            recorder.reads = []
            file = pq.ParquetFile(recorder, metadata=meta, pre_buffer=False)
            recorder.reads.clear()
            file.read_row_group(group, columns=[c for c in columns or TABLE.column_names if c != "nosuch"])
            assert bool(recorder.reads) == (columns != ["nosuch"])
            for start, stop in recorder.reads:
                assert any(first <= start and stop <= last for first, last in ranges), (columns, start, stop)
    assert len(find_column_chunk_ranges(meta, 0, None)) == 1
    assert find_column_chunk_ranges(meta, 0, ["nosuch"]) == []
    whole = find_column_chunk_ranges(meta, 0, None)[0]
    some = find_column_chunk_ranges(meta, 0, ["id"])[0]
    assert whole[0] == some[0] == 4
    assert some[1] < whole[1]


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1PAR1", b"PAR1" + bytes(8) + b"PAR1", b"PAR1\xff\xff\xff\x7fPAR1"])
def test_what_is_no_parquet_file(data: bytes) -> None:
    with pytest.raises(CorruptFileError):
        decode_parquet_data(data)


def test_truncated_files_are_errors() -> None:
    data = parquet_bytes(TABLE)
    for length in range(0, len(data), 17):
        with pytest.raises(CorruptFileError):
            decode_parquet_data(data[:length])


SMALL = parquet_bytes(TABLE.select(["id", "st"])[:5])


@given(st.integers(4, len(SMALL) - 9), st.integers(0, 255))
def test_damaged_files_are_errors_or_rows(place: int, value: int) -> None:
    data = bytearray(SMALL)
    data[place] = value
    try:
        decode_parquet_data(bytes(data))
    except HoodieError:
        return
