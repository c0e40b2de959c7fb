"""Data blocks decoded together, which come out one by one and take no memory once they are decoded."""

from __future__ import annotations

import pytest

from hoodie_py.errors import CorruptFileError
from hoodie_py.formats.log.framing import iterate_blocks
from hoodie_py.reader.log.block_decoder import BlockDecoder
from hoodie_py.reader.log.log_files import ScannedBlock
from tests.formats.log_writer import data_block

NARROW = {"type": "record", "name": "r", "fields": [{"name": "n", "type": "long"}]}
WIDE = {"type": "record", "name": "r", "fields": [*NARROW["fields"], {"name": "s", "type": "string"}]}


def scanned(*blocks: bytes) -> list[ScannedBlock]:
    return [ScannedBlock(block, f"log.{i}") for i, data in enumerate(blocks) for block in iterate_blocks(data)]


def narrow(instant: str, *numbers: int) -> bytes:
    return data_block(instant, NARROW, [{"n": number} for number in numbers])


def wide(instant: str, *numbers: int) -> bytes:
    return data_block(instant, WIDE, [{"n": number, "s": "x"} for number in numbers])


def decoded(decoder: BlockDecoder, index: int) -> list[int]:
    return [n for batch in decoder.read_records(index) for n in batch.column("n").to_pylist()]


def test_blocks_of_a_schema_are_decoded_together_and_their_bytes_let_go_of() -> None:
    blocks = scanned(narrow("1", 1, 2), wide("2", 3), narrow("3", 4), wide("4", 5, 6), narrow("5"))
    decoder = BlockDecoder(blocks, ["n"])
    assert decoded(decoder, 0) == [1, 2]
    assert [len(block.block.content) > 0 for block in blocks] == [False, True, False, True, False]
    assert decoded(decoder, 1) == [3]
    assert not any(len(block.block.content) for block in blocks)
    assert [decoded(decoder, i) for i in (2, 3, 4)] == [[4], [5, 6], []]
    assert [block.instant for block in blocks] == ["1", "2", "3", "4", "5"]


def test_an_error_names_its_block_when_the_bytes_are_let_go_of() -> None:
    broken = bytearray(narrow("3", 5))
    broken[broken.rindex(b"\0\0\0\x01\x0a") + 3] = 9  # the record's length
    blocks = scanned(narrow("1", 1), narrow("2", 2, 3), bytes(broken))
    with pytest.raises(CorruptFileError) as caught:
        decoded(BlockDecoder(blocks, ["n"]), 0)
    assert (caught.value.where["path"], caught.value.where["instant"]) == ("log.2", "3")
