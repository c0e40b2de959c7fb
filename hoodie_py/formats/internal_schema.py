"""InternalSchema: the schema of a table with schema-on-read, whose columns have ids, and the history of such schemas.

Hudi stores it as JSON in two forms (``SerDeHelper``): one schema in the commit metadata's ``latest_schema``, and all
versions, ``{"schemas": [newest, ...]}``, in the files of ``.hoodie/.schema/``. A version has a ``version_id``: the
instant of the change as a number, 0 for the schema before the first change. Fields, list elements, map keys and map
values have ids that never change, whatever is renamed.

The text is input of unknown origin: its depth is bounded, and the ids of a version and the names of a record must be
distinct.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from hoodie_py.errors import CorruptFileError

_MAX_DEPTH = 64
_MAX_ID = 2**31 - 1
_MAX_VERSION = 10**18


@dataclass(frozen=True)
class Field:
    """One field of a record: its id, its name, its type, whether it may be null, and its comment."""

    id: int
    name: str
    type: InternalType
    optional: bool = True
    doc: str | None = None


@dataclass(frozen=True)
class RecordType:
    """A struct, or the whole row."""

    fields: tuple[Field, ...]

    @cached_property
    def by_name(self) -> Mapping[str, Field]:
        """The fields by name."""
        return {field.name: field for field in self.fields}


@dataclass(frozen=True)
class ListType:
    """A list of one type."""

    element_id: int
    element: InternalType
    element_optional: bool = True


@dataclass(frozen=True)
class MapType:
    """A map from one type to another."""

    key_id: int
    key: InternalType
    value_id: int
    value: InternalType
    value_optional: bool = True


InternalType = str | RecordType | ListType | MapType  # a string is a primitive type: "int", "decimal(9, 2)", ...


@dataclass(frozen=True)
class InternalSchema:
    """One version of a table's schema.

    Attributes:
        version: the instant of the change as a number; 0 before the first change.
        record: the columns.
        max_id: the greatest id that any version has assigned.
        fields_by_id: every field at any depth, with the record that contains it. Elements of lists and values of maps
            are not fields.
    """

    version: int
    record: RecordType
    max_id: int = -1

    @cached_property
    def fields_by_id(self) -> Mapping[int, tuple[Field, RecordType]]:
        return {field.id: (field, record) for field, record in _iterate_fields(self.record)}


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


def write_internal_schema(schema: InternalSchema) -> str:
    """Write a version as the ``latest_schema`` of a commit."""
    head = {"max_column_id": schema.max_id, "version_id": schema.version}
    return json.dumps({**head, **_write_type(schema.record)}, separators=(",", ":"), ensure_ascii=False)


def write_schema_history(newest_first: Sequence[str], older: bytes = b"") -> bytes:
    """Write a file of ``.hoodie/.schema/``: versions from ``write_internal_schema``, then the versions of an older
    file.

    Raises:
        CorruptFileError: the older file is not in Hudi's format.
    """
    if older:
        parse_schema_history(older)
        versions = json.loads(older)["schemas"]
        texts = [json.dumps(each, separators=(",", ":"), ensure_ascii=False) for each in versions]
        newest_first = [*newest_first, *texts]
    return f'{{"schemas":[{",".join(newest_first)}]}}'.encode()


def _write_type(type_: InternalType) -> Any:
    match type_:
        case RecordType():
            return {"type": "record", "fields": [_write_field(field) for field in type_.fields]}
        case ListType():
            element = _write_type(type_.element)
            optional = type_.element_optional
            return {"type": "array", "element_id": type_.element_id, "element": element, "element_optional": optional}
        case MapType():
            keys = {"key_id": type_.key_id, "key": _write_type(type_.key)}
            values = {"value_id": type_.value_id, "value": _write_type(type_.value)}
            return {"type": "map", **keys, **values, "value_optional": type_.value_optional}
    return type_


def _write_field(field: Field) -> dict[str, Any]:
    written = {"id": field.id, "name": field.name, "optional": field.optional, "type": _write_type(field.type)}
    return written if field.doc is None else {**written, "doc": field.doc}


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


def _parse_type(node: Any, seen: set[int], depth: int) -> InternalType:
    if depth > _MAX_DEPTH:
        raise CorruptFileError(f"A schema with ids has more than {_MAX_DEPTH} levels.")
    if isinstance(node, str):
        return node.lower()
    if not isinstance(node, dict):
        raise CorruptFileError("A column of a schema with ids has no type.")
    match node.get("type"):
        case "record":
            return _parse_record(node, seen, depth)
        case "array":
            element = _note_id(node.get("element_id"), seen)
            element_type = _parse_type(node.get("element"), seen, depth + 1)
            return ListType(element, element_type, node.get("element_optional") is not False)
        case "map":
            key, value = _note_id(node.get("key_id"), seen), _note_id(node.get("value_id"), seen)
            key_type = _parse_type(node.get("key"), seen, depth + 1)
            value_type = _parse_type(node.get("value"), seen, depth + 1)
            return MapType(key, key_type, value, value_type, node.get("value_optional") is not False)
    raise CorruptFileError("A column of a schema with ids has an unknown type.")


def _parse_record(node: Mapping[str, Any], seen: set[int], depth: int) -> RecordType:
    entries = node.get("fields")
    if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
        raise CorruptFileError("A schema with ids has no list of fields.")
    fields = []
    for each in entries:
        name = each.get("name")
        if not isinstance(name, str):
            raise CorruptFileError("A schema with ids has a column without a name.")
        number = _note_id(each.get("id"), seen)
        type_, doc = _parse_type(each.get("type"), seen, depth + 1), each.get("doc")
        optional = each.get("optional") is not False
        fields.append(Field(number, name, type_, optional, doc if isinstance(doc, str) else None))
    if len({field.name for field in fields}) != len(fields):
        raise CorruptFileError("A schema with ids has two columns of one name.")
    return RecordType(tuple(fields))


def _note_id(number: Any, seen: set[int]) -> int:
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number <= _MAX_ID:
        raise CorruptFileError("A schema with ids has a column without an id.")
    if number in seen:
        raise CorruptFileError(f"A schema with ids has the id {number} twice.")
    seen.add(number)
    return number


def _iterate_fields(node: InternalType) -> Iterator[tuple[Field, RecordType]]:
    match node:
        case RecordType():
            for field in node.fields:
                yield field, node
                yield from _iterate_fields(field.type)
        case ListType():
            yield from _iterate_fields(node.element)
        case MapType():
            yield from _iterate_fields(node.key)
            yield from _iterate_fields(node.value)
