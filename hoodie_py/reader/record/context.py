"""RecordContext: the interface through which a merger reads and makes records.

It agrees with Hudi's RecordContext (RFC-101). A merger that uses only this interface works on every kind of row. A null
field, an absent field and a field of a null struct read as None; a field that the table does not have is an error.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

import pyarrow as pa

from hoodie_py.reader.record.record import BufferedRecord, HoodieOperation

T = TypeVar("T")


class RecordContext(ABC, Generic[T]):
    """Access to the records of one file group.

    Most methods take a BufferedRecord or bare data: a record's data, or a mapping of values by column name, in which
    all other columns are absent.

    Examples:
        >>> class AddPrices(RecordMerger):
        ...     strategy_id = "9a0a8a57-9e0b-4a63-8a4d-2f0c6d1a7b33"
        ...
        ...     def merge(self, older, newer, context: RecordContext, props):
        ...         total = context.get_value(older, "price") + context.get_value(newer, "price")
        ...         return context.replace(newer, price=total)
        >>> trips.scan(["id", "price"], filter="id = 'a'", merger=AddPrices).to_arrow().to_pylist()
        [{'id': 'a', 'price': 22.0}]
    """

    @abstractmethod
    def get_value(self, rec: BufferedRecord[T] | T | Mapping[str, Any] | None, field: str) -> Any:
        """Return a field's value as a Python object that the caller may change; ``a.b.c`` reads a field of structs.

        None where the field is null or absent, where a parent is null, and where the record has no data.

        Raises:
            MergeError: the table does not have the field, or this read did not load its column (see
                RecordMerger.mandatory_fields).
        """

    @abstractmethod
    def has_value(self, rec: BufferedRecord[T] | T | Mapping[str, Any] | None, field: str) -> bool:
        """Say whether the data has the field, null or not.

        False for a field that a partial row lacks: an absent value keeps the older value, while a null overwrites it.
        Also False for a field that the table does not have, and for a record without data.

        Raises:
            MergeError: the table has the column but this read did not load it.
        """

    @abstractmethod
    def ordering_value(self, rec: BufferedRecord[T] | T | Mapping[str, Any] | None) -> Any:
        """Return the ordering value from the data: a value, a tuple for several fields, or DEFAULT_ORDERING.

        A record without data keeps its ordering value. A null gives DEFAULT_ORDERING, except in an int column, because
        Hudi's default is the int 0: there a null gives 0, and a 0 or null on a delete gives DEFAULT_ORDERING.
        """

    @abstractmethod
    def record_key(self, rec: BufferedRecord[T] | T | Mapping[str, Any]) -> str:
        """Return the record key's text, from the meta column or from the key fields."""

    @abstractmethod
    def is_delete(self, rec: BufferedRecord[T] | T | Mapping[str, Any]) -> bool:
        """Say whether a record is a delete, by its operation or its data (flag, operation column, delete marker).

        Raises:
            MergeError: the operation column holds an unknown text.
        """

    @abstractmethod
    def buffered(self, row: T | Mapping[str, Any], operation: HoodieOperation | None = None) -> BufferedRecord[T]:
        """Make a BufferedRecord of a bare row; key, ordering value, schema and operation come from the data.

        Args:
            row: the data.
            operation: the row's operation, if known. A row marked as deleted becomes a DELETE in any case, unless it is
                an UPDATE_BEFORE.

        Raises:
            MergeError: the table does not have a column, this read did not load it, or the row has no key.
        """

    @abstractmethod
    def replace(self, rec: BufferedRecord[T], /, **values: Any) -> BufferedRecord[T]:
        """Return the record with other field values. The ordering value follows its fields; the rest stays.

        A record without data gets a row whose other fields are null.

        Raises:
            MergeError: the table does not have a column, this read did not load it, or the record key changed.
        """

    @abstractmethod
    def delete(self, rec: BufferedRecord[T]) -> BufferedRecord[T]:
        """Return the record as a DELETE that keeps its data."""

    @abstractmethod
    def construct(
        self, record_key: str, values: Mapping[str, Any], schema: pa.Schema | None = None
    ) -> BufferedRecord[T]:
        """Make a record from field values; other fields of the schema are null.

        Args:
            record_key: key of the new record.
            values: field values by name.
            schema: the record's schema; None for the reader's. Columns that only the reader's schema has are absent.

        Raises:
            MergeError: a field is not in the schema, or the values have another record key.
        """

    @abstractmethod
    def project(
        self, rec: BufferedRecord[T], schema: pa.Schema, renames: Mapping[str, str] | None = None
    ) -> BufferedRecord[T]:
        """Return the record with only the schema's fields; a record without data is returned unchanged.

        Args:
            rec: the record.
            schema: the wanted fields; a field that the record does not have stays absent.
            renames: maps a name of the schema to the record's name of that field, where the names differ.
        """

    @abstractmethod
    def encode_schema(self, schema: pa.Schema) -> int:
        """Return the id of a schema; equal schemas have one id. It is valid in this context only."""

    @abstractmethod
    def decode_schema(self, schema_id: int | None) -> pa.Schema | None:
        """Return the schema of an id from ``encode_schema``; None for None and for an unknown id."""
