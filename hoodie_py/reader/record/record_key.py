"""Reads a record's key from its row.

It agrees with Hudi's RecordContext and KeyGenUtils:

* A table with meta columns has the key in ``_hoodie_record_key``.
* Otherwise a single key field gives its value as text.
* Several key fields give ``f1:v1,f2:v2``, with ``__null__`` for a null and ``__empty__`` for an empty text.

Values have the texts that they have in the rows that Java's readers merge: a date is its days since 1970, a timestamp
its microseconds, floats and decimals as Java prints them. In delete blocks Java's writers spell dates otherwise
(2026-01-31), and the key of a single field as ``field:value`` if the key generator is COMPLEX. Such deletes match no
row by key, in Java as here; they count where rows are found by position. Java compares binary keys by identity, so its
rows never match; here they match by content, in hex, as in Java's delete blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import cast, is_valid
from hoodie_py.arrow.fields import find_field_type, read_field_values
from hoodie_py.arrow.java_text import format_bytes, format_floats
from hoodie_py.errors import CorruptFileError, InvalidTableError, UnsupportedFeatureError
from hoodie_py.formats.names import RECORD_KEY_FIELD

_NULL, _EMPTY = "__null__", "__empty__"
_PLAIN: tuple[Callable[[pa.DataType], bool], ...] = (
    pa.types.is_integer, pa.types.is_boolean, pa.types.is_decimal, pa.types.is_large_string, pa.types.is_string_view,
    pa.types.is_null,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class RecordKeys:
    """How keys are read from rows: from the meta column alone, or computed from the key fields in configured order."""

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
        columns = [format_key_values(read_field_values(batch, name), name) for name in self.columns]
        keys = columns[0] if len(columns) == 1 else _join_key_fields(self.columns, columns)
        if keys.null_count:
            raise CorruptFileError(
                "A row has no record key.",
                column=",".join(self.columns),
                row=int(np.flatnonzero(~is_valid(keys))[0]),
            )
        return keys

    def make_key(self, values: Mapping[str, Any], schema: pa.Schema) -> str:
        """Return the key of one row from its key columns' values; ``schema`` has their types."""
        columns = [pa.array([values.get(name)], find_field_type(schema, name)) for name in self.columns]
        return str(self.read_keys(pa.RecordBatch.from_arrays(columns, list(self.columns)))[0].as_py())

    def find_key_values(self, key: str, schema: pa.Schema) -> dict[str, Any]:
        """Return the column values that give a new row this key; empty if the key's text does not determine them."""
        if not self.virtual:
            return {RECORD_KEY_FIELD: key}
        if len(self.columns) > 1 or self.columns[0] not in schema.names:
            return {}
        try:
            return {self.columns[0]: _parse_text(key, schema.field(self.columns[0]).type)}
        except (pa.ArrowException, ValueError):
            return {}


def format_key_values(values: pa.Array, name: str) -> pa.Array:
    """Return the text of each value of a key field; null stays null. ``name`` is for errors.

    Raises:
        UnsupportedFeatureError: the type has no key text.
    """
    type_ = values.type
    if pa.types.is_string(type_):
        return values
    if pa.types.is_dictionary(type_):
        return format_key_values(cast(values, type_.value_type), name)
    if pa.types.is_date(type_):
        return cast(cast(cast(values, pa.date32()), pa.int32()), pa.string())
    if pa.types.is_timestamp(type_):
        return cast(cast(cast(values, pa.timestamp("us", type_.tz)), pa.int64()), pa.string())
    if pa.types.is_float32(type_) or pa.types.is_float64(type_):
        return format_floats(values)
    if pa.types.is_binary(type_) or pa.types.is_large_binary(type_) or pa.types.is_fixed_size_binary(type_):
        return format_bytes(values)
    if not any(is_plain(type_) for is_plain in _PLAIN):
        raise UnsupportedFeatureError(f"Record keys computed from a column of type {type_}.", column=name)
    return cast(values, pa.string())


def _parse_text(key: str, type_: pa.DataType) -> Any:
    """Return the value of a key field from its text.

    Raises:
        ValueError, ArrowException: it is not the text of such a value.
    """
    text = pa.scalar(key)
    if pa.types.is_date(type_):
        return cast(cast(text, pa.int32()), pa.date32()).as_py()
    if pa.types.is_timestamp(type_):
        return cast(cast(text, pa.int64()), type_).as_py()
    if pa.types.is_binary(type_) or pa.types.is_fixed_size_binary(type_):
        return bytes.fromhex(key)
    return cast(text, type_).as_py()


def _join_key_fields(names: tuple[str, ...], columns: list[pa.Array]) -> pa.Array:
    import pyarrow.compute as pc

    parts = []
    for name, column in zip(names, columns, strict=True):
        filled = pc.if_else(pc.equal(column, ""), _EMPTY, column).fill_null(_NULL)
        parts.append(pc.binary_join_element_wise(pa.scalar(f"{name}:"), filled, ""))
    return pc.binary_join_element_wise(*parts, ",")
