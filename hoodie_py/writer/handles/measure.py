"""Measure the ranges of columns while a data file is written, for the table's column statistics.

The ranges of a base file come from its footer, except for floats: pyarrow leaves NaN out of their bounds, and Java
counts it as the greatest value, so floats are measured as they are written. The ranges of log files are collected from
the records.
"""

from __future__ import annotations

from typing import IO, Any

import pyarrow as pa

from hoodie_py.formats.avro.schema import parse_record
from hoodie_py.formats.indexes.definitions import IndexedColumns
from hoodie_py.formats.indexes.measure import RecordRanges, find_kinds, read_footer_ranges
from hoodie_py.formats.indexes.ranges import FileRanges
from hoodie_py.formats.parquet.base_writer import BaseFileWriter, WrittenFile


def start_measuring(indexed: IndexedColumns | None, avro_schema: str) -> RecordRanges | None:
    """Return a collector of the ranges of indexed columns; None if there are no indexed columns."""
    return None if indexed is None else RecordRanges(find_kinds(indexed.names, parse_record(avro_schema)))


class MeasuringWriter(BaseFileWriter):
    """Writes a base file, and measures it; arguments and errors as for BaseFileWriter.

    ``ranges`` is set once ``close`` has returned. It is None if no columns are ``indexed``, or a type cannot be.
    """

    def __init__(
        self, sink: IO[bytes], schema: pa.Schema, avro_schema: str, *, indexed: IndexedColumns | None, **settings: Any
    ) -> None:
        super().__init__(sink, schema, avro_schema, **settings)
        self.ranges: FileRanges | None = None
        self._indexed = indexed
        measured = start_measuring(indexed, avro_schema)
        self._floats = None if measured is None else measured.select_floats()

    def write(self, batch: pa.RecordBatch) -> None:
        super().write(batch)
        if self._floats is not None:
            self._floats.add(batch)

    def close(self) -> WrittenFile:
        written = super().close()
        if self._indexed is not None and self._floats is not None:
            found = read_footer_ranges(written.metadata, self._indexed.names, self._indexed.version)
            floats = {each.column: each for each in self._floats.finish()}
            self.ranges = None if found is None else found.complete(floats)
        return written
