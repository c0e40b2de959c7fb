"""Which log rows are deletes.

Hudi's DeleteContext: a row deletes its record when the boolean column ``_hoodie_is_deleted`` is true, when
``_hoodie_operation`` says D or -U, or when the table's delete field holds the table's delete marker (compared as text,
case-sensitive).  Base rows are never deletes by these rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hoodie_py.errors import InvalidQueryError, InvalidTableError, MergeError
from hoodie_py.formats.arrays import to_booleans, to_numbers
from hoodie_py.formats.kernels import call, cast
from hoodie_py.formats.names import IS_DELETED_FIELD, OPERATION_FIELD
from hoodie_py.options.read import DELETE_FIELD, DELETE_MARKER
from hoodie_py.reader.records import DELETE, NO_OPERATION, HoodieOperation

_CODES = {operation.value: operation.code for operation in HoodieOperation}


@dataclass(frozen=True, slots=True)
class DeleteRules:
    """The delete columns of one table.

    Attributes:
        flag: whether the table has the boolean flag column.
        operation: whether the table has the operation column.
        marker_field, marker: the table's own delete column and the text that means delete; both or neither.
    """

    flag: bool = False
    operation: bool = False
    marker_field: str | None = None
    marker: str | None = None

    @classmethod
    def of(cls, schema: pa.Schema, merge_properties: Mapping[str, str], options: Mapping[str, str]) -> DeleteRules:
        """Find the rules of a table from its schema, its merge properties and the reader's options.

        Raises:
            InvalidTableError: the flag column is not boolean.
            InvalidQueryError: only one of delete field and delete marker is set.
        """
        field = merge_properties.get(DELETE_FIELD) or options.get(DELETE_FIELD) or None
        marker = merge_properties.get(DELETE_MARKER) or options.get(DELETE_MARKER) or None
        if (field is None) != (marker is None):
            raise InvalidQueryError(
                f"Only one of {DELETE_FIELD} and {DELETE_MARKER} is set.", hint="Set both or neither."
            )
        flag = IS_DELETED_FIELD in schema.names
        if flag and not pa.types.is_boolean(schema.field(IS_DELETED_FIELD).type):
            raise InvalidTableError(f"{IS_DELETED_FIELD} must be boolean, not {schema.field(IS_DELETED_FIELD).type}.")
        return cls(flag, OPERATION_FIELD in schema.names, field, marker)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns a merge has to read for these rules; a table may lack the one that its delete marker is about."""
        named = (
            IS_DELETED_FIELD if self.flag else None,
            OPERATION_FIELD if self.operation else None,
            self.marker_field,
        )
        return tuple(name for name in named if name is not None)

    def read_operations(self, batch: pa.RecordBatch) -> np.ndarray:
        """Return int8 operation codes for log rows: what the operation column says, DELETE for every other deleted row.

        Raises:
            MergeError: the operation column holds an unknown text.
        """
        codes = np.full(batch.num_rows, NO_OPERATION, np.int8)
        if self.operation and OPERATION_FIELD in batch.schema.names:
            codes = _encode_operations(batch.column(OPERATION_FIELD))
        deleted = np.zeros(batch.num_rows, bool)
        if self.flag and IS_DELETED_FIELD in batch.schema.names:
            deleted |= _mask(batch.column(IS_DELETED_FIELD))
        if self.marker_field is not None and self.marker_field in batch.schema.names:
            deleted |= _mask(call("equal", _as_text(batch.column(self.marker_field)), pa.scalar(self.marker)))
        keeps = codes == HoodieOperation.UPDATE_BEFORE.code
        return np.where(deleted & ~keeps, np.int8(DELETE), codes).astype(np.int8)


def _encode_operations(column: pa.Array) -> np.ndarray:
    encoded = call("dictionary_encode", _as_text(column))
    codes = np.full(len(encoded.dictionary) + 1, NO_OPERATION, np.int8)
    for i, text in enumerate(encoded.dictionary.to_pylist()):
        if text not in _CODES:
            raise MergeError(
                f"Unknown record operation {text!r}.", hint="Expected one of I, -U, U, D.", column=OPERATION_FIELD
            )
        codes[i] = _CODES[text]
    at = to_numbers(encoded.indices, len(encoded.dictionary))
    return np.asarray(codes[at])


def _mask(values: pa.Array) -> np.ndarray:
    return to_booleans(values)


def _as_text(column: pa.Array) -> pa.Array:
    return column if pa.types.is_string(column.type) else cast(column, pa.string())
