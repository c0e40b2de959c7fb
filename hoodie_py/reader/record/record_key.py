"""How a record's key is read from its row.

Agrees with Hudi's RecordContext and KeyGenUtils:

* A table with meta columns has the key in ``_hoodie_record_key``.
* Else a single key field gives its value as text.
* Several key fields give ``f1:v1,f2:v2``, with ``__null__`` for a null and ``__empty__`` for an empty text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import is_valid
from hoodie_py.arrow.compute import cast
from hoodie_py.arrow.fields import read_field_values
from hoodie_py.errors import CorruptFileError, InvalidTableError, UnsupportedFeatureError
from hoodie_py.formats.names import RECORD_KEY_FIELD

_NULL, _EMPTY = "__null__", "__empty__"


@dataclass(frozen=True, slots=True)
class RecordKeys:
    """How keys are read from rows: of the meta column alone, or computed from the key fields in configured order."""

    columns: tuple[str, ...]
    virtual: bool

    @classmethod
    def of(cls, populate_meta_fields: bool, record_key_fields: tuple[str, ...]) -> RecordKeys:
        """Make the rules of a table.

        Raises:
            InvalidTableError: the table has neither meta columns nor key fields.
        """
        if populate_meta_fields:
            return cls((RECORD_KEY_FIELD,), virtual=False)
        if not record_key_fields:
            raise InvalidTableError(
                "The table has no meta columns and names no record key fields, so its logs cannot be merged."
            )
        return cls(record_key_fields, virtual=True)

    def read_keys(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the string array of a batch's record keys.

        Raises:
            CorruptFileError: a key is null.
            UnsupportedFeatureError: a key field has a type that has no key text here.
        """
        columns = [self._to_text(read_field_values(batch, name), name) for name in self.columns]
        keys = columns[0] if len(columns) == 1 else _join_key_fields(self.columns, columns)
        if keys.null_count:
            raise CorruptFileError(
                "A row has no record key.",
                column=",".join(self.columns),
                row=int(np.flatnonzero(~is_valid(keys))[0]),
            )
        return keys

    def make_key(self, values: Mapping[str, Any]) -> str:
        """Return the key of one row from its key columns' values."""
        row = {name: [values.get(name)] for name in self.columns}
        return str(self.read_keys(pa.RecordBatch.from_pydict(row))[0].as_py())

    def find_key_values(self, key: str, schema: pa.Schema) -> dict[str, Any]:
        """Return the column values that give a new row this key; empty where the key's text does not determine them."""
        if not self.virtual:
            return {RECORD_KEY_FIELD: key}
        if len(self.columns) > 1 or self.columns[0] not in schema.names:
            return {}
        try:
            return {self.columns[0]: cast(pa.scalar(key), schema.field(self.columns[0]).type).as_py()}
        except pa.ArrowException:
            return {}

    def _to_text(self, column: pa.Array, name: str) -> pa.Array:
        type_ = column.type
        if pa.types.is_string(type_):
            return column
        plain = (
            pa.types.is_integer(type_)
            or pa.types.is_date(type_)
            or pa.types.is_boolean(type_)
            or pa.types.is_decimal(type_)
        )
        if not plain and not (
            pa.types.is_large_string(type_) or pa.types.is_dictionary(type_) or pa.types.is_null(type_)
        ):
            raise UnsupportedFeatureError(f"Record keys computed from a column of type {type_}.", column=name)
        return cast(column, pa.string())


def _join_key_fields(names: tuple[str, ...], columns: list[pa.Array]) -> pa.Array:
    import pyarrow.compute as pc

    parts = []
    for name, column in zip(names, columns, strict=True):
        filled = pc.if_else(pc.equal(column, ""), _EMPTY, column).fill_null(_NULL)
        parts.append(pc.binary_join_element_wise(pa.scalar(f"{name}:"), filled, ""))
    return pc.binary_join_element_wise(*parts, ",")
