"""Record positions in block headers."""

from __future__ import annotations

import base64
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from hoodie_py.errors import CorruptFileError
from hoodie_py.formats.limits import Limits
from hoodie_py.formats.log.blocks import decode_block_positions, decode_delete_block, decode_records
from hoodie_py.formats.log.framing import BlockType
from hoodie_py.formats.log.positions import decode_positions
from tests.formats.real_logs import real_blocks


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
    for block in real_blocks("positions_mor_v9", "delete_marker_mor_v9", "types_mor_v8_parquetlog"):
        count = len(decode_delete_block(block)) if block.type is BlockType.DELETE else decode_records(block).num_rows
        positions = decode_block_positions(block, count)
        assert (positions is None) == (block.record_positions is None)
        if positions is not None:
            assert len(positions) == count
            seen += count
    assert seen
