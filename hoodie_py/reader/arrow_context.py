"""RecordContext over Arrow rows: a record's data is a handle into the row store plus the fields a merger changed.

Reading a field gathers that column once for all rows in focus (the pairs being merged), not row by row; replacing fields
copies nothing until the results of a merge are collected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from hoodie_py.errors import MergeError
from hoodie_py.reader.context import RecordContext
from hoodie_py.reader.delete_rules import IS_DELETED_FIELD, OPERATION_FIELD, DeleteRules
from hoodie_py.reader.fields import field_type
from hoodie_py.reader.record_key import RecordKeys
from hoodie_py.reader.records import DEFAULT_ORDERING, BufferedRecord, HoodieOperation
from hoodie_py.reader.row_store import NO_ROW, RowStore


@dataclass(frozen=True, slots=True)
class Row:
    """One record's data: a handle into the row store (-1 for none) and the fields that differ from it."""

    handle: int
    changes: tuple[tuple[str, Any], ...] = ()


class ArrowRecordContext(RecordContext[Row]):
    """Access to the rows of one file group.

    Args:
        store: holds the rows; its schema is what this read loaded.
        table_schema: all columns of the table, to tell "not read" from "does not exist".
        keys: how a record's key is found.
        ordering_fields: the fields whose values order records, none under commit-time ordering.
        deletes: which rows are deletes.
        defaults: values other than null that columns have by default.
    """

    def __init__(
        self,
        store: RowStore,
        table_schema: pa.Schema,
        keys: RecordKeys,
        ordering_fields: Sequence[str],
        deletes: DeleteRules,
        defaults: Mapping[str, Any] | None = None,
    ) -> None:
        self.store = store
        self.schema = store.schema
        self.keys = keys
        self.ordering_fields = tuple(ordering_fields)
        self.ordering_types = tuple(field_type(store.schema, name) for name in self.ordering_fields)
        self.deletes = deletes
        self.defaults = dict(defaults or {})
        self._table_columns = frozenset(table_schema.names)
        self._schemas: list[pa.Schema] = []
        self._focus = np.empty(0, np.int64)
        self._cache: dict[str, dict[int, Any]] = {}
        self.schema_id = self.encode_schema(store.schema)

    def focus(self, handles: np.ndarray) -> None:
        """Say which rows are about to be asked for; their columns are then gathered in one go."""
        self._focus = np.unique(handles[handles != NO_ROW])
        self._cache = {}

    def get_value(self, rec: BufferedRecord[Row] | Row | None, field: str) -> Any:
        row = rec.record if isinstance(rec, BufferedRecord) else rec
        if row is None:
            return None
        name, path = self._split(field)
        for changed, value in row.changes:
            if changed == name:
                return _reach(value, path)
        return None if row.handle == NO_ROW or name is None else _reach(self._cell(row.handle, name), path)

    def ordering_value(self, rec: BufferedRecord[Row] | Row | None) -> Any:
        if rec is None or not self.ordering_fields:
            return DEFAULT_ORDERING
        values = tuple(self.get_value(rec, field) for field in self.ordering_fields)
        parts = tuple(DEFAULT_ORDERING if value is None else value for value in values)
        return parts[0] if len(parts) == 1 else parts

    def record_key(self, rec: BufferedRecord[Row] | Row) -> str:
        if isinstance(rec, BufferedRecord):
            return rec.record_key
        return self.keys.key_of_values({name: self.get_value(rec, name) for name in self.keys.columns})

    def is_delete(self, rec: BufferedRecord[Row] | Row) -> bool:
        if isinstance(rec, BufferedRecord) and rec.record is None:
            return rec.is_delete
        if self.deletes.flag and self.get_value(rec, IS_DELETED_FIELD) is True:
            return True
        if self.deletes.operation and self.get_value(rec, OPERATION_FIELD) in ("D", "-U"):
            return True
        if self.deletes.marker_field is None:
            return False
        value = self.get_value(rec, self.deletes.marker_field)
        return value is not None and str(value) == self.deletes.marker

    def replace(self, rec: BufferedRecord[Row], **values: Any) -> BufferedRecord[Row]:
        self._require_columns(values, rec.record_key)
        row = rec.record if rec.record is not None else Row(NO_ROW)
        changed = Row(row.handle, tuple({**dict(row.changes), **values}.items()))
        touched = bool(set(self.ordering_fields) & set(values))
        ordering = self.ordering_value(changed) if touched else rec.ordering_value
        return replace(rec, record=changed, ordering_value=ordering, schema_id=self.schema_id)

    def delete(self, rec: BufferedRecord[Row]) -> BufferedRecord[Row]:
        return replace(rec, operation=HoodieOperation.DELETE)

    def construct(
        self, record_key: str, values: Mapping[str, Any], schema: pa.Schema | None = None
    ) -> BufferedRecord[Row]:
        self._require_columns(values, record_key)
        kept = {name: values.get(name) for name in (self.schema if schema is None else schema).names}
        filled = {**self.keys.values_of_key(record_key), **{k: v for k, v in kept.items() if k in values}}
        row = Row(NO_ROW, tuple(filled.items()))
        return BufferedRecord(record_key, self.ordering_value(row), row, self.schema_id)

    def project(self, rec: BufferedRecord[Row], schema: pa.Schema) -> BufferedRecord[Row]:
        if rec.record is None:
            return rec
        self._require_columns(schema.names, rec.record_key)
        values = {name: self.get_value(rec, name) for name in schema.names}
        return replace(rec, record=Row(NO_ROW, tuple(values.items())), schema_id=self.encode_schema(schema))

    def encode_schema(self, schema: pa.Schema) -> int:
        for number, known in enumerate(self._schemas):
            if known.equals(schema):
                return number
        self._schemas.append(schema)
        return len(self._schemas) - 1

    def decode_schema(self, schema_id: int | None) -> pa.Schema | None:
        return self._schemas[schema_id] if schema_id is not None and 0 <= schema_id < len(self._schemas) else None

    def store_rows(self, rows: Sequence[Row]) -> np.ndarray:
        """Turn rows into handles, writing those that a merger changed or made as a new chunk of the store.

        Raises:
            MergeError: a value does not fit its column.
        """
        handles = np.fromiter((row.handle for row in rows), np.int64, len(rows))
        changed = [i for i, row in enumerate(rows) if row.changes]
        if not changed:
            return handles
        parents = self.store.take(handles[changed])
        overrides = [dict(rows[i].changes) for i in changed]
        first = self.store.add(_patched(parents, overrides, self.schema), self._absent(handles[changed], overrides))
        handles[changed] = np.arange(first, first + len(changed))
        return handles

    def _absent(self, handles: np.ndarray, overrides: Sequence[Mapping[str, Any]]) -> dict[str, np.ndarray]:
        """Say which columns new rows lack: those that their parents lack and no override gives."""
        if not self.store.partial:
            return {}
        absent: dict[str, np.ndarray] = {}
        for name in self.schema.names:
            missing = self.store.absent(handles, name) & (handles != NO_ROW)
            missing &= np.fromiter((name not in override for override in overrides), bool, len(overrides))
            if missing.any():
                absent[name] = missing
        return absent

    def _cell(self, handle: int, name: str) -> Any:
        column = self._cache.get(name)
        if column is None:
            values = self.store.column(self._focus, name).to_pylist() if len(self._focus) else []
            column = self._cache[name] = dict(zip(self._focus.tolist(), values, strict=True))
        if handle not in column:
            column[handle] = self.store.column(np.array([handle]), name)[0].as_py()
        return column[handle]

    def _split(self, field: str) -> tuple[str | None, Sequence[str]]:
        """Find the loaded column a field name begins with; None for a field that the table does not have."""
        if field in self.schema.names:
            return field, ()
        name, *path = field.split(".")
        if name in self.schema.names:
            return name, path
        if name in self._table_columns:
            raise MergeError(
                "A merger asked for a column that this read did not load.",
                column=name,
                hint="Return it from the merger's mandatory_fields, or set projection_compatible = False.",
            )
        return None, ()

    def _require_columns(self, names: Mapping[str, Any] | Sequence[str], key: str) -> None:
        for name in names:
            if name not in self.schema.names and self._split(name)[0] is None:
                raise MergeError("A merger set a column that the table does not have.", column=name, key=key)


def _reach(value: Any, path: Sequence[str]) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _patched(parents: pa.RecordBatch, overrides: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    columns = []
    for i, field in enumerate(schema):
        column = parents.column(i)
        if any(field.name in override for override in overrides):
            values = column.to_pylist()
            values = [override.get(field.name, old) for override, old in zip(overrides, values, strict=True)]
            try:
                column = pa.array(values, field.type)
            except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
                raise MergeError(f"A merged value does not fit its column: {error}", column=field.name) from error
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema([f.with_nullable(True) for f in schema]))
