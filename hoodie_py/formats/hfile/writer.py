"""Writes HFiles: files of sorted keys with values, used for Hudi's metadata table and some log blocks.

The bytes must agree with Hudi's HFileReaderImpl and HFileWriterImpl, and with HBase's HFile version 3. All integers are
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

The writer makes an index of one level, as Java's does. Records are passed as columns: Arrow's kernels join the entries
of a block, block by block, so that memory holds no more than one block besides the input and the file.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.arrays import to_booleans
from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.formats.avro.binary import encode_varint
from hoodie_py.formats.hfile import blocks
from hoodie_py.formats.hfile.blocks import GZIP, NO_COMPRESSION
from hoodie_py.formats.hfile.data_block import KEY_END, Entry
from hoodie_py.formats.hfile.protobuf import encode_number_field, encode_octets_field

_MOST_BYTES = 1 << 30
_CHECKSUM_STEP = 16384
_BLOCK_BYTES = 1 << 20
_WAITING_BYTES = 8 << 20
_LENGTHS = struct.Struct(">ii")
_SHORT = struct.Struct(">h")
_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")
_INDEX_ENTRY = struct.Struct(">qi")
_MAX_KEY = (1 << 15) - 1
_EXTRA_BYTES = _LENGTHS.size + _SHORT.size + len(KEY_END) + 1  # of an entry, besides key and value
_GZIP_LEVELS = (3, 4, 2)  # the first takes half the time of Java's, for a tenth more bytes
_COMPARATOR = b"org.apache.hudi.io.storage.HoodieHBaseKVComparator"

Sizes = npt.NDArray[np.int64]


def write_columns(
    keys: pa.Array, values: pa.Array, *, schema: str, created_ms: int, codec: int = NO_COMPRESSION
) -> bytes:
    """Encode an HFile.

    Keys and values are strings or bytes without nulls, in any order. The schema of the values is stored in the file
    info. ``created_ms`` is in milliseconds since 1970. ``codec`` compresses all blocks: none or gzip.

    Raises:
        ValueError: a key repeats, is empty or is longer than 32767 bytes, or the entries have over 1 GiB.
        UnsupportedFeatureError: the codec is another one.
    """
    entries = _Entries.sort(keys, values)
    if int(entries.key_sizes.sum() + entries.value_sizes.sum()) > _MOST_BYTES:
        raise ValueError("An HFile cannot have more than 1 GiB.")
    out = io.BytesIO()
    writer = HFileWriter(out, schema=schema, created_ms=created_ms, codec=codec)
    writer.write_entries(entries)
    writer.finish()
    return out.getvalue()


class HFileWriter:
    """Writes an HFile to a stream while its sorted entries arrive; a few megabytes wait in memory.

    ``codec`` is none or gzip. Raises UnsupportedFeatureError for another codec.
    """

    def __init__(self, sink: IO[bytes], *, schema: str, created_ms: int, codec: int = GZIP) -> None:
        if codec not in (NO_COMPRESSION, GZIP):
            raise UnsupportedFeatureError(f"Writing HFiles with compression number {codec}.")
        self._sink = sink
        self._schema = schema
        self._created_ms = created_ms
        self._codec = codec
        self._index: list[tuple[int, int, bytes]] = []
        self._waiting: list[tuple[pa.Array, pa.Array]] = []
        self._waiting_bytes = self._size = 0
        self._plain_bytes = self._key_bytes = self._value_bytes = 0
        self._last = b""
        self.entries = 0

    def add(self, keys: pa.Array, values: pa.Array) -> None:
        """Add entries; their keys must come, ordered by bytes, after the keys of the previous call.

        Raises ValueError if keys are out of order or repeat, or a key is empty or longer than 32767 bytes.
        """
        self._waiting.append((keys.cast(pa.large_binary()), values.cast(pa.large_binary())))
        self._waiting_bytes += keys.nbytes + values.nbytes
        if self._waiting_bytes >= _WAITING_BYTES:
            self._write_waiting()

    def finish(self) -> int:
        """Write the waiting entries and the end of the file; return the number of entries."""
        self._write_waiting()
        root_offset = self._size
        self._write_block(blocks.ROOT_INDEX, b"".join(_encode_index_entry(*place) for place in self._index))
        self._write_block(blocks.ROOT_INDEX, b"")
        info_offset = self._size
        self._write_block(blocks.FILE_INFO, self._encode_file_info())
        self._sink.write(
            _encode_trailer(info_offset, root_offset, self._index, self.entries, self._plain_bytes, self._codec)
        )
        return self.entries

    def _write_waiting(self) -> None:
        if not self._waiting:
            return
        keys, values = (pa.concat_arrays(each) for each in zip(*self._waiting, strict=True))
        self._waiting, self._waiting_bytes = [], 0
        if len(keys):
            self.write_entries(_Entries.sort(keys, values))

    def write_entries(self, entries: _Entries) -> None:
        """Write sorted entries at once. Rules and errors as for ``add``."""
        for first, payload in entries.iterate_blocks():
            if first <= self._last and self.entries:
                raise ValueError(f"The HFile key {first[:100]!r} is out of order or there twice.")
            self._index.append((self._size, self._write_block(blocks.DATA_BLOCK, payload), first))
            self._plain_bytes += len(payload)
        self.entries += len(entries.keys)
        self._key_bytes += int(entries.key_sizes.sum())
        self._value_bytes += int(entries.value_sizes.sum())
        self._last = entries.last_key or self._last

    def _write_block(self, magic: bytes, payload: bytes) -> int:
        block = _encode_block(magic, payload, self._codec)
        self._sink.write(block)
        self._size += len(block)
        return len(block)

    def _encode_file_info(self) -> bytes:
        count = max(self.entries, 1)
        facts: dict[bytes, bytes] = {
            b"hfile.LASTKEY": _SHORT.pack(len(self._last)) + self._last if self._last else b"",
            b"MAX_MEMSTORE_TS_KEY": _LONG.pack(0),
            b"hfile.AVG_KEY_LEN": _INT.pack(self._key_bytes // count),
            b"hfile.AVG_VALUE_LEN": _INT.pack(self._value_bytes // count),
            b"hfile.CREATE_TIME_TS": _LONG.pack(self._created_ms),
            b"KEY_VALUE_VERSION": _INT.pack(1),
            b"schema": self._schema.encode(),
        }
        pairs = (encode_octets_field(1, name) + encode_octets_field(2, value) for name, value in facts.items())
        message = b"".join(encode_octets_field(1, pair) for pair in pairs)
        return blocks.INFO_MAGIC + encode_varint(len(message)) + message


@dataclass(frozen=True, slots=True)
class _Entries:
    """Keys and values as ``large_binary``, their order by the bytes of the keys, and their lengths in that order."""

    keys: pa.Array
    values: pa.Array
    order: pa.Array
    key_sizes: Sizes
    value_sizes: Sizes

    @classmethod
    def sort(cls, keys: pa.Array, values: pa.Array) -> _Entries:
        """Sort entries. Raises as ``write_columns``."""
        keys, values = keys.cast(pa.large_binary()), values.cast(pa.large_binary())
        order = pc.sort_indices(keys)
        places = np.frombuffer(order.buffers()[1], np.uint64, len(order)) if len(order) else np.empty(0, np.uint64)
        key_sizes, value_sizes = _count_bytes(keys)[places], _count_bytes(values)[places]
        wrong = np.flatnonzero((key_sizes < 1) | (key_sizes > _MAX_KEY))
        if len(wrong):
            raise ValueError(f"An HFile key cannot have {key_sizes[wrong[0]]} bytes.")
        return cls(keys, values, order, key_sizes, value_sizes)

    def iterate_blocks(self) -> Iterator[Entry]:
        """Yield the payloads of the data blocks, each with its first key."""
        ends = np.cumsum(self.key_sizes + self.value_sizes + _EXTRA_BYTES)
        start, before = 0, b""
        while start < len(self.keys):
            begun = int(ends[start - 1]) if start else 0
            stop = max(int(np.searchsorted(ends, begun + _BLOCK_BYTES, "right")), start + 1)
            chosen = self.order.slice(start, stop - start)
            keys = self.keys.take(chosen)
            first = keys[0].as_py()
            repeated = to_booleans(pc.equal(keys[1:], keys[:-1]))
            if first == before or repeated.any():
                key = first if first == before else keys[int(np.argmax(repeated))].as_py()
                raise ValueError(f"The HFile key {key[:100]!r} is there twice.")
            before = keys[-1].as_py()
            yield first, self._join(keys, self.values.take(chosen), slice(start, stop))
            start = stop

    def _join(self, keys: pa.Array, values: pa.Array, part: slice) -> bytes:
        """Return the bytes of the entries of one block; ``part`` is their place in the order."""
        heads = np.empty(len(keys), np.dtype([("key", ">i4"), ("value", ">i4"), ("row", ">i2")]))
        heads["row"], heads["value"] = self.key_sizes[part], self.value_sizes[part]
        heads["key"] = self.key_sizes[part] + _SHORT.size + len(KEY_END)
        offsets = np.arange(len(keys) + 1, dtype=np.int64) * heads.itemsize
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(heads)]
        head = pa.Array.from_buffers(pa.large_binary(), len(keys), buffers)
        end, tail = (pa.scalar(each, pa.large_binary()) for each in (KEY_END, b"\0"))
        joined = pc.binary_join_element_wise(head, keys, end, values, tail, pa.scalar(b"", pa.large_binary()))
        return bytes(joined.buffers()[2])

    @property
    def last_key(self) -> bytes:
        """The greatest key; empty if there are no entries."""
        return self.keys[self.order[-1].as_py()].as_py() if len(self.keys) else b""


def _count_bytes(texts: pa.Array) -> Sizes:
    if not len(texts):
        return np.empty(0, np.int64)
    offsets = np.frombuffer(texts.buffers()[1], np.int64, len(texts) + 1, 8 * texts.offset)
    return offsets[1:] - offsets[:-1]


def _encode_block(magic: bytes, payload: bytes, codec: int) -> bytes:
    packed = _compress(payload) if codec == GZIP else payload
    on_disk = blocks.HEADER.size + len(packed)
    checksums = bytes(_count_checksum_bytes(on_disk))
    body = len(packed) + len(checksums)
    return blocks.HEADER.pack(magic, body, len(payload), -1, 0, _CHECKSUM_STEP, on_disk) + packed + checksums


def _count_checksum_bytes(size: int) -> int:
    return 4 * -(-size // _CHECKSUM_STEP)


def _compress(payload: bytes) -> bytes:
    """Compress a payload to a size for which all readers compute the same number of checksums.

    hudi-rs computes it from a size that includes the checksums. If the payload ends just below a multiple of 16384, it
    expects one too many, and cuts the payload. Another level of compression gives another size; if none helps, the last
    one is kept.
    """
    for level in _GZIP_LEVELS:
        stream = zlib.compressobj(level, zlib.DEFLATED, zlib.MAX_WBITS | 16)
        packed = stream.compress(payload) + stream.flush()
        own = _count_checksum_bytes(blocks.HEADER.size + len(packed))
        if _count_checksum_bytes(blocks.HEADER.size + len(packed) + own) == own:
            break
    return packed


def _encode_index_entry(offset: int, size: int, key: bytes) -> bytes:
    stored = _SHORT.pack(len(key)) + key
    return _INDEX_ENTRY.pack(offset, size) + _encode_hadoop_varint(len(stored)) + stored


def _encode_hadoop_varint(value: int) -> bytes:
    """Encode a length as Hadoop's WritableUtils.writeVInt does: one byte up to 127, else a byte count and the bytes."""
    if value <= 127:
        return bytes([value])
    raw = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return bytes([0x90 - len(raw)]) + raw  # -112 - n as a signed byte


def _encode_trailer(
    info: int, root: int, index: Sequence[tuple[int, int, bytes]], entries: int, plain_bytes: int, codec: int
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
            encode_number_field(12, codec),
        )
    )
    head = blocks.TRAILER_MAGIC + encode_varint(len(message)) + message
    return head.ljust(blocks.TRAILER_SIZE - 4, b"\0") + _INT.pack(blocks.MAJOR_VERSION)
