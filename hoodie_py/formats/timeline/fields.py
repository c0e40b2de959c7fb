"""Typed access to the fields of a metadata record, decoded from Avro or JSON.

Each getter says what it returns for a missing or null field. A field of another type is an error. Paths are checked:
partitions must be under the table, and files become bare names even where Hudi wrote an absolute URI.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from hoodie_py.errors import CorruptFileError
from hoodie_py.formats.names import check_bare, check_partition, find_file_name

T = TypeVar("T")


class Fields:
    """A record's fields by name."""

    __slots__ = ("_record",)

    def __init__(self, record: Any) -> None:
        if not isinstance(record, Mapping):
            raise CorruptFileError("A metadata value should be a record.")
        self._record = record

    def _get_typed(self, name: str, kind: type[T] | tuple[type[T], ...]) -> T | None:
        value = self._record.get(name)
        if value is None:
            return None
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise CorruptFileError(f"Metadata field {name} has an unexpected type.", type=type(value).__name__)
        return value

    def has(self, name: str) -> bool:
        """Return whether the record has the field and it is not null."""
        return self._record.get(name) is not None

    def get(self, name: str) -> Any:
        """Return the field unchanged; None when missing."""
        return self._record.get(name)

    def get_text(self, name: str) -> str | None:
        """Return a string field; None when missing."""
        return self._get_typed(name, str)

    def get_bytes(self, name: str) -> bytes | None:
        """Return a field of bytes; None when missing."""
        return self._get_typed(name, bytes)

    def get_number(self, name: str) -> int | None:
        """Return a whole-number field; None when missing."""
        return self._get_typed(name, int)

    def get_count(self, name: str) -> int:
        """Return a whole-number field; 0 when missing."""
        return self._get_typed(name, int) or 0

    def get_flag(self, name: str) -> bool:
        """Return a boolean field; false when missing."""
        return self._get_typed(name, bool) or False

    def get_partition(self, name: str = "partitionPath") -> str:
        """Return a partition path; "" when missing."""
        return check_partition(self.get_text(name) or "")

    def get_file_id(self) -> str:
        """Return the id of a file group; "" when missing."""
        return check_bare(self.get_text("fileId") or "")

    def get_file_name(self, name: str) -> str | None:
        """Return the file name of a path or URI; None when missing or empty."""
        value = self.get_text(name)
        return find_file_name(value) if value else None

    def get_record(self, name: str) -> Fields | None:
        """Return a nested record; None when missing."""
        return Fields(self._record[name]) if self.has(name) else None

    def get_items(self, name: str, convert: Callable[[Any], T]) -> tuple[T, ...]:
        """Return an array field with its items converted; empty when missing."""
        return tuple(convert(item) for item in self._get_typed(name, list) or ())

    def get_texts(self, name: str) -> tuple[str, ...]:
        """Return an array of strings; empty when missing."""
        return self.get_items(name, expect_text)

    def get_file_names(self, name: str) -> tuple[str, ...]:
        """Return the file names of an array of paths or URIs; empty when missing."""
        return self.get_items(name, _expect_file_name)

    def get_mapping(self, name: str, convert: Callable[[Any], T]) -> dict[str, T]:
        """Return a map field with its values converted; empty when missing."""
        found = self._get_typed(name, dict) or {}
        return {expect_text(key): convert(value) for key, value in found.items()}

    def get_by_partition(self, name: str, convert: Callable[[Any], T]) -> dict[str, T]:
        """Return a map field whose keys are paths relative to the table's base path, mostly of partitions."""
        return {check_partition(key): value for key, value in self.get_mapping(name, convert).items()}


def expect_text(value: Any) -> str:
    """Return ``value`` if it is a string."""
    if not isinstance(value, str):
        raise CorruptFileError("A metadata value should be a string.", type=type(value).__name__)
    return value


def expect_file_id(value: Any) -> str:
    """Return ``value`` if it is a string that can be the id of a file group."""
    return check_bare(expect_text(value))


def _expect_file_name(value: Any) -> str:
    return find_file_name(expect_text(value))


def expect_file_names(value: Any) -> tuple[str, ...]:
    """Return the file names of a list of paths or URIs; null counts as an empty one."""
    return tuple(map(_expect_file_name, expect_list(value)))


def expect_number(value: Any) -> int:
    """Return ``value`` if it is a whole number."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise CorruptFileError("A metadata value should be a whole number.", type=type(value).__name__)
    return value


def expect_list(value: Any) -> list[Any]:
    """Return ``value`` if it is a list; null counts as an empty one."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise CorruptFileError("A metadata value should be a list.", type=type(value).__name__)
    return value
