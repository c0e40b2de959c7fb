"""Writes base files: Parquet that Java Hudi's Spark reader, its Avro writer and its BLOOM index can use.

The files must agree with Hudi's HoodieRowParquetWriteSupport and HoodieAvroWriteSupport.

* ``base_schema`` gives the columns. Lists have three levels. The Arrow schema is not stored.
* The footer has Hudi's keys: the bloom filter, the least and the greatest record key, the Avro schema, and the columns
  of vectors.
* Rows keep their order. Row groups are small enough that a selective filter skips most of a file.
* A column whose first values hardly repeat has no dictionary, which would only cost time.
* After a failure the sink gets no more bytes, so no footer makes a part of a file look whole.

A partition's metafile in the base file format has no rows: readers take the facts from its footer and ignore the only
column (Hudi ``ParquetUtils.writeMetaFile``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.arrays import make_empty_batch
from hoodie_py.errors import InvalidQueryError
from hoodie_py.formats.avro.data_blocks import AvroSchema
from hoodie_py.formats.logical_types.vector import COLUMNS_KEY, list_vectors, write_columns
from hoodie_py.formats.names import RECORD_KEY_FIELD
from hoodie_py.formats.parquet import CODECS, DEFAULT_CODEC, key_range
from hoodie_py.formats.parquet.base_schema import convert_to_stored, make_stored_schema
from hoodie_py.formats.parquet.bloom import DYNAMIC, BloomBuilder, BloomFilter, BloomSettings
from hoodie_py.formats.parquet.key_range import KeyRange

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_LEVELS = {"gzip": 6}  # Java's level; Arrow's default is the highest, which takes four times as long for nothing
ROW_GROUP_BYTES = 8 << 20
ROW_GROUP_ROWS = 50_000
PAGE_BYTES = 1 << 20

# Without a version of Spark in the footer, Spark 3 does not know which calendar dates before 1582 and times before 1900
# use, and refuses to read them.
_SPARK_VERSION = "3.5.0"
_MEMORY_BYTES = 128 << 20
_SINK_BYTES = 256 << 10
_FIRST_GUESS = 0.4  # bytes in the file per byte in memory
_SAMPLE_ROWS = 4096
_REPEATING = 0.7  # a column with a larger share of distinct values in the sample gets no dictionary


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """The number of rows and bytes of a file, and its footer."""

    rows: int
    size: int
    metadata: pq.FileMetaData


class BaseFileWriter:
    """Writes one base file from batches.

    The file is complete only when ``close`` has returned: after a failure the sink has no footer. The writer holds one
    row group in memory, at most 128 MiB of Arrow data, and its encoded form.

    Args:
        sink: receives the bytes by ``write``; it is not closed.
        schema: schema of the batches, with Spark's types: the columns of ``avro_schema`` in any order.
        avro_schema: the table's schema as JSON text, with the meta fields if the table has them.
        codec: zstd, snappy, gzip or uncompressed.
        level: on the codec's own scale, None for its default.
        row_group_bytes: encoded size at which a row group ends, estimated from the earlier row groups.
        row_group_rows: maximal number of rows of a row group.
        page_bytes: encoded size at which a data page ends.
        dictionary: whether columns with repeated values have a dictionary.
        empty: columns of ``avro_schema`` that batches lack; they are null in every row.
        bloom: settings of the filter over record keys, or a filter that has all keys; None for none. Java's BLOOM index
            fails on files without one.

    Raises:
        InvalidTableError: the columns of the two schemas differ.
        InvalidQueryError: the codec or level is unknown, or the size of row groups is not positive.
        CorruptFileError: ``avro_schema`` is not an Avro schema.
        UnsupportedFeatureError: a column cannot be written.
    """

    def __init__(
        self,
        sink: IO[bytes],
        schema: pa.Schema,
        avro_schema: str,
        *,
        empty: Sequence[str] = (),
        codec: str = DEFAULT_CODEC,
        level: int | None = None,
        row_group_bytes: int = ROW_GROUP_BYTES,
        row_group_rows: int = ROW_GROUP_ROWS,
        page_bytes: int = PAGE_BYTES,
        dictionary: bool = True,
        bloom: BloomSettings | BloomFilter | None = None,
    ) -> None:
        if codec not in CODECS:
            raise InvalidQueryError(f"Codec {codec[:40]!r} is not one of {', '.join(CODECS)}.")
        if level is not None and level not in (CODECS[codec] or ()):
            raise InvalidQueryError(f"Codec {codec} has no level {level}.")
        if row_group_bytes < 1 or row_group_rows < 1:
            raise InvalidQueryError("Row groups need a positive size.")
        parsed = AvroSchema.parse(avro_schema)
        self._schema = make_stored_schema(parsed)
        self._vectors = list_vectors(parsed.arrow)
        self._empty = tuple(empty)
        # Fail now rather than after hours of writing.
        convert_to_stored(self._add_empty(make_empty_batch(schema)), self._schema)
        self._avro_schema = avro_schema
        self._codec, self._level = codec, _LEVELS.get(codec) if level is None else level
        self._group_bytes, self._most_rows = row_group_bytes, row_group_rows
        self._page_bytes, self._dictionary = page_bytes, dictionary
        self._guarded = _GuardedSink(sink)
        # Arrow writes pieces of some hundred bytes, and each costs a call of Python.
        self._buffered = pa.BufferedOutputStream(pa.PythonFile(self._guarded, mode="w"), _SINK_BYTES)
        self._writer: pq.ParquetWriter | None = None
        self._footers: list[pq.FileMetaData] = []
        self._held: list[pa.RecordBatch] = []
        self._held_rows = self._held_bytes = self._rows = 0
        self._ratio = _FIRST_GUESS
        has_keys = RECORD_KEY_FIELD in schema.names
        self._range = KeyRange()
        self._has_keys = has_keys
        self._bloom = bloom if isinstance(bloom, BloomFilter) and has_keys else None
        self._builder = BloomBuilder(bloom) if isinstance(bloom, BloomSettings) and has_keys else None

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows.

        Raises:
            InvalidTableError: the batch has other columns than the schema, or a value does not fit its column.
            CorruptFileError: a record key is null.
        """
        rows = convert_to_stored(self._add_empty(batch), self._schema)
        if not rows.num_rows:
            return
        if self._has_keys:
            keys = rows.column(RECORD_KEY_FIELD)
            self._range.add(keys)
            if self._builder is not None:
                self._builder.add(keys)
        self._held.append(rows)
        self._held_rows += rows.num_rows
        self._held_bytes += rows.nbytes
        while self._held_rows and self._held_rows >= (limit := self._count_group_rows()):
            self._write_group(limit)

    def close(self) -> WrittenFile:
        """Write the rest of the rows and the footer. Raises InvalidTableError, as ``write``."""
        if self._held_rows or self._writer is None:
            self._write_group(self._held_rows)
        assert self._writer is not None
        with self._guarded.open():
            self._writer.add_key_value_metadata(dict(self._list_footer_entries()))
            self._writer.close()
            self._buffered.flush()
        return WrittenFile(self._rows, self._guarded.size, self._footers[0])

    @property
    def size_so_far(self) -> int:
        """Bytes of the file so far, including an estimate for the rows that are still held."""
        return self._guarded.size + int(self._held_bytes * self._ratio)

    def _add_empty(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if not self._empty:
            return batch
        nulls = [pa.nulls(batch.num_rows, self._schema.field(name).type) for name in self._empty]
        return pa.RecordBatch.from_arrays([*nulls, *batch.columns], names=[*self._empty, *batch.schema.names])

    def _count_group_rows(self) -> int:
        """Return the number of rows of the next row group."""
        row_bytes = max(self._held_bytes / self._held_rows, 1)
        fitting = min(self._group_bytes / self._ratio, _MEMORY_BYTES) / row_bytes
        return max(1, min(self._most_rows, int(fitting)))

    def _write_group(self, count: int) -> None:
        held = pa.Table.from_batches(self._held, self._schema)
        group, rest = held.slice(0, count), held.slice(count)
        self._held = rest.to_batches()
        self._held_rows, self._held_bytes = rest.num_rows, rest.nbytes
        with self._guarded.open():
            if self._writer is None:
                self._writer = self._open(group)
            before = self._guarded.size
            if count:
                self._writer.write_table(group, row_group_size=count)
                self._buffered.flush()
                self._ratio = max((self._guarded.size - before) / max(group.nbytes, 1), 0.001)
        self._rows += count

    def _open(self, sample: pa.Table) -> pq.ParquetWriter:
        import pyarrow.parquet as pq  # with the clients of all stores, which a write of log files alone does not need

        return pq.ParquetWriter(
            self._buffered,
            self._schema,
            compression=self._codec if self._codec != "uncompressed" else "none",
            compression_level=self._level,
            use_dictionary=list(_list_repeating_columns(sample.slice(0, _SAMPLE_ROWS))) if self._dictionary else False,
            data_page_size=self._page_bytes,
            write_statistics=True,
            write_page_index=True,
            store_schema=False,
            version="2.6",
            data_page_version="1.0",
            metadata_collector=self._footers,
        )

    def _list_footer_entries(self) -> Iterator[tuple[str, str]]:
        yield key_range.AVRO_SCHEMA_KEY, self._avro_schema
        yield key_range.SPARK_VERSION_KEY, _SPARK_VERSION
        if self._vectors:
            yield COLUMNS_KEY, write_columns(self._vectors)
        bloom = self._bloom if self._builder is None else self._builder.finish()
        if bloom is not None:
            yield key_range.BLOOM_KEY, bloom.to_text()
            if bloom.type_code == DYNAMIC:
                yield key_range.BLOOM_TYPE_KEY, DYNAMIC
        if self._range.least is not None and self._range.greatest is not None:
            yield key_range.MIN_KEY, self._range.least
            yield key_range.MAX_KEY, self._range.greatest


class _GuardedSink:
    """Passes bytes to the sink while it is open, and drops all others.

    Arrow's Parquet writer writes a footer even if it is destroyed without ``close``, for example after an error.
    """

    closed = False

    def __init__(self, sink: IO[bytes]) -> None:
        self._sink = sink
        self._is_open = False
        self.size = 0

    @contextmanager
    def open(self) -> Iterator[None]:
        """Pass bytes to the sink inside a ``with`` statement."""
        self._is_open = True
        try:
            yield
        finally:
            self._is_open = False

    def write(self, data: bytes) -> int:
        if self._is_open:
            self._sink.write(data)
            self.size += len(data)
        return len(data)

    def flush(self) -> None:
        """Do nothing: no bytes are buffered here."""

    def close(self) -> None:
        """Do nothing: the sink belongs to the caller."""


def _list_repeating_columns(sample: pa.Table) -> Iterator[str]:
    """Yield the paths of the leaf columns for which a dictionary may save bytes."""
    for name, column in zip(sample.schema.names, sample.columns, strict=True):
        if pa.types.is_nested(column.type):
            yield from _list_leaves(name, column.type)
        elif not pa.types.is_boolean(column.type) and pc.count_distinct(column).as_py() <= _REPEATING * len(column):
            yield name


def _list_leaves(path: str, t: pa.DataType) -> Iterator[str]:
    if pa.types.is_list(t):
        yield from _list_leaves(f"{path}.list.element", t.value_type)
    elif pa.types.is_map(t):
        yield f"{path}.key_value.key"
        yield from _list_leaves(f"{path}.key_value.value", t.item_type)
    elif pa.types.is_struct(t):
        for child in t:
            yield from _list_leaves(f"{path}.{child.name}", child.type)
    else:
        yield path


def make_facts_file(facts: Mapping[str, str]) -> bytes:
    """Return the bytes of a file with these keys and values in its footer."""
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, pa.schema({"dummyint": pa.int64()}), store_schema=False) as writer:
        writer.add_key_value_metadata(dict(facts))
    return bytes(sink.getvalue())
