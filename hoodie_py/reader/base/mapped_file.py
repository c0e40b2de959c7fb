"""MappedBaseFile: shows a base file with the columns of a read, where the table matches columns by id.

It wraps a reader of any format: it asks for the file's names and types, and returns those of the read (Hudi
``FileGroupReaderSchemaHandler.getRequiredSchemaForFileAndRenamedColumns``).

``FileView``, its base class, shows a file unchanged; ``CommitsView`` shows only the rows of some commits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from hoodie_py.arrow.arrays import filter_rows, make_batch_without_columns
from hoodie_py.errors import CorruptFileError, UnsupportedFeatureError
from hoodie_py.formats.names import COMMIT_TIME_FIELD
from hoodie_py.reader.base.file_formats import OpenBaseFile
from hoodie_py.reader.file_slice import InstantRange
from hoodie_py.reader.schema_evolution.by_name import NullColumns

if TYPE_CHECKING:
    import pyarrow.parquet as pq

    from hoodie_py.reader.schema_evolution.by_id import ColumnMapper


class FileView:
    """One open base file, unchanged, with the attributes and methods of ``OpenBaseFile``."""

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


class MappedBaseFile(FileView):
    """One open base file, with the names and types of a read.

    ``schema``: the table's columns as a read returns them.

    Raises:
        CorruptFileError: the file contradicts the history of the table's schema.
    """

    def __init__(self, inner: OpenBaseFile, mapper: ColumnMapper, schema: pa.Schema) -> None:
        super().__init__(inner)
        self._mapper = mapper
        self._table = schema
        self._nulls = NullColumns()
        self._types = {field.name: field for field in inner.schema}
        stored = {field.name: mapper.find_stored_name(field.name) for field in schema}
        for name, held in stored.items():
            if held is not None and held not in inner.columns and name in inner.columns:
                raise CorruptFileError(
                    f"By the history of the table's schema the file has {held!r}, which is {name!r} now; it has "
                    f"{name!r} alone.",
                    path=self.path,
                    column=name,
                    hint="The history in .hoodie/.schema is not that of these files; restore it.",
                )
        self._stored = {name: held for name, held in stored.items() if held is not None and held in inner.columns}
        self.columns = frozenset(self._stored)
        changed = {name for name in self.columns if not mapper.is_same(name, inner.schema)}
        self._changed = frozenset(changed)
        self._retyped = self._changed | {name for name, held in self._stored.items() if held in inner.retyped}

    @property
    def stored_names(self) -> Mapping[str, str]:
        """The name in ``footer`` of each column."""
        return self._stored

    @property
    def retyped(self) -> frozenset[str]:
        """Columns whose statistics cannot be used: their type is wrong, or differs from the read's."""
        return self._retyped

    @property
    def schema(self) -> pa.Schema:
        """The stored columns, with the types that batches have."""
        return pa.schema([self._find_field(name) for name in self._table.names if name in self._stored])

    def read_batches(
        self,
        schema: pa.Schema,
        batch_rows: int,
        row_groups: Sequence[int] | None = None,
        *,
        coded: Collection[str] = (),
        column_threads: bool = False,
    ) -> Iterator[pa.RecordBatch]:
        """Read rows in file order with the schema's columns; arguments and errors as for ``OpenBaseFile``."""
        held = {self._stored[field.name]: self._find_stored_field(field) for field in schema if self._has(field.name)}
        plain = {self._stored[name] for name in coded if self._has(name) and name not in self._changed}
        batches = self._inner.read_batches(
            pa.schema(list(held.values())), batch_rows, row_groups, coded=plain, column_threads=column_threads
        )
        for batch in batches:
            yield self._map_batch(batch, schema)

    def _map_batch(self, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
        if not schema.names:
            return make_batch_without_columns(batch.num_rows)
        fields, arrays = [], []
        for field in schema:
            if not self._has(field.name):
                array = self._nulls.make(field.type, batch.num_rows)
            else:
                array = batch.column(batch.schema.get_field_index(self._stored[field.name]))
                if field.name in self._changed:
                    array = self._map_column(field.name, array)
            arrays.append(array)
            fields.append(pa.field(field.name, array.type))
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))

    def _map_column(self, name: str, array: pa.Array) -> pa.Array:
        try:
            return self._mapper.map_column(name, array)
        except (UnsupportedFeatureError, CorruptFileError) as error:
            error.locate(path=self.path)
            raise

    def _has(self, name: str) -> bool:
        return name in self._stored

    def _find_field(self, name: str) -> pa.Field:
        if name in self._changed:
            return self._table.field(name)
        return self._types[self._stored[name]].with_name(name)

    def _find_stored_field(self, field: pa.Field) -> pa.Field:
        """Return the field to ask the file for: in the file's type if the column changes, else in the wanted type."""
        held = self._stored[field.name]
        return self._types[held] if field.name in self._changed else field.with_name(held)
