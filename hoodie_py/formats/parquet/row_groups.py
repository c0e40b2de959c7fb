"""Copies row groups of Parquet files into a new file as bytes; only the values of a constant column are written anew.

A row group is a run of column chunks, and the footer says where each one begins. A copied chunk keeps its bytes; the
offsets in its metadata and in its offset index move by the same distance. Bounds of pages (the column index) hold no
offsets. Bloom filters of Parquet itself, which this package does not write, are left out of the metadata.

Parquet's parquet.thrift has the field numbers.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from hoodie_py.arrow.arrays import repeat_value
from hoodie_py.errors import CorruptFileError
from hoodie_py.formats.parquet.thrift import (
    BINARY,
    I16,
    I64,
    LIST,
    STRUCT,
    Items,
    Struct,
    Value,
    read_struct,
    write_struct,
)

CODEC_NUMBERS = {"uncompressed": 0, "snappy": 1, "gzip": 2, "zstd": 6}  # in a chunk's metadata

_MAGIC = b"PAR1"
_TAIL = struct.Struct("<I4s")
_AT_ONCE = 8 << 20
_MOST_INDEX = 32 << 20

# FileMetaData
_SCHEMA, _ROWS, _GROUPS, _FACTS, _CREATED_BY, _ENCRYPTION = 2, 3, 4, 5, 6, 8
# RowGroup
_COLUMNS, _BYTES, _GROUP_ROWS, _GROUP_OFFSET, _PACKED_BYTES, _ORDINAL = 1, 2, 3, 5, 6, 7
# ColumnChunk
_OTHER_FILE, _CHUNK_OFFSET, _META, _OFFSETS_AT, _OFFSETS_SIZE, _BOUNDS_AT, _BOUNDS_SIZE, _CRYPTO = (
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    8,
)
# ColumnMetaData
_PATH, _UNPACKED, _PACKED, _DATA_AT, _INDEX_AT, _DICTIONARY_AT, _BLOOM_AT, _BLOOM_SIZE = 3, 6, 7, 9, 10, 11, 14, 15
_CODEC = 4
_LOCATIONS, _PAGE_AT = 1, 1  # OffsetIndex, PageLocation


class GroupSource:
    """A Parquet file whose row groups may be copied.

    Raises:
        CorruptFileError: the bytes are not a Parquet file.
    """

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file = file
        self._size = size
        if size < len(_MAGIC) + _TAIL.size:
            raise CorruptFileError("The file is too short for Parquet.")
        length, magic = _TAIL.unpack(self.read(size - _TAIL.size, _TAIL.size))
        if magic != _MAGIC:
            raise CorruptFileError("The file does not end like a Parquet file.")
        self._end = size - _TAIL.size - length
        self.footer = read_struct(self.read(self._end, length))
        try:
            self.groups: list[Struct] = self.footer[_GROUPS].value.values
            self.schema: Items = self.footer[_SCHEMA].value
            facts = self.footer[_FACTS].value if _FACTS in self.footer else ()
            self.facts: dict[bytes, bytes] = {each[1].value: each[2].value for each in facts}
            self.created_by: bytes = self.footer[_CREATED_BY].value
            self._chunks: list[Struct] = [chunk for group in self.groups for chunk in group[_COLUMNS].value]
            self.codecs = {chunk[_META].value[_CODEC].value for chunk in self._chunks}
            first = self.groups[0][_COLUMNS].value if self.groups else ()
            self._paths = [b".".join(chunk[_META].value[_PATH].value) for chunk in first]
            self._first_index = min((each[_BOUNDS_AT].value for each in self._chunks if _BOUNDS_AT in each), default=0)
        except (KeyError, AttributeError, TypeError):
            raise CorruptFileError("The footer lacks a part that every footer has.") from None
        self._indexes: bytes | None = None

    @classmethod
    def of_bytes(cls, data: bytes) -> GroupSource:
        """Open a file in memory."""
        return cls(io.BytesIO(data), len(data))

    def read(self, offset: int, count: int) -> bytes:
        """Read bytes of the file. Raises CorruptFileError if they lie outside of it."""
        if offset < 0 or count < 0 or offset + count > self._size:
            raise CorruptFileError("The footer refers to bytes outside of the file.")
        self._file.seek(offset)
        found = self._file.read(count)
        if len(found) != count:
            raise CorruptFileError("The file is shorter than it was.")
        return found

    def read_index(self, offset: int, count: int) -> bytes:
        """Read a part of the page index. All of it lies between the data and the footer, and is read at once."""
        if not 0 < self._first_index <= offset or self._end - self._first_index > _MOST_INDEX:
            return self.read(offset, count)
        if self._indexes is None:
            self._indexes = self.read(self._first_index, self._end - self._first_index)
        found = self._indexes[offset - self._first_index :][:count]
        if count < 0 or len(found) != count:
            raise CorruptFileError("The footer refers to bytes outside of the file.")
        return found

    def find_column(self, path: str) -> int | None:
        """Return the number of a leaf column by its path with dots; None if there is none."""
        return self._paths.index(path.encode()) if path.encode() in self._paths else None

    def is_plain(self) -> bool:
        """Whether all bytes are in this file and none is encrypted."""
        return _ENCRYPTION not in self.footer and not any(
            _OTHER_FILE in each or _CRYPTO in each for each in self._chunks
        )


@dataclass(slots=True)
class _Span:
    """A run of bytes of a source."""

    source: GroupSource
    start: int
    size: int


class GroupCopier:
    """Writes a Parquet file of copied row groups; the file is complete once ``finish`` has returned."""

    def __init__(self, sink: IO[bytes]) -> None:
        self._sink = sink
        self._groups: list[Struct] = []
        self._indexes: list[tuple[Struct, bytes, bytes]] = []
        self.rows = self.size = 0
        self._put(_MAGIC)

    def _put(self, data: bytes) -> None:
        self._sink.write(data)
        self.size += len(data)

    def append(self, source: GroupSource, number: int, replaced: Mapping[int, bytes] | None = None) -> None:
        """Append a row group of a file. It must not be appended twice, as its metadata is changed in place.

        ``replaced``: for columns with other values a file whose only row group has only that column, as many rows, and
        the same path.

        Raises:
            CorruptFileError: the row group's metadata contradicts the file.
        """
        try:
            self._append(source, source.groups[number], replaced or {})
        except (KeyError, AttributeError, TypeError):
            raise CorruptFileError("The metadata of a row group lacks a part.") from None

    def _append(self, source: GroupSource, group: Struct, replaced: Mapping[int, bytes]) -> None:
        chunks = group[_COLUMNS].value.values
        spans: list[_Span] = []
        start = at = self.size
        for column, old in enumerate(chunks):
            file, chunk = source, old
            if column in replaced:
                file = GroupSource.of_bytes(replaced[column])
                [chunk] = file.groups[0][_COLUMNS].value
            chunks[column] = chunk
            span = _find_span(file, chunk)
            self._move(file, chunk, at - span.start)
            spans.append(span)
            at += span.size
        for span in _join(spans):
            for offset in range(0, span.size, _AT_ONCE):
                self._put(span.source.read(span.start + offset, min(_AT_ONCE, span.size - offset)))
        metas = [chunk[_META].value for chunk in chunks]
        group[_BYTES] = Value(I64, sum(meta[_UNPACKED].value for meta in metas))
        group[_PACKED_BYTES] = Value(I64, sum(meta[_PACKED].value for meta in metas))
        group[_GROUP_OFFSET] = Value(I64, start)
        if _ORDINAL in group:
            group[_ORDINAL] = Value(I16, len(self._groups))
        self.rows += group[_GROUP_ROWS].value
        self._groups.append(group)

    def _move(self, source: GroupSource, chunk: Struct, distance: int) -> None:
        """Move the offsets in a chunk's metadata, and keep its page index for the end of the file."""
        meta: Struct = chunk[_META].value
        if _OFFSETS_AT in chunk and _BOUNDS_AT in chunk:
            bounds = source.read_index(chunk[_BOUNDS_AT].value, chunk[_BOUNDS_SIZE].value)
            offsets = read_struct(source.read_index(chunk[_OFFSETS_AT].value, chunk[_OFFSETS_SIZE].value))
            for location in offsets[_LOCATIONS].value:
                location[_PAGE_AT].value += distance
            self._indexes.append((chunk, bounds, write_struct(offsets)))
        else:
            for field in (_OFFSETS_AT, _OFFSETS_SIZE, _BOUNDS_AT, _BOUNDS_SIZE):
                chunk.pop(field, None)
        for field in (_DATA_AT, _INDEX_AT, _DICTIONARY_AT):
            if field in meta:
                meta[field].value += distance
        for field in (_BLOOM_AT, _BLOOM_SIZE):
            meta.pop(field, None)
        chunk[_CHUNK_OFFSET] = Value(I64, 0)  # as Arrow writes it; the field is deprecated

    def finish(self, like: GroupSource, facts: Mapping[bytes, bytes]) -> pq.FileMetaData:
        """Write the footer, with the schema of the file ``like`` and these facts, and return it."""
        for chunk, bounds, _ in self._indexes:
            chunk[_BOUNDS_AT].value, chunk[_BOUNDS_SIZE].value = self.size, len(bounds)
            self._put(bounds)
        for chunk, _, offsets in self._indexes:
            chunk[_OFFSETS_AT].value, chunk[_OFFSETS_SIZE].value = self.size, len(offsets)
            self._put(offsets)
        pairs: list[Struct] = [{1: Value(BINARY, key), 2: Value(BINARY, value)} for key, value in facts.items()]
        changed = {
            _ROWS: Value(I64, self.rows),
            _GROUPS: Value(LIST, Items(STRUCT, self._groups)),
            _FACTS: Value(LIST, Items(STRUCT, pairs)),
        }
        footer = write_struct(like.footer | changed)
        tail = footer + _TAIL.pack(len(footer), _MAGIC)
        self._put(tail)
        return pq.read_metadata(pa.BufferReader(_MAGIC + tail))


def _find_span(source: GroupSource, chunk: Struct) -> _Span:
    meta: Struct = chunk[_META].value
    start = meta[_DATA_AT].value
    if _DICTIONARY_AT in meta and meta[_DICTIONARY_AT].value > 0:  # some writers say 0 where there is none
        start = min(start, meta[_DICTIONARY_AT].value)
    return _Span(source, start, meta[_PACKED].value)


def _join(spans: list[_Span]) -> list[_Span]:
    """Join spans of one file that follow each other, so that a row group is read in few steps."""
    joined: list[_Span] = []
    for span in spans:
        last = joined[-1] if joined else None
        if last is not None and last.source is span.source and last.start + last.size == span.start:
            last.size += span.size
        else:
            joined.append(span)
    return joined


def make_constant_file(name: str, value: str, rows: int, codec: str) -> bytes:
    """Return a file with one row group of one column of strings, all with the same value."""
    sink = io.BytesIO()
    table = pa.table({name: repeat_value(value, pa.string(), rows)})
    pq.write_table(
        table, sink, row_group_size=max(rows, 1), store_schema=False, write_page_index=True, version="2.6",
        compression="none" if codec == "uncompressed" else codec,
    )  # fmt: skip
    return sink.getvalue()
