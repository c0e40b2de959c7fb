"""RecordContext: the only door from a merger to a record's data.

Mirrors Hudi's RecordContext (engine-agnostic record access of RFC-101).  A merger that uses nothing else works on every
kind of row.  Absent fields, null parents and null meta values read as null; a field that the table does not have is an
error.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

import pyarrow as pa

from hoodie_py.reader.records import BufferedRecord, HoodieOperation

T = TypeVar("T")


class RecordContext(ABC, Generic[T]):
    """Access to the records of one file group; see the methods.  Where one takes a record, bare data will do too."""

    @abstractmethod
    def get_value(self, rec: BufferedRecord[T] | T | None, field: str) -> Any:
        """Return a field's value as a Python object of its own; ``a.b.c`` reaches into structs.

        None where the field is null or absent, where a parent is null, and where there is no data.

        Raises:
            MergeError: the table has no such field, or this read did not load its column (see
                RecordMerger.mandatory_fields).
        """

    @abstractmethod
    def has_value(self, rec: BufferedRecord[T] | T | None, field: str) -> bool:
        """Say whether the data has the field, null or not.

        False for what a row of a partial update does not have: such an absent value leaves the older one as it is,
        while a null overwrites it.  False also for fields that the table does not have, and without data.

        Raises:
            MergeError: the table has the column but this read did not load it.
        """

    @abstractmethod
    def ordering_value(self, rec: BufferedRecord[T] | T | None) -> Any:
        """Return the ordering value from the data: a value, a tuple for several fields, or DEFAULT_ORDERING.

        Without data it is the record's own.  A null is DEFAULT_ORDERING; in an int column, where Hudi's default is the
        value 0, it is 0, and a 0 (or null) on a delete is DEFAULT_ORDERING.
        """

    @abstractmethod
    def record_key(self, rec: BufferedRecord[T] | T) -> str:
        """Return the record key's text: the meta column's, or computed from the key fields."""

    @abstractmethod
    def is_delete(self, rec: BufferedRecord[T] | T) -> bool:
        """Say whether a record is a delete: by its operation or its data (flag, operation column, the table's marker).

        Raises:
            MergeError: the operation column holds an unknown text.
        """

    @abstractmethod
    def buffered(self, row: T, operation: HoodieOperation | None = None) -> BufferedRecord[T]:
        """Make a BufferedRecord of a bare row: key, ordering value, schema and operation follow from the data.

        Args:
            row: the data.
            operation: what the row did, where the caller knows; a row marked as deleted is a DELETE all the same,
                unless it is an UPDATE_BEFORE.
        """

    @abstractmethod
    def replace(self, rec: BufferedRecord[T], /, **values: Any) -> BufferedRecord[T]:
        """Return the record with other field values; the ordering value follows its fields, all else stays.

        A record without data gets a row whose other fields are null.

        Raises:
            MergeError: a column that the table does not have or this read did not load, or values of another key.
        """

    @abstractmethod
    def delete(self, rec: BufferedRecord[T]) -> BufferedRecord[T]:
        """Return the record marked DELETE, its data kept."""

    @abstractmethod
    def construct(
        self, record_key: str, values: Mapping[str, Any], schema: pa.Schema | None = None
    ) -> BufferedRecord[T]:
        """Build a record from field values; fields of the schema that are left out are null.

        Args:
            record_key: key of the new record.
            values: field values by name.
            schema: its schema; None for the reader's.  Columns of the reader's schema that it lacks are absent.

        Raises:
            MergeError: a field outside the schema, or values of another key.
        """

    @abstractmethod
    def project(
        self, rec: BufferedRecord[T], schema: pa.Schema, renames: Mapping[str, str] | None = None
    ) -> BufferedRecord[T]:
        """Return the record with only the schema's fields; a record without data stays as it is.

        Args:
            rec: the record.
            schema: the fields wanted; those that the record does not have stay absent.
            renames: the record's name of a field, by the schema's name, where they differ.
        """

    @abstractmethod
    def encode_schema(self, schema: pa.Schema) -> int:
        """Return a small number for a schema; equal schemas share one.  Not valid outside this context."""

    @abstractmethod
    def decode_schema(self, schema_id: int | None) -> pa.Schema | None:
        """Return the schema of a number from ``encode_schema``; None for an unknown one or None."""
