"""The base side: a Parquet file read in batches, only the columns and row groups that a read needs.

Local files are memory-mapped.  Elsewhere the file's tail (footer and, in Java's files, a bloom filter of some 400 KB)
comes
in one request and the column chunks of each row group in a few coalesced ones.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hoodie_py.errors import CorruptFileError, HoodieError
from hoodie_py.files import TableFiles
from hoodie_py.formats.parquet import column_chunk_ranges
from hoodie_py.reader.conform import conform_batch, without_columns
from hoodie_py.reader.file_slice import BaseFile

_TAIL = 1 << 20
_MAX_COLUMNS = 100_000


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
        try:
            self._parquet = self._open(files, base_file)
        except HoodieError:
            raise
        except (pa.ArrowException, OSError, ValueError) as error:
            raise self._corrupt(error) from error
        if self._parquet.metadata.num_columns > _MAX_COLUMNS:
            raise CorruptFileError(f"A base file with {self._parquet.metadata.num_columns} columns.", path=self.path)
        self.columns = frozenset(self._parquet.schema_arrow.names)

    def _open(self, files: TableFiles, base_file: BaseFile) -> pq.ParquetFile:
        local = files.local_path(base_file.path)
        if local is not None:
            return pq.ParquetFile(local, memory_map=True)
        self._ranged = files.open_file(base_file.path, base_file.size or None)
        size = self._ranged.size
        self._ranged.prefetch([(max(0, size - _TAIL), size)])
        return pq.ParquetFile(pa.PythonFile(self._ranged, mode="r"))

    @property
    def num_rows(self) -> int:
        """Rows in the file, from the footer."""
        return int(self._parquet.metadata.num_rows)

    @property
    def metadata(self) -> pq.FileMetaData:
        """The footer."""
        return self._parquet.metadata

    def batches(
        self, schema: pa.Schema, batch_rows: int, row_groups: Sequence[int] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Read rows in file order, brought to the schema; columns that the file lacks are null.

        Args:
            schema: the columns wanted, in order.
            batch_rows: most rows in a batch.
            row_groups: which row groups; None for all.

        Raises:
            CorruptFileError: pages that cannot be decoded.
            UnsupportedFeatureError: a column stored in a type that does not widen to the wanted one.
        """
        names = [name for name in schema.names if name in self.columns]
        wanted = range(self._parquet.metadata.num_row_groups) if row_groups is None else row_groups
        for group in wanted:
            if not names:
                yield from _without_columns(schema, self._parquet.metadata.row_group(group).num_rows, batch_rows)
                continue
            self._prefetch(group, names)
            yield from self._group(group, names, schema, batch_rows)
            if self._ranged is not None:
                self._ranged.drop()

    def column(self, names: Collection[str], schema: pa.Schema, batch_rows: int) -> list[pa.RecordBatch]:
        """Read some columns of the whole file."""
        return list(self.batches(pa.schema([schema.field(name) for name in names]), batch_rows))

    def _group(self, group: int, names: list[str], schema: pa.Schema, batch_rows: int) -> Iterator[pa.RecordBatch]:
        try:
            batches = self._parquet.iter_batches(batch_rows, row_groups=[group], columns=names, use_threads=False)
            for batch in batches:
                if batch.num_rows:
                    yield conform_batch(batch, schema)
        except HoodieError as error:
            error.located(path=self.path)
            raise
        except (pa.ArrowException, OSError, ValueError) as error:
            raise self._corrupt(error) from error

    def _prefetch(self, group: int, names: list[str]) -> None:
        if self._ranged is not None:
            self._ranged.prefetch(column_chunk_ranges(self._parquet.metadata, group, names))

    def _corrupt(self, error: Exception) -> CorruptFileError:
        return CorruptFileError(
            f"The base file cannot be read as Parquet: {error}",
            path=self.path,
            hint="Restore the file, or roll back the commit that wrote it.",
        )


def _without_columns(schema: pa.Schema, rows: int, batch_rows: int) -> Iterator[pa.RecordBatch]:
    """Rows of which no wanted column is stored: nulls, as many as the footer says."""
    for start in range(0, rows, batch_rows):
        count = min(batch_rows, rows - start)
        yield conform_batch(without_columns(count), schema)
