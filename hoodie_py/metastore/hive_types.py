"""Avro types as Hive types (Hudi ``HiveSchemaUtil``); Glue uses the same."""

from __future__ import annotations

import re

from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.formats.avro.schema import Array, AvroType, Decimal, Enum, Fixed, Map, Primitive, Record, Union

_KINDS = {
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "bytes": "binary",
    "string": "string",
}
_TIMES = frozenset({"timestamp-millis", "timestamp-micros", "local-timestamp-millis", "local-timestamp-micros"})
_GROWS = {
    "int": ("bigint", "float", "double"),
    "bigint": ("float", "double"),
    "float": ("double",),
}
_DECIMAL = re.compile(r"decimal\((\d{1,3}),(\d{1,3})\)")


def make_hive_type(node: AvroType, *, timestamps: bool) -> str:
    """Return the Hive type of a column.

    ``timestamps``: whether times become ``timestamp``; otherwise they are ``bigint``.

    Raises:
        UnsupportedFeatureError: Hive has no such type.
    """
    match node:
        case Union(members=(member,)):
            return make_hive_type(member, timestamps=timestamps)
        case Primitive(kind="int", logical="date"):
            return "date"
        case Primitive(logical=logical) if timestamps and logical in _TIMES:
            return "timestamp"
        case Primitive(kind=kind) if kind in _KINDS:
            return _KINDS[kind]
        case Decimal(precision=precision, scale=scale):
            return f"decimal({precision},{scale})"
        case Fixed():
            return "binary"
        case Enum():
            return "string"
        case Array(items=items):
            return f"array<{make_hive_type(items, timestamps=timestamps)}>"
        case Map(values=values):
            return f"map<string,{make_hive_type(values, timestamps=timestamps)}>"
        case Record(fields=fields):
            inner = (f"{each.name.lower()}:{make_hive_type(each.type, timestamps=timestamps)}" for each in fields)
            return f"struct<{','.join(inner)}>"
    raise UnsupportedFeatureError("Catalogs have no type for a union of several types.")


def may_become(known: str, wanted: str) -> bool:
    """Whether a catalog may change a column's type so that engines can still read older files.

    Numbers may widen, scalars may become strings, and decimals may get more digits. Nested types of the same kind
    always pass: engines take their inner types from the files.
    """
    if known == wanted or wanted in _GROWS.get(known, ()) or (wanted == "string" and "<" not in known):
        return True
    nested = known.partition("<")[0]
    if "<" in known and wanted.startswith(f"{nested}<"):
        return True
    before, after = _DECIMAL.fullmatch(known), _DECIMAL.fullmatch(wanted)
    if before is None or after is None:
        return False
    (precision, scale), (more, finer) = map(int, before.groups()), map(int, after.groups())
    return finer >= scale and more - finer >= precision - scale
