"""The columns of a table as a tree, and its two spellings: an Avro schema, and Hudi's schema with ids (InternalSchema).

A table with schema-on-read stores its schema both ways; they are read into the same tree and joined (Hudi
``InternalSchemaConverter``). Fields, list elements, map keys and map values have ids that never change, whatever is
renamed. Ids are assigned as in Java: first to the fields of a record, then inside each of them. Avro names follow the
names of the columns, so that no two records share one.

Schemas with ids are JSON in two forms (``SerDeHelper``): one schema in the commit metadata's ``latest_schema``, and all
versions, ``{"schemas": [newest, ...]}``, in the files of ``.hoodie/.schema/``. A version has a ``version_id``: the
instant of the change as a number, 0 for the schema before the first change. The text is input of unknown origin: its
depth is bounded, and the ids of a version and the names of a record must be distinct. Avro schemas are vetted before
(``schema.parse_record``), and contain no references to named types here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from hoodie_py.errors import CorruptFileError, UnsupportedFeatureError
from hoodie_py.formats.logical_types import VECTOR

_MAX_DEPTH = 64
_MAX_ID = 2**31 - 1
_MAX_VERSION = 10**18
_TYPE_NAMES = {"bytes": "binary", "enum": "string"}
_PRIMITIVES = frozenset({"boolean", "int", "long", "float", "double", "string", "bytes"})
_LOGICAL = {
    "date": "date", "timestamp-micros": "timestamp", "timestamp-millis": "timestamp-millis", "time-micros": "time",
    "time-millis": "time-millis", "local-timestamp-micros": "local-timestamp-micros",
    "local-timestamp-millis": "local-timestamp-millis", "uuid": "uuid",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Column:
    """One column, or field of a struct.

    Attributes:
        name: the name.
        type: the type without null.
        id: the id; None until one is assigned.
        optional: whether the value may be null.
        doc: the comment.
        more: the rest of its Avro field, such as the default value.
    """

    name: str
    type: ColumnType
    id: int | None = None
    optional: bool = True
    doc: str | None = None
    more: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Struct:
    """The fields of a struct, or of the whole row. ``logical`` is the logical type of its Avro record."""

    columns: tuple[Column, ...]
    logical: str | None = None

    @cached_property
    def by_name(self) -> Mapping[str, Column]:
        """The fields by name."""
        return {column.name: column for column in self.columns}


@dataclass(frozen=True, slots=True)
class Elements:
    """A list of one type."""

    type: ColumnType
    optional: bool = True
    id: int | None = None


@dataclass(frozen=True, slots=True)
class Plain:
    """A type that is not nested: its Avro type in parsed JSON, or its name in a schema with ids."""

    avro: Any = None
    known_name: str | None = None

    @property
    def name(self) -> str:
        """The name in schemas with ids, such as ``int`` and ``decimal(9, 2)``.

        Raises:
            UnsupportedFeatureError: schemas with ids cannot have the type.
        """
        return name_plain_type(self.avro) if self.known_name is None else self.known_name


@dataclass(frozen=True, slots=True)
class Values:
    """A map. Its keys are strings in every Avro schema."""

    type: ColumnType
    optional: bool = True
    key_id: int | None = None
    id: int | None = None
    key: ColumnType = Plain("string")


ColumnType = Struct | Elements | Values | Plain


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


class Numbers:
    """Assigns ids. ``last`` is the greatest id so far."""

    def __init__(self, last: int) -> None:
        self.last = last

    def take(self, count: int = 1) -> int:
        """Return the first of ``count`` new ids."""
        first = self.last + 1
        self.last += count
        return first


def number_columns(columns: Sequence[Column], numbers: Numbers) -> tuple[Column, ...]:
    """Return columns with new ids.

    Raises:
        UnsupportedFeatureError: schemas with ids cannot have a type.
    """
    first = numbers.take(len(columns))
    return tuple(replace(each, id=first + at, type=_number_type(each.type, numbers)) for at, each in enumerate(columns))


def _number_type(type_: ColumnType, numbers: Numbers) -> ColumnType:
    match type_:
        case Struct(logical=str(logical)):
            raise _make_type_error(logical)
        case Struct():
            return replace(type_, columns=number_columns(type_.columns, numbers))
        case Elements():
            return replace(type_, id=numbers.take(), type=_number_type(type_.type, numbers))
        case Values():
            first = numbers.take(2)
            return replace(type_, key_id=first, id=first + 1, type=_number_type(type_.type, numbers))
    return _check_plain(type_)


def join_columns(
    columns: Sequence[Column], known: Sequence[Column], numbers: Numbers | None = None
) -> tuple[Column, ...]:
    """Return columns of an Avro schema with the ids of known columns of the same name.

    New columns get new ids; without ``numbers`` there may be none, and none may be missing.

    Raises:
        CorruptFileError: the schemas have different columns.
        UnsupportedFeatureError: schemas with ids cannot have a type.
    """
    if numbers is None and [each.name for each in columns] != [each.name for each in known]:
        raise CorruptFileError("A commit's schema and its schema with ids have different columns.")
    found = {each.name: each for each in known}
    new = {} if numbers is None else {
        each.name: number_columns([each], numbers)[0] for each in columns if each.name not in found
    }  # fmt: skip
    return tuple(new.get(each.name) or _join_column(each, found[each.name], numbers) for each in columns)


def _join_column(column: Column, known: Column, numbers: Numbers | None) -> Column:
    doc = known.doc if column.doc is None else column.doc
    return replace(column, id=known.id, type=_join_type(column.type, known.type, numbers), doc=doc)


def _join_type(type_: ColumnType, known: ColumnType, numbers: Numbers | None) -> ColumnType:
    match type_, known:
        case Struct(), Struct():
            return Struct(join_columns(type_.columns, known.columns, numbers))
        case Elements(), Elements():
            return replace(type_, id=known.id, type=_join_type(type_.type, known.type, numbers))
        case Values(), Values():
            inner = _join_type(type_.type, known.type, numbers)
            return replace(type_, key_id=known.key_id, id=known.id, type=inner)
        case Plain(), Plain():
            return _check_plain(type_)
    raise CorruptFileError("A commit's schema and its schema with ids have different types.")


def _check_plain(type_: Plain) -> Plain:
    """Return a type that schemas with ids can have. Raises UnsupportedFeatureError if they cannot."""
    name_plain_type(type_.avro)
    return type_


def name_plain_type(node: Any) -> str:
    """Return the name in schemas with ids of an Avro type (parsed JSON) that is not nested.

    Raises:
        UnsupportedFeatureError: schemas with ids cannot have the type.
    """
    if isinstance(node, str):
        if node not in _PRIMITIVES:
            raise _make_type_error(node)
        return _TYPE_NAMES.get(node, node)
    kind, logical = node.get("type"), node.get("logicalType")
    if logical in _LOGICAL:
        return _LOGICAL[logical]
    if logical == "decimal":
        digits = f"({node['precision']}, {node.get('scale', 0)})"
        return f"decimal_fixed{digits}[{node['size']}]" if kind == "fixed" else f"decimal_bytes{digits}"
    if logical is not None:
        raise _make_type_error(logical)
    return f"fixed[{node['size']}]" if kind == "fixed" else name_plain_type("string" if kind == "enum" else kind)


def _make_type_error(name: object) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(f"Schemas with ids of tables that have the type {str(name)[:40]!r}.")


def read_avro_fields(fields: Sequence[Mapping[str, Any]]) -> tuple[Column, ...]:
    """Return the fields of an Avro record (parsed JSON) as columns without ids.

    Raises:
        UnsupportedFeatureError: a union has several types besides null.
    """
    return tuple(map(_read_avro_field, fields))


def _read_avro_field(node: Mapping[str, Any]) -> Column:
    type_, optional = _read_avro_type(node["type"])
    more = {key: value for key, value in node.items() if key not in ("name", "type", "doc")}
    return Column(node["name"], type_, None, optional, node.get("doc"), more)


def _read_avro_type(node: Any) -> tuple[ColumnType, bool]:
    """Return a type without null, and whether null is allowed."""
    if isinstance(node, list):
        members = [each for each in node if each != "null"]
        if len(members) != 1:
            raise UnsupportedFeatureError("Unions of several types in a schema with ids.")
        return _read_avro_type(members[0])[0], "null" in node
    kind = node.get("type") if isinstance(node, dict) else node
    if kind == "record":
        return Struct(read_avro_fields(node["fields"]), node.get("logicalType")), False
    if kind == "array":
        return Elements(*_read_avro_type(node["items"])), False
    if kind == "map":
        return Values(*_read_avro_type(node["values"])), False
    return Plain(node), False


def make_avro_fields(columns: Sequence[Column], full_name: str) -> list[dict[str, Any]]:
    """Return columns as fields of the Avro record with that full name, as parsed JSON."""
    return [_make_avro_field(each, full_name) for each in columns]


def _make_avro_field(column: Column, full_name: str) -> dict[str, Any]:
    type_ = _make_avro_type(column.type, column.name, full_name, optional=column.optional)
    doc = {} if column.doc is None else {"doc": column.doc}
    more = column.more
    if column.optional and "default" not in more:
        more = {**more, "default": None}
    if isinstance(type_, list) and more.get("default") is not None:
        type_ = type_[::-1]  # a default must have the first type of the union
    return {"name": column.name, "type": type_, **doc, **more}


def _make_avro_type(type_: ColumnType, name: str, outer: str, *, optional: bool = False) -> Any:
    if optional:
        return ["null", _make_avro_type(type_, name, outer)]
    match type_:
        case Struct():
            fields = make_avro_fields(type_.columns, f"{outer}.{name}")
            return {"type": "record", "name": name, "namespace": outer, "fields": fields}
        case Elements():
            return {"type": "array", "items": _make_avro_type(type_.type, name, outer, optional=type_.optional)}
        case Values():
            return {"type": "map", "values": _make_avro_type(type_.type, name, outer, optional=type_.optional)}
    node = type_.avro
    if isinstance(node, dict) and node.get("type") in ("fixed", "enum") and node.get("logicalType") != VECTOR:
        return {**node, "namespace": f"{outer}.{name}"}
    return node


@dataclass(frozen=True)
class InternalSchema:
    """One version of a table's schema, with ids.

    Attributes:
        version: the instant of the change as a number; 0 before the first change.
        record: the columns.
        max_id: the greatest id that any version has assigned.
        fields_by_id: every field at any depth, with the record that contains it. Elements of lists and values of maps
            are not fields.
    """

    version: int
    record: Struct
    max_id: int = -1

    @cached_property
    def fields_by_id(self) -> Mapping[int | None, tuple[Column, Struct]]:
        return {column.id: (column, record) for column, record in _iterate_fields(self.record)}


def _iterate_fields(node: ColumnType) -> Iterator[tuple[Column, Struct]]:
    match node:
        case Struct():
            for column in node.columns:
                yield column, node
                yield from _iterate_fields(column.type)
        case Elements():
            yield from _iterate_fields(node.type)
        case Values():
            yield from _iterate_fields(node.key)
            yield from _iterate_fields(node.type)


def write_internal_schema(schema: InternalSchema) -> str:
    """Write a version as the ``latest_schema`` of a commit.

    Raises:
        UnsupportedFeatureError: schemas with ids cannot have a type.
    """
    head = {"max_column_id": schema.max_id, "version_id": schema.version}
    return _to_json({**head, **_write_type(schema.record)})


def write_schema_history(newest_first: Sequence[str], older: bytes = b"") -> bytes:
    """Write a file of ``.hoodie/.schema/``: versions from ``write_internal_schema``, then the versions of an older
    file.

    Raises:
        CorruptFileError: the older file is not in Hudi's format.
    """
    if older:
        parse_schema_history(older)
        newest_first = [*newest_first, *map(_to_json, json.loads(older)["schemas"])]
    return f'{{"schemas":[{",".join(newest_first)}]}}'.encode()


def _to_json(node: Any) -> str:
    return json.dumps(node, separators=(",", ":"), ensure_ascii=False)


def _write_type(type_: ColumnType) -> Any:
    match type_:
        case Struct():
            return {"type": "record", "fields": [_write_field(each) for each in type_.columns]}
        case Elements():
            element = _write_type(type_.type)
            return {"type": "array", "element_id": type_.id, "element": element, "element_optional": type_.optional}
        case Values():
            keys = {"key_id": type_.key_id, "key": _write_type(type_.key)}
            values = {"value_id": type_.id, "value": _write_type(type_.type)}
            return {"type": "map", **keys, **values, "value_optional": type_.optional}
    return type_.name


def _write_field(column: Column) -> dict[str, Any]:
    written = {"id": column.id, "name": column.name, "optional": column.optional, "type": _write_type(column.type)}
    return written if column.doc is None else {**written, "doc": column.doc}


def parse_internal_schema(text: str) -> InternalSchema:
    """Parse the ``latest_schema`` of a commit.

    Raises:
        CorruptFileError: the text is not in Hudi's format, or contradicts itself.
    """
    return _parse_schema(_load(text))


def parse_schema_history(text: bytes | str) -> tuple[InternalSchema, ...]:
    """Parse a file of ``.hoodie/.schema/``; return the versions, oldest first. The last one of equal versions counts.

    Raises:
        CorruptFileError: the text is not in Hudi's format, or a version contradicts itself.
    """
    found = _load(text)
    schemas = found.get("schemas") if isinstance(found, dict) else None
    if not isinstance(schemas, list):
        raise CorruptFileError("The schema history has no list of schemas.")
    by_version = {each.version: each for each in map(_parse_schema, schemas)}
    return tuple(by_version[version] for version in sorted(by_version))


def _load(text: bytes | str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CorruptFileError("The schema with ids is no JSON text.") from error


def _parse_schema(node: Any) -> InternalSchema:
    if not isinstance(node, dict):
        raise CorruptFileError("The schema with ids is no JSON object.")
    version = node.get("version_id", 0)
    if not isinstance(version, int) or isinstance(version, bool) or not 0 <= version < _MAX_VERSION:
        raise CorruptFileError("A schema with ids has a version that is no instant.")
    seen: set[int] = set()
    record = _parse_record(node, seen, 0)
    given = node.get("max_column_id")
    if isinstance(given, int) and not isinstance(given, bool) and 0 <= given <= _MAX_ID:
        seen.add(given)
    return InternalSchema(version, record, max(seen, default=-1))


def _parse_type(node: Any, seen: set[int], depth: int) -> ColumnType:
    if depth > _MAX_DEPTH:
        raise CorruptFileError(f"A schema with ids has more than {_MAX_DEPTH} levels.")
    if isinstance(node, str):
        return Plain(known_name=node.lower())
    if not isinstance(node, dict):
        raise CorruptFileError("A column of a schema with ids has no type.")
    match node.get("type"):
        case "record":
            return _parse_record(node, seen, depth)
        case "array":
            element = _note_id(node.get("element_id"), seen)
            inner = _parse_type(node.get("element"), seen, depth + 1)
            return Elements(inner, node.get("element_optional") is not False, element)
        case "map":
            key_id, value_id = _note_id(node.get("key_id"), seen), _note_id(node.get("value_id"), seen)
            key = _parse_type(node.get("key"), seen, depth + 1)
            inner = _parse_type(node.get("value"), seen, depth + 1)
            return Values(inner, node.get("value_optional") is not False, key_id, value_id, key)
    raise CorruptFileError("A column of a schema with ids has an unknown type.")


def _parse_record(node: Mapping[str, Any], seen: set[int], depth: int) -> Struct:
    entries = node.get("fields")
    if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
        raise CorruptFileError("A schema with ids has no list of fields.")
    columns = []
    for each in entries:
        name = each.get("name")
        if not isinstance(name, str):
            raise CorruptFileError("A schema with ids has a column without a name.")
        number = _note_id(each.get("id"), seen)
        type_, doc = _parse_type(each.get("type"), seen, depth + 1), each.get("doc")
        optional = each.get("optional") is not False
        columns.append(Column(name, type_, number, optional, doc if isinstance(doc, str) else None))
    if len({column.name for column in columns}) != len(columns):
        raise CorruptFileError("A schema with ids has two columns of one name.")
    return Struct(tuple(columns))


def _note_id(number: Any, seen: set[int]) -> int:
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number <= _MAX_ID:
        raise CorruptFileError("A schema with ids has a column without an id.")
    if number in seen:
        raise CorruptFileError(f"A schema with ids has the id {number} twice.")
    seen.add(number)
    return number
