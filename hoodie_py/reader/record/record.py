"""BufferedRecord: one version of one record; RecordContext: how a merger reads and makes records.

The first agrees with Hudi's BufferedRecord, HoodieOperation and OrderingValues.

* The operation DELETE or UPDATE_BEFORE makes a record a delete, with or without data.
* The default ordering value means that commit time decides. Hudi stores it as the int 0; here it has its own type,
  because a long 0 and an empty string are ordinary values.

RecordContext agrees with Hudi's RecordContext (RFC-101). A merger that uses only this interface works on every kind of
row. A null field, an absent field and a field of a null struct read as None; a field that the table does not have is an
error.
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import numpy as np
import pyarrow as pa

T = TypeVar("T")


class HoodieOperation(enum.Enum):
    """What a version did to its record; as a code, -1 means that the operation is not known.

    Examples:
        >>> HoodieOperation("D")
        <HoodieOperation.DELETE: 'D'>
        >>> BufferedRecord.of_delete("a").operation is HoodieOperation.DELETE
        True
    """

    INSERT = "I"
    UPDATE_BEFORE = "-U"
    UPDATE_AFTER = "U"
    DELETE = "D"

    @property
    def code(self) -> int:
        """Hudi's ordinal of the operation."""
        return _CODES[self]


_CODES: Final = {operation: code for code, operation in enumerate(HoodieOperation)}
_OPERATIONS: Final[tuple[HoodieOperation | None, ...]] = (*HoodieOperation, None)  # index -1 is None
NO_OPERATION: Final = -1
INSERT: Final = HoodieOperation.INSERT.code
UPDATE: Final = HoodieOperation.UPDATE_AFTER.code
UPDATE_BEFORE: Final = HoodieOperation.UPDATE_BEFORE.code
DELETE: Final = HoodieOperation.DELETE.code


def decode_operation(code: int) -> HoodieOperation | None:
    """Return the operation of a code; -1 is None."""
    return _OPERATIONS[code]


def encode_operation(operation: HoodieOperation | None) -> int:
    """Return the code of an operation; None is -1."""
    return NO_OPERATION if operation is None else operation.code


def make_operation_array(codes: Iterable[int]) -> pa.Array:
    """Return operation codes as an Arrow string array of I, -U, U, D and null."""
    names = [None if operation is None else operation.value for operation in map(decode_operation, codes)]
    return pa.array(names, pa.string())


def is_delete_code(codes: np.ndarray) -> np.ndarray:
    """Say for each operation code whether it is a delete (D or -U)."""
    deletes = codes == DELETE
    deletes |= codes == UPDATE_BEFORE
    return np.asarray(deletes)


@enum.unique
class _Default(enum.Enum):
    """The only default ordering value. It is less than every other value and equal to itself."""

    DEFAULT_ORDERING = 0

    def __lt__(self, other: object) -> bool:
        return other is not self

    def __le__(self, other: object) -> bool:
        return True

    def __gt__(self, other: object) -> bool:
        return False

    def __ge__(self, other: object) -> bool:
        return other is self

    def __repr__(self) -> str:
        return "DEFAULT_ORDERING"

    __str__ = __repr__


DEFAULT_ORDERING: Final = _Default.DEFAULT_ORDERING
"""The ordering value that leaves the decision to commit time; it is less than every other value.

Examples:
    >>> BufferedRecord.of_delete("a").ordering_value is DEFAULT_ORDERING
    True
    >>> DEFAULT_ORDERING < 0
    True
"""


@dataclass(frozen=True, slots=True)
class BufferedRecord(Generic[T]):
    """One version of a record, as a merger sees it.

    Attributes:
        record_key: the record key's text.
        ordering_value: a value of the ordering field's Python type; a tuple of values for several fields; or
            DEFAULT_ORDERING, which means that commit time decides.
        record: the data, opaque: a RecordContext reads its values. None only for a delete without data.
        schema_id: ``context.decode_schema(schema_id)`` is the schema of ``record``; None without data.
        operation: what this version did; None if not known.

    Examples:
        >>> reader = FileGroupReader(trips.file_slices(filter="city = 'sf'")[0], trips)
        >>> record = next(record for record in reader.buffered_records() if record.record_key == "a")
        >>> record.ordering_value, record.is_delete, reader.context.get_value(record, "price")
        (2, False, 12.0)
    """

    record_key: str
    ordering_value: Any
    record: T | None
    schema_id: int | None = None
    operation: HoodieOperation | None = None

    @classmethod
    def of_delete(cls, record_key: str, ordering_value: Any = DEFAULT_ORDERING) -> BufferedRecord[T]:
        """Make a delete without data, as in a delete block; without an ordering value, commit time orders it."""
        ordering = DEFAULT_ORDERING if ordering_value is None else ordering_value
        return cls(record_key, ordering, None, None, HoodieOperation.DELETE)

    @property
    def is_delete(self) -> bool:
        """Whether this version deletes its record (operation D or -U)."""
        return self.operation is HoodieOperation.DELETE or self.operation is HoodieOperation.UPDATE_BEFORE

    @property
    def is_commit_time_delete(self) -> bool:
        """Whether this is a delete without ordering value, so that commit time decides."""
        return self.is_delete and self.ordering_value is DEFAULT_ORDERING


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
