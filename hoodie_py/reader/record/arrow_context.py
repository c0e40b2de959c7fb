"""RecordContext over Arrow rows: a record's data is a handle of the row store plus the fields that a merger changed.

Reading a field gathers its column once for all rows in focus (the pairs that a merge is given), not row by row.
Replacing fields copies nothing until the merge's results are collected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.fields import find_declared_types, make_nullable
from hoodie_py.errors import MergeError
from hoodie_py.formats.names import RECORD_KEY_FIELD
from hoodie_py.reader.record.delete_rules import DeleteRules
from hoodie_py.reader.record.record import BufferedRecord
from hoodie_py.reader.record.record_key import RecordKeys
from hoodie_py.reader.record.row_store import NO_ROW, RowStore
from hoodie_py.reader.record.table_context import TableRecordContext, copy_values, make_fitting_array

_NOTHING: Final[dict[int, Any]] = {}


@dataclass(frozen=True, slots=True)
class Row:
    """One record's data: a handle of the row store (-1 for none) and the fields that a merger changed."""

    handle: int
    changes: tuple[tuple[str, Any], ...] = ()


class ArrowRecordContext(TableRecordContext[Row]):
    """Access to the rows of one file group; the store's schema has the columns that this read loaded.

    ``defaults``: column defaults other than null. ``times``: time columns with the types that the table declares
    (``formats.declared_times``).
    """

    def __init__(
        self,
        store: RowStore,
        table_schema: pa.Schema,
        keys: RecordKeys,
        ordering_fields: Sequence[str],
        deletes: DeleteRules,
        defaults: Mapping[str, Any] | None = None,
        identity: Sequence[str] = (),
        times: pa.Schema | None = None,
    ) -> None:
        self.store = store
        self.defaults = dict(defaults or {})
        self._focus = np.empty(0, np.int64)
        self._cells: dict[str, dict[int, Any]] = {}
        self._lacks: dict[str, dict[int, bool]] = {}
        self._generation = store.generation  # changes when handles are reused: then cached cells are void
        super().__init__(store.schema, table_schema, keys, ordering_fields, deletes, identity)
        self.declared_ordering_types = find_declared_types(self.ordering_fields, self.ordering_types, times)

    def get_value(self, rec: BufferedRecord[Row] | Row | Mapping[str, Any] | None, field: str) -> Any:
        row = self._find_row(rec)
        self._forget_released()
        # The fast path, as most calls read a gathered column of an unchanged row. None may mean "not gathered", and
        # containers must be copied, so both take the general path.
        if row is not None and not row.changes:
            value = self._cells.get(field, _NOTHING).get(row.handle)
            if value is not None and not isinstance(value, (dict, list)):
                return value
        return super().get_value(row, field)

    def focus(self, handles: np.ndarray) -> None:
        """Set the rows to be read next; each of their columns is then gathered in one step."""
        self._focus = np.unique(handles[handles != NO_ROW])
        self._cells, self._lacks = {}, {}
        self._generation = self.store.generation

    def find_schema_ids(self, handles: np.ndarray) -> list[int | None]:
        """Return the schema id of each row. Rows of partial blocks have a narrower schema; the handle -1 has none."""
        if not self.store.partial:
            if (handles != NO_ROW).all():
                return [self.schema_id] * len(handles)
            return [None if handle == NO_ROW else self.schema_id for handle in handles.tolist()]
        names = self.schema.names
        lacks = np.stack([self.store.find_absent(handles, name) for name in names], axis=1)
        kinds, of = np.unique(lacks, axis=0, return_inverse=True)
        numbers = [
            self._encode_columns(n for n, lacking in zip(names, kind, strict=True) if not lacking) for kind in kinds
        ]
        return [
            None if handle == NO_ROW else numbers[i]
            for handle, i in zip(handles.tolist(), of.reshape(-1).tolist(), strict=True)
        ]

    def store_rows(self, rows: Sequence[Row]) -> np.ndarray:
        """Return the handles of rows; rows that a merger changed or made become a new chunk of the store.

        Raises:
            MergeError: a value does not fit its column, or the data does not belong to this context.
        """
        self._check_rows(rows)
        handles = np.fromiter((row.handle for row in rows), np.int64, len(rows))
        changed = [i for i, row in enumerate(rows) if row.changes]
        if not changed:
            return handles
        parents = self.store.take(handles[changed])
        overrides = [dict(rows[i].changes) for i in changed]
        first = self.store.add(
            _patch_rows(parents, overrides, self.schema), self._find_absent(handles[changed], overrides)
        )
        handles[changed] = np.arange(first, first + len(changed))
        return handles

    def _check_rows(self, rows: Sequence[object]) -> None:
        known = len(self.store)
        for row in rows:
            if not isinstance(row, Row):
                raise MergeError(
                    f"A merger returned data of type {type(row).__name__}, which is not of this context.",
                    hint="Make records with context.replace and context.construct.",
                )
            if not NO_ROW <= row.handle < known:
                raise MergeError("A merger returned data of another context.", hint="A merger must not keep records.")

    def _find_absent(self, handles: np.ndarray, overrides: Sequence[Mapping[str, Any]]) -> dict[str, np.ndarray]:
        """Return a mask for each column that some new rows lack: their parent lacks it and no override sets it."""
        if not self.store.partial and (handles != NO_ROW).all():
            return {}
        absent: dict[str, np.ndarray] = {}
        for name in self.schema.names:
            missing = self.store.find_absent(handles, name)
            missing &= np.fromiter((name not in override for override in overrides), bool, len(overrides))
            if missing.any():
                absent[name] = missing
        return absent

    def _as_row(self, row: Row | Mapping[str, Any]) -> Row:
        if not isinstance(row, Mapping):
            return row
        self._check_columns(row, str(row.get(RECORD_KEY_FIELD)))
        return Row(NO_ROW, tuple(copy_values(row).items()))

    def _read_cell(self, row: Row, name: str) -> Any:
        for changed, value in row.changes:
            if changed == name:
                return value
        handle = row.handle
        if handle == NO_ROW:
            return None
        self._forget_released()
        column = self._cells.get(name)
        if column is None:
            values = self.store.column(self._focus, name).to_pylist() if len(self._focus) else []
            column = self._cells[name] = dict(zip(self._focus.tolist(), values, strict=True))
        if handle not in column:
            column[handle] = self.store.column(np.array([handle]), name)[0].as_py()
        return column[handle]

    def _forget_released(self) -> None:
        """Drop the cached cells if the store has released rows: their handles may now name other rows."""
        if self._generation != self.store.generation:
            self.focus(np.empty(0, np.int64))

    def _has_column(self, row: Row, name: str) -> bool:
        if any(changed == name for changed, _ in row.changes):
            return True
        handle = row.handle
        if handle == NO_ROW or not self.store.partial:
            return handle != NO_ROW
        self._forget_released()
        lacking = self._lacks.get(name)
        if lacking is None:
            absent = self.store.find_absent(self._focus, name).tolist() if len(self._focus) else []
            lacking = self._lacks[name] = dict(zip(self._focus.tolist(), absent, strict=True))
        if handle not in lacking:
            lacking[handle] = bool(self.store.find_absent(np.array([handle]), name)[0])
        return not lacking[handle]

    def _change_row(self, row: Row, values: Mapping[str, Any]) -> Row:
        changes = {**dict(row.changes), **values} if row.changes else values
        return Row(row.handle, tuple(changes.items()))

    def _make_row(self, values: Mapping[str, Any]) -> Row:
        return Row(NO_ROW, tuple(values.items()))


def _patch_rows(parents: pa.RecordBatch, overrides: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    columns = []
    for i, field in enumerate(schema):
        column, name = parents.column(i), field.name
        overridden = sum(name in override for override in overrides)
        if overridden == len(overrides):
            column = make_fitting_array([override[name] for override in overrides], field)
        elif overridden:
            pairs = zip(overrides, column.to_pylist(), strict=True)
            column = make_fitting_array([override.get(name, old) for override, old in pairs], field)
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=make_nullable(schema))
