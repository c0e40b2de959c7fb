"""Content of blocks, and errors that name the block.

Record positions in block headers.
"""

from __future__ import annotations

import base64
import io
import json
import struct

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from hoodie_py.errors import CorruptFileError, UnsupportedFeatureError
from hoodie_py.formats.limits import Limits
from hoodie_py.formats.log.blocks import (
    decode_block_positions,
    decode_delete_block,
    decode_positions,
    decode_records,
    parse_block_schema,
)
from hoodie_py.formats.log.framing import BlockType, HeaderKey, LogBlock, iterate_blocks
from tests.formats.log_writer import avro_data, block, data_block, delete_block
from tests.formats.real_logs import real_blocks

SCHEMA = {"type": "record", "name": "r", "fields": [{"name": "id", "type": "string"}, {"name": "n", "type": "int"}]}
ROWS = [{"id": "a", "n": 1}, {"id": "b", "n": 2}]


def first(data: bytes) -> LogBlock:
    found = next(iterate_blocks(data))
    assert isinstance(found, LogBlock)
    return found


def parquet(rows: list[dict[str, object]]) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), out)
    return out.getvalue()


@pytest.mark.parametrize("block_type", [BlockType.AVRO_DATA, BlockType.CDC_DATA])
def test_avro_records(block_type: BlockType) -> None:
    found = first(block(block_type, {HeaderKey.SCHEMA: json.dumps(SCHEMA)}, avro_data(SCHEMA, ROWS)))
    assert decode_records(found).to_pylist() == ROWS
    assert decode_records(found, ["n"]).to_pylist() == [{"n": 1}, {"n": 2}]
    assert parse_block_schema(found).arrow.names == ["id", "n"]


def test_parquet_records() -> None:
    found = first(block(BlockType.PARQUET_DATA, {}, parquet(ROWS)))
    assert decode_records(found, ["id"]).to_pylist() == [{"id": "a"}, {"id": "b"}]


def test_deletes() -> None:
    found = first(delete_block("1", [("a", "p", 3)]))
    assert decode_delete_block(found).keys.to_pylist() == ["a"]
    assert decode_block_positions(found, 1) is None


def test_errors_name_the_block() -> None:
    data = data_block("001", SCHEMA, ROWS)
    broken = data_block("002", SCHEMA, ROWS).replace(b"\x02b\x04", b"\x02b\x84")
    *_, last = iterate_blocks(data + broken)
    assert isinstance(last, LogBlock)
    with pytest.raises(CorruptFileError) as caught:
        decode_records(last)
    place = {"block": "AVRO_DATA", "block_offset": len(data), "instant": "002", "record": 1}
    assert place.items() <= caught.value.where.items()


def test_blocks_without_what_they_need() -> None:
    with pytest.raises(CorruptFileError, match="no schema"):
        decode_records(first(block(BlockType.AVRO_DATA, {}, b"")))
    with pytest.raises(CorruptFileError):
        decode_records(first(block(BlockType.PARQUET_DATA, {}, b"PAR1")))
    with pytest.raises(UnsupportedFeatureError):
        decode_records(first(block(BlockType.DELETE, {}, b"")))
    with pytest.raises(CorruptFileError):
        decode_block_positions(first(block(3, {HeaderKey.RECORD_POSITIONS: "?"}, b"")), 0)


def test_parquet_blocks_have_the_types_of_their_avro_schema() -> None:
    blocks = [b for b in real_blocks() if b.type is BlockType.PARQUET_DATA]
    assert blocks
    for found in blocks:
        if '"logicalType":"vector"' in (found.schema_text or ""):
            continue  # Parquet has no such types: the reader makes them by the table's schema
        assert decode_records(found).schema == parse_block_schema(found).arrow


def encode(data: bytes) -> str:
    return base64.b64encode(data).decode()


# (positions, portable 64-bit roaring bitmap in hexadecimal)
TABLE = [
    ([], "0000000000000000"),
    ([1, 5], "0100000000000000 00000000 3a300000 01000000 00000100 10000000 0100 0500"),
    (
        [1, 2**33],
        (
            "0200000000000000 00000000 3a300000 01000000 00000000 10000000 0100"
            "02000000 3a300000 01000000 00000000 10000000 0000"
        ),
    ),
    ([10, 11, 12, 13], "0100000000000000 00000000 3b300000 01 00000300 0100 0a00 0300"),
]


@pytest.mark.parametrize(("positions", "text"), TABLE)
def test_bytes_of_a_bitmap(positions: list[int], text: str) -> None:
    found = decode_positions(encode(bytes.fromhex(text)), len(positions))
    assert found.tolist() == positions
    assert found.dtype == np.int64


@given(st.sets(st.integers(0, 2**40) | st.integers(0, 1000), max_size=200))
def test_positions_come_sorted(positions: set[int]) -> None:
    assert decode_positions(encode(BitMap64(positions).serialize())).tolist() == sorted(positions)


def test_the_count_must_agree() -> None:
    text = encode(BitMap64([1, 5]).serialize())
    with pytest.raises(CorruptFileError, match="3 records has 2"):
        decode_positions(text, 3)


def test_a_few_bytes_for_billions_of_positions_are_refused() -> None:
    bitmap = BitMap64()
    bitmap.add_range(0, Limits().block_records + 1)
    bitmap.run_optimize()
    text = encode(bitmap.serialize())
    assert len(text) < 50_000
    with pytest.raises(CorruptFileError):
        decode_positions(text)
    with pytest.raises(CorruptFileError):
        decode_positions(text, 10)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "AAA",
        "????",
        "\u00e9\u00e9\u00e9\u00e9",
        encode(b"\0" * 7),
        encode(b"\xff" * 8),
        encode(struct.pack("<Q", 1)),
        encode(struct.pack("<Q", 1 << 40) + bytes(100)),
        encode(struct.pack("<QIII", 1, 0, 12346, 0x7FFFFFFF) + bytes(40)),
        encode(BitMap64([1 << 63]).serialize()),
    ],
)
def test_what_is_no_bitmap(text: str) -> None:
    with pytest.raises(CorruptFileError):
        decode_positions(text)


@given(st.sets(st.integers(0, 70_000), min_size=1, max_size=50), st.data())
def test_damaged_bitmaps_are_errors_or_ascending_positions(positions: set[int], data: st.DataObject) -> None:
    raw = bytearray(BitMap64(positions).serialize())
    raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    del raw[data.draw(st.integers(len(raw) - 4, len(raw))) :]
    try:
        found = decode_positions(encode(bytes(raw)))
    except CorruptFileError:
        return
    assert bool((np.diff(found) > 0).all())


def test_real_blocks_have_a_position_for_every_record() -> None:
    seen = 0
    for each in real_blocks("positions_mor_v9", "delete_marker_mor_v9", "types_mor_v8_parquetlog"):
        count = len(decode_delete_block(each)) if each.type is BlockType.DELETE else decode_records(each).num_rows
        positions = decode_block_positions(each, count)
        assert (positions is None) == (each.record_positions is None)
        if positions is not None:
            assert len(positions) == count
            seen += count
    assert seen
