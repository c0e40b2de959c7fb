"""The record key and partition fields, which a merge must not change.

Files, indexes and logs find a record by its key and partition. The rule: in these fields a row that a merger made has
the value of one of its two versions. (The versions may differ where a partition comes from a part of a value, or where
a record moves to another partition.)
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import to_booleans
from hoodie_py.arrow.compute import call
from hoodie_py.arrow.fields import find_top_level_name, has_field, read_field_values
from hoodie_py.errors import MergeError
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.names import PARTITION_PATH_FIELD
from hoodie_py.reader.record.batch import BufferedBatch
from hoodie_py.reader.record.row_store import NO_ROW


def list_identity_fields(config: TableConfig) -> tuple[str, ...]:
    """List the fields that a merge must not change; the table may lack some of them."""
    return (*config.record_key_fields, *config.partition_fields, PARTITION_PATH_FIELD)


def check_identity(older: BufferedBatch, newer: BufferedBatch, result: BufferedBatch, *, partial: bool) -> None:
    """Check that new rows keep the key and partition values of the versions that they were made of.

    Args:
        older: the older versions.
        newer: the newer versions.
        result: the merger's results.
        partial: whether rows may lack columns.

    Raises:
        MergeError: a value changed; it names key, column and value.
    """
    made = (result.rows != older.rows) & (result.rows != newer.rows) & (result.rows != NO_ROW)
    at = np.flatnonzero(made)
    if not len(at):
        return
    sides = [batch if len(at) == len(batch) else batch.take(at) for batch in (result, older, newer)]
    schema = result.context.schema
    for field in result.context.identity:
        if has_field(schema, field):
            _check_field(field, *sides, partial=partial)


def _check_field(
    field: str, result: BufferedBatch, older: BufferedBatch, newer: BufferedBatch, *, partial: bool
) -> None:
    column = find_top_level_name(result.context.schema, field)
    values = _read_values(result, column, field)
    known, kept = np.zeros(len(result), bool), np.zeros(len(result), bool)
    for side in (older, newer):
        has = side.has_values(column)
        known |= has
        kept |= has & _find_same(values, _read_values(side, column, field))
    wrong = known & ~kept
    if partial:
        wrong &= result.has_values(column)
    if wrong.any():
        first = int(np.argmax(wrong))
        was = _read_values(newer if newer.has_values(column)[first] else older, column, field)[first].as_py()
        raise MergeError(
            f"A merger changed {field}, a record key or partition field, from {was!r} to {values[first].as_py()!r}.",
            key=result.keys[first].as_py(),
            column=field,
            hint="Do not change it: files and indexes find the record by it.",
        )


def _read_values(batch: BufferedBatch, column: str, field: str) -> pa.Array:
    found = batch.context.store.column(batch.rows, column)
    return found if column == field else read_field_values(pa.RecordBatch.from_arrays([found], [column]), field)


def _find_same(values: pa.Array, others: pa.Array) -> np.ndarray:
    """Say where two arrays have the same value; null equals null and NaN equals NaN."""
    same = to_booleans(call("equal", values, others).fill_null(False))
    same |= to_booleans(call("and", values.is_null(), others.is_null()))
    if pa.types.is_floating(values.type):
        same |= to_booleans(call("and", call("is_nan", values), call("is_nan", others)).fill_null(False))
    return np.asarray(same)
