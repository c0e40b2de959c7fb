"""Declare each record of the timeline once (Hudi's org.apache.hudi.avro.model).

A ``Record`` has a ``Field`` for each field of the Avro schema, in its order. The text of the schema, the reader and the
writer follow from the fields. The text is the one in files of Java Hudi 1.2.0, without documentation and Java-only
properties, which readers ignore. The reader looks fields up by name, so files of older and newer releases can be read;
a missing or null field gives what its kind has for it. The writer gives every field of the schema.

The modules beside this one declare their records: commits, plans and results of table services, savepoints, and the
archive.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, Generic, TypeVar

from hoodie_py.errors import CorruptFileError, InvalidTableError
from hoodie_py.formats.timeline import kinds
from hoodie_py.formats.timeline.kinds import UNSET, Kind, Place

NAMESPACE: Final = "org.apache.hudi.avro.model"
REQUIRED: Final = object()  # in place of a default: a schema has none
_JAVA_STRING = {"avro.java.string": "String"}
_NOWHERE = Place()
T = TypeVar("T")


class Field:
    """A field of a record.

    ``attribute`` is the value's attribute for it, by default the field's name in snake case; None without one. A field
    is nullable unless ``null`` is false; its default is null, or ``default``, or with ``REQUIRED`` none. An empty
    attribute is written as ``blank``, or refused with the message ``needed``, if one is given. ``compose`` makes what
    is written from the whole value. ``part`` is the record of a nested field whose attributes are the value's own.
    """

    __slots__ = ("attribute", "blank", "compose", "default", "kind", "name", "needed", "null", "part")

    def __init__(
        self,
        name: str,
        kind: Kind,
        attribute: str | None = "",
        *,
        null: bool = True,
        default: Any = None,
        blank: Any = UNSET,
        needed: str = "",
        compose: Callable[[Any, Place], Any] | None = None,
        part: Record[Any] | None = None,
    ) -> None:
        self.name = name
        self.kind = kind
        self.attribute = to_snake_case(name) if attribute == "" else attribute
        self.null = null
        self.default = default
        self.blank = blank
        self.needed = needed
        self.compose = compose
        self.part = part

    def write(self, value: Any, place: Place) -> Any:
        """Return the field's decoded form for a value."""
        if self.compose is not None:
            return self.compose(value, place)
        return self.write_attribute(getattr(value, str(self.attribute)), place)

    def write_attribute(self, value: Any, place: Place) -> Any:
        """Return the field's decoded form for a value of its attribute."""
        if not value and self.blank is not UNSET:
            return self.blank
        if not value and self.needed:
            raise InvalidTableError(self.needed)
        return None if value is None else self.kind.write_item(value, place)

    def render(self, known: set[str] | None, *, java: bool) -> dict[str, Any]:
        """Return the field of an Avro schema."""
        found: dict[str, Any] = {"name": self.name, "type": _render(self.kind.avro, known, java=java)}
        if self.null:
            has_value = self.default is not None and self.default is not REQUIRED
            found["type"] = [found["type"], "null"] if has_value else ["null", found["type"]]
        if self.default is not REQUIRED and (self.null or self.default is not None):
            found["default"] = self.default
        return found


_Reader = tuple[str, str, tuple[type, ...] | None, Callable[[Any], Any] | None]  # name, attribute, types, conversion


class Record(Generic[T]):
    """A record of the timeline: its name, its fields, and what makes a value of the attributes.

    The files of a value whose attribute ``inside`` is a partition are in that partition.
    """

    def __init__(self, name: str, make: Callable[..., T], *fields: Field, inside: str | None = None) -> None:
        self.name = name
        self.fields = fields
        self._make = make
        self._inside = inside
        self._readers: list[_Reader] = []
        self._missing: dict[str, Any] = {}
        for each in fields:
            if each.attribute is not None:
                self._readers.append((each.name, each.attribute, each.kind.types, each.kind.read))
                if each.kind.missing is not UNSET:
                    self._missing[each.attribute] = each.kind.missing
        self._parts = [(each.name, each.part) for each in fields if each.part is not None]

    @cached_property
    def schema(self) -> Any:
        """The Avro schema, with each record written out wherever it occurs."""
        return _render(self, None, java=False)

    @cached_property
    def text(self) -> str:
        """The Avro schema as JSON."""
        return json.dumps({"namespace": NAMESPACE} | _render(self, set(), java=False), separators=(",", ":"))

    @cached_property
    def java_text(self) -> str:
        """The Avro schema with texts as Java's: without that property Java reads another class, and fails."""
        found = _render(self, set(), java=True)
        found = {"type": "record", "name": self.name, "namespace": NAMESPACE, "fields": found["fields"]}
        return json.dumps(found, separators=(",", ":"))

    def read(self, record: Any) -> T:
        """Read a decoded record.

        Raises:
            CorruptFileError: not a record, or a field of another type.
            InvalidTableError: a path leads out of the table.
        """
        return self._make(**self.read_values(record))

    def read_values(self, record: Any) -> dict[str, Any]:
        """Read the attributes of a decoded record; raises as ``read``."""
        values = self._missing | self._read_fields(record, self._readers)
        for name, inner in self._parts:
            if record.get(name) is not None:
                values |= inner.read_values(record[name])
        return values

    def read_attribute(self, record: Any, attribute: str) -> Any:
        """Read one attribute of a decoded record and no other; raises as ``read``."""
        readers = [each for each in self._readers if each[1] == attribute]
        return self._read_fields(record, readers).get(attribute, self._missing.get(attribute))

    def _read_fields(self, record: Any, readers: Sequence[_Reader]) -> dict[str, Any]:
        if type(record) is not dict and not isinstance(record, Mapping):
            raise CorruptFileError("A metadata value should be a record.")
        values: dict[str, Any] = {}
        for name, attribute, types, convert in readers:
            value = record.get(name)
            if value is not None:
                if types is not None and type(value) not in types:
                    raise CorruptFileError(f"Metadata field {name} has an unexpected type.", type=type(value).__name__)
                values[attribute] = value if convert is None else convert(value)
        return values

    def read_file(self, data: bytes) -> T:
        """Read an Avro container of one record; an empty file has no fields.

        Raises:
            CorruptFileError: not such a container, or as ``read``.
            InvalidTableError: as ``read``.
        """
        from hoodie_py.formats.avro.container import read_single

        return self.read(read_single(data, self.name) if data else {})

    def write(self, value: Any, place: Place = _NOWHERE) -> dict[str, Any]:
        """Return the decoded record of a value. Raises InvalidTableError if a path leads out of the table."""
        if self._inside is not None:
            place = place.enter(getattr(value, self._inside))
        return {each.name: each.write(value, place) for each in self.fields}

    def write_file(self, value: Any, location: str = "") -> bytes:
        """Return an Avro container of a value's record; raises as ``write``.

        ``location`` is the table's, in the form in which Java's file system opens it; only records that name files by
        location need it.
        """
        from hoodie_py.formats.avro.container import write_single

        return write_single(self.write(value, Place(location)), self.text)


def take_attributes(**values: Any) -> dict[str, Any]:
    """Return the attributes: the value of a record that has no class."""
    return values


def fixed(name: str, kind: Kind, written: Any, **schema: Any) -> Field:
    """Return a field that is always written with one value, and not read."""
    return Field(name, kind, None, compose=lambda *_: written, **schema)


def version(written: int | None, default: int = 1) -> Field:
    """Return the field with the version of a record's form."""
    return fixed("version", kinds.INT, written, default=default)


def partition_of_key() -> Field:
    """Return the field of a record in a map by partition that repeats the partition."""
    return Field("partitionPath", kinds.TEXT, None, null=False, compose=lambda _, place: place.partition)


def part(name: str, record: Record[Any], is_written: Callable[[Any], bool]) -> Field:
    """Return the field of a nested record whose attributes belong to the outer value."""

    def compose(value: Any, place: Place) -> dict[str, Any] | None:
        return record.write(value, place) if is_written(value) else None

    return Field(name, nested(record), None, compose=compose, part=record)


def nested(record: Record[Any]) -> Kind:
    """Return the kind of a record."""
    return Kind(record, None, None, record.read, record.write)


def only(record: Record[Any], attribute: str) -> Kind:
    """Return the kind of a record that stands for one of its attributes."""

    def write(value: Any, place: Place) -> dict[str, Any]:
        return {
            each.name: each.write_attribute(value, place) if each.attribute == attribute else each.write(None, place)
            for each in record.fields
        }

    return Kind(record, None, None, lambda value: record.read_attribute(value, attribute), write)


def to_snake_case(name: str) -> str:
    """Return the attribute for the name of a field."""
    return re.sub(r"(?=[A-Z])", "_", name).lower()


def _render(avro: Any, known: set[str] | None, *, java: bool) -> Any:
    """Return a type of a schema as JSON; with ``known``, each record is written out once, then named."""
    if isinstance(avro, Record):
        if known is not None:
            if avro.name in known:
                return avro.name
            known.add(avro.name)
        fields = [each.render(known, java=java) for each in avro.fields]
        return {"type": "record", "name": avro.name, "fields": fields}
    if isinstance(avro, list):
        return [_render(each, known, java=java) for each in avro]
    if isinstance(avro, str):
        return {"type": "string"} | _JAVA_STRING if java and avro == "string" else avro
    found = {key: _render(each, known, java=java) if key != "type" else each for key, each in avro.items()}
    return found | _JAVA_STRING if java and avro["type"] == "map" else found
