"""Writes HFiles, files of sorted keys with values, as far as Hudi's metadata table needs them, and reads their info.

It must agree with Hudi's HFileReaderImpl and HFileWriterImpl, and with HBase's HFile version 3. All integers are
big-endian.

    file      data blocks, meta blocks, root data index, meta index, file info, trailer (the last 4096 bytes)
    block     magic (8), bytes after the header on disk int32, uncompressed int32, offset of the block before int64,
              checksum type int8, 16384 int32, header and payload on disk int32; payload; 4 bytes of checksum for each
              16384 bytes or part of them
    record    key length int32, value length int32, key, value, 0 (MVCC)
    key       length int16, bytes, 0, 2**63 - 1 int64, 4
    index     for each block: offset int64, size int32, Hadoop varint length, key as int16 length and bytes
    info      "PBUF", then protobuf: repeated field 1 of {1 name, 2 value}
    trailer   'TRABLK"$', then protobuf (offsets, counts, codec), zeros, minor version int8, major version 3 int24

The writer makes uncompressed blocks and an index of one level, which Java reads. The reader knows the blocks that
writers of the metadata table make: uncompressed and gzip.

A protobuf message is fields back to back. A field is a varint of number * 8 + wire type, then a varint (wire type 0) or
a varint length and that many bytes (wire type 2).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hoodie_py.errors import CorruptFileError, UnsupportedFeatureError
from hoodie_py.formats.avro.binary import encode_varint
from hoodie_py.formats.limits import get_limits, raise_limit_error

MAX_CONTENT_BYTES = 1 << 30
_FREE_BYTES = 16 << 20  # decompressed bytes that any block may have, whatever its compressed size

DATA_BLOCK = b"DATABLK*"
_ROOT_INDEX, _FILE_INFO = b"IDXROOT2", b"FILEINF2"
_TRAILER, _INFO_MAGIC = b'TRABLK"$', b"PBUF"
_TRAILER_SIZE = 4096
_MAJOR_VERSION = 3
_CHECKSUM_STEP = 16384
_BLOCK_BYTES = 1 << 20
_NO_COMPRESSION, _GZIP = 2, 1

_HEADER = struct.Struct(">8siiqBii")
_LENGTHS = struct.Struct(">ii")
_SHORT = struct.Struct(">h")
_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")
_INDEX_ENTRY = struct.Struct(">qi")
_VARINT, _OCTETS = 0, 2  # wire types of protobuf
KEY_END = b"\0" + _LONG.pack((1 << 63) - 1) + b"\4"
_MAX_KEY = (1 << 15) - 1
_COMPARATOR = b"org.apache.hudi.io.storage.HoodieHBaseKVComparator"

Entry = tuple[bytes, bytes]


# Writing -------------------------------------------------------------------------------------------------------------


def write_hfile(entries: Sequence[Entry], *, schema: str, created_ms: int) -> bytes:
    """Encode an HFile.

    Keys and values come in any order. The schema of the values is kept in the file info. ``created_ms`` is in
    milliseconds since 1970.

    Raises ValueError if a key is there twice, is empty or is longer than 32767 bytes, or the entries have over 1 GiB.
    """
    ordered = sorted(entries, key=lambda entry: entry[0])
    _check_entries(ordered)
    out = bytearray()
    index: list[tuple[int, int, bytes]] = []
    plain_bytes = 0
    for first, payload in _split_into_blocks(ordered):
        block = _encode_block(DATA_BLOCK, payload)
        index.append((len(out), len(block), first))
        out += block
        plain_bytes += len(payload)
    root_offset = len(out)
    out += _encode_block(_ROOT_INDEX, b"".join(_encode_index_entry(*place) for place in index))
    out += _encode_block(_ROOT_INDEX, b"")
    info_offset = len(out)
    out += _encode_block(_FILE_INFO, _encode_file_info(ordered, schema, created_ms))
    out += _encode_trailer(info_offset, root_offset, index, len(ordered), plain_bytes)
    return bytes(out)


def _check_entries(ordered: Sequence[Entry]) -> None:
    total = 0
    before = b""
    for key, value in ordered:
        if not 0 < len(key) <= _MAX_KEY:
            raise ValueError(f"An HFile key cannot have {len(key)} bytes.")
        if key == before:
            raise ValueError(f"The HFile key {key[:100]!r} is there twice.")
        before = key
        total += len(key) + len(value)
    if total > MAX_CONTENT_BYTES:
        raise ValueError("An HFile cannot have more than 1 GiB.")


def _split_into_blocks(ordered: Sequence[Entry]) -> Iterator[Entry]:
    """Yield the payloads of the data blocks, each with its first key."""
    payload = bytearray()
    first = b""
    for key, value in ordered:
        if len(payload) >= _BLOCK_BYTES:
            yield first, bytes(payload)
            payload = bytearray()
        if not payload:
            first = key
        stored = _SHORT.pack(len(key)) + key + KEY_END
        payload += _LENGTHS.pack(len(stored), len(value)) + stored + value + b"\0"
    if payload:
        yield first, bytes(payload)


def _encode_block(magic: bytes, payload: bytes) -> bytes:
    on_disk = _HEADER.size + len(payload)
    checksums = bytes(4 * -(-on_disk // _CHECKSUM_STEP))
    body = len(payload) + len(checksums)
    return _HEADER.pack(magic, body, len(payload), -1, 0, _CHECKSUM_STEP, on_disk) + payload + checksums


def _encode_index_entry(offset: int, size: int, key: bytes) -> bytes:
    stored = _SHORT.pack(len(key)) + key
    return _INDEX_ENTRY.pack(offset, size) + _encode_hadoop_varint(len(stored)) + stored


def _encode_hadoop_varint(value: int) -> bytes:
    """Encode a length as Hadoop's WritableUtils.writeVInt does: one byte up to 127, else a byte count and the bytes."""
    if value <= 127:
        return bytes([value])
    raw = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return bytes([0x90 - len(raw)]) + raw  # -112 - n as a signed byte


def _encode_file_info(ordered: Sequence[Entry], schema: str, created_ms: int) -> bytes:
    count = max(len(ordered), 1)
    last = ordered[-1][0] if ordered else b""
    facts: dict[bytes, bytes] = {
        b"hfile.LASTKEY": _SHORT.pack(len(last)) + last if ordered else b"",
        b"MAX_MEMSTORE_TS_KEY": _LONG.pack(0),
        b"hfile.AVG_KEY_LEN": _INT.pack(sum(len(key) for key, _ in ordered) // count),
        b"hfile.AVG_VALUE_LEN": _INT.pack(sum(len(value) for _, value in ordered) // count),
        b"hfile.CREATE_TIME_TS": _LONG.pack(created_ms),
        b"KEY_VALUE_VERSION": _INT.pack(1),
        b"schema": schema.encode(),
    }
    pairs = (encode_octets_field(1, name) + encode_octets_field(2, value) for name, value in facts.items())
    message = b"".join(encode_octets_field(1, pair) for pair in pairs)
    return _INFO_MAGIC + encode_varint(len(message)) + message


def _encode_trailer(
    info: int, root: int, index: Sequence[tuple[int, int, bytes]], entries: int, plain_bytes: int
) -> bytes:
    no_block = (1 << 64) - 1
    message = b"".join(
        (
            encode_number_field(1, info),
            encode_number_field(2, root),
            encode_number_field(3, plain_bytes),
            encode_number_field(5, len(index)),
            encode_number_field(6, 0),
            encode_number_field(7, entries),
            encode_number_field(8, 1),
            encode_number_field(9, index[0][0] if index else no_block),
            encode_number_field(10, index[-1][0] if index else no_block),
            encode_octets_field(11, _COMPARATOR),
            encode_number_field(12, _NO_COMPRESSION),
        )
    )
    head = _TRAILER + encode_varint(len(message)) + message
    return head.ljust(_TRAILER_SIZE - 4, b"\0") + _INT.pack(_MAJOR_VERSION)


# Reading -------------------------------------------------------------------------------------------------------------


def read_file_info(data: bytes | memoryview) -> dict[str, bytes]:
    """Decode the file info of an HFile, among it ``schema``; errors are those for damaged and unknown files."""
    view = memoryview(data)
    trailer = read_trailer(view)
    start = trailer.info
    magic, payload, _ = read_block(view, start, trailer.codec)
    if magic != _FILE_INFO or payload[:4] != _INFO_MAGIC:
        raise CorruptFileError("An HFile has no file info where its trailer says.", offset=start)
    length, at = read_varint(payload, 4)
    facts: dict[str, bytes] = {}
    for number, value in read_fields(payload[at : at + length]):
        if number == 1 and isinstance(value, bytes):
            pair = dict(read_fields(value))
            name, fact = pair.get(1), pair.get(2, b"")
            if not isinstance(name, bytes) or not isinstance(fact, bytes):
                raise CorruptFileError("An HFile's file info is malformed.", offset=start)
            facts[name.decode("utf-8", errors="replace")] = fact
    return facts


@dataclass(frozen=True, slots=True)
class Trailer:
    """Offsets of the file info and of the end of the data blocks, the number of entries, and the codec's number."""

    info: int
    data_end: int
    entries: int
    codec: int


def read_trailer(view: memoryview) -> Trailer:
    """Decode the end of an HFile; errors are those for damaged and unknown files."""
    if len(view) < _TRAILER_SIZE or view[-_TRAILER_SIZE : -_TRAILER_SIZE + 8] != _TRAILER:
        raise CorruptFileError("An HFile must end with its trailer.")
    start = len(view) - _TRAILER_SIZE
    major = int.from_bytes(view[-3:], "big")
    if major != _MAJOR_VERSION:
        raise UnsupportedFeatureError(f"HFiles of version {major} are not supported.")
    body = bytes(view[start + 8 : -4])
    length, at = read_varint(body, 0)
    if length > len(body) - at:
        raise CorruptFileError("An HFile's trailer is cut short.", offset=start)
    fields = dict(read_fields(body[at : at + length]))
    info, root, entries, codec = (_read_number(fields, number) for number in (1, 2, 7, 12))
    if codec not in (_NO_COMPRESSION, _GZIP):
        raise UnsupportedFeatureError(f"HFiles with compression number {codec} are not supported.")
    if not root <= info <= start:
        raise CorruptFileError("An HFile's trailer points out of the file.", offset=start)
    return Trailer(info, root, entries, codec)


def _read_number(fields: dict[int, int | bytes], number: int) -> int:
    value = fields.get(number, 0)
    if not isinstance(value, int):
        raise CorruptFileError("An HFile's trailer is malformed.")
    return value


def read_block(view: memoryview, at: int, codec: int) -> tuple[bytes, bytes, int]:
    """Return the magic and the plain payload of the block at ``at``, and the offset of its end."""
    if at < 0 or at + _HEADER.size > len(view):
        raise CorruptFileError("An HFile block is cut short.", offset=at)
    magic, after_header, plain_size, _, _, _, on_disk = _HEADER.unpack_from(view, at)
    end = at + _HEADER.size + after_header
    if not _HEADER.size <= on_disk <= _HEADER.size + after_header or end > len(view) or plain_size < 0:
        raise CorruptFileError("The sizes of an HFile block do not add up.", offset=at)
    payload = bytes(view[at + _HEADER.size : at + on_disk])
    if codec == _GZIP:
        payload = _inflate(payload, plain_size, at)
    elif len(payload) != plain_size:
        raise CorruptFileError("The sizes of an HFile block do not add up.", offset=at)
    return magic, payload, end


def _inflate(payload: bytes, size: int, at: int) -> bytes:
    if size > MAX_CONTENT_BYTES:
        raise UnsupportedFeatureError("An HFile block of more than 1 GiB is not read.", offset=at)
    if size > max(_FREE_BYTES, get_limits().metadata_ratio * len(payload)):
        raise_limit_error(
            CorruptFileError, f"An HFile block of {len(payload)} bytes has {size}", "metadata_ratio", offset=at
        )
    if size == 0:
        return b""
    stream = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        plain = stream.decompress(payload, size)
    except zlib.error as error:
        raise CorruptFileError("An HFile block is not gzip.", offset=at) from error
    if len(plain) != size:
        raise CorruptFileError("An HFile block is cut short.", offset=at)
    return plain


# Protobuf -----------------------------------------------------------------------------------------------------------


def encode_number_field(number: int, value: int) -> bytes:
    """Encode a field that holds a number."""
    return encode_varint(number << 3 | _VARINT) + encode_varint(value)


def encode_octets_field(number: int, value: bytes) -> bytes:
    """Encode a field that holds bytes: a string or a message."""
    return encode_varint(number << 3 | _OCTETS) + encode_varint(len(value)) + value


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the varint at ``at`` and the offset of its end. Raises CorruptFileError if it is cut short or too long."""
    value = shift = 0
    while True:
        if at >= len(data) or shift >= 64:
            raise CorruptFileError("A protobuf number is cut short or too long.", offset=at)
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7


def read_fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the fields of a message in their order: the number, and the value as int or bytes.

    Raises CorruptFileError if the message is cut short or has a field of another wire type.
    """
    at = 0
    while at < len(data):
        tag, at = read_varint(data, at)
        kind = tag & 7
        value, at = read_varint(data, at)
        if kind == _VARINT:
            yield tag >> 3, value
        elif kind == _OCTETS and value <= len(data) - at:
            yield tag >> 3, data[at : at + value]
            at += value
        else:
            raise CorruptFileError("A protobuf field is cut short or of an unknown kind.", offset=at)
