"""Kinds of values in the timeline's records: the type of a field, and its way from the file and back.

Readers get values as decoded from Avro or JSON. A value of another type than the kind's is an error. Paths are checked
in both directions: partitions must be under the table. Files become bare names even where Hudi wrote an absolute URI;
records that name files by location are written with the location of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from hoodie_py.errors import CorruptFileError
from hoodie_py.formats.names import check_bare, check_file_name, check_inside, check_partition, find_file_name

UNSET: Final = object()  # in place of a value for an attribute
_SPOKEN = {str: "a string", int: "a whole number", float: "a number", list: "a list", dict: "a map"}


@dataclass(frozen=True, slots=True)
class Place:
    """Where the files of a record are: the table's location, as Java's file system opens it, and a partition."""

    location: str = ""
    partition: str = ""

    def enter(self, partition: str) -> Place:
        """Return the place of a partition. Raises InvalidTableError if it is not in the table."""
        return Place(self.location, check_inside(partition))

    def locate(self, name: str) -> str:
        """Return the location of a file. Raises InvalidTableError if the name is a path."""
        folder = "/".join(part for part in (self.location.rstrip("/"), self.partition) if part)
        return f"{folder}/{check_file_name(name)}"


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of field, and how its values are read and written.

    ``avro`` is the type in the schema: a name, an array or map of one, or a ``Record``. ``types`` are the Python types
    of a decoded value; None allows any. ``read`` converts a value that is not null, ``write`` a value that is not None;
    without them values stay as they are. ``missing`` stands for null; ``UNSET`` leaves the attribute its default.
    """

    avro: Any
    types: tuple[type, ...] | None
    missing: Any = None
    read: Callable[[Any], Any] | None = None
    write: Callable[[Any, Place], Any] | None = None

    def read_item(self, value: Any) -> Any:
        """Return an item of an array or map; a null list counts as an empty one."""
        if self.types is not None and type(value) not in self.types:
            if value is None and list in self.types:
                return self.missing
            spoken = _SPOKEN[self.types[0]]
            raise CorruptFileError(f"A metadata value should be {spoken}.", type=type(value).__name__)
        return value if self.read is None else self.read(value)

    def write_item(self, value: Any, place: Place) -> Any:
        """Return the decoded form of an item."""
        return value if self.write is None else self.write(value, place)


def _keep_name(name: str, _: Place) -> str:
    return check_file_name(name)


def _locate(name: str, place: Place) -> str:
    return place.locate(name)


def _find_name(path: str) -> str | None:
    return find_file_name(path) if path else None


TEXT = Kind("string", (str,))
TEXT_OR_EMPTY = replace(TEXT, missing="")
TEXT_OR_NONE = replace(TEXT, read=lambda text: text or None)
LONG = Kind("long", (int,))
INT = Kind("int", (int,))
BYTES = Kind("bytes", (bytes,))
COUNT = replace(LONG, missing=0)
FLAG = Kind("boolean", (bool,), missing=False)
DOUBLE = Kind("double", (float, int), read=float, write=lambda value, _: float(value))
PARTITION = Kind("string", (str,), "", check_partition, lambda path, _: check_inside(path))
PATH = Kind("string", (str,), None, check_inside, lambda path, _: check_inside(path))
FILE_ID = Kind("string", (str,), "", check_bare)
FILE_NAME = Kind("string", (str,), None, find_file_name, _keep_name)
FILE_NAME_OR_NONE = replace(FILE_NAME, read=_find_name)
LOCATED_FILE = replace(FILE_NAME, write=_locate)


def array(items: Kind) -> Kind:
    """Return the kind of an array, which is read as a tuple."""

    def write(values: Any, place: Place) -> list[Any]:
        return [items.write_item(each, place) for each in values]

    convert = items.read_item
    return Kind({"type": "array", "items": items.avro}, (list,), (), lambda values: tuple(map(convert, values)), write)


def mapping(values: Kind, key: Kind = TEXT) -> Kind:
    """Return the kind of a map; ``key`` checks and converts its keys."""

    def read(found: dict[str, Any]) -> dict[str, Any]:
        items = {name: values.read_item(value) for name, value in found.items()}
        return items if key.read is None else {key.read(name): item for name, item in items.items()}

    def write(found: Mapping[str, Any], place: Place) -> dict[str, Any]:
        return {key.write_item(name, place): values.write_item(value, place) for name, value in found.items()}

    return Kind({"type": "map", "values": values.avro}, (dict,), UNSET, read, write)


def by_partition(values: Kind) -> Kind:
    """Return the kind of a map whose keys are paths relative to the table, mostly of partitions."""

    def write(found: Mapping[str, Any], place: Place) -> dict[str, Any]:
        return {path: values.write_item(value, place.enter(path)) for path, value in found.items()}

    return replace(mapping(values, PARTITION), write=write)


TEXTS = array(TEXT)
PARTITIONS = array(PARTITION)
TEXT_MAP = mapping(TEXT)
FILE_NAMES = array(FILE_NAME)
LOCATED_FILES = array(LOCATED_FILE)
LOCATED_SIZES = mapping(LONG, LOCATED_FILE)
METRICS = mapping(DOUBLE)
