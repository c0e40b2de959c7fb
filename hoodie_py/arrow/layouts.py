"""Convert Arrow columns to one plain layout for each kind of value; callers pass many.

Text, bytes and lists have 32-bit offsets, dictionaries and run-end encodings are expanded, extension types become their
storage (``arrow.bool8`` becomes bool), and decimals have at least 128 bits, at every depth. Lists of a fixed size stay:
they are vectors. Values, nulls and field metadata do not change. Every function that takes rows, values or types from a
caller converts them first, so that the code behind it meets only these layouts.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import is_valid, make_bitmap
from hoodie_py.arrow.rebuild import rebuild_map

_BOOL8 = "arrow.bool8"
_MOST_ELEMENTS = (1 << 31) - 1


def make_plain_type(type_: pa.DataType) -> pa.DataType:
    """Return the plain type of the same values; a plain type is returned as it is."""
    if isinstance(type_, pa.BaseExtensionType):
        return pa.bool_() if type_.extension_name == _BOOL8 else make_plain_type(type_.storage_type)
    if pa.types.is_dictionary(type_) or pa.types.is_run_end_encoded(type_):
        return make_plain_type(type_.value_type)
    if pa.types.is_large_string(type_) or pa.types.is_string_view(type_):
        return pa.string()
    if pa.types.is_large_binary(type_) or pa.types.is_binary_view(type_):
        return pa.binary()
    if pa.types.is_decimal(type_) and type_.bit_width < 128:
        return pa.decimal128(type_.precision, type_.scale)
    if not pa.types.is_nested(type_):
        return type_
    made = _make_plain_nested(type_)
    return type_ if made.equals(type_) else made


def _make_plain_nested(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(type_):
        return pa.struct([make_plain_field(field) for field in type_])
    if pa.types.is_map(type_):
        return pa.map_(make_plain_field(type_.key_field), make_plain_field(type_.item_field), type_.keys_sorted)
    if pa.types.is_fixed_size_list(type_):
        return pa.list_(make_plain_field(type_.value_field), type_.list_size)
    if hasattr(type_, "value_field"):
        return pa.list_(make_plain_field(type_.value_field))
    return type_  # a union; tables have none


def make_plain_field(field: pa.Field) -> pa.Field:
    """Return a field with the plain type."""
    type_ = make_plain_type(field.type)
    return field if type_ is field.type else field.with_type(type_)


def make_plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return a schema with plain types; the same object if all are plain already."""
    fields = [make_plain_field(field) for field in schema]
    same = all(new is old or new.equals(old) for new, old in zip(fields, schema, strict=True))
    return schema if same else pa.schema(fields, schema.metadata)


def make_plain_reader(reader: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """Return a stream of the same rows in plain layouts; each batch is converted when it is read."""
    schema = make_plain_schema(reader.schema)
    if schema is reader.schema:
        return reader
    return pa.RecordBatchReader.from_batches(
        schema, (plain for batch in reader for plain in _make_plain_batches(batch, schema))
    )


def _make_plain_batches(batch: pa.RecordBatch, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a batch, split in halves as long as the bytes of a column do not fit into 32-bit offsets."""
    try:
        arrays = [make_plain_array(column) for column in batch.columns]
    except pa.ArrowInvalid:
        if batch.num_rows < 2:
            raise
        half = batch.num_rows // 2
        for part in (batch.slice(0, half), batch.slice(half)):
            yield from _make_plain_batches(part, schema)
        return
    yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def make_plain_array(array: pa.Array) -> pa.Array:
    """Return the same values in the plain layout; a plain array is returned as it is.

    Raises:
        ArrowInvalid: the bytes do not fit into 32-bit offsets.
    """
    source, target = array.type, make_plain_type(array.type)
    if target is source or target.equals(source):
        return array
    if isinstance(source, pa.BaseExtensionType):
        stored = make_plain_array(array.storage)
        return _find_nonzero(stored) if pa.types.is_boolean(target) else stored
    if pa.types.is_dictionary(source):
        return make_plain_array(array.dictionary).take(array.indices)
    if pa.types.is_run_end_encoded(source):
        return _spell_runs_out(array)
    if pa.types.is_struct(source):
        return _convert_struct(array, target)
    if pa.types.is_map(source):
        return rebuild_map(array, target, _make_plain_inner, _make_plain_inner)
    if pa.types.is_fixed_size_list(source):
        # The values are whole, so the array's offset stays right for slices.
        buffers, values = array.buffers()[:1], make_plain_array(array.values)
        return pa.Array.from_buffers(target, len(array), buffers, array.null_count, array.offset, [values])
    if pa.types.is_nested(source):
        return _convert_list(array, target)
    return array.cast(target)


def _make_plain_inner(array: pa.Array, _: pa.DataType) -> pa.Array:
    return make_plain_array(array)


def make_plain_scalar(scalar: pa.Scalar) -> pa.Scalar:
    """Return the same value with the plain type."""
    target = make_plain_type(scalar.type)
    return scalar if target.equals(scalar.type) else make_plain_array(pa.array([scalar.as_py()], scalar.type))[0]


def _find_nonzero(numbers: pa.Array) -> pa.BooleanArray:
    import pyarrow.compute as pc

    return pc.not_equal(numbers, pa.scalar(0, numbers.type))


def _spell_runs_out(array: pa.Array) -> pa.Array:
    """Return the value of each row of a run-end encoded array."""
    # Arrow's own decoder supports few types of values.
    ends = array.run_ends.to_numpy(zero_copy_only=False)
    rows = np.arange(array.offset, array.offset + len(array))
    return make_plain_array(array.values).take(pa.array(np.searchsorted(ends, rows, side="right")))


def _convert_struct(array: pa.StructArray, target: pa.StructType) -> pa.Array:
    children = [make_plain_array(array.field(at)) for at in range(target.num_fields)]
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(children, fields=list(target), mask=mask)


def _convert_list(array: pa.Array, target: pa.ListType) -> pa.Array:
    """Return the items of lists or list views laid out one after another."""
    import pyarrow.compute as pc

    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    if offsets[-1] > _MOST_ELEMENTS:
        raise pa.ArrowInvalid("lists of more elements than 32-bit offsets reach")
    valid = make_bitmap(is_valid(array)) if array.null_count else None
    return pa.Array.from_buffers(
        target,
        len(array),
        [valid, pa.py_buffer(offsets.astype(np.int32))],
        children=[make_plain_array(array.flatten())],
    )
