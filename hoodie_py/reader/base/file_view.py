"""Views of an open base file of any format: the same interface, with something shown otherwise than it is stored.

``FileView`` shows a file unchanged, as a base class; ``CommitsView`` shows only the rows of some commits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from hoodie_py.arrow.arrays import filter_rows
from hoodie_py.formats.names import COMMIT_TIME_FIELD
from hoodie_py.reader.base.file_formats import OpenBaseFile
from hoodie_py.reader.instant_range import InstantRange

if TYPE_CHECKING:
    import pyarrow.parquet as pq


class FileView:
    """One open base file, unchanged; attributes and methods are those of ``OpenBaseFile``."""

    def __init__(self, inner: OpenBaseFile) -> None:
        self._inner = inner
        self.path = inner.path
        self.columns = inner.columns

    @property
    def retyped(self) -> frozenset[str]:
        """Columns of a wrong type, whose statistics in ``footer`` cannot be used."""
        return self._inner.retyped

    @property
    def num_rows(self) -> int:
        """The number of rows in the file, without reading them."""
        return self._inner.num_rows

    @property
    def schema(self) -> pa.Schema:
        """The stored columns, with the types that batches have."""
        return self._inner.schema

    @property
    def group_rows(self) -> Sequence[int]:
        """The number of rows of each part of the file that can be read alone."""
        return self._inner.group_rows

    @property
    def footer(self) -> pq.FileMetaData | None:
        """Sizes and statistics of the columns in each group, under the names in the file."""
        return self._inner.footer

    @property
    def key_facts(self) -> Mapping[bytes, bytes]:
        """The file's facts of its record keys."""
        return self._inner.key_facts


class CommitsView(FileView):
    """One open base file, with the rows of some commits only."""

    def __init__(self, inner: OpenBaseFile, instants: InstantRange) -> None:
        super().__init__(inner)
        self._instants = instants

    def read_batches(
        self,
        schema: pa.Schema,
        batch_rows: int,
        row_groups: Sequence[int] | None = None,
        *,
        coded: Collection[str] = (),
        column_threads: bool = False,
    ) -> Iterator[pa.RecordBatch]:
        """Read the commits' rows in file order; arguments and errors as for ``OpenBaseFile``."""
        at = schema.get_field_index(COMMIT_TIME_FIELD)
        read = schema if at >= 0 else schema.append(pa.field(COMMIT_TIME_FIELD, pa.string()))
        place = read.get_field_index(COMMIT_TIME_FIELD)
        for batch in self._inner.read_batches(read, batch_rows, row_groups, column_threads=column_threads):
            kept = filter_rows(batch, self._instants.make_mask(batch.column(place)))
            if kept.num_rows:
                yield kept if at >= 0 else kept.select(schema.names)
