"""Reads the index of an HFile: which block contains which keys (Hudi ``HFileRootIndexBlock``, ``HFileLeafIndexBlock``).

    root         for each block: offset int64, size int32, Hadoop varint length, key
    below        count int32, count + 1 offsets int32 from the end of this list, then offset int64, size int32, key
    key          length int16, bytes; HBase adds 10 bytes, Hudi's own writer does not
    meta index   as the root, but its keys are names without a length

With one level the root points to data blocks. With more it points to the blocks of the next level, and only the last
level, the leaves, points to data. An index key is not greater than the first key of its block, and not less than the
last key of the previous block: HBase shortens keys. So index keys are used only for order.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from hoodie_py.errors import CorruptFileError
from hoodie_py.formats.hfile.blocks import INNER_INDEX, LEAF_INDEX, ROOT_INDEX, Block

_PLACE = struct.Struct(">qi")
_COUNT = struct.Struct(">i")
_KEY_LENGTH = struct.Struct(">h")


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """The place of a block, and a key that is not greater than its first one."""

    offset: int
    size: int
    key: bytes

    @property
    def end(self) -> int:
        """The offset of the block's end."""
        return self.offset + self.size


@dataclass(frozen=True, slots=True)
class Index:
    """The entries of one index block, in key order."""

    entries: Sequence[IndexEntry]
    keys: Sequence[bytes]

    def find_span(self, first: bytes | None, last: bytes | None) -> range:
        """Return the numbers of blocks that may contain keys from ``first`` to ``last``, inclusive; None is no bound.

        The block before one whose index key equals ``first`` is included: it may end with this key.
        """
        start = 0 if first is None else max(bisect_left(self.keys, first) - 1, 0)
        return range(start, len(self.keys) if last is None else bisect_right(self.keys, last))


def parse_root_index(block: Block, count: int, most: int) -> Index:
    """Decode the root index.

    The blocks that the index points to must end at or before ``most``.

    Raises CorruptFileError if the index is damaged, points elsewhere or is not sorted.
    """
    entries = _parse_root(block, count, most, "root index")
    return _make_index([IndexEntry(e.offset, e.size, _cut_key(e.key, block.offset)) for e in entries], block.offset)


def parse_meta_index(block: Block, count: int, most: int) -> dict[str, IndexEntry]:
    """Decode the index of meta blocks, by name. Arguments and errors as for ``parse_root_index``."""
    entries = _parse_root(block, count, most, "meta index")
    return {entry.key.decode("utf-8", errors="replace"): entry for entry in entries}


def _parse_root(block: Block, count: int, most: int, what: str) -> list[IndexEntry]:
    payload, at = block.payload, 0
    if block.magic != ROOT_INDEX:
        raise CorruptFileError(f"An HFile has no {what} where its trailer says.", offset=block.offset)
    if count > len(payload) // (_PLACE.size + 1):
        raise CorruptFileError(f"An HFile's {what} cannot have {count} entries.", offset=block.offset)
    entries: list[IndexEntry] = []
    for _ in range(count):
        if at + _PLACE.size >= len(payload):
            raise CorruptFileError(f"An HFile's {what} is cut short.", offset=block.offset)
        offset, size = _PLACE.unpack_from(payload, at)
        length, start = _read_hadoop_varint(payload, at + _PLACE.size, block.offset)
        at = start + length
        if at > len(payload):
            raise CorruptFileError(f"An HFile's {what} is cut short.", offset=block.offset)
        entries.append(_check_place(IndexEntry(offset, size, payload[start:at]), most, block.offset))
    return entries


def parse_inner_index(block: Block, most: int, *, leaf: bool) -> Index:
    """Decode an index block below the root: a leaf, whose entries are data blocks, or an intermediate one.

    Arguments and errors as for ``parse_root_index``.
    """
    payload = block.payload
    if block.magic != (LEAF_INDEX if leaf else INNER_INDEX):
        raise CorruptFileError(f"An HFile has a block {block.magic!r} where its index should be.", offset=block.offset)
    (count,) = _COUNT.unpack_from(payload) if len(payload) >= _COUNT.size else (-1,)
    start = _COUNT.size * (count + 2)
    if not 0 <= count <= len(payload) // (_COUNT.size + _PLACE.size) or start > len(payload):
        raise CorruptFileError(f"An HFile's index block cannot have {count} entries.", offset=block.offset)
    bounds = [start + each for each in struct.unpack_from(f">{count + 1}i", payload, _COUNT.size)]
    entries: list[IndexEntry] = []
    at = start
    for first, last in pairwise(bounds):
        if first != at or not first + _PLACE.size <= last <= len(payload):
            raise CorruptFileError("An HFile's index block is malformed.", offset=block.offset)
        offset, size = _PLACE.unpack_from(payload, first)
        key = _cut_key(payload[first + _PLACE.size : last], block.offset)
        entries.append(_check_place(IndexEntry(offset, size, key), most, block.offset))
        at = last
    return _make_index(entries, block.offset)


def _make_index(entries: Sequence[IndexEntry], offset: int) -> Index:
    keys = [entry.key for entry in entries]
    if any(later < earlier for earlier, later in pairwise(keys)):
        raise CorruptFileError("The keys of an HFile's index are not sorted.", offset=offset)
    return Index(entries, keys)


def _check_place(entry: IndexEntry, most: int, offset: int) -> IndexEntry:
    if entry.offset < 0 or entry.size <= 0 or entry.offset + entry.size > most:
        raise CorruptFileError("An HFile's index points out of the file.", offset=offset)
    return entry


def _cut_key(stored: bytes, offset: int) -> bytes:
    """Return a key without its length and HBase's additions."""
    (length,) = _KEY_LENGTH.unpack_from(stored) if len(stored) >= _KEY_LENGTH.size else (-1,)
    if not 0 <= length <= len(stored) - _KEY_LENGTH.size:
        raise CorruptFileError("A key of an HFile's index is cut short.", offset=offset)
    return stored[_KEY_LENGTH.size : _KEY_LENGTH.size + length]


def _read_hadoop_varint(payload: bytes, at: int, offset: int) -> tuple[int, int]:
    """Return the number at ``at`` and its end (Hadoop ``WritableUtils.readVInt``); it must not be negative."""
    first = payload[at]
    if first < 0x80:
        return first, at + 1
    size = 0x90 - first  # bytes after the first one, if the number is positive
    if not 1 <= size <= 4 or at + 1 + size > len(payload):
        raise CorruptFileError("A length in an HFile's index is malformed.", offset=offset)
    return int.from_bytes(payload[at + 1 : at + 1 + size], "big"), at + 1 + size
