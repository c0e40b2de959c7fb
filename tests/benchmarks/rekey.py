"""Fresh record keys of the same length, so that log files can be copied by exchanging bytes in place.

A copy's keys differ from all others in their first characters: copy ``n`` writes ``n`` there, in capitals and
digits, where the original keys have small letters. Nothing is decoded, so blocks, offsets and record positions stay.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.formats.log.blocks import decode_delete_block
from hoodie_py.formats.log.framing import BlockType, LogBlock, iterate_blocks

KEYS_IN_A_RECORD = 2  # the meta column and the key column of the user
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True)
class KeyShape:
    """What a table's keys look like: ``mark``, which a copy replaces, and a pattern of fixed length for the rest."""

    mark: str
    rest: str
    length: int

    def marked(self, copy: int) -> str:
        """Return what the keys of a copy begin with; copy 0 is the original."""
        text = ""
        left = copy
        for _ in self.mark:
            left, digit = divmod(left, len(_DIGITS))
            text = _DIGITS[digit] + text
        if left:
            raise ValueError(f"keys that begin with {self.mark!r} have no room for {copy} copies")
        return text if copy else self.mark

    def rekey_column(self, keys: pa.ChunkedArray, copy: int) -> pa.ChunkedArray:
        """Give a column of original keys the keys of a copy.

        Raises:
            ValueError: keys of another shape, which might then not be distinct.
        """
        if not pc.all(pc.match_substring_regex(keys, f"^{self.mark}{self.rest}$")).as_py():
            raise ValueError(f"not all keys are {self.mark}{self.rest}")
        return pc.utf8_replace_slice(keys, 0, len(self.mark), self.marked(copy))

    def rekey_log(self, data: bytes, copy: int) -> bytes:
        """Give the records and deletes of a log file the keys of a copy.

        Raises:
            ValueError: a block whose keys cannot be told from its other bytes.
        """
        pattern = re.compile(
            re.escape(bytes([2 * self.length]) + self.mark.encode()) + b"(?=" + self.rest.encode() + b")"
        )
        fresh = bytes([2 * self.length]) + self.marked(copy).encode()
        result = bytearray(data)
        for block in iterate_blocks(data):
            if not isinstance(block, LogBlock):
                raise ValueError(f"a corrupt block at {block.offset}")
            content, count = pattern.subn(fresh, bytes(block.content))
            if count != _expected(block):
                raise ValueError(f"{count} keys found in a block of {_expected(block)}")
            start = data.index(block.content, block.offset)
            result[start : start + len(content)] = content
        return bytes(result)


def _expected(block: LogBlock) -> int:
    """Return how many keys a block holds."""
    if block.type is BlockType.DELETE:
        return len(decode_delete_block(block))
    if block.type is not BlockType.AVRO_DATA:
        raise ValueError(f"blocks of type {block.type.name} cannot be copied")
    return KEYS_IN_A_RECORD * int.from_bytes(block.content[4:8], "big")
