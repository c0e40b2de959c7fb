"""An open Parquet file: the part of ``pyarrow.parquet.ParquetFile`` that a reader needs.

``pyarrow.parquet`` imports ``pyarrow.fs``, and with it the clients of S3 and other stores, and OpenSSL. That costs 6 MB
of memory and a fortieth of a second, and reading does not need it, because ``hoodie_storage`` reads the bytes. So this
module uses the underlying class ``pyarrow._parquet.ParquetReader``, which all supported versions of pyarrow have. That
module is not public; if a later pyarrow moves the class, it is imported through ``pyarrow.parquet``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

try:
    from pyarrow._parquet import ParquetReader
except ImportError:
    from pyarrow.parquet.core import ParquetReader

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_FEW_COLUMNS, _MOST_PARTS = 8, 4  # a row group is read in at most 4 parts, each of at least 8 columns


class ParquetFile:
    """A Parquet file whose footer has been read.

    Args:
        source: the file, which stays open.
        metadata: its footer, if it has been read before.
        read_dictionary: numbers of the leaf columns that are read as dictionaries.
        buffer_size: bytes of a column to read at a time; 0 for whole column chunks.
        int96_unit: unit of times stored as INT96.

    Raises:
        pyarrow.ArrowException, OSError: the file is not Parquet.
        ValueError: names of columns are not UTF-8.
    """

    def __init__(
        self,
        source: pa.NativeFile,
        *,
        metadata: pq.FileMetaData | None = None,
        read_dictionary: Sequence[int] | None = None,
        buffer_size: int = 0,
        int96_unit: str | None = None,
    ) -> None:
        self._reader = ParquetReader()
        self._reader.open(
            source,
            metadata=metadata,
            read_dictionary=read_dictionary,
            buffer_size=buffer_size,
            pre_buffer=False,
            coerce_int96_timestamp_unit=int96_unit,
        )
        self._paths: list[list[str]] = list(self._reader.column_paths)  # now, so that a damaged name fails here

    @property
    def metadata(self) -> pq.FileMetaData:
        """The footer."""
        return self._reader.metadata

    @cached_property
    def schema_arrow(self) -> pa.Schema:
        """The columns with Arrow's types."""
        return self._reader.schema_arrow

    def iter_batches(
        self,
        batch_size: int,
        *,
        columns: Collection[str],
        row_groups: Sequence[int] | None = None,
        use_threads: bool = False,
    ) -> Iterator[pa.RecordBatch]:
        """Read rows in file order.

        ``columns`` are top-level columns; other names are ignored. ``row_groups`` are numbers, None for all.

        Raises pyarrow.ArrowException, OSError if pages cannot be decoded.
        """
        groups = range(self._reader.num_row_groups) if row_groups is None else row_groups
        batches: Any = self._reader.iter_batches(batch_size, groups, self._find_leaves(columns), use_threads)
        left = sum(self.metadata.row_group(group).num_rows for group in groups)
        batch = next(batches, None)
        while batch is not None:
            left -= batch.num_rows
            is_last = left <= 0
            given = [batch]  # popped below: a generator keeps a reference to its yielded batch until the next step
            batch = next(batches, None) if is_last else None  # the last step frees the pages of the last batch
            yield given.pop()
            if not is_last:
                batch = next(batches, None)

    def read_row_group(self, group: int, columns: Collection[str]) -> pa.RecordBatch | None:
        """Read a row group as one batch, a few columns at a time, so that few pages are in memory at once.

        Columns and errors as for ``iter_batches``. Returns None if there are no rows or columns, or if Arrow splits
        them into several batches.
        """
        rows = max(self.metadata.row_group(group).num_rows, 1)
        wanted = [name for name in dict.fromkeys(path[0] for path in self._paths) if name in columns]
        at_once = max(_FEW_COLUMNS, -(-len(wanted) // _MOST_PARTS))
        parts: list[pa.RecordBatch] = []
        for first in range(0, len(wanted), at_once):
            found = list(self.iter_batches(rows, columns=wanted[first : first + at_once], row_groups=[group]))
            if len(found) != 1 or found[0].num_rows != (parts or found)[0].num_rows:
                return None
            parts += found
        if not parts:
            return None
        arrays = [column for part in parts for column in part.columns]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([field for part in parts for field in part.schema]))

    def read(self, columns: Collection[str], *, use_threads: bool = False) -> pa.Table:
        """Read all rows of some top-level columns. Arguments and errors as for ``iter_batches``."""
        return self._reader.read_all(self._find_leaves(columns), use_threads)

    def _find_leaves(self, columns: Collection[str]) -> list[int]:
        wanted = set(columns)
        return [at for at, path in enumerate(self._paths) if path[0] in wanted]
