"""Make the Avro schema of Arrow columns, as a tree (``columns``) and as JSON, with the names that Java Hudi uses.

The rules follow Spark's converter, as Hudi calls it (SchemaConverters, AvroConversionUtils):

* a table ``t`` has the record ``hoodie.t.t_record``; a struct in column ``c`` is ``hoodie.t.t_record.c``, and so on;
* decimals are fixed, with as few bytes as the precision needs, named ``fixed`` below their column;
* a nullable type is a union with null first and default null; elements and map values have no defaults;
* lists of a fixed size of floats, doubles or int8 become vectors if they are columns of the table; other logical types
  are named by the metadata of fields (``logical_types``);
* timestamps become microseconds, local if they have no zone, and small integers ``int``.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pyarrow as pa

from hoodie_py.arrow.fields import is_any_list
from hoodie_py.arrow.layouts import make_plain_field
from hoodie_py.errors import InvalidQueryError, UnsupportedFeatureError
from hoodie_py.formats.avro.columns import Column, ColumnType, Elements, Plain, Struct, Values, make_avro_fields
from hoodie_py.formats.avro.schema import MAX_DECIMAL_PRECISION, name_repeated
from hoodie_py.formats.column_names import check_name, check_siblings
from hoodie_py.formats.logical_types import BLOB, VARIANT, read_type_name
from hoodie_py.formats.logical_types.blob import check_blob, write_blob
from hoodie_py.formats.logical_types.variant import check_variant, write_variant
from hoodie_py.formats.logical_types.vector import find_list_type, parse_descriptor, write_vector

_PLAIN: dict[pa.DataType, str] = {
    pa.bool_(): "boolean",
    pa.int8(): "int", pa.int16(): "int", pa.int32(): "int", pa.uint8(): "int", pa.uint16(): "int",
    pa.int64(): "long", pa.uint32(): "long",
    pa.float16(): "float", pa.float32(): "float", pa.float64(): "double",
    pa.string(): "string", pa.binary(): "bytes",
}  # fmt: skip


def make_schema_text(schema: pa.Schema, table_name: str) -> str:
    """Make the Avro schema of a table's rows.

    The schema has no meta columns; the table's name is part of the record's name.

    Raises:
        InvalidQueryError: Avro does not allow a name, or two names are equal or differ only in case.
        UnsupportedFeatureError: Hudi's tables cannot have a type.
    """
    name = _sanitize(table_name)
    head = {"type": "record", "name": f"{name}_record", "namespace": f"hoodie.{name}"}
    full_name = f"hoodie.{name}.{name}_record"
    fields = make_avro_fields(_make_columns(schema, full_name, top=True), full_name)
    return json.dumps(name_repeated({**head, "fields": fields}), separators=(",", ":"), ensure_ascii=False)


def make_field(field: pa.Field, namespace: str, *, top: bool = False) -> dict[str, Any]:
    """Make the Avro field, as parsed JSON, for a column. Arguments, errors as ``make_column``."""
    return make_avro_fields([make_column(field, namespace, top=top)], namespace)[0]


def _make_columns(fields: pa.Schema | pa.StructType, namespace: str, *, top: bool = False) -> tuple[Column, ...]:
    made = tuple(make_column(field, namespace, top=top) for field in fields)
    check_siblings(each.name for each in made)
    return made


def make_column(field: pa.Field, namespace: str, *, top: bool = False) -> Column:
    """Return a column without ids; ``namespace`` is the full name of the record around it.

    Logical types are in full. ``top``: the field is a column of the table, not a field of a struct.

    Raises InvalidQueryError, UnsupportedFeatureError, as ``make_schema_text``.
    """
    check_name(field.name)
    field = make_plain_field(field)
    try:
        logical = _make_logical_type(field, namespace, top=top)
        type_ = _make_type(field.type, field.name, namespace) if logical is None else Plain(logical)
    except (InvalidQueryError, UnsupportedFeatureError) as error:
        error.where["column"] = ".".join(filter(None, [field.name, error.where.get("column")]))
        raise
    return Column(field.name, type_, optional=field.nullable)


def _make_logical_type(field: pa.Field, namespace: str, *, top: bool) -> dict[str, Any] | None:
    """Make the logical type named in a field's metadata, or the vector of a fixed-size list; None for plain fields."""
    name = read_type_name(field)
    vector = None if name is None else parse_descriptor(name)
    if vector is not None:
        if not top:
            raise UnsupportedFeatureError("Vectors inside other types.", hint="Make the vector a column of the table.")
        if not is_any_list(field.type) or not vector.arrow.value_type.equals(field.type.value_type):
            raise InvalidQueryError(
                f"A column marked as {name} has the type {field.type}.", hint=f"Give it {vector.arrow}."
            )
        return write_vector(vector)
    if name is None:
        vector = find_list_type(field.type) if top else None
        return None if vector is None else write_vector(vector)
    if name.lower() == BLOB:
        check_blob(field.type)
        return write_blob()
    if name.lower() == VARIANT:
        check_variant(field.type)
        return write_variant(field.name, namespace)
    raise InvalidQueryError(f"{name!r} is no logical type.", hint="Name BLOB, VARIANT or VECTOR(128) as hudi_type.")


def _make_type(type_: pa.DataType, name: str, namespace: str) -> ColumnType:
    if type_ in _PLAIN:
        return Plain(_PLAIN[type_])
    if pa.types.is_fixed_size_binary(type_):
        return Plain("bytes")
    if pa.types.is_decimal(type_):
        return Plain(_make_decimal(type_, f"{namespace}.{name}"))
    if pa.types.is_date(type_):
        return Plain({"type": "int", "logicalType": "date"})
    if pa.types.is_timestamp(type_):
        return Plain({"type": "long", "logicalType": "timestamp-micros" if type_.tz else "local-timestamp-micros"})
    if is_any_list(type_):
        return Elements(_make_type(type_.value_type, name, namespace), type_.value_field.nullable)
    if pa.types.is_map(type_) and _PLAIN.get(type_.key_type) == "string":
        return Values(_make_type(type_.item_type, name, namespace), type_.item_field.nullable)
    if pa.types.is_struct(type_) and type_.num_fields:
        return Struct(_make_columns(type_, f"{namespace}.{name}"))
    hint = "Give the column a type, or leave it out." if pa.types.is_null(type_) else None
    raise UnsupportedFeatureError(f"Columns of type {type_} cannot be stored in Hudi tables.", hint=hint)


def _make_decimal(type_: pa.DataType, namespace: str) -> dict[str, Any]:
    if type_.precision > MAX_DECIMAL_PRECISION or not 0 <= type_.scale <= type_.precision:
        raise UnsupportedFeatureError(
            f"Columns of type {type_} cannot be stored in Hudi tables.",
            hint=f"A decimal has at most {MAX_DECIMAL_PRECISION} digits, and a scale from 0 to that.",
        )
    bits = (10**type_.precision - 1).bit_length() + 1
    return {
        "type": "fixed",
        "name": "fixed",
        "namespace": namespace,
        "size": -(-bits // 8),
        "logicalType": "decimal",
        "precision": type_.precision,
        "scale": type_.scale,
    }


def _sanitize(name: str) -> str:
    """Convert a table's name to a part of an Avro name (Hudi HoodieAvroUtils.sanitizeName)."""
    first = re.sub(r"[^A-Za-z_]", "__", name[:1])
    return first + re.sub(r"[^A-Za-z0-9_]", "__", name[1:])
