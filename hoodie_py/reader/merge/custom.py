"""The strategy of merge mode CUSTOM: it calls a RecordMerger and checks the results.

It agrees with the custom mergers of Hudi's BufferedRecordMergerFactory, except that every result counts (see
docs/divergences.md). The reader calls batch forms. If a batch form fails, the row form runs pair by pair to find the
record, so that the error names its key. The buffer and the file group reader add instants and file group to the error.

Files, indexes and logs find a record by its key and partition, so a merge must not change them: in these fields a row
that a merger made must have the value of one of its two versions. (The versions may differ where a partition comes from
a part of a value, or where a record moves to another partition.) Meta columns that a new row lacks come from the newer
version, else from the older one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import FrozenInstanceError, replace
from types import MappingProxyType
from typing import ClassVar

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import call, to_booleans
from hoodie_py.arrow.fields import find_top_level_name, has_field, read_field_values
from hoodie_py.errors import HoodieError, MergeError
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.names import META_FIELDS, PARTITION_PATH_FIELD
from hoodie_py.reader.merge.merger import RecordMerger, find_first_failure
from hoodie_py.reader.merge.strategies import MergeStrategy
from hoodie_py.reader.record.arrow_context import Row
from hoodie_py.reader.record.batch import BufferedBatch
from hoodie_py.reader.record.record import DELETE, NO_OPERATION, BufferedRecord
from hoodie_py.reader.record.row_store import NO_ROW


class CustomStrategy(MergeStrategy):
    """Merges by a RecordMerger, log with log and log with base. ``partial``: a partial log block was read."""

    bytes_a_pair: ClassVar[int] = 4096  # a merger that works row by row makes Python objects

    def __init__(self, merger: RecordMerger, props: Mapping[str, str], *, partial: bool = False) -> None:
        self.merger = merger
        self.props = MappingProxyType(dict(props))
        self._partial = partial

    def final_merge(self, older: BufferedBatch, newer: BufferedBatch) -> BufferedBatch:
        return self.delta_merge(older, newer)

    def switch_to_partial(self) -> MergeStrategy:
        return CustomStrategy(self.merger, self.props, partial=True)

    def convert_inserts(self, entries: BufferedBatch) -> BufferedBatch:
        context, merger, props = entries.context, self.merger, self.props
        context.focus(entries.rows)
        return self._run(lambda: merger.insert_batch(entries, context, props), (entries, entries), "insert_batch")

    def delta_merge(self, older: BufferedBatch, newer: BufferedBatch) -> BufferedBatch:
        """Merge by the batch form.

        Raises:
            MergeError: the merger raised, or its result has another length, type or other keys, or live records without
                data.
        """
        context, merger, props, schema = older.context, self.merger, self.props, older.context.schema
        context.focus(np.concatenate([older.rows, newer.rows]))

        def merge_batch_form() -> BufferedBatch:
            if self._partial:
                return merger.partial_merge_batch(older, newer, schema, context, props)
            return merger.merge_batch(older, newer, context, props)

        def merge_row_form(a: BufferedRecord[Row], b: BufferedRecord[Row]) -> BufferedRecord[Row]:
            if self._partial:
                return merger.partial_merge(a, b, schema, context, props)
            return merger.merge(a, b, context, props)

        try:
            return self._run(
                merge_batch_form, (older, newer), "partial_merge_batch" if self._partial else "merge_batch"
            )
        except HoodieError as error:
            if "key" in error.where:
                raise
            found = find_first_failure(older, newer, merge_row_form, merger)
            if found is not None:
                raise found from error
            fault = "The row form merges the same records, so the batch form is at fault."
            error.hint = fault if error.hint is None else f"{error.hint} {fault}"
            raise

    def _run(
        self, call: Callable[[], BufferedBatch], versions: tuple[BufferedBatch, BufferedBatch], method: str
    ) -> BufferedBatch:
        """Call the merger and check the result; each failure becomes a HoodieError that names the merger."""
        merger = type(self.merger).__name__
        try:
            result = call()
            _check_result(result, versions[1], f"{merger}.{method}")
            result = _complete_meta_columns(*versions, result)
            check_identity(*versions, result, partial=self._partial)
        except HoodieError as error:
            error.locate(merger=merger)
            raise
        except FrozenInstanceError as error:
            raise MergeError(
                f"{merger}.{method} tried to change a batch, which does not change: {error}.",
                hint="Return batch.with_columns(...), batch.where(...) or batch.deleted(...) instead.",
                merger=merger,
            ) from error
        except Exception as error:
            raise MergeError(f"{merger}.{method} failed: {type(error).__name__}: {error}", merger=merger) from error
        return result


def _check_result(result: object, asked: BufferedBatch, name: str) -> None:
    """Raise MergeError if a merger's result does not match its newer records one to one."""
    if not isinstance(result, BufferedBatch):
        raise MergeError(f"{name} returned {type(result).__name__}, not a BufferedBatch.")
    if result.context is not asked.context:
        raise MergeError(f"{name} returned records of another context.", hint="A merger must not keep records.")
    if len(result) != len(asked):
        raise MergeError(f"{name} returned {len(result)} records for {len(asked)}.")
    if not len(result.keys) == len(result.order) == len(result.codes) == len(asked):
        raise MergeError(f"{name} returned a batch whose columns have different lengths.")
    if not result.keys.equals(asked.keys):
        pairs = zip(asked.keys.to_pylist(), result.keys.to_pylist(), strict=True)
        key, other = next((mine, theirs) for mine, theirs in pairs if mine != theirs)
        raise MergeError(f"{name} returned a record of another key, {other!r}.", key=key)
    if tuple(part.values.type for part in result.order.parts) != tuple(part.values.type for part in asked.order.parts):
        raise MergeError(f"{name} returned ordering values of another type.")
    strange = (result.rows < NO_ROW) | (result.rows >= len(asked.context.store))
    strange |= (result.codes < NO_OPERATION) | (result.codes > DELETE)
    if strange.any():
        raise MergeError(f"{name} returned a row or operation that does not exist.", key=_find_key(result, strange))
    hollow = (result.rows == NO_ROW) & ~result.deletes
    if hollow.any():
        raise MergeError(f"{name} returned a live record without data.", key=_find_key(result, hollow))


def _complete_meta_columns(older: BufferedBatch, newer: BufferedBatch, result: BufferedBatch) -> BufferedBatch:
    """Return the result with meta columns in new rows: mergers that construct rows do not set them."""
    schema = result.context.schema
    names = [name for name in META_FIELDS if name in schema.names]
    at = _find_made(older, newer, result)
    if not names or not len(at):
        return result
    made, new, old = (batch.take(at) for batch in (result, newer, older))
    columns = {name: made.column(name) for name in names}
    lacking = [name for name, column in columns.items() if column.null_count]
    if not lacking:
        return result
    filled = made.with_columns(
        **{name: call("coalesce", columns[name], new.column(name), old.column(name)) for name in lacking}
    )
    # A copy, because the array may be the merger's input.
    rows = result.rows.copy()
    rows[at] = filled.rows
    return replace(result, rows=rows)


def _find_made(older: BufferedBatch, newer: BufferedBatch, result: BufferedBatch) -> np.ndarray:
    """Return the indexes of the rows that a merger made."""
    return np.flatnonzero((result.rows != older.rows) & (result.rows != newer.rows) & (result.rows != NO_ROW))


def _find_key(batch: BufferedBatch, mask: np.ndarray) -> str:
    return str(batch.keys[int(np.argmax(mask))].as_py())


def list_identity_fields(config: TableConfig) -> tuple[str, ...]:
    """List the fields that a merge must not change; the table may lack some of them."""
    return (*config.record_key_fields, *config.partition_fields, PARTITION_PATH_FIELD)


def check_identity(older: BufferedBatch, newer: BufferedBatch, result: BufferedBatch, *, partial: bool) -> None:
    """Check that new rows keep the key and partition values of the versions that they were made of.

    ``partial``: rows may lack columns.

    Raises:
        MergeError: a value changed; it names key, column and value.
    """
    at = _find_made(older, newer, result)
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
    """Return for each pair of values whether they are the same; null equals null and NaN equals NaN."""
    same = to_booleans(call("equal", values, others).fill_null(False))
    same |= to_booleans(call("and", values.is_null(), others.is_null()))
    if pa.types.is_floating(values.type):
        same |= to_booleans(call("and", call("is_nan", values), call("is_nan", others)).fill_null(False))
    return np.asarray(same)
