"""Which log rows are deletes.

They agree with Hudi's DeleteContext. A row is a delete if one of these holds:

* the boolean column ``_hoodie_is_deleted`` is true;
* the column ``_hoodie_operation`` is D or -U;
* the table's delete field, as text, equals the table's delete marker (case-sensitive).

Base rows are never deletes by these rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import call, cast, to_booleans, to_numbers
from hoodie_py.errors import InvalidQueryError, InvalidTableError, MergeError
from hoodie_py.formats.names import IS_DELETED_FIELD, OPERATION_FIELD
from hoodie_py.options.read import DELETE_FIELD, DELETE_MARKER
from hoodie_py.reader.record.record import DELETE, NO_OPERATION, HoodieOperation

_CODES = {operation.value: operation.code for operation in HoodieOperation}


@dataclass(frozen=True, slots=True)
class DeleteRules:
    """The delete columns of one table: whether it has flag and operation column, and its delete field and marker."""

    flag: bool = False
    operation: bool = False
    marker_field: str | None = None
    marker: str | None = None

    @classmethod
    def of(cls, schema: pa.Schema, merge_properties: Mapping[str, str], options: Mapping[str, str]) -> DeleteRules:
        """Make the rules of a table from its schema, its merge properties and the reader's options.

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
        """The columns that a merge must read for these rules; the table may lack its delete field."""
        named = (
            IS_DELETED_FIELD if self.flag else None,
            OPERATION_FIELD if self.operation else None,
            self.marker_field,
        )
        return tuple(name for name in named if name is not None)

    def read_operations(self, batch: pa.RecordBatch) -> np.ndarray:
        """Return the int8 operation codes of log rows: from the operation column, and DELETE for all other deletes.

        Raises:
            MergeError: the operation column holds an unknown text.
        """
        codes = np.full(batch.num_rows, NO_OPERATION, np.int8)
        if self.operation and OPERATION_FIELD in batch.schema.names:
            codes = _encode_operations(batch.column(OPERATION_FIELD))
        deleted = np.zeros(batch.num_rows, bool)
        if self.flag and IS_DELETED_FIELD in batch.schema.names:
            deleted |= to_booleans(batch.column(IS_DELETED_FIELD))
        if self.marker_field is not None and self.marker_field in batch.schema.names:
            deleted |= to_booleans(call("equal", _as_text(batch.column(self.marker_field)), pa.scalar(self.marker)))
        keeps = codes == HoodieOperation.UPDATE_BEFORE.code
        return np.where(deleted & ~keeps, np.int8(DELETE), codes).astype(np.int8)


def _encode_operations(column: pa.Array) -> np.ndarray:
    encoded = call("dictionary_encode", _as_text(column))
    codes = np.full(len(encoded.dictionary) + 1, NO_OPERATION, np.int8)  # the last code stands for a null text
    for i, text in enumerate(encoded.dictionary.to_pylist()):
        if text not in _CODES:
            raise MergeError(
                f"Unknown record operation {text!r}.", hint="Expected one of I, -U, U, D.", column=OPERATION_FIELD
            )
        codes[i] = _CODES[text]
    at = to_numbers(encoded.indices, len(encoded.dictionary))
    return np.asarray(codes[at])


def _as_text(column: pa.Array) -> pa.Array:
    return column if pa.types.is_string(column.type) else cast(column, pa.string())
