"""RecordContext: the only door from a merger to a record's data.

Mirrors Hudi's RecordContext (engine-agnostic record access of RFC-101).  A merger that uses nothing else works on every
kind of row.  Missing fields, null parents and null meta values read as null.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

import pyarrow as pa

from hoodie_py.reader.records import BufferedRecord

T = TypeVar("T")


class RecordContext(ABC, Generic[T]):
    """Access to the records of one file group; see the methods."""

    @abstractmethod
    def get_value(self, rec: BufferedRecord[T] | T | None, field: str) -> Any:
        """Return a field's value as a Python object; ``a.b.c`` reaches into structs; None where missing or null.

        Raises:
            MergeError: the table has the column but this read did not load it (see RecordMerger.mandatory_fields).
        """

    @abstractmethod
    def ordering_value(self, rec: BufferedRecord[T] | T | None) -> Any:
        """Return the ordering value from the data: a value, a tuple for several fields, or DEFAULT_ORDERING."""

    @abstractmethod
    def record_key(self, rec: BufferedRecord[T] | T) -> str:
        """Return the record key's text."""

    @abstractmethod
    def is_delete(self, rec: BufferedRecord[T] | T) -> bool:
        """Say whether the data marks its record as deleted (flag, operation column or the table's own marker)."""

    @abstractmethod
    def replace(self, rec: BufferedRecord[T], **values: Any) -> BufferedRecord[T]:
        """Return the record with other field values; the ordering value follows its fields, all else stays."""

    @abstractmethod
    def delete(self, rec: BufferedRecord[T]) -> BufferedRecord[T]:
        """Return the record marked DELETE, its data kept."""

    @abstractmethod
    def construct(
        self, record_key: str, values: Mapping[str, Any], schema: pa.Schema | None = None
    ) -> BufferedRecord[T]:
        """Build a record from field values; fields left out are null.

        Args:
            record_key: key of the new record.
            values: field values by name.
            schema: its schema; None for the reader's.
        """

    @abstractmethod
    def project(self, rec: BufferedRecord[T], schema: pa.Schema) -> BufferedRecord[T]:
        """Return the record with only the schema's fields; a record without data stays as it is."""

    @abstractmethod
    def encode_schema(self, schema: pa.Schema) -> int:
        """Return a small number for a schema; equal schemas share one.  Not valid outside this context."""

    @abstractmethod
    def decode_schema(self, schema_id: int | None) -> pa.Schema | None:
        """Return the schema of a number from ``encode_schema``; None for an unknown one or None."""
