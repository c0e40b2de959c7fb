"""The Arrow schema of a base file, made from the table's Avro schema.

Batches have Spark's types (``arrow_types``). Several Avro types share one Spark type, but differ in the file, because
Java reads the file with the Avro schema. The types must agree with parquet-avro's AvroSchemaConverter and with Hudi's
HoodieRowParquetWriteSupport:

    timestamp-millis, local-timestamp-millis    milliseconds, not microseconds
    time-millis, time-micros                    times of the day
    fixed, vectors                              bytes of fixed length
    everything else                             the type of the batch; decimals become fixed bytes

At every level a field is nullable exactly if the Avro schema says so.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.rebuild import rebuild_list, rebuild_map
from hoodie_py.errors import InvalidTableError, UnsupportedFeatureError
from hoodie_py.formats.avro.arrow_types import find_wider_type, to_arrow_type
from hoodie_py.formats.avro.data_blocks import AvroSchema
from hoodie_py.formats.avro.schema import Array, AvroType, Fixed, Map, Primitive, Record, Union, is_null
from hoodie_py.formats.logical_types.vector import find_stored_type

_STORED = {
    "timestamp-millis": pa.timestamp("ms", "UTC"),
    "local-timestamp-millis": pa.timestamp("ms"),
    "time-millis": pa.time32("ms"),
    "time-micros": pa.time64("us"),
}


def make_stored_schema(schema: AvroSchema) -> pa.Schema:
    """Return the columns of a base file, in the order of the Avro schema.

    Raises UnsupportedFeatureError if Hudi's Parquet files cannot store the type of a column.
    """
    return pa.schema([_make_field(field.name, field.type) for field in schema.record.fields])


def _make_field(name: str, node: AvroType) -> pa.Field:
    return pa.field(
        name, _find_stored_type(name, node), nullable=is_null(node) or (isinstance(node, Union) and node.nullable)
    )


def _find_stored_type(name: str, node: AvroType) -> pa.DataType:
    match node:
        case Primitive(logical=logical) if logical in _STORED:
            return _STORED[logical]
        case Fixed(size=size):
            return pa.binary(size)
        case Array():
            return pa.list_(_make_field("element", node.items))
        case Map():
            return pa.map_(pa.string(), _make_field("value", node.values))
        case Record() if node.fields:
            return pa.struct([_make_field(field.name, field.type) for field in node.fields])
        case Record():
            raise UnsupportedFeatureError("Structs without fields cannot be written.", column=name)
        case Union() if len(node.members) == 1:
            return _find_stored_type(name, node.members[0])
        case Union() if not find_wider_type(node.members):
            raise UnsupportedFeatureError("Unions of several types cannot be written.", column=name)
    if is_null(node):
        raise UnsupportedFeatureError("Columns of type null cannot be written.", column=name)
    return to_arrow_type(node)


def convert_to_stored(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Convert a batch with Spark's types to the columns of a file, which are matched by name.

    Raises InvalidTableError if the batch has other columns, a null in a required column, or a value that the stored
    type cannot hold; ``where`` names the column.
    """
    if batch.schema.equals(schema) and not any(_has_required_value(field) for field in schema):
        return batch
    if sorted(batch.schema.names) != sorted(schema.names):
        different = sorted(set(batch.schema.names) ^ set(schema.names)) or "a column that comes twice"
        raise InvalidTableError(f"The rows and the table's schema differ in columns: {different}.")
    arrays = [_convert_column(batch.column(field.name), field) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _has_required_value(field: pa.Field) -> bool:
    """Whether the column or a field inside it is required; keys of maps, which always are, do not count."""
    children: list[pa.Field] = []
    if pa.types.is_list(field.type):
        children = [field.type.value_field]
    elif pa.types.is_map(field.type):
        children = [field.type.item_field]
    elif pa.types.is_struct(field.type):
        children = list(field.type)
    return not field.nullable or any(_has_required_value(child) for child in children)


def _convert_column(array: pa.Array, field: pa.Field) -> pa.Array:
    try:
        if not field.nullable and array.null_count:
            raise InvalidTableError("A column that the table's schema requires has a null.")
        return _convert_array(array, field)
    except InvalidTableError as error:
        raise error.locate(column=field.name) from None
    except (pa.ArrowException, TypeError) as error:
        message = f"Values of type {array.type} cannot be stored as {field.type}."
        raise InvalidTableError(message, column=field.name) from error


def _convert_array(array: pa.Array, field: pa.Field) -> pa.Array:
    """Convert an array to the field's type, including nullability of nested fields; values that fit are not copied."""
    target = field.type
    if array.type.equals(target) and not _has_required_value(field.with_nullable(True)):
        return array
    # The new arrays share the buffers of offsets and validity; only their values are converted. ``flatten`` drops the
    # values of null rows, which may be anything.
    if pa.types.is_list(target) and pa.types.is_list(array.type):
        _check_required(array.flatten(), target.value_field)
        return rebuild_list(array, target, lambda values, _: _convert_required(values, target.value_field))
    if pa.types.is_map(target) and pa.types.is_map(array.type):
        start, stop = array.offsets[0].as_py(), array.offsets[-1].as_py()
        _check_required(array.items[start:stop], target.item_field)
        return rebuild_map(
            array, target,
            lambda keys, _: _convert_array(keys, target.key_field),
            lambda items, _: _convert_required(items, target.item_field),
        )  # fmt: skip
    if pa.types.is_struct(target) and pa.types.is_struct(array.type):
        return _convert_struct(array, target)
    if pa.types.is_fixed_size_binary(target) and pa.types.is_list(array.type):
        return _convert_vectors(array, target)
    return array.cast(target)


def _convert_vectors(array: pa.Array, target: pa.FixedSizeBinaryType) -> pa.Array:
    vector = find_stored_type(array.type, target.byte_width)
    if vector is None:
        raise TypeError(f"{array.type} is no vector of {target.byte_width} bytes")
    return vector.to_bytes(array)


def _convert_struct(array: pa.StructArray, target: pa.StructType) -> pa.Array:
    if [field.name for field in array.type] != [field.name for field in target]:
        raise TypeError(f"{array.type} does not have the fields of {target}")
    for i, field in enumerate(target):
        if not field.nullable and array.field(i).null_count:
            _check_required(array.field(i).filter(array.is_valid()), field)
    children = [_convert_required(array.field(i), field) for i, field in enumerate(target)]
    return pa.StructArray.from_arrays(children, fields=list(target), mask=pc.is_null(array))


def _convert_required(array: pa.Array, field: pa.Field) -> pa.Array:
    """Convert the values of a field inside another one. A required one has nulls only where a parent is null.

    Arrow's Parquet writer refuses even those, so they go. Nothing is copied; values below a null are never stored.
    """
    array = _convert_array(array, field)
    if field.nullable or not array.null_count:
        return array
    if pa.types.is_struct(array.type):
        children = [array.field(i) for i in range(array.type.num_fields)]
        return pa.StructArray.from_arrays(children, fields=list(array.type))
    if pa.types.is_list(array.type):
        inner = [array.values]
    elif pa.types.is_map(array.type):
        parts = [array.type.key_field, array.type.item_field]
        inner = [pa.StructArray.from_arrays([array.keys, array.items], fields=parts)]
    else:
        return pa.Array.from_buffers(array.type, len(array), [None, *array.buffers()[1:]], 0, array.offset)
    return pa.Array.from_buffers(array.type, len(array), [None, array.buffers()[1]], 0, array.offset, inner)


def _check_required(values: pa.Array, field: pa.Field) -> None:
    if not field.nullable and values.null_count:
        raise InvalidTableError(f"The field {field.name}, which the table's schema requires, has a null.")
