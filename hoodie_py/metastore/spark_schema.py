"""The schema of a table in a catalog's properties, as Spark expects it (Hudi ``SparkSchemaUtils``).

It is JSON, cut into parts because property values have a maximum length (Hudi ``SparkDataSourceTableUtils``). The JSON
equals Java's to the letter, so that the properties do not change if Java and this package sync in turn.
"""

from __future__ import annotations

from collections.abc import Sequence

from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.formats.avro.schema import Array, AvroType, Decimal, Enum, Field, Fixed, Map, Primitive, Record, Union
from hoodie_py.formats.logical_types import BLOB, VARIANT
from hoodie_py.metastore.entry import PROVIDER

_PREFIX = "spark.sql.sources.schema."
_KINDS = {
    "boolean": "boolean",
    "int": "integer",
    "long": "long",
    "float": "float",
    "double": "double",
    "bytes": "binary",
    "string": "string",
}
_LOGICAL = {
    "date": "date",
    "timestamp-millis": "timestamp",
    "timestamp-micros": "timestamp",
    "local-timestamp-millis": "timestamp_ntz",
    "local-timestamp-micros": "timestamp_ntz",
}


def make_spark_properties(
    fields: Sequence[Field], partition_columns: Sequence[str], part_length: int, spark_version: str | None
) -> dict[str, str]:
    """Return the properties by which Spark finds a table's format and columns.

    Args:
        fields: the columns; partition columns come last.
        partition_columns: their names.
        part_length: characters of the schema in one property.
        spark_version: the version of Spark that created the table; None leaves the property out.

    Raises:
        UnsupportedFeatureError: such a schema cannot have a column's type.
    """
    found = {PROVIDER: "hudi"}
    if spark_version:
        found["spark.sql.create.version"] = spark_version
    text = _make_struct(fields)
    parts = [text[start : start + part_length] for start in range(0, len(text), part_length)]
    found[f"{_PREFIX}numParts"] = str(len(parts))
    found |= {f"{_PREFIX}part.{number}": part for number, part in enumerate(parts)}
    if partition_columns:
        found[f"{_PREFIX}numPartCols"] = str(len(partition_columns))
        found |= {f"{_PREFIX}partCol.{number}": name for number, name in enumerate(partition_columns)}
    return found


def _make_struct(fields: Sequence[Field]) -> str:
    return f'{{"type":"struct","fields":[{",".join(map(_make_field, fields))}]}}'


def _make_field(field: Field) -> str:
    node = _get_member(field.type)
    metadata = '{"hudi_type":"BLOB"}' if isinstance(node, Record) and node.logical == BLOB else "{}"
    nullable = _is_nullable(field.type)
    return f'{{"name":"{field.name}","type":{_make_type(node)},"nullable":{nullable},"metadata":{metadata}}}'


def _make_type(node: AvroType) -> str:
    match _get_member(node):
        case Primitive(logical=logical) if logical in _LOGICAL:
            return f'"{_LOGICAL[logical]}"'
        case Primitive(kind=kind) if kind in _KINDS:
            return f'"{_KINDS[kind]}"'
        case Decimal(precision=precision, scale=scale):
            return f'"decimal({precision},{scale})"'
        case Fixed():
            return '"binary"'
        case Enum():
            return '"string"'
        case Array(items=items):
            return f'{{"type":"array", "elementType":{_make_type(items)},"containsNull":{_is_nullable(items)}}}'
        case Map(values=values):
            inner = f'"valueType":{_make_type(values)},"valueContainsNull":{_is_nullable(values)}'
            return f'{{"type":"map", "keyType":"string",{inner}}}'
        case Record(logical=logical, fields=fields) if logical != VARIANT:
            return _make_struct(fields)
    raise UnsupportedFeatureError(
        "A column has a type that Spark's schema in a catalog cannot have: a VARIANT, or a union of several types.",
        hint="Set hoodie.datasource.hive_sync.sync_as_datasource=false to leave that schema out.",
    )


def _get_member(node: AvroType) -> AvroType:
    return node.members[0] if isinstance(node, Union) and len(node.members) == 1 else node


def _is_nullable(node: AvroType) -> str:
    return "true" if isinstance(node, Union) and node.nullable else "false"
