"""Make change records from the records that a merge touched (Hudi ``HoodieCDCLogger``).

A new record is an insert, a changed base row an update, a deleted base row a delete. A record that left its base row
unchanged is no change. Nor is a delete without a base row: no reader has seen such a row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import from_numpy, repeat_value, take
from hoodie_py.formats.names import AFTER, BEFORE, KEY, OP, TIME
from hoodie_py.reader.base.base_merge import MergedRecords
from hoodie_py.reader.record.row_store import NO_ROW, RowStore
from hoodie_py.writer.cdc.schema import ChangeSchema

_INSERT, _UPDATE, _DELETE = "i", "u", "d"


@dataclass(frozen=True, slots=True)
class _Changes:
    """Some changes. ``before`` and ``after`` are handles of rows, -1 without a row."""

    op: pa.Array
    keys: pa.Array
    before: np.ndarray
    after: np.ndarray


def make_change_records(merged: MergedRecords, store: RowStore, schema: ChangeSchema, instant: str) -> pa.RecordBatch:
    """Return the change records of a piece of a merge. ``store`` holds its rows; ``instant`` is the commit's."""
    changes = _find_changes(merged)
    count = len(changes.keys)
    arrays = []
    for field in schema.arrow:
        if field.name == OP:
            arrays.append(changes.op)
        elif field.name == KEY:
            arrays.append(changes.keys)
        elif field.name == TIME:
            arrays.append(repeat_value(instant, pa.string(), count))
        else:
            rows = {BEFORE: changes.before, AFTER: changes.after}[field.name]
            arrays.append(_make_images(rows, store, schema.image, field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema.arrow)


def _find_changes(merged: MergedRecords) -> _Changes:
    deletes = merged.result.deletes
    at = np.flatnonzero(~deletes if merged.older is None else merged.changes)
    result = merged.result.take(at)
    if merged.older is None:
        return _Changes(_name_all(_INSERT, len(at)), result.keys, np.full(len(at), NO_ROW), result.rows)
    gone = deletes[at]
    names = pa.array([_UPDATE, _DELETE], pa.string())
    op = take(names, from_numpy(gone.astype(np.int64)))
    return _Changes(op, result.keys, merged.older.rows[at], np.where(gone, NO_ROW, result.rows))


def _name_all(op: str, count: int) -> pa.Array:
    return repeat_value(op, pa.string(), count)


def _make_images(rows: np.ndarray, store: RowStore, names: tuple[str, ...], type_: pa.DataType) -> pa.Array:
    """Gather rows as values of a struct column, null where there is no row."""
    missing = rows == NO_ROW
    if missing.all():
        return pa.nulls(len(rows), type_)
    columns = store.take(rows, names).columns
    mask = from_numpy(missing) if missing.any() else None
    return pa.StructArray.from_arrays(columns, fields=list(type_), mask=mask)
