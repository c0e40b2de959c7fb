"""Blocks, trailer and file info of HFiles: their places and their plain bytes (Hudi ``HFileBlock``, ``HFileTrailer``).

``writer`` draws the layout. Nothing here does I/O: a ``Source`` supplies the bytes of a file. Every size is checked
against the file before it is used.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from hoodie_py.errors import CorruptFileError, UnsupportedFeatureError
from hoodie_py.formats.hfile.codecs import check_codec, decompress
from hoodie_py.formats.hfile.protobuf import read_fields, read_varint

DATA_BLOCK, META_BLOCK = b"DATABLK*", b"METABLKc"
ROOT_INDEX, INNER_INDEX, LEAF_INDEX = b"IDXROOT2", b"IDXINTE2", b"IDXLEAF2"
FILE_INFO, TRAILER_MAGIC, INFO_MAGIC = b"FILEINF2", b'TRABLK"$', b"PBUF"
TRAILER_SIZE = 4096
MAJOR_VERSION = 3
HEADER = struct.Struct(">8siiqBii")
MOST_LEVELS = 16  # of an index; every level at least doubles the number of entries


class Source(Protocol):
    """The bytes of one HFile."""

    @property
    def size(self) -> int:
        """The number of bytes."""
        ...

    def read(self, start: int, stop: int) -> bytes | memoryview:
        """Return the bytes from ``start`` to ``stop``, which lie inside the file."""
        ...


@dataclass(frozen=True, slots=True)
class MemorySource:
    """An HFile in memory."""

    data: memoryview

    @property
    def size(self) -> int:
        """The number of bytes."""
        return len(self.data)

    def read(self, start: int, stop: int) -> memoryview:
        """Return the bytes from ``start`` to ``stop``."""
        return self.data[start:stop]


@dataclass(frozen=True, slots=True)
class Trailer:
    """The facts at the end of an HFile.

    Attributes:
        info: offset of the file info.
        root: offset of the root index, the first part that a reader loads when it opens the file.
        data_count, meta_count: entries of the root index and of the index of meta blocks.
        entries: entries of the file.
        levels: levels of the index; if there is one, the root points to data blocks.
        codec: number of the compression codec.
        start: offset of the trailer.
    """

    info: int
    root: int
    data_count: int
    meta_count: int
    entries: int
    levels: int
    codec: int
    start: int


@dataclass(frozen=True, slots=True)
class Block:
    """One block: its magic, its plain payload, its place in the file, and the size of its payload in the file."""

    magic: bytes
    payload: bytes
    offset: int
    end: int
    packed: int


def read_trailer(source: Source) -> Trailer:
    """Decode the end of an HFile.

    Raises:
        CorruptFileError: the bytes are not an HFile, or a damaged one.
        UnsupportedFeatureError: the version is unknown, or the codec cannot be decompressed.
    """
    start = source.size - TRAILER_SIZE
    raw = bytes(source.read(start, source.size)) if start >= 0 else b""
    if not raw.startswith(TRAILER_MAGIC):
        raise CorruptFileError("An HFile must end with its trailer.")
    major = int.from_bytes(raw[-3:], "big")
    if major != MAJOR_VERSION:
        raise UnsupportedFeatureError(f"HFiles of version {major} are not supported.")
    body = raw[len(TRAILER_MAGIC) : -4]
    length, at = read_varint(body, 0)
    if length > len(body) - at:
        raise CorruptFileError("An HFile's trailer is cut short.", offset=start)
    fields = dict(read_fields(body[at : at + length]))
    numbers = [fields.get(number, 0) for number in (1, 2, 5, 6, 7, 8, 12)]
    info, root, data_count, meta_count, entries, levels, codec = (_check_number(each) for each in numbers)
    trailer = Trailer(info, root, data_count, meta_count, entries, levels, check_codec(codec), start)
    if not root <= info <= start:
        raise CorruptFileError("An HFile's trailer points out of the file.", offset=start)
    if levels > MOST_LEVELS:
        raise CorruptFileError(f"An HFile's index cannot have {levels} levels.", offset=start)
    return trailer


def _check_number(value: int | bytes) -> int:
    if not isinstance(value, int):
        raise CorruptFileError("An HFile's trailer is malformed.")
    return value


def read_block(data: bytes | memoryview, at: int, codec: int, *, base: int = 0) -> Block:
    """Return the block at ``at`` in ``data``, which starts at ``base`` in the file.

    Raises:
        CorruptFileError: the block is cut short, damaged or contradicts itself.
        UnsupportedFeatureError: the block is larger than a limit.
    """
    offset = base + at
    if at < 0 or at + HEADER.size > len(data):
        raise CorruptFileError("An HFile block is cut short.", offset=offset)
    magic, after_header, size, _, _, _, on_disk = HEADER.unpack_from(data, at)
    end = at + HEADER.size + after_header
    if not HEADER.size <= on_disk <= HEADER.size + after_header or end > len(data) or size < 0:
        raise CorruptFileError("The sizes of an HFile block do not add up.", offset=offset)
    packed = bytes(data[at + HEADER.size : at + on_disk])
    return Block(magic, decompress(codec, packed, size, offset=offset), offset, base + end, len(packed))


def parse_file_info(block: Block) -> Mapping[str, bytes]:
    """Decode the file info, which includes ``schema``. Raises CorruptFileError if it is damaged."""
    payload, offset = block.payload, block.offset
    if block.magic != FILE_INFO or payload[:4] != INFO_MAGIC:
        raise CorruptFileError("An HFile has no file info where its trailer says.", offset=offset)
    length, at = read_varint(payload, 4)
    facts: dict[str, bytes] = {}
    for number, value in read_fields(payload[at : at + length]):
        if number == 1 and isinstance(value, bytes):
            pair = dict(read_fields(value))
            name, fact = pair.get(1), pair.get(2, b"")
            if not isinstance(name, bytes) or not isinstance(fact, bytes):
                raise CorruptFileError("An HFile's file info is malformed.", offset=offset)
            facts[name.decode("utf-8", errors="replace")] = fact
    return facts
