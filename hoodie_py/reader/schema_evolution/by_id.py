"""Converts the batches of a file to the columns of a read by column ids: other names at every depth, wider types.

Types change by the rules of ``by_name``, and by those of Hudi's schema-on-read (``SchemaChangeUtils``).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial

import pyarrow as pa

from hoodie_py.arrow.arrays import make_batch_without_columns
from hoodie_py.arrow.fields import is_any_list
from hoodie_py.arrow.rebuild import rebuild_list, rebuild_map
from hoodie_py.errors import CorruptFileError, UnsupportedFeatureError
from hoodie_py.reader.schema_evolution.by_name import convert_values
from hoodie_py.reader.schema_evolution.file_mappings import ELEMENT, VALUE, FileMapping, FileMappings, Source


class ColumnMapper:
    """Maps the batches of files that share one mapping to the columns of a read.

    ``schema``: the columns of the read, with their types. Mapped batches have those of them that the file has.
    """

    def __init__(self, mapping: FileMapping, schema: pa.Schema) -> None:
        self._schema = schema
        self._sources = {field.name: mapping.get(field.name, Source(field.name)) for field in schema}

    def find_stored_name(self, name: str) -> str | None:
        """Return the name that a column of the read has in the file; None if the file cannot have it."""
        return self._sources[name].name

    def list_stored_names(self, names: Collection[str]) -> list[str]:
        """Return the names in the file of some columns of the read."""
        return [stored for name in names if (stored := self._sources[name].name) is not None]

    def rename_types(self, types: pa.Schema | None) -> pa.Schema | None:
        """Return a schema of columns of the read with the names in the file."""
        if types is None:
            return None
        fields = [_rename_field(field, self._sources[field.name]) for field in types if field.name in self._sources]
        return pa.schema([field for field in fields if field is not None])

    def is_same(self, name: str, stored: pa.Schema) -> bool:
        """Say whether a column of the read, which the file has, needs no change but its name."""
        source = self._sources[name]
        return not source.inner and stored.field(source.name).type.equals(self._schema.field(name).type)

    def map_batch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the columns of the read that the batch has, with the read's names and types.

        Raises:
            UnsupportedFeatureError: a type change that Hudi does not know.
            CorruptFileError: a value that does not fit the column's type.
        """
        fields, arrays = [], []
        for field in self._schema:
            source = self._sources[field.name]
            at = -1 if source.name is None else batch.schema.get_field_index(source.name)
            if at >= 0:
                arrays.append(self.map_column(field.name, batch.column(at)))
                fields.append(field.with_nullable(True))
        if not fields:
            return make_batch_without_columns(batch.num_rows)
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))

    def map_column(self, name: str, array: pa.Array) -> pa.Array:
        """Return a column of the read, converted from the file's; errors as for ``map_batch``."""
        field = self._schema.field(name)
        try:
            return map_array(array, field.type, self._sources[name].inner)
        except (UnsupportedFeatureError, CorruptFileError) as error:
            error.locate(column=name)
            raise


class BlockMapper:
    """Maps the rows of log blocks to the columns of a merge; blocks of one schema version share a mapping."""

    def __init__(self, mappings: FileMappings, schema: pa.Schema, times: pa.Schema | None) -> None:
        self._mappings = mappings
        self._schema = schema
        self._times = times
        self._made: dict[int, tuple[ColumnMapper, Sequence[str], pa.Schema | None]] = {}

    def find_number(self, instant: str) -> int:
        """Return the number of the mapping for a block of an instant; errors as ``FileMappings.find_number``."""
        return self._mappings.find_number(instant)

    def find(self, instant: str) -> tuple[ColumnMapper, Sequence[str], pa.Schema | None]:
        """Return for a block of an instant its mapper, the columns to decode and their declared times."""
        number = self.find_number(instant)
        made = self._made.get(number)
        if made is None:
            mapper = ColumnMapper(self._mappings.mappings[number], self._schema)
            names = mapper.list_stored_names(self._schema.names)
            made = self._made[number] = (mapper, names, mapper.rename_types(self._times))
        return made


def map_array(array: pa.Array, target: pa.DataType, inner: Mapping[str, Source]) -> pa.Array:
    """Return values with the target's type; ``inner`` has the sources of nested fields that differ.

    Raises:
        UnsupportedFeatureError: a type change that Hudi does not know.
        CorruptFileError: a value that does not fit the type.
    """
    source = array.type
    if not inner and source.equals(target):
        return array
    if pa.types.is_struct(target) and pa.types.is_struct(source):
        return _map_struct(array, target, inner)
    if is_any_list(target) and is_any_list(source):
        return rebuild_list(array, target, partial(map_array, inner=_find_inner(inner, ELEMENT)))
    if pa.types.is_map(target) and pa.types.is_map(source):
        items = partial(map_array, inner=_find_inner(inner, VALUE))
        return rebuild_map(array, target, partial(map_array, inner={}), items)
    return convert_values(array, target)


def _map_struct(array: pa.StructArray, target: pa.StructType, inner: Mapping[str, Source]) -> pa.Array:
    children = []
    for field in target:
        source = inner.get(field.name, Source(field.name))
        at = -1 if source.name is None else array.type.get_field_index(source.name)
        values = pa.nulls(len(array), field.type)
        children.append(values if at < 0 else map_array(array.field(at), field.type, source.inner))
    if not children:
        return array
    mask = array.is_null() if array.null_count else None
    fields = [field.with_nullable(True) for field in target]
    return pa.StructArray.from_arrays(children, fields=fields, mask=mask).cast(target)


def _find_inner(inner: Mapping[str, Source], key: str) -> Mapping[str, Source]:
    return inner[key].inner if key in inner else {}


def _rename_field(field: pa.Field, source: Source) -> pa.Field | None:
    """Return a field with its column's name in the file; None if the file cannot have the column."""
    return None if source.name is None else pa.field(source.name, _rename_type(field.type, source.inner))


def _rename_type(type_: pa.DataType, inner: Mapping[str, Source]) -> pa.DataType:
    if not inner:
        return type_
    if pa.types.is_struct(type_):
        fields = [_rename_field(field, inner.get(field.name, Source(field.name))) for field in type_]
        return pa.struct([field for field in fields if field is not None])
    if is_any_list(type_):
        return pa.list_(_rename_type(type_.value_type, _find_inner(inner, ELEMENT)))
    if pa.types.is_map(type_):
        return pa.map_(type_.key_type, _rename_type(type_.item_type, _find_inner(inner, VALUE)))
    return type_
