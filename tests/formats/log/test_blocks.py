"""Content of blocks, and errors that name the block."""

from __future__ import annotations

import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie_py.errors import CorruptFileError, UnsupportedFeatureError
from hoodie_py.formats.log.blocks import decode_block_positions, decode_delete_block, decode_records, parse_block_schema
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
