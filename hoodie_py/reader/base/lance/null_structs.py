"""Null structs of Lance files of format 2.0, which cannot store a null struct: its fields are null instead.

Where the table requires a field of a struct and the file has null there, the struct itself was null. Elsewhere the two
cases cannot be distinguished, and the struct keeps its null fields, as in Java. (Java 1.2.0 fails on a null BLOB.)
"""

from __future__ import annotations

import pyarrow as pa

from hoodie_py.arrow.arrays import call
from hoodie_py.arrow.fields import is_any_list


def restore_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the rows of a file, with null structs wherever a required field of ``schema`` is null."""
    for at, name in enumerate(batch.schema.names):
        wanted = schema.field(name).type
        if _has_required(wanted):
            field = batch.schema.field(at).with_nullable(True)
            batch = batch.set_column(at, field, restore_array(batch.column(at), wanted))
    return batch


def restore_array(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Return a column of the same type with null structs; unchanged if ``wanted`` is of another kind."""
    if pa.types.is_struct(array.type) and pa.types.is_struct(wanted):
        return _restore_struct(array, wanted)
    if pa.types.is_list(array.type) and is_any_list(wanted) and _has_required(wanted):
        return pa.Array.from_buffers(
            array.type,
            len(array),
            array.buffers()[:2],
            null_count=array.null_count,
            offset=array.offset,
            children=[restore_array(array.values, wanted.value_type)],
        )
    return array


def _restore_struct(array: pa.Array, wanted: pa.StructType) -> pa.Array:
    missing = array.is_null()
    children = []
    for at, field in enumerate(array.type):
        place = wanted.get_field_index(field.name)
        child = array.field(at)
        if place >= 0:
            child = restore_array(child, wanted.field(place).type)
            if not wanted.field(place).nullable:
                missing = call("or", missing, child.is_null())
        children.append(child)
    if not children:
        return array
    return pa.StructArray.from_arrays(children, fields=list(array.type), mask=missing)


def _has_required(type_: pa.DataType) -> bool:
    if pa.types.is_struct(type_):
        return any(not field.nullable or _has_required(field.type) for field in type_)
    return is_any_list(type_) and _has_required(type_.value_type)
