"""Merge records of a write with each other, before the write looks for keys, or with the table's records.

Agrees with Hudi's ``HoodieWriteHelper`` (``deduplicateRecords``) for one batch, and with ``HoodieIndexUtils`` for
records that move. The versions of a key merge in their original order, by the rule that merges log on log; a payload
class merges by its ``preCombine``. A key is a record key within a partition, or with a global index the record key
alone. The partition of the winning version stays. Deletes by bare keys have no rows to merge: one of each key is kept,
the one with the greatest ordering value if they have any.

A record's number is the handle of its row. Built-in merge modes move numbers only; rows are copied when the result is
gathered. Mergers see the table's meta columns beside the data: record key and partition path are known, values that the
write sets later are null.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.arrays import from_numpy, join_chunks, make_batch_without_columns, number_strings, to_booleans
from hoodie_py.arrow.fields import find_top_level_name
from hoodie_py.errors import MergeError
from hoodie_py.formats.names import META_FIELDS, PARTITION_PATH_FIELD, RECORD_KEY_FIELD
from hoodie_py.options import write as write_keys
from hoodie_py.reader.buffer.log_buffer import fold_by_rounds
from hoodie_py.reader.memory.budget import MemoryBudget
from hoodie_py.reader.merge.custom import CustomStrategy, list_identity_fields
from hoodie_py.reader.merge.merger import Merger, RecordMerger
from hoodie_py.reader.merge.strategies import CommitTimeStrategy, EventTimeStrategy, MergeStrategy, OrderedStrategy
from hoodie_py.reader.payloads.merger import PayloadMerger
from hoodie_py.reader.read_info import ReadOptions
from hoodie_py.reader.record.arrow_context import ArrowRecordContext
from hoodie_py.reader.record.batch import BufferedBatch
from hoodie_py.reader.record.delete_rules import DeleteRules
from hoodie_py.reader.record.ordering import OrderingColumn
from hoodie_py.reader.record.record import DELETE, NO_OPERATION, BufferedRecord, RecordContext
from hoodie_py.reader.record.record_key import RecordKeys
from hoodie_py.reader.record.row_store import NO_ROW, RowStore
from hoodie_py.reader.selection import Selection, select_strategy
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.records import WriteOperation, WriteRecords
from hoodie_py.writer.settings import WriteSettings

_OPTIONS = {
    WriteOperation.UPSERT: write_keys.COMBINE_BEFORE_UPSERT,
    WriteOperation.DELETE: write_keys.COMBINE_BEFORE_DELETE,
}


def needs_combining(operation: WriteOperation, options: Mapping[str, str]) -> bool:
    """Whether a write merges its rows of one key, by Hudi's options and their defaults."""
    return _OPTIONS.get(operation, write_keys.COMBINE_BEFORE_INSERT).read(options)


def combine(
    records: WriteRecords,
    snapshot: Snapshot,
    settings: WriteSettings,
    merger: Merger | None = None,
) -> WriteRecords:
    """Merge records of the same key.

    The records are in the order of their versions, with the data columns and types of the table's files. The index in
    the settings defines what a key is. Distinct keys come in the order of the winning versions. If no key repeats, the
    result is ``records`` itself.

    Raises:
        MergeError: the table's merger is missing or failed, or ordering values do not compare.
        InvalidTableError: an unknown partial update mode.
    """
    by_key_alone = settings.index.is_global
    codes, count = number_records(records, by_key_alone=by_key_alone)
    if count == len(records):
        return records
    repeats = np.bincount(codes, minlength=count) > 1
    at = np.flatnonzero(repeats[codes])
    versions = RecordVersions(records, snapshot, settings, merger)
    return versions.replace_merged(np.flatnonzero(~repeats[codes]), versions.fold(at, codes[at]))


def number_records(records: WriteRecords, *, by_key_alone: bool) -> tuple[np.ndarray, int]:
    """Return the int64 number of each record's key, and how many distinct keys there are.

    ``by_key_alone``: equal record keys in different partitions are one key.
    """
    names, codes = number_strings(records.keys)
    if by_key_alone or records.partition_paths is None or len(names) == len(records):
        return codes, len(names)
    paths, partitions = number_strings(records.partition_paths)
    if len(paths) == 1:
        return codes, len(names)
    _, both = np.unique(codes * len(paths) + partitions, return_inverse=True)
    both = both.reshape(-1)
    return both, int(both.max()) + 1


@dataclass(frozen=True, slots=True)
class MergedVersions:
    """The merged version of each key.

    ``at``: for each version, the number of the record that it belongs to: the winner, or the last one if a merger made
    a new row.
    """

    result: BufferedBatch
    at: np.ndarray


class RecordVersions:
    """Merge the records of a write. Their rows are not copied.

    ``existing``: the table's records, in the same columns.
    """

    def __init__(
        self,
        records: WriteRecords,
        snapshot: Snapshot,
        settings: WriteSettings,
        merger: Merger | None = None,
        existing: WriteRecords | None = None,
    ) -> None:
        config, options = snapshot.config, settings.options
        selected = select_strategy(config, options, merger, writing=True, batch=True)
        self._records, self._existing = records, existing
        self._strategy = _choose_batch_strategy(selected, records)
        # For the merge with the table's records: a payload class's `preCombine` counts only within a batch.
        self._final = select_strategy(config, options, merger, writing=True).strategy
        fields = selected.ordering_fields if records.ordering else ()
        self._portion = MemoryBudget.from_options(ReadOptions(options=options))
        # Built-in modes need only ordering values. A merger sees whole rows, and so does a merge with the table's
        # records.
        whole = existing is not None or not isinstance(self._strategy, OrderedStrategy)
        data = list(records.rows.schema) if whole else _select_ordering_columns(records.rows.schema, fields)
        meta = _list_meta_columns(records.rows.schema) if whole and config.populate_meta_fields else []
        self._store = RowStore(pa.schema([*meta, *(field.with_nullable(True) for field in data)]))
        for each in (records, *(() if existing is None else (existing,))):
            for batch in _iterate_batches(each, self._store.schema):
                self._store.add(batch)
        self._context = ArrowRecordContext(
            self._store,
            pa.schema([*meta, *records.rows.schema]),
            RecordKeys.of(config.populate_meta_fields, config.record_key_fields),
            fields,
            DeleteRules.of(records.rows.schema, config.merge_properties, options),
            snapshot.schema.defaults if whole else {},
            list_identity_fields(config),
        )

    def fold(self, at: np.ndarray, codes: np.ndarray) -> MergedVersions:
        """Merge the versions of each key, in their original order.

        ``at``: numbers of records, rising. ``codes``: the numbers of their keys.

        Raises:
            MergeError: a merger failed, or ordering values do not compare; names the key.
        """
        distinct, keys = np.unique(codes, return_inverse=True)
        count = len(distinct)
        at_once = self._portion.count_rows_at_once(2 * self._store.row_bytes + self._strategy.bytes_a_pair)
        result = fold_by_rounds(self._strategy, self._make_entries(self._records, at, 0), keys, count, None, at_once)
        last = np.empty(count, np.int64)
        last[keys] = at  # of several records of a key the last assignment stays: the newest
        return MergedVersions(result, np.where(self._is_own(result), result.rows, last))

    def merge_with_existing(self, at: np.ndarray, existing: np.ndarray) -> MergedVersions:
        """Merge records with the table's records.

        ``existing``: for each record number in ``at``, the number of the table's record with its key.

        Raises:
            MergeError: as ``fold``.
        """
        assert self._existing is not None
        older = self._make_entries(self._existing, existing, len(self._records))
        return MergedVersions(self._final.final_merge(older, self._make_entries(self._records, at, 0)), at)

    def find_lost(self, folded: MergedVersions) -> np.ndarray:
        """Return a mask of the results of ``merge_with_existing`` that are the table's unchanged record."""
        rows = folded.result.rows
        end = len(self._records) + (0 if self._existing is None else len(self._existing))
        return np.asarray((rows >= len(self._records)) & (rows < end) & ~folded.result.deletes)

    def replace_merged(self, kept: np.ndarray, folded: MergedVersions) -> WriteRecords:
        """Return unchanged records together with merged ones, in the order of their numbers."""
        at = np.concatenate([kept, folded.at])
        order = np.argsort(at, kind="stable")
        records = self._records.take(at[order])
        changed = self._find_changed(folded)
        if not changed.any():
            return records
        places = np.flatnonzero(np.concatenate([np.zeros(len(kept), bool), changed])[order])
        which = np.flatnonzero(changed)
        made = folded.result.take(which[np.argsort(folded.at[which], kind="stable")])
        return self._patch(records, places, made)

    def find_made_rows(self, folded: MergedVersions) -> np.ndarray:
        """Return a mask of the results that are a new row, made by a merger."""
        rows = folded.result.rows
        end = len(self._records) + (0 if self._existing is None else len(self._existing))
        return np.asarray(rows >= end)

    def _patch(self, records: WriteRecords, at: np.ndarray, made: BufferedBatch) -> WriteRecords:
        """Return records with merged data at the rising positions ``at``; keys and partition paths stay."""
        back = np.arange(len(records))  # Arrow cannot assign to places: append the merged rows, then gather
        back[at] = len(records) + np.arange(len(made))
        rows = records.rows
        if rows.num_columns:
            own = np.flatnonzero(made.rows == NO_ROW)  # a delete without data keeps its record's row
            fresh = _cast_to_columns(
                pa.Table.from_batches([self._store.take(made.rows, rows.schema.names)]), own, rows, at
            )
            rows = pa.concat_tables([rows, fresh]).take(from_numpy(back))
        flags = records.delete_mask
        flags[at] = made.deletes
        ordering = records.ordering
        if made.order.parts:
            pairs = zip(ordering, made.order.parts, strict=True)
            ordering = tuple(
                pa.chunked_array([*column.chunks, _to_nullable(part)], column.type).take(from_numpy(back))
                for column, part in pairs
            )
        deletes = pa.chunked_array([from_numpy(flags)]) if flags.any() else None
        return WriteRecords(rows, records.keys, records.partition_paths, deletes, ordering)

    def _make_entries(self, records: WriteRecords, at: np.ndarray, first: int) -> BufferedBatch:
        """Return records, by number, in the form that a merge takes; ``first`` is the handle of record 0."""
        indices = from_numpy(at.astype(np.int64, copy=False))
        ordering = [join_chunks(column.take(indices)) for column in records.ordering if self._context.ordering_fields]
        codes = np.full(len(at), NO_OPERATION, np.int8)
        if records.deletes is not None:
            codes[to_booleans(join_chunks(records.deletes.take(indices)))] = DELETE
        order = OrderingColumn.from_columns(ordering, len(at))
        return BufferedBatch(self._context, join_chunks(records.keys.take(indices)), first + at, order, codes)

    def _is_own(self, result: BufferedBatch) -> np.ndarray:
        return np.asarray((result.rows != NO_ROW) & (result.rows < len(self._records)))

    def _find_changed(self, folded: MergedVersions) -> np.ndarray:
        """Return a mask of the keys whose results differ from the record that they belong to."""
        changed = ~self._is_own(folded.result) | (folded.result.rows != folded.at)
        if isinstance(self._strategy, CustomStrategy):  # a merger may change only the operation or ordering value
            changed |= ~_compare_entries(folded.result, self._make_entries(self._records, folded.at, 0))
        return np.asarray(changed)


class _PreCombine(RecordMerger):
    """Merge by a payload class's ``preCombine``, in place of a merger."""

    strategy_id = PayloadMerger.strategy_id

    def __init__(self, payload: PayloadMerger) -> None:
        self._payload = payload

    def merge(
        self,
        older: BufferedRecord[Any],
        newer: BufferedRecord[Any],
        context: RecordContext[Any],
        props: Mapping[str, str],
    ) -> BufferedRecord[Any]:
        return self._payload.pre_combine(older, newer, context, props)

    def merge_batch(
        self, older: BufferedBatch, newer: BufferedBatch, context: RecordContext[Any], props: Mapping[str, str]
    ) -> BufferedBatch:
        return self._payload.pre_combine_batch(older, newer, context, props)


def _choose_batch_strategy(selected: Selection, records: WriteRecords) -> MergeStrategy:
    """Return the strategy that merges versions of one batch."""
    if not records.rows.num_columns:
        return EventTimeStrategy() if records.ordering and selected.ordering_fields else CommitTimeStrategy()
    if isinstance(selected.merger, PayloadMerger):
        return CustomStrategy(_PreCombine(selected.merger), selected.props)
    return selected.strategy


def _select_ordering_columns(schema: pa.Schema, ordering_fields: tuple[str, ...]) -> list[pa.Field]:
    """Return the columns that hold ordering values."""
    wanted = {find_top_level_name(schema, name) for name in ordering_fields}
    return [field for field in schema if field.name in wanted]


def _list_meta_columns(schema: pa.Schema) -> list[pa.Field]:
    return [pa.field(name, pa.string()) for name in META_FIELDS if name not in schema.names]


def _iterate_batches(records: WriteRecords, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows in the columns of a schema; columns that the records lack are null."""
    if not len(schema):
        yield make_batch_without_columns(len(records))
        return
    known = {RECORD_KEY_FIELD: records.keys, PARTITION_PATH_FIELD: records.partition_paths}
    known.update(zip(records.rows.schema.names, records.rows.columns, strict=True))
    columns = []
    for field in schema:
        given = known.get(field.name)
        columns.append(pa.chunked_array([pa.nulls(len(records), field.type)]) if given is None else given)
    yield from pa.table(columns, schema=schema).to_batches()


def _compare_entries(result: BufferedBatch, entries: BufferedBatch) -> np.ndarray:
    """Return a mask of the records that are equal in delete mark and ordering value."""
    same = result.deletes == entries.deletes
    for mine, theirs in zip(result.order.parts, entries.order.parts, strict=True):
        equal = to_booleans(pc.equal(mine.values, theirs.values).fill_null(True))
        same &= equal & (mine.default == theirs.default)
    return np.asarray(same)


def _cast_to_columns(made: pa.Table, own: np.ndarray, rows: pa.Table, at: np.ndarray) -> pa.Table:
    """Cast merged rows to the columns of ``rows``. The rows in ``own`` are taken from ``rows`` at ``at``.

    Raises:
        MergeError: a merged value does not fit its column.
    """
    if len(own):
        pick = np.arange(len(at))
        pick[own] = len(at) + own
        kept = rows.take(from_numpy(at.astype(np.int64))).cast(made.schema)
        made = pa.concat_tables([made, kept]).take(from_numpy(pick))
    try:
        return made.cast(rows.schema)
    except (pa.ArrowException, ValueError) as error:
        raise MergeError(f"A merged value does not fit its column: {error}") from error


def _to_nullable(part: Any) -> pa.Array:
    """Return the ordering values of one field; default values become null."""
    if part.integer:
        return part.values
    return pc.if_else(from_numpy(part.default), pa.scalar(None, part.values.type), part.values)
