"""Write types, names and constants as Spark SQL, for messages and for a filter's ``str()``, which parses again."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa

from hoodie_py.table.filter.datetime_text import format_date, format_timestamp


def format_type(type_: pa.DataType) -> str:
    """Return an Arrow type's name in Spark SQL."""
    if pa.types.is_decimal(type_):
        return f"decimal({type_.precision},{type_.scale})"
    if pa.types.is_timestamp(type_):
        return "timestamp" if type_.tz else "timestamp_ntz"
    if pa.types.is_nested(type_):
        return "struct" if pa.types.is_struct(type_) else "map" if pa.types.is_map(type_) else "array"
    return _TYPE_NAMES.get(type_, str(type_))


def format_literal(value: Any, type_: pa.DataType) -> str:
    """Write a constant as a Spark SQL literal."""
    if value is None:
        return "null"
    if pa.types.is_boolean(type_):
        return "true" if value else "false"
    if pa.types.is_string(type_):
        return format_string(value)
    if pa.types.is_binary(type_):
        return f"X'{value.hex().upper()}'"
    if pa.types.is_date(type_):
        return f"date'{format_date(value)}'"
    if pa.types.is_timestamp(type_):
        return f"{format_type(type_)}'{format_timestamp(value)}{'Z' if type_.tz else ''}'"  # the same in every session
    if pa.types.is_floating(type_):
        if not math.isfinite(value):
            return f"cast('{value}' as {format_type(type_)})"
        return f"{value!r}{'D' if pa.types.is_float64(type_) else 'F'}"
    return f"{value:f}" if pa.types.is_decimal(type_) else str(value)


_TYPE_NAMES = {
    pa.null(): "void",
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
}


def format_string(value: str) -> str:
    """Quote text as a string literal."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def format_name(name: str) -> str:
    """Write a column or field name, in backquotes unless it is a plain word."""
    plain = name.isidentifier() and name.isascii()
    return name if plain else "`" + name.replace("`", "``") + "`"
