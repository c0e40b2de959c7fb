"""BufferedRecord: one version of one record.

It agrees with Hudi's BufferedRecord, HoodieOperation and OrderingValues.

* The operation DELETE or UPDATE_BEFORE makes a record a delete, with or without data.
* The default ordering value means that commit time decides. Hudi stores it as the int 0; here it has its own type,
  because a long 0 and an empty string are ordinary values.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
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
