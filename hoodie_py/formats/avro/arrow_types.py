"""Convert Avro types and default values to Arrow, with the types that Spark uses (Hudi's SchemaConverters).

boolean int long float double      bool int32 int64 float32 float64
string, uuid, enum                 string
bytes, fixed                       binary
fixed with the logical type vector list<element>, not null
decimal (bytes or fixed)           decimal128
date                               date32
time-millis, time-micros           int32, int64 (the integer itself)
timestamp-millis, -micros          timestamp[us, UTC]
local-timestamp-millis, -micros    timestamp[us]
array, map, record                 list<element>, map<key, value>, struct
union with null                    the rest of the union, nullable
int and long, float and double     int64, float64
any other union                    struct of nullable member0, member1, ... (null does not count)
"""

from __future__ import annotations

import decimal
from functools import lru_cache
from typing import Any

import pyarrow as pa

from hoodie_py.errors import CorruptFileError
from hoodie_py.formats.avro.schema import (
    Array,
    AvroType,
    Decimal,
    Enum,
    Field,
    Fixed,
    Map,
    Primitive,
    Record,
    Union,
    is_null,
)
from hoodie_py.formats.logical_types import name_type
from hoodie_py.formats.logical_types.vector import Vector

_ARROW_TYPES: dict[tuple[str, str | None], pa.DataType] = {
    ("null", None): pa.null(),
    ("boolean", None): pa.bool_(),
    ("int", None): pa.int32(),
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.int32(),
    ("long", None): pa.int64(),
    ("long", "time-micros"): pa.int64(),
    ("long", "timestamp-millis"): pa.timestamp("us", "UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", "UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("us"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
    ("float", None): pa.float32(),
    ("double", None): pa.float64(),
    ("bytes", None): pa.binary(),
    ("string", None): pa.string(),
    ("string", "uuid"): pa.string(),
}
_WIDENED = {frozenset({"int", "long"}): pa.int64(), frozenset({"float", "double"}): pa.float64()}
_PAIR = 2
_MISFITS = (CorruptFileError, pa.ArrowException, TypeError, ValueError, AttributeError, KeyError, ArithmeticError)
MILLIS = frozenset({"timestamp-millis", "local-timestamp-millis"})
MICROS_PER_MILLI = 1000
MILLIS_LIMIT = (1 << 63) // MICROS_PER_MILLI


def to_arrow_schema(record: Record) -> pa.Schema:
    """Return the columns of a record's fields."""
    return pa.schema([to_arrow_field(field.name, field.type) for field in record.fields])


def to_arrow_field(name: str, node: AvroType) -> pa.Field:
    """Return the column of a type; nullable if null is a branch, with a logical type in its metadata."""
    field = pa.field(name, to_arrow_type(node), nullable=is_null(node) or (isinstance(node, Union) and node.nullable))
    value = node.members[0] if isinstance(node, Union) and len(node.members) == 1 else node
    match value:
        case Fixed(vector=Vector() as vector):
            return vector.mark(field)
        case Record(logical=str(logical)):
            return name_type(field, logical.upper())
    return field


@lru_cache(maxsize=1024)
def to_arrow_type(node: AvroType) -> pa.DataType:
    """Return the Arrow type of an Avro type."""
    match node:
        case Primitive():
            return _ARROW_TYPES[node.kind, node.logical]
        case Decimal():
            return pa.decimal128(node.precision, node.scale)
        case Fixed(vector=vector):
            return pa.binary() if vector is None else vector.arrow
        case Enum():
            return pa.string()
        case Array():
            return pa.list_(to_arrow_field("element", node.items))
        case Map():
            return pa.map_(pa.string(), to_arrow_field("value", node.values))
        case Record():
            return pa.struct([to_arrow_field(field.name, field.type) for field in node.fields])
        case Union():
            return _to_union_type(node)
    raise TypeError(type(node).__name__)


def find_wider_type(members: tuple[AvroType, ...]) -> pa.DataType | None:
    """Return the wider type of a union of int and long, or of float and double; None for other unions."""
    if len(members) == _PAIR and all(isinstance(member, Primitive) for member in members):
        return _WIDENED.get(frozenset(member.kind for member in members if isinstance(member, Primitive)))
    return None


def _to_union_type(node: Union) -> pa.DataType:
    members = node.members
    if len(members) == 1:
        return to_arrow_type(members[0])
    wide = find_wider_type(members)
    if wide is not None:
        return wide
    return pa.struct([pa.field(f"member{i}", to_arrow_type(member)) for i, member in enumerate(members)])


def read_defaults(record: Record) -> dict[str, Any]:
    """Return the non-null defaults of top-level fields as Python values.

    ``pa.scalar(value, type)`` accepts them with the type of their column: dates are days, timestamps microseconds,
    decimals ``decimal.Decimal``, maps lists of pairs, records dicts.
    """
    return {
        field.name: _read_default(field) for field in record.fields if field.has_default and field.default is not None
    }


def _read_default(field: Field) -> Any:
    try:
        value = _to_value(field.type, field.default)
        pa.scalar(value, to_arrow_type(field.type))
    except _MISFITS:
        message = f"The default of the Avro field {field.name[:200]!r} is not a value of its type."
        raise CorruptFileError(message) from None
    return value


def _to_value(node: AvroType, raw: Any) -> Any:
    """Convert a default's JSON to a value of the type (Avro specification, "Complex Types")."""
    match node:
        case Decimal():
            unscaled = int.from_bytes(raw.encode("latin-1"), "big", signed=True)
            return decimal.Decimal(f"{unscaled}e-{node.scale}")
        case Fixed(vector=Vector() as vector):
            return vector.to_lists(pa.array([raw.encode("latin-1")], pa.binary()))[0].as_py()
        case Fixed() | Primitive(kind="bytes"):
            return raw.encode("latin-1")
        case Primitive():
            return raw * MICROS_PER_MILLI if node.logical in MILLIS else raw
        case Array():
            return [_to_value(node.items, item) for item in raw]
        case Map():
            return [(key, _to_value(node.values, item)) for key, item in raw.items()]
        case Record():
            return {field.name: _to_value(field.type, raw.get(field.name, field.default)) for field in node.fields}
        case Union():
            return _to_union_value(node, raw)
    return raw


def _to_union_value(node: Union, raw: Any) -> Any:
    """Find the branch that the default fits: the first one by the specification, any one since Avro 1.9."""
    if raw is None:
        return None
    members = node.members
    for i, member in enumerate(members):
        try:
            value = _to_value(member, raw)
            pa.scalar(value, to_arrow_type(member))
        except _MISFITS:
            continue
        return value if len(members) == 1 or find_wider_type(members) else {f"member{i}": value}
    raise ValueError(raw)
