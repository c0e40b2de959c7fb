"""Decompresses the blocks of HFiles, and never to more bytes than a limit allows (HBase ``Compression``).

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
from collections.abc import Callable

import pyarrow as pa

from hoodie_py.errors import CorruptFileError, UnsupportedFeatureError
from hoodie_py.formats.hfile.protobuf import read_varint
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
