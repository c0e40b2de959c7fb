"""Columns with ids and Avro types in one tree: the form in which a table's schema is altered.

A table with schema-on-read stores its schema twice: as an Avro schema, and as a schema with ids
(``formats/internal_schema``). The tree is made from both and converted back to both (Hudi ``InternalSchemaConverter``).
Ids are assigned as in Java: first to the fields of a record, then inside each of them. Avro names follow the names of
the columns, so that no two records share one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hoodie_py.errors import CorruptFileError, UnsupportedFeatureError
from hoodie_py.formats.internal_schema import Field, InternalType, ListType, MapType, RecordType


@dataclass(frozen=True, slots=True)
class Struct:
    """The fields of a struct, or of the whole row."""

    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Elements:
    """A list."""

    id: int
    type: ColumnType
    optional: bool


@dataclass(frozen=True, slots=True)
class Values:
    """A map; its keys are strings."""

    key_id: int
    id: int
    type: ColumnType
    optional: bool


@dataclass(frozen=True, slots=True)
class Plain:
    """A type that is not nested, as its Avro type in parsed JSON."""

    avro: Any


ColumnType = Struct | Elements | Values | Plain


@dataclass(frozen=True, slots=True)
class Column:
    """One column, or field of a struct. ``more`` is the rest of its Avro field, such as the default value."""

    id: int
    name: str
    type: ColumnType
    optional: bool = True
    doc: str | None = None
    more: dict[str, Any] = field(default_factory=dict)


class Numbers:
    """Assigns ids. ``last`` is the greatest id so far."""

    def __init__(self, last: int) -> None:
        self.last = last

    def take(self, count: int = 1) -> int:
        """Return the first of ``count`` new ids."""
        first = self.last + 1
        self.last += count
        return first


def number_columns(fields: Sequence[dict[str, Any]], numbers: Numbers) -> tuple[Column, ...]:
    """Return the fields of an Avro record (parsed JSON, without references to named types) with new ids.

    Raises:
        UnsupportedFeatureError: schemas with ids cannot have a type.
    """
    first = numbers.take(len(fields))
    return tuple(_number_field(each, first + at, numbers) for at, each in enumerate(fields))


def join_columns(fields: Sequence[dict[str, Any]], known: RecordType) -> tuple[Column, ...]:
    """Return the fields of an Avro record (parsed JSON) with their ids in a schema of the same columns.

    Raises:
        CorruptFileError: the schemas have different columns.
        UnsupportedFeatureError: schemas with ids cannot have a type.
    """
    if [each["name"] for each in fields] != [each.name for each in known.fields]:
        raise CorruptFileError("A commit's schema and its schema with ids have different columns.")
    return tuple(_join_field(each, have) for each, have in zip(fields, known.fields, strict=True))


def follow_columns(known: Sequence[Column], fields: Sequence[dict[str, Any]], numbers: Numbers) -> tuple[Column, ...]:
    """Return the fields of an Avro record with the ids of known columns of the same name; new fields get new ids."""
    by_name = {each.name: each for each in known}
    new = {each["name"]: number_columns([each], numbers)[0] for each in fields if each["name"] not in by_name}
    return tuple(
        new[each["name"]] if each["name"] in new else _follow_field(by_name[each["name"]], each, numbers)
        for each in fields
    )


def list_fields(columns: Sequence[Column]) -> tuple[Field, ...]:
    """Return columns as fields of a schema with ids."""
    return tuple(Field(each.id, each.name, _name_type(each.type), each.optional, each.doc) for each in columns)


def make_avro_fields(columns: Sequence[Column], full_name: str) -> list[dict[str, Any]]:
    """Return columns as fields of the Avro record with that full name."""
    return [_make_avro_field(each, full_name) for each in columns]


def iterate_columns(columns: Sequence[Column], path: str = "") -> Iterator[tuple[str, Column]]:
    """Yield every column and field with its path, as in ``st.a``, ``list.element.a`` and ``map.value.a``."""
    for each in columns:
        place = f"{path}{each.name}"
        yield place, each
        yield from _iterate_inside(each.type, place)


def _iterate_inside(type_: ColumnType, place: str) -> Iterator[tuple[str, Column]]:
    match type_:
        case Struct():
            yield from iterate_columns(type_.columns, f"{place}.")
        case Elements():
            yield from _iterate_inside(type_.type, f"{place}.element")
        case Values():
            yield from _iterate_inside(type_.type, f"{place}.value")


def _split(node: Any) -> tuple[Any, bool]:
    """Return a type without null, and whether null is allowed."""
    if not isinstance(node, list):
        return node, False
    members = [each for each in node if each != "null"]
    if len(members) != 1:
        raise UnsupportedFeatureError("Unions of several types in a schema with ids.")
    return members[0], "null" in node


def _list_more(node: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in node.items() if key not in ("name", "type", "doc")}


def _number_field(node: dict[str, Any], number: int, numbers: Numbers) -> Column:
    type_, optional = _split(node["type"])
    found = _number_type(type_, numbers)
    return Column(number, node["name"], found, optional, node.get("doc"), _list_more(node))


def _number_type(node: Any, numbers: Numbers) -> ColumnType:
    kind = node.get("type") if isinstance(node, dict) else node
    if kind == "record" and "logicalType" not in node:
        return Struct(number_columns(node["fields"], numbers))
    if kind == "array":
        number = numbers.take()
        inner, optional = _split(node["items"])
        return Elements(number, _number_type(inner, numbers), optional)
    if kind == "map":
        number = numbers.take(2)
        inner, optional = _split(node["values"])
        return Values(number, number + 1, _number_type(inner, numbers), optional)
    name_plain_type(node)
    return Plain(node)


def _join_field(node: dict[str, Any], known: Field) -> Column:
    type_, optional = _split(node["type"])
    return Column(
        known.id, known.name, _join_type(type_, known), optional, node.get("doc", known.doc), _list_more(node)
    )


def _join_type(node: Any, known: Field | InternalType) -> ColumnType:
    have = known.type if isinstance(known, Field) else known
    kind = node.get("type") if isinstance(node, dict) else node
    match have:
        case RecordType() if kind == "record":
            return Struct(join_columns(node["fields"], have))
        case ListType() if kind == "array":
            inner, optional = _split(node["items"])
            return Elements(have.element_id, _join_type(inner, have.element), optional)
        case MapType() if kind == "map":
            inner, optional = _split(node["values"])
            return Values(have.key_id, have.value_id, _join_type(inner, have.value), optional)
        case str() if kind not in ("record", "array", "map"):
            name_plain_type(node)
            return Plain(node)
    raise CorruptFileError("A commit's schema and its schema with ids have different types.")


def _follow_field(known: Column, node: dict[str, Any], numbers: Numbers) -> Column:
    type_, optional = _split(node["type"])
    return replace(
        known, type=_follow_type(known.type, type_, numbers), optional=optional, doc=node.get("doc", known.doc),
        more=_list_more(node),
    )  # fmt: skip


def _follow_type(known: ColumnType, node: Any, numbers: Numbers) -> ColumnType:
    match known:
        case Struct():
            return Struct(follow_columns(known.columns, node["fields"], numbers))
        case Elements():
            inner, optional = _split(node["items"])
            return replace(known, type=_follow_type(known.type, inner, numbers), optional=optional)
        case Values():
            inner, optional = _split(node["values"])
            return replace(known, type=_follow_type(known.type, inner, numbers), optional=optional)
    name_plain_type(node)
    return Plain(node)


_NAMES = {"bytes": "binary", "enum": "string"}
_PRIMITIVES = frozenset({"boolean", "int", "long", "float", "double", "string", "bytes"})
_LOGICAL = {
    "date": "date", "timestamp-micros": "timestamp", "timestamp-millis": "timestamp-millis", "time-micros": "time",
    "time-millis": "time-millis", "local-timestamp-micros": "local-timestamp-micros",
    "local-timestamp-millis": "local-timestamp-millis", "uuid": "uuid",
}  # fmt: skip


def name_plain_type(node: Any) -> str:
    """Return the name of a type that is not nested in schemas with ids.

    Raises:
        UnsupportedFeatureError: schemas with ids cannot have the type.
    """
    if isinstance(node, str):
        if node not in _PRIMITIVES:
            raise UnsupportedFeatureError(f"Schemas with ids of tables that have the type {node[:40]!r}.")
        return _NAMES.get(node, node)
    kind, logical = node.get("type"), node.get("logicalType")
    if logical in _LOGICAL:
        return _LOGICAL[logical]
    if logical == "decimal":
        digits = f"({node['precision']}, {node.get('scale', 0)})"
        return f"decimal_fixed{digits}[{node['size']}]" if kind == "fixed" else f"decimal_bytes{digits}"
    if logical is not None:
        raise UnsupportedFeatureError(f"Schemas with ids of tables that have the type {str(logical)[:40]!r}.")
    return f"fixed[{node['size']}]" if kind == "fixed" else name_plain_type("string" if kind == "enum" else kind)


def _name_type(type_: ColumnType) -> InternalType:
    match type_:
        case Struct():
            return RecordType(list_fields(type_.columns))
        case Elements():
            return ListType(type_.id, _name_type(type_.type), type_.optional)
        case Values():
            return MapType(type_.key_id, "string", type_.id, _name_type(type_.type), type_.optional)
    return name_plain_type(type_.avro)


def _make_avro_field(column: Column, full_name: str) -> dict[str, Any]:
    type_ = _join_null(_make_avro_type(column.type, column.name, full_name), optional=column.optional)
    doc = {} if column.doc is None else {"doc": column.doc}
    more = column.more
    if column.optional and "default" not in more:
        more = {**more, "default": None}
    if isinstance(type_, list) and more.get("default") is not None:
        type_ = type_[::-1]  # a default must have the first type of the union
    return {"name": column.name, "type": type_, **doc, **more}


def _join_null(type_: Any, *, optional: bool) -> Any:
    return ["null", type_] if optional else type_


def _make_avro_type(type_: ColumnType, name: str, outer: str) -> Any:
    match type_:
        case Struct():
            fields = make_avro_fields(type_.columns, f"{outer}.{name}")
            return {"type": "record", "name": name, "namespace": outer, "fields": fields}
        case Elements():
            return {
                "type": "array",
                "items": _join_null(_make_avro_type(type_.type, name, outer), optional=type_.optional),
            }
        case Values():
            return {
                "type": "map",
                "values": _join_null(_make_avro_type(type_.type, name, outer), optional=type_.optional),
            }
    if isinstance(type_.avro, dict) and type_.avro.get("type") in ("fixed", "enum"):
        return {**type_.avro, "namespace": f"{outer}.{name}"}
    return type_.avro
