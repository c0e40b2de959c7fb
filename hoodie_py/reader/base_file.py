"""The base side: a Parquet file read in batches, only the columns and row groups that a read needs.

Local files are read a buffer a column at a time, not mapped: pages of a map count as the process's memory, and row
groups are as large as files.  Elsewhere the file's tail (footer and, in Java's files, a bloom filter of some 400 KB)
comes in one request and the column chunks of each row group in a few coalesced ones, while the group before is decoded.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from itertools import zip_longest
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hoodie_py.errors import CorruptFileError, HoodieError
from hoodie_py.files import TableFiles
from hoodie_py.formats.parquet import check_footer, column_chunk_ranges
from hoodie_py.reader.conform import Conformer, conform_batch, constant, without_columns
from hoodie_py.reader.file_slice import BaseFile
from hoodie_py.reader.read_info import DEFAULT_BATCH_ROWS

_TAIL = 1 << 20
_MOST_AHEAD = 64 << 20
_BUFFER = 64 << 10  # of each column
_BITS = 8
_META_COLUMNS = 6  # they come first
_MAY_REPEAT = ("_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_file_name")
_CODED = pa.dictionary(pa.int32(), pa.string())


class BaseFileReader:
    """One open base file.

    Args:
        files: where the file is.
        base_file: which file.

    Raises:
        CorruptFileError: the file is no Parquet file or its footer is broken.
    """

    def __init__(self, files: TableFiles, base_file: BaseFile) -> None:
        self.path = base_file.path
        self._ranged: Any = None
        self._buffer = 0
        try:
            source = self._source(files, base_file)
            metadata = pq.read_metadata(source)
            self._repeated = frozenset(_repeated(metadata))
            coded = sorted(self._repeated)
            self._parquet = pq.ParquetFile(
                source, metadata=metadata, read_dictionary=coded, buffer_size=self._buffer, pre_buffer=False
            )
            check_footer(self._parquet, DEFAULT_BATCH_ROWS)
        except HoodieError as error:
            raise error.located(path=self.path) from None
        except (pa.ArrowException, OSError, ValueError) as error:
            raise self._corrupt(error) from error
        self.columns = frozenset(self._parquet.schema_arrow.names)

    def _source(self, files: TableFiles, base_file: BaseFile) -> pa.NativeFile:
        local = files.local_path(base_file.path)
        if local is not None:
            self._buffer = _BUFFER
            return pa.OSFile(local)
        self._ranged = files.open_file(base_file.path, base_file.size or None)
        size = self._ranged.size
        self._ranged.prefetch([(max(0, size - _TAIL), size)])
        return pa.PythonFile(self._ranged, mode="r")

    @property
    def num_rows(self) -> int:
        """Rows in the file, from the footer."""
        return int(self._parquet.metadata.num_rows)

    @property
    def schema(self) -> pa.Schema:
        """The columns as they are stored."""
        read = self._parquet.schema_arrow
        fields = [field.with_type(field.type.value_type) if field.name in self._repeated else field for field in read]
        return pa.schema(fields)

    @property
    def metadata(self) -> pq.FileMetaData:
        """The footer."""
        return self._parquet.metadata

    def batches(
        self, schema: pa.Schema, batch_rows: int, row_groups: Sequence[int] | None = None, *, coded: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """Read rows in file order, brought to the schema; columns that the file lacks are null.

        Args:
            schema: the columns wanted, in order.
            batch_rows: most rows in a batch.
            row_groups: which row groups; None for all.
            coded: whether meta columns that repeat a value over and over may stay dictionaries of strings; ``Decoder``
                makes strings of them.

        Raises:
            CorruptFileError: pages that cannot be decoded.
            UnsupportedFeatureError: a column stored in a type that does not widen to the wanted one.
        """
        names = [name for name in schema.names if name in self.columns]
        wanted = range(self._parquet.metadata.num_row_groups) if row_groups is None else row_groups
        conform = Conformer(self._target(schema) if coded else schema)
        if not names:
            for group in wanted:
                yield from _without_columns(schema, self._parquet.metadata.row_group(group).num_rows, batch_rows)
            return
        with closing(self._fetched(wanted, names)) as groups:
            for group in groups:
                yield from self._group(group, names, conform, batch_rows)

    def _fetched(self, groups: Sequence[int], names: list[str]) -> Generator[int, None, None]:
        """Yield row groups once their column chunks are there; the next one's are fetched meanwhile unless they are
        large.
        """
        if self._ranged is None:
            yield from groups
            return
        with ThreadPoolExecutor(1, thread_name_prefix="hoodie-ahead") as pool:
            coming: Future[list[tuple[int, bytes]]] | None = None
            for group, following in zip_longest(groups, groups[1:]):
                if coming is None:
                    self._ranged.prefetch(column_chunk_ranges(self._parquet.metadata, group, names))
                else:
                    self._ranged.keep(coming.result())
                coming = None if following is None else self._ahead(pool, following, names)
                yield group
                self._ranged.drop()

    def _ahead(self, pool: ThreadPoolExecutor, group: int, names: list[str]) -> Future[list[tuple[int, bytes]]] | None:
        ranges = column_chunk_ranges(self._parquet.metadata, group, names)
        if sum(stop - start for start, stop in ranges) > _MOST_AHEAD:
            return None
        return pool.submit(self._ranged.fetch, ranges)

    def column(self, names: Collection[str], schema: pa.Schema, batch_rows: int) -> list[pa.RecordBatch]:
        """Read some columns of the whole file."""
        return list(self.batches(pa.schema([schema.field(name) for name in names]), batch_rows))

    def _target(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema with dictionaries where the file repeats values."""
        fields = [
            field.with_type(_CODED) if field.name in self._repeated and field.type == pa.string() else field
            for field in schema
        ]
        return pa.schema(fields)

    def _group(self, group: int, names: list[str], conform: Conformer, batch_rows: int) -> Iterator[pa.RecordBatch]:
        try:
            batches = self._parquet.iter_batches(batch_rows, row_groups=[group], columns=names, use_threads=False)
            for batch in batches:
                if batch.num_rows:
                    yield conform(batch)
        except HoodieError as error:
            error.located(path=self.path)
            raise
        except (pa.ArrowException, OSError, ValueError) as error:
            raise self._corrupt(error) from error

    def _corrupt(self, error: Exception) -> CorruptFileError:
        return CorruptFileError(
            f"The base file cannot be read as Parquet: {error}",
            path=self.path,
            hint="Restore the file, or roll back the commit that wrote it.",
        )


class Decoder:
    """Writes out columns that repeat a value: dictionaries of strings, which ``BaseFileReader.batches`` may give, and
    constants.

    A value that all rows repeat is written out once, for as many rows as a batch ever had, and sliced.
    """

    def __init__(self) -> None:
        self._values: dict[tuple[str, str], pa.Array] = {}
        self._constants: dict[str, pa.Array] = {}

    def constant(self, field: pa.Field, value: Any, length: int) -> pa.Array:
        """Return a column of one value, always the same for a field; null for None."""
        written = self._constants.get(field.name)
        if written is None or len(written) < length:
            written = self._constants[field.name] = constant(value, field.type, length)
        return written.slice(0, length)

    def strings(self, name: str, array: pa.DictionaryArray) -> pa.Array:
        """Return the strings of a column.

        Args:
            name: the column, which the repeated values are kept by.
            array: its values.
        """
        if len(array.dictionary) != 1 or array.null_count or array.dictionary.null_count:
            return array.dictionary_decode()
        value = array.dictionary[0]
        written = self._values.get((name, value.as_py()))
        if written is None or len(written) < len(array):
            self._values = {key: kept for key, kept in self._values.items() if key[0] != name}
            written = self._values[name, value.as_py()] = pa.repeat(value, len(array))
        return written.slice(0, len(array))


def _repeated(metadata: pq.FileMetaData) -> Iterator[str]:
    """Yield the meta columns that take less than a bit a row, so that they hardly ever change their value."""
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    for at in range(min(_META_COLUMNS, metadata.num_columns) if groups else 0):
        column = groups[0].column(at)  # the schema would say so, too, but see check_footer
        if column.path_in_schema in _MAY_REPEAT and column.physical_type == "BYTE_ARRAY":
            size = sum(group.column(at).total_uncompressed_size for group in groups)
            if size * _BITS < metadata.num_rows:
                yield column.path_in_schema


def _without_columns(schema: pa.Schema, rows: int, batch_rows: int) -> Iterator[pa.RecordBatch]:
    """Rows of which no wanted column is stored: nulls, as many as the footer says."""
    for start in range(0, rows, batch_rows):
        count = min(batch_rows, rows - start)
        yield conform_batch(without_columns(count), schema)
