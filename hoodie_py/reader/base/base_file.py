"""BaseFileReader: reads a Parquet base file in batches, only the columns and row groups that a read needs.

A local file is read through one buffer per column. A remote file is read in few requests: one for its tail, then a few
for the column chunks of each row group while the previous group is decoded.

String columns that repeat few values are read as dictionary codes, decoded only for the rows that are returned. Parquet
stores such columns as codes. Decoding every value is most of the cost of reading them, and the log replaces
some of the rows later. Filtering the codes first and decoding the rest takes a third of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import cached_property
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import from_numpy, make_batch_without_columns, repeat_value, take
from hoodie_py.errors import CorruptFileError, FileMissingError, HoodieError
from hoodie_py.files import TableFiles
from hoodie_py.formats.avro.arrow_types import find_mistyped_times, retype_times
from hoodie_py.formats.parquet.decoder import check_footer, find_column_chunk_ranges
from hoodie_py.formats.parquet.parquet_file import ParquetFile
from hoodie_py.reader.file_slice import BaseFile
from hoodie_py.reader.read_info import DEFAULT_BATCH_ROWS
from hoodie_py.reader.schema_evolution.by_name import Conformer, conform_batch
from hoodie_py.runtime.telemetry import carry_span

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

    import pyarrow.parquet as pq


_NESTED = (pa.ListArray, pa.StructArray, pa.MapArray)
_LENGTH_BYTES = 4  # Parquet's plain encoding stores a length before each string
_SPARE = 16  # a repeated value is written for a sixteenth more rows than needed


def find_coded_columns(metadata: pq.FileMetaData) -> list[int]:
    """Return the leaf columns to read as codes: strings that take fewer bytes than their lengths alone would.

    Only the first and the last row group are checked. Columns that other row groups store otherwise are read right, but
    more slowly.
    """
    last = metadata.num_row_groups - 1
    if last < 0:
        return []
    found = list(_list_coded(metadata, 0, range(metadata.num_columns)))
    return list(_list_coded(metadata, last, found)) if last else found


def _list_coded(metadata: pq.FileMetaData, group: int, columns: Iterable[int]) -> Iterator[int]:
    chunks = metadata.row_group(group)
    for at in columns:
        chunk = chunks.column(at)  # the type comes from the chunk, not from the schema: see check_footer
        if (
            chunk.has_dictionary_page
            and chunk.total_uncompressed_size < _LENGTH_BYTES * chunk.num_values
            and chunk.physical_type == "BYTE_ARRAY"
        ):
            yield at


def to_plain_type(type_: pa.DataType) -> pa.DataType:
    """Replace dictionary types by the types of their values, at every depth."""
    if pa.types.is_dictionary(type_):
        return type_.value_type
    if pa.types.is_map(type_):
        return pa.map_(_to_plain_field(type_.key_field), _to_plain_field(type_.item_field), type_.keys_sorted)
    if pa.types.is_list(type_):
        return pa.list_(_to_plain_field(type_.value_field))
    if pa.types.is_struct(type_):
        return pa.struct([_to_plain_field(field) for field in type_])
    return type_


def _to_plain_field(field: pa.Field) -> pa.Field:
    return field.with_type(to_plain_type(field.type))


def to_plain_array(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """Decode the dictionaries in an array, at every depth; ``type_`` is its ``to_plain_type``."""
    if isinstance(array, pa.DictionaryArray):
        return take(array.dictionary, array.indices)
    if not isinstance(array, _NESTED) or array.type.equals(type_):
        return array
    if array.offset:
        # Buffers and children of a slice begin before it; a copy begins at 0.
        array = take(array, from_numpy(np.arange(len(array))))
    if pa.types.is_map(type_):
        entry = type_.field(0).type
        pairs = [to_plain_array(array.keys, type_.key_type), to_plain_array(array.items, type_.item_type)]
        children = [pa.StructArray.from_arrays(pairs, fields=list(entry))]
    elif pa.types.is_list(type_):
        children = [to_plain_array(array.values, type_.value_type)]
    else:
        children = [to_plain_array(array.field(at), field.type) for at, field in enumerate(type_)]
    valid = array.buffers()[: 1 if pa.types.is_struct(type_) else 2]
    return pa.Array.from_buffers(type_, len(array), valid, null_count=array.null_count, children=children)


def _add_spare(length: int) -> int:
    """Return slightly more rows than needed: batches differ in length where the log dropped rows."""
    return length + length // _SPARE


class Decoder:
    """Decodes the dictionaries of ``BaseFileReader.read_batches``, and makes columns of one value.

    A value that all rows repeat is written once, for slightly more rows than any batch so far, and then sliced.
    """

    def __init__(self) -> None:
        self._values: dict[tuple[str, str], pa.Array] = {}
        self._constants: dict[str, pa.Array] = {}

    def repeat_value(self, field: pa.Field, value: Any, length: int) -> pa.Array:
        """Return a column of one value, nulls for None. A field must have the same value in every call."""
        written = self._constants.get(field.name)
        if written is None or len(written) < length:
            written = self._constants[field.name] = repeat_value(value, field.type, _add_spare(length))
        return written.slice(0, length)

    def decode(self, field: pa.Field, array: pa.Array) -> pa.Array:
        """Return a column in its own type; repeated values are kept by the field's name."""
        if not isinstance(array, pa.DictionaryArray):
            return to_plain_array(array, field.type) if isinstance(array, _NESTED) else array
        if len(array.dictionary) != 1 or array.null_count or array.dictionary.null_count:
            return take(array.dictionary, array.indices)
        value = array.dictionary[0]
        written = self._values.get((field.name, value.as_py()))
        if written is None or len(written) < len(array):
            self._values = {key: kept for key, kept in self._values.items() if key[0] != field.name}
            written = self._values[field.name, value.as_py()] = pa.repeat(value, _add_spare(len(array)))
        return written.slice(0, len(array))


# Bytes at the end of a remote file that the first request fetches: the footer and, in Java's files, a bloom filter of
# some 400 KB.
_TAIL = 1 << 20
_MOST_AHEAD = 64 << 20  # a row group of more bytes is not fetched ahead
_TIME_UNIT = "us"  # of INT96: nanoseconds cannot hold far times
_BUFFER = 16 << 10  # bytes per column
_MANY_BYTES = 1 << 20  # a row group of more bytes is read some columns at a time, for fewer pages in memory

_Conform = Callable[[pa.RecordBatch], pa.RecordBatch]


class BaseFileReader:
    """One open base file; ``times`` are columns whose declared type may differ (``list_declared_times``).

    Raises:
        CorruptFileError: the file is no Parquet file, or its footer is broken.
        FileMissingError: the file is missing.
    """

    def __init__(self, files: TableFiles, base_file: BaseFile, times: pa.Schema | None = None) -> None:
        self.path = base_file.path
        self._ranged: Any = None
        self._buffer = 0
        try:
            self._source = self._open_source(files, base_file)
            self._plain = ParquetFile(self._source, buffer_size=self._buffer, int96_unit=_TIME_UNIT)
            check_footer(self._plain, DEFAULT_BATCH_ROWS)
        except HoodieError as error:
            raise error.locate(path=self.path) from None
        except FileNotFoundError as error:
            raise FileMissingError("There is no such file.", operation="read", path=self.path) from error
        except (pa.ArrowException, OSError, ValueError) as error:
            raise self._make_corrupt_error(error) from error
        self.columns = frozenset(self._plain.schema_arrow.names)
        self._types = find_mistyped_times(self._plain.schema_arrow, times)
        self.retyped = frozenset(self._types)  # columns of a wrong type, whose statistics cannot be used

    @cached_property
    def _parquet(self) -> ParquetFile:
        """The file opened for reading rows; opened late, as many files are opened for their footers alone."""
        coded = find_coded_columns(self._plain.metadata)
        if not coded:
            return self._plain
        try:
            return ParquetFile(
                self._source,
                metadata=self._plain.metadata,
                read_dictionary=coded,
                buffer_size=self._buffer,
                int96_unit=_TIME_UNIT,
            )
        except (pa.ArrowException, OSError, ValueError) as error:
            raise self._make_corrupt_error(error) from error

    def _open_source(self, files: TableFiles, base_file: BaseFile) -> pa.NativeFile:
        local = files.local_path(base_file.path)
        if local is not None:
            self._buffer = _BUFFER
            # Not a memory map: mapped pages count as the process's memory, and a row group may be a whole file.
            return pa.OSFile(local)
        self._ranged = files.open_file(base_file.path, base_file.size or None)
        size = self._ranged.size
        self._ranged.prefetch([(max(0, size - _TAIL), size)])
        return pa.PythonFile(self._ranged, mode="r")

    @property
    def num_rows(self) -> int:
        """The number of rows, from the footer."""
        return int(self._plain.metadata.num_rows)

    @property
    def schema(self) -> pa.Schema:
        """The stored columns, with the types that batches have."""
        types = self._types
        return pa.schema(
            [field.with_type(types.get(field.name) or to_plain_type(field.type)) for field in self._plain.schema_arrow]
        )

    @property
    def group_rows(self) -> Sequence[int]:
        """The number of rows of each row group."""
        return _count_group_rows(self._plain.metadata)

    @property
    def footer(self) -> pq.FileMetaData | None:
        """The footer, with sizes and statistics of the row groups."""
        return self._plain.metadata

    @property
    def key_facts(self) -> Mapping[bytes, bytes]:
        """The footer's key-value metadata; ``key_range`` has the names of facts about record keys."""
        return self._plain.metadata.metadata or {}

    def read_batches(
        self,
        schema: pa.Schema,
        batch_rows: int,
        row_groups: Sequence[int] | None = None,
        *,
        coded: Collection[str] = (),
        column_threads: bool = False,
    ) -> Iterator[pa.RecordBatch]:
        """Read rows in file order with the schema's columns; columns that the file lacks are null.

        ``coded``: columns that may come as dictionaries, to be decoded by ``Decoder``; if there are any, fields of
        batches may also stay non-null. ``column_threads``: decode the columns of a local file on Arrow's threads.

        Raises:
            CorruptFileError: pages that cannot be decoded.
            UnsupportedFeatureError: a column's stored type does not widen to the wanted type.
        """
        names = [name for name in schema.names if name in self.columns]
        wanted = range(self._plain.metadata.num_row_groups) if row_groups is None else row_groups
        if not wanted:
            return
        if not names:
            for group in wanted:
                yield from _make_batches_without_columns(
                    schema, self._plain.metadata.row_group(group).num_rows, batch_rows
                )
            return
        conform = self._make_conformer(schema, coded)
        with closing(self._fetch_row_groups(wanted, names)) as groups:
            for group in groups:
                yield from self._read_row_group(
                    group, names, conform, batch_rows, column_threads and self._ranged is None
                )

    def _fetch_row_groups(self, groups: Sequence[int], names: list[str]) -> Generator[int, None, None]:
        """Yield each row group once its column chunks are in memory.

        Meanwhile the column chunks of the next group are fetched if they are small.
        """
        if self._ranged is None:
            yield from groups
            return
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(1, thread_name_prefix="hoodie-ahead") as pool:
            coming: Future[list[tuple[int, bytes]]] | None = None
            for group, following in zip_longest(groups, groups[1:]):
                if coming is None:
                    self._ranged.prefetch(find_column_chunk_ranges(self._parquet.metadata, group, names))
                else:
                    # The group was fetched while the caller worked on the previous one.
                    self._ranged.keep(coming.result())
                coming = None if following is None else self._fetch_ahead(pool, following, names)
                yield group
                self._ranged.drop()

    def _fetch_ahead(
        self, pool: ThreadPoolExecutor, group: int, names: list[str]
    ) -> Future[list[tuple[int, bytes]]] | None:
        ranges = find_column_chunk_ranges(self._parquet.metadata, group, names)
        if sum(stop - start for start, stop in ranges) > _MOST_AHEAD:
            return None
        return pool.submit(carry_span(self._ranged.fetch), ranges)

    def _make_conformer(self, schema: pa.Schema, coded: Collection[str]) -> _Conform:
        """Return a function that brings a batch to the schema, except for columns that may stay dictionaries."""
        stored = self._parquet.schema_arrow
        fields, plain = [], []
        for field in schema:
            at = stored.get_field_index(field.name)
            type_ = field.type if at < 0 else stored.field(at).type
            if type_.equals(field.type) or not to_plain_type(type_).equals(field.type):
                fields.append(field)
                continue
            fields.append(field.with_type(type_))
            if field.name not in coded:
                plain.append(len(fields) - 1)
        conform = Conformer(pa.schema(fields), loose=bool(coded))
        types = {name: type_ for name, type_ in self._types.items() if name in schema.names}
        if not plain and not types:
            return conform
        return lambda batch: _decode_columns(conform(retype_times(batch, types)), plain, schema)

    def _read_row_group(
        self, group: int, names: list[str], conform: _Conform, batch_rows: int, threads: bool
    ) -> Iterator[pa.RecordBatch]:
        facts = self._parquet.metadata.row_group(group)
        try:
            if facts.num_rows <= batch_rows and facts.total_byte_size >= _MANY_BYTES and not threads:
                whole = [self._parquet.read_row_group(group, names)]
                if whole[0] is not None:
                    yield conform(whole.pop())  # a variable would hold all its rows while the caller uses some of them
                    return
            batches = self._parquet.iter_batches(batch_rows, row_groups=[group], columns=names, use_threads=threads)
            yield from map(conform, filter(_has_rows, batches))  # a loop would hold a batch while the next one is read
        except HoodieError as error:
            error.locate(path=self.path)
            raise
        except (pa.ArrowException, OSError, ValueError) as error:
            raise self._make_corrupt_error(error) from error

    def _make_corrupt_error(self, error: Exception) -> CorruptFileError:
        return CorruptFileError(
            f"The base file cannot be read as Parquet: {error}",
            path=self.path,
            hint="Restore the file, or roll back the commit that wrote it.",
        )


def _count_group_rows(footer: pq.FileMetaData) -> list[int]:
    return [footer.row_group(group).num_rows for group in range(footer.num_row_groups)]


def _has_rows(batch: pa.RecordBatch) -> bool:
    return bool(batch.num_rows)


def _decode_columns(batch: pa.RecordBatch, coded: Sequence[int], schema: pa.Schema) -> pa.RecordBatch:
    for at in coded:
        field = schema.field(at)
        batch = batch.set_column(at, field.with_nullable(True), to_plain_array(batch.column(at), field.type))
    return batch


def _make_batches_without_columns(schema: pa.Schema, rows: int, batch_rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the footer's number of rows, all null: no wanted column is stored."""
    for start in range(0, rows, batch_rows):
        count = min(batch_rows, rows - start)
        yield conform_batch(make_batch_without_columns(count), schema)
