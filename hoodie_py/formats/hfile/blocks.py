"""Blocks, trailer and file info of HFiles: their places and their plain bytes (Hudi ``HFileBlock``, ``HFileTrailer``).

``writer`` draws the layout. Nothing here does I/O: a ``Source`` supplies the bytes of a file. Every size is checked
against the file before it is used.

Blocks are compressed, and never decompressed to more bytes than a limit allows (HBase ``Compression``):

    number   codec    form
    2        none     as it is
    1        gzip     one gzip member, or several
    3, 4     snappy   Hadoop's pieces, each raw Snappy or raw LZ4 (lz4 is 4)
    5        bzip2    one stream
    6        zstd     one frame, or Hadoop's pieces, each one frame

Hadoop's pieces: the plain size of a group of pieces int32, then for each piece its size int32 and its bytes. LZO (0)
has no decoder here.
"""

from __future__ import annotations

import bz2
import struct
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from hoodie_py.errors import CorruptFileError, UnsupportedFeatureError
from hoodie_py.formats.hfile.protobuf import read_fields, read_varint
from hoodie_py.formats.limits import get_limits, raise_limit_error

NO_COMPRESSION, GZIP, SNAPPY, LZ4, BZIP2, ZSTD = 2, 1, 3, 4, 5, 6
_FREE_BYTES = 16 << 20  # plain bytes always allowed for a block, whatever its compressed size
_MOST_MEMBERS = 16
_INT = struct.Struct(">i")
_ZSTD_FRAME = b"\x28\xb5\x2f\xfd"

_Decompress = Callable[[bytes, int], bytes]


def check_codec(number: int) -> int:
    """Return the number of a codec that can be decompressed. Raises UnsupportedFeatureError for other codecs."""
    if number != NO_COMPRESSION and number not in _DECOMPRESSORS:
        raise UnsupportedFeatureError(f"HFiles with compression number {number} are not supported.")
    return number


def decompress(codec: int, payload: bytes, size: int, *, offset: int) -> bytes:
    """Return the plain bytes of a block's payload, which must have ``size``; ``offset`` is the block's, for errors.

    Raises:
        CorruptFileError: the payload is damaged, has another size, or exceeds ``Limits.metadata_ratio``.
        UnsupportedFeatureError: the size exceeds ``Limits.hfile_block_bytes``.
    """
    limits = get_limits()
    if size > limits.hfile_block_bytes:
        raise_limit_error(
            UnsupportedFeatureError, f"An HFile block has {size} bytes", "hfile_block_bytes", offset=offset
        )
    if codec == NO_COMPRESSION:
        plain = payload
    else:
        if size > max(_FREE_BYTES, limits.metadata_ratio * len(payload)):
            what = f"An HFile block of {len(payload)} bytes has {size}"
            raise_limit_error(CorruptFileError, what, "metadata_ratio", offset=offset)
        try:
            plain = _DECOMPRESSORS[codec](payload, size) if size else b""
        except (zlib.error, OSError, EOFError, ValueError, struct.error) as error:
            raise CorruptFileError("An HFile block cannot be decompressed.", offset=offset) from error
    if len(plain) != size:
        raise CorruptFileError("The sizes of an HFile block do not add up.", offset=offset)
    return plain


def _inflate(payload: bytes, size: int) -> bytes:
    plain = bytearray()
    members = 0
    while len(plain) < size:  # Hadoop's compressor may write several members
        members += 1
        if members > _MOST_MEMBERS:  # each copies the rest of the payload
            raise ValueError("there are too many members")
        stream = zlib.decompressobj(zlib.MAX_WBITS | 16)
        plain += stream.decompress(payload, size - len(plain) + 1)  # one byte more, so that the end is reached
        if not stream.eof:
            raise EOFError("a stream is cut short, or longer than its block")
        payload = stream.unused_data
    return bytes(plain)


def _decompress_bzip2(payload: bytes, size: int) -> bytes:
    stream = bz2.BZ2Decompressor()
    plain = stream.decompress(payload, size + 1)
    if not stream.eof:
        raise EOFError("a stream is cut short, or longer than its block")
    return plain


def _decompress_zstd(payload: bytes, size: int) -> bytes:
    if payload.startswith(_ZSTD_FRAME):
        return bytes(pa.Codec("zstd").decompress(payload, size))
    return _decompress_pieces("zstd", payload, size)


def _decompress_pieces(codec: str, payload: bytes, size: int) -> bytes:
    """Decompress Hadoop's pieces (``BlockCompressorStream``)."""
    engine = pa.Codec(codec)
    plain = bytearray()
    at = 0
    while at < len(payload) and len(plain) < size:
        group = len(plain) + _read_length(payload, at)
        at += _INT.size
        if group > size:
            raise ValueError("a group of pieces is longer than its block")
        while len(plain) < group:
            stop = at + _INT.size + _read_length(payload, at)
            if stop > len(payload):
                raise ValueError("a piece is cut short")
            piece = payload[at + _INT.size : stop]
            plain += engine.decompress(piece, _find_plain_size(codec, piece, group - len(plain)))
            at = stop
    return bytes(plain)


def _read_length(payload: bytes, at: int) -> int:
    (length,) = _INT.unpack_from(payload, at)
    if length <= 0:
        raise ValueError("a length is not positive")
    return int(length)


def _find_plain_size(codec: str, piece: bytes, most: int) -> int:
    """Return the plain size of a piece. Arrow must be given the exact size: it would not report a smaller one."""
    if codec == "zstd":  # a frame must fill its group, and Arrow checks that
        return most
    try:
        size = _measure_lz4(piece) if codec == "lz4_raw" else read_varint(piece, 0)[0]
    except (IndexError, CorruptFileError):
        raise ValueError("a piece is cut short") from None
    if not 0 < size <= most:
        raise ValueError("a piece is longer than its group")
    return size


def _measure_lz4(piece: bytes) -> int:
    """Return the plain size of a raw LZ4 block, which does not store it: the sum of its literals and matches."""
    at = total = 0
    while True:
        token = piece[at]
        literals, at = _read_lz4_length(piece, at + 1, token >> 4)
        at += literals
        total += literals
        if at >= len(piece):
            return total
        matched, at = _read_lz4_length(piece, at + 2, token & 15)
        total += matched + 4


def _read_lz4_length(piece: bytes, at: int, length: int) -> tuple[int, int]:
    more = 255 if length == 15 else 0
    while more == 255:
        more = piece[at]
        length += more
        at += 1
    return length, at


_DECOMPRESSORS: dict[int, _Decompress] = {
    GZIP: _inflate,
    SNAPPY: lambda payload, size: _decompress_pieces("snappy", payload, size),
    LZ4: lambda payload, size: _decompress_pieces("lz4_raw", payload, size),
    BZIP2: _decompress_bzip2,
    ZSTD: _decompress_zstd,
}


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
