"""Converts Arrow types to Spark types and back, and casts batches to exactly the schema that Spark expects.

Spark compares only the first batch of a task with the Arrow form of the declared schema, so every batch is cast. That
form is pyspark's ``to_arrow_schema`` with time zone UTC: timestamps are microseconds, in UTC or without a zone; text
and binary have the plain layout, not the large one; nothing is dictionary-encoded.

All columns, and everything inside them, are nullable in the schema of a load, as in Spark's own file sources. The only
exception are the elements of vectors, as Java Hudi's writer requires. Columns name their logical type in their
metadata, as in Java Hudi's schemas. Columns of variants have Spark's type VARIANT; inside other types they are structs
of their two byte strings.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import types as st

from hoodie_py.errors import InvalidQueryError, InvalidTableError
from hoodie_py.formats.logical_types import TYPE_KEY, name_type, read_type_name
from hoodie_py.formats.logical_types.variant import METADATA, VALUE, VARIANT_TYPE, is_variant
from hoodie_py.formats.logical_types.vector import find_vector

_PLAIN: tuple[tuple[pa.DataType, type[st.DataType]], ...] = (
    (pa.bool_(), st.BooleanType),
    (pa.int8(), st.ByteType),
    (pa.int16(), st.ShortType),
    (pa.int32(), st.IntegerType),
    (pa.int64(), st.LongType),
    (pa.float32(), st.FloatType),
    (pa.float64(), st.DoubleType),
    (pa.string(), st.StringType),
    (pa.binary(), st.BinaryType),
    (pa.date32(), st.DateType),
    (pa.timestamp("us", "UTC"), st.TimestampType),
    (pa.timestamp("us"), st.TimestampNTZType),
)
_TO_SPARK: dict[pa.DataType, type[st.DataType]] = dict(_PLAIN)
_TO_ARROW: dict[type[st.DataType], pa.DataType] = {spark: arrow for arrow, spark in _PLAIN}
_TYPE = TYPE_KEY.decode()
_SPARK_VARIANT = pa.struct([
    pa.field(VALUE, pa.binary(), nullable=False),
    pa.field(METADATA, pa.binary(), nullable=False, metadata={"variant": "true"}),
])  # fmt: skip
_ORDER_OF_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())


def as_spark_schema(schema: pa.Schema) -> st.StructType:
    """Return the Spark schema for an Arrow schema; every column is nullable.

    Raises:
        InvalidTableError: a table cannot have a column of this type.
    """
    return st.StructType([_as_spark_field(field) for field in schema])


def _as_spark_field(field: pa.Field) -> st.StructField:
    """Return a column; variants have the type VARIANT if Spark's Arrow form can have them."""
    name = read_type_name(field)
    if name is None:
        return st.StructField(field.name, as_spark_type(field.type))
    kind = as_spark_type(field.type)
    if is_variant(field) and has_same_values(field.type, VARIANT_TYPE):
        kind = st.VariantType()
    elif isinstance(kind, st.ArrayType) and find_vector(field) is not None:
        kind = st.ArrayType(kind.elementType, False)
    return st.StructField(field.name, kind, metadata={_TYPE: name})


def as_spark_type(kind: pa.DataType) -> st.DataType:
    """Return the Spark type for an Arrow type.

    Raises:
        InvalidTableError: a table cannot have a column of this type.
    """
    plain = _TO_SPARK.get(kind)
    if plain is not None:
        return plain()
    if pa.types.is_decimal(kind):
        return st.DecimalType(kind.precision, kind.scale)
    if pa.types.is_list(kind):
        return st.ArrayType(as_spark_type(kind.value_type))
    if pa.types.is_map(kind):
        return st.MapType(as_spark_type(kind.key_type), as_spark_type(kind.item_type))
    if pa.types.is_struct(kind):
        return st.StructType([st.StructField(field.name, as_spark_type(field.type)) for field in kind])
    raise InvalidTableError(f"A column of type {kind} has no counterpart in Spark.")


def as_arrow_schema(schema: st.StructType) -> pa.Schema:
    """Return the Arrow schema that batches must have for a declared Spark schema.

    Raises:
        InvalidQueryError: a table cannot have a column of a declared type.
    """
    return pa.schema([_as_arrow_column(field) for field in schema.fields])


def _as_arrow_column(field: st.StructField) -> pa.Field:
    column = _as_arrow_field(field.name, field.dataType, field.nullable)
    name = "VARIANT" if isinstance(field.dataType, st.VariantType) else field.metadata.get(_TYPE)
    return name_type(column, name) if isinstance(name, str) else column


def as_arrow_type(kind: st.DataType) -> pa.DataType:
    """Return the Arrow type that a column must have for a declared Spark type.

    Raises:
        InvalidQueryError: a table cannot have a column of the declared type.
    """
    plain = _TO_ARROW.get(type(kind))
    if plain is not None:
        return plain
    if isinstance(kind, st.DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    if isinstance(kind, st.ArrayType):
        return pa.list_(_as_arrow_field("element", kind.elementType, kind.containsNull))
    if isinstance(kind, st.MapType):
        key = _as_arrow_field("key", kind.keyType, False)
        return pa.map_(key, _as_arrow_field("value", kind.valueType, kind.valueContainsNull))
    if isinstance(kind, st.StructType):
        return pa.struct(list(as_arrow_schema(kind)))
    if isinstance(kind, st.VariantType):
        return _SPARK_VARIANT
    raise InvalidQueryError(f"No column can be read as {kind.simpleString()}.")


def _as_arrow_field(name: str, kind: st.DataType, nullable: bool) -> pa.Field:
    return pa.field(name, as_arrow_type(kind), nullable=nullable)


def has_same_values(have: pa.DataType, want: pa.DataType) -> bool:
    """Whether two types are equal except for names and nullability of the inner fields of lists and maps."""
    for is_kind in (pa.types.is_list, pa.types.is_map):
        if is_kind(have) or is_kind(want):
            return bool(is_kind(have) and is_kind(want)) and all(
                has_same_values(have.field(i).type, want.field(i).type) for i in range(have.num_fields)
            )
    if pa.types.is_struct(have) and pa.types.is_struct(want):
        return [f.name for f in have] == [f.name for f in want] and all(
            has_same_values(h.type, w.type) for h, w in zip(have, want, strict=True)
        )
    return bool(have.equals(want))


def can_widen(have: pa.DataType, want: pa.DataType) -> bool:
    """Whether every value of type ``have`` is a value of type ``want``: the casts that a user's schema may require."""
    if has_same_values(have, want) or (want.equals(_SPARK_VARIANT) and has_same_values(have, VARIANT_TYPE)):
        return True
    if have in _ORDER_OF_INTEGERS:
        at = _ORDER_OF_INTEGERS.index(have)
        return want in _ORDER_OF_INTEGERS[at:] or (want == pa.float64() and at <= 2)
    if have == pa.float32():
        return bool(want == pa.float64())
    if pa.types.is_decimal(have) and pa.types.is_decimal(want):
        return bool(want.scale >= have.scale and want.precision - want.scale >= have.precision - have.scale)
    return False


def fit(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Cast a batch to exactly a schema, which has the same columns in order, with types that ``can_widen`` allows.

    Raises:
        InvalidQueryError: a column that the schema declares not nullable has a null.
    """
    if not batch.schema.equals(schema):
        arrays = [_cast(column, field) for column, field in zip(batch.columns, schema, strict=True)]
        batch = pa.RecordBatch.from_arrays(arrays, schema=schema) if arrays else batch.select([])
    for column, field in zip(batch.columns, schema, strict=True):
        if not field.nullable and column.null_count:
            raise InvalidQueryError(f"Column {field.name!r} holds nulls.", hint="Declare it nullable in the schema.")
    return batch


def _cast(column: Any, field: pa.Field) -> Any:
    if column.type.equals(field.type):
        return column
    if field.type.equals(_SPARK_VARIANT):
        parts = [column.field(part.name) for part in _SPARK_VARIANT]
        mask = column.is_null() if column.null_count else None
        return pa.StructArray.from_arrays(parts, fields=list(_SPARK_VARIANT), mask=mask)
    return column.cast(field.type)
