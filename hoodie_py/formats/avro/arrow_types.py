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

Time columns are corrected whose type in a file is not the type that the table's Avro schema declares. Some writers
stored numbers under a type of another unit, or of no unit: Hudi's streamer of 0.14.1 and 0.15.0 called
milliseconds microseconds and lost that a time was local; Flink's COPY_ON_WRITE writer does not mark TIMESTAMP_LTZ. The
number is right, the type is wrong, and the table's schema has the right one. Hudi 1.1 and later reads by the following
rules, at every level of nesting, in base files and log blocks (``SchemaRepair``, ``HoodieSchemaRepair``):

    in the file                     the table declares                        the number is in
    microseconds in UTC             milliseconds in UTC                       milliseconds
    a plain long                    a local time, millis or micros            the declared unit
    a plain long                    microseconds in UTC                       microseconds
    microseconds of either kind     milliseconds of either kind               milliseconds, only in Avro log blocks

Every other pair keeps its type: milliseconds in the file are converted, because the file is right then. A plain long
beside milliseconds in UTC is refused in base files: Java takes it for microseconds there and for milliseconds in logs.
Java 1.2.0 fails on times inside structs and maps because of a bug; here they follow the same rules.
"""

from __future__ import annotations

import decimal
from collections.abc import Mapping
from dataclasses import replace
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


_UTC = "timestamp-"
_LOGICAL = {
    pa.timestamp("ms", "UTC"): "timestamp-millis",
    pa.timestamp("us", "UTC"): "timestamp-micros",
    pa.timestamp("ms"): "local-timestamp-millis",
    pa.timestamp("us"): "local-timestamp-micros",
}
_TIMES = {logical: type_ for type_, logical in _LOGICAL.items()}


def list_declared_times(record: Record) -> pa.Schema | None:
    """Return the top-level columns that contain times, in the units that a table's schema declares.

    Inside such a column, types without times become null. Returns None if no column has a time.
    """
    fields = [pa.field(field.name, _find_declared_times(field.type)) for field in record.fields]
    timed = [field for field in fields if not pa.types.is_null(field.type)]
    return pa.schema(timed) if timed else None


def _find_declared_times(node: AvroType) -> pa.DataType:
    """Return the declared times of a type; the null type if it has none."""
    match node:
        case Primitive(logical=logical) if logical in _TIMES:
            return _TIMES[logical]
        case Union() if len(node.members) == 1:
            return _find_declared_times(node.members[0])
        case Array():
            inner = _find_declared_times(node.items)
            return inner if pa.types.is_null(inner) else pa.list_(inner)
        case Map():
            inner = _find_declared_times(node.values)
            return inner if pa.types.is_null(inner) else pa.map_(pa.string(), inner)
        case Record():
            times = list_declared_times(node)
            return pa.null() if times is None else pa.struct(list(times))
    return pa.null()


def find_mistyped_times(stored: pa.Schema, times: pa.Schema | None) -> dict[str, pa.DataType]:
    """Return the columns of a Parquet file whose type is wrong, with the right type.

    ``times``: the table's declared times (``list_declared_times``).
    """
    found = {}
    for field in times or ():
        at = stored.get_field_index(field.name)
        if at >= 0:
            type_ = _correct_type(stored.field(at).type, field.type)
            if not type_.equals(stored.field(at).type):
                found[field.name] = type_
    return found


def retype_times(batch: pa.RecordBatch, types: Mapping[str, pa.DataType]) -> pa.RecordBatch:
    """Give columns of a file's rows their right types (``find_mistyped_times``), without copying values."""
    for name, type_ in types.items():
        at = batch.schema.get_field_index(name)
        if at >= 0:
            batch = batch.set_column(at, batch.schema.field(at).with_type(type_), batch.column(at).view(type_))
    return batch


def _correct_type(stored: pa.DataType, declared: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(declared):
        return declared if _is_mistyped(stored, declared) else stored
    if pa.types.is_int64(declared) and pa.types.is_timestamp(stored):
        return declared
    if pa.types.is_struct(declared) and pa.types.is_struct(stored):
        return pa.struct([_correct_field(field, declared) for field in stored])
    if pa.types.is_list(declared) and pa.types.is_list(stored):
        return pa.list_(stored.value_field.with_type(_correct_type(stored.value_type, declared.value_type)))
    if pa.types.is_map(declared) and pa.types.is_map(stored):
        item = stored.item_field.with_type(_correct_type(stored.item_type, declared.item_type))
        return pa.map_(stored.key_field, item, stored.keys_sorted)
    return stored


def _correct_field(field: pa.Field, declared: pa.StructType) -> pa.Field:
    at = declared.get_field_index(field.name)
    return field if at < 0 else field.with_type(_correct_type(field.type, declared.field(at).type))


def _is_mistyped(stored: pa.DataType, declared: pa.DataType) -> bool:
    if pa.types.is_int64(stored):
        return declared.tz is None or declared.unit == "us"
    in_utc = pa.types.is_timestamp(stored) and stored.tz is not None and declared.tz is not None
    return bool(in_utc and stored.unit == "us" and declared.unit == "ms")


@lru_cache(maxsize=64)
def correct_record(record: Record, times: pa.Schema) -> Record:
    """Return a log block's schema with the times that the table declares; the same object if nothing changes.

    A column that is int64 in ``times`` loses its time type, and is decoded as the number in the block.
    """
    fields = tuple(
        replace(field, type=_correct_node(field.type, times.field(field.name).type))
        if field.name in times.names
        else field
        for field in record.fields
    )
    same = all(mine.type is theirs.type for mine, theirs in zip(fields, record.fields, strict=True))
    return record if same else replace(record, fields=fields)


def _correct_node(node: AvroType, declared: pa.DataType) -> AvroType:
    match node:
        case Primitive() if pa.types.is_timestamp(declared):
            return _correct_time(node, _LOGICAL[declared])
        case Primitive(logical=logical) if pa.types.is_int64(declared) and logical in _TIMES:
            return replace(node, logical=None)
        case Union() if len(node.members) == 1:
            member = _correct_node(node.members[0], declared)
            if member is node.members[0]:
                return node
            branches = tuple(member if branch is node.members[0] else branch for branch in node.branches)
            return Union(node.min_size, node.width, branches)
        case Array() if pa.types.is_list(declared):
            items = _correct_node(node.items, declared.value_type)
            return node if items is node.items else replace(node, items=items)
        case Map() if pa.types.is_map(declared):
            values = _correct_node(node.values, declared.item_type)
            return node if values is node.values else replace(node, values=values)
        case Record() if pa.types.is_struct(declared):
            return correct_record(node, pa.schema(list(declared)))
    return node


def _correct_time(node: Primitive, declared: str) -> Primitive:
    """Return the type with the declared time. For a plain long that is also Avro's rule of schema resolution."""
    plain = node.kind == "long" and node.logical is None
    micros = node.logical in _TIMES and node.logical not in MILLIS
    return replace(node, logical=declared) if plain or (micros and declared in MILLIS) else node
