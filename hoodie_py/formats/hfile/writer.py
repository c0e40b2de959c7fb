"""Writes HFiles: files of sorted keys with values, of which Hudi's metadata table and some log blocks are made.

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

The writer makes uncompressed blocks and an index of one level, which Java reads.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from hoodie_py.formats.avro.binary import encode_varint
from hoodie_py.formats.hfile.blocks import (
    DATA_BLOCK,
    FILE_INFO,
    HEADER,
    INFO_MAGIC,
    MAJOR_VERSION,
    ROOT_INDEX,
    TRAILER_MAGIC,
    TRAILER_SIZE,
)
from hoodie_py.formats.hfile.codecs import NO_COMPRESSION
from hoodie_py.formats.hfile.data_block import KEY_END, Entry
from hoodie_py.formats.hfile.protobuf import encode_number_field, encode_octets_field

_MOST_BYTES = 1 << 30
_CHECKSUM_STEP = 16384
_BLOCK_BYTES = 1 << 20
_LENGTHS = struct.Struct(">ii")
_SHORT = struct.Struct(">h")
_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")
_INDEX_ENTRY = struct.Struct(">qi")
_MAX_KEY = (1 << 15) - 1
_COMPARATOR = b"org.apache.hudi.io.storage.HoodieHBaseKVComparator"


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
    out += _encode_block(ROOT_INDEX, b"".join(_encode_index_entry(*place) for place in index))
    out += _encode_block(ROOT_INDEX, b"")
    info_offset = len(out)
    out += _encode_block(FILE_INFO, _encode_file_info(ordered, schema, created_ms))
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
    if total > _MOST_BYTES:
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
    on_disk = HEADER.size + len(payload)
    checksums = bytes(4 * -(-on_disk // _CHECKSUM_STEP))
    body = len(payload) + len(checksums)
    return HEADER.pack(magic, body, len(payload), -1, 0, _CHECKSUM_STEP, on_disk) + payload + checksums


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
    return INFO_MAGIC + encode_varint(len(message)) + message


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
            encode_number_field(12, NO_COMPRESSION),
        )
    )
    head = TRAILER_MAGIC + encode_varint(len(message)) + message
    return head.ljust(TRAILER_SIZE - 4, b"\0") + _INT.pack(MAJOR_VERSION)
