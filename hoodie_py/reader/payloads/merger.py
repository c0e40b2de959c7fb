"""PayloadMerger: the base class of mergers that follow a Java payload class.

It agrees with Hudi's HoodieAvroRecordMerger. For a pair of versions, log with log and log with base:

* If one side is a delete that commit time orders, or the older version has no data, the newer version wins.
* Otherwise the payload class combines the newer version with the older one's data. It returns one of them, a new record
  or nothing. Nothing means delete: the newer version if it is a delete, else the older one if it is a delete, else a
  delete without data, with the greater of the two ordering values.

A log record without base row goes through ``insert_batch``, where the payload class may find a delete that the reader
does not. A delete for the reader (operation D or -U) is a delete for the payload class, too.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.fields import has_field
from hoodie_py.formats.config.merge_config import PAYLOAD_STRATEGY_ID
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.options.read import DELETE_FIELD
from hoodie_py.reader.merge.merger import RecordMerger
from hoodie_py.reader.payloads.ordering import (
    Record,
    compare_carried,
    find_flagged,
    is_flagged,
    list_option_ordering_fields,
    replace_records,
    select_greater,
    to_reader_context,
)
from hoodie_py.reader.record.arrow_context import ArrowRecordContext
from hoodie_py.reader.record.batch import BufferedBatch
from hoodie_py.reader.record.record import DELETE, BufferedRecord, HoodieOperation, RecordContext
from hoodie_py.reader.record.row_store import NO_ROW

Props = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class CombineResult:
    """The result of a payload class for each pair."""

    records: BufferedBatch
    absent: np.ndarray  # a bool per pair: the payload class returned nothing, and the record has no meaning


class PayloadMerger(RecordMerger):
    """The merger of one payload class."""

    strategy_id = PAYLOAD_STRATEGY_ID
    projection_compatible = True
    columns: ClassVar[tuple[str, ...]] = ()  # read beside key, ordering and delete columns; a table may lack them

    @abstractmethod
    def combine(self, older: Record, newer: Record, context: ArrowRecordContext, props: Props) -> Record | None:
        """Combine one pair whose older version has data (combineAndGetUpdateValue); None means nothing."""

    @abstractmethod
    def combine_batch(self, older: BufferedBatch, newer: BufferedBatch, props: Props) -> CombineResult:
        """Combine pairs whose older versions have data; the results equal those of ``combine``."""

    def pre_combine_pair(self, older: Record, newer: Record, context: ArrowRecordContext, props: Props) -> Record:
        """Choose between two versions in one incoming batch of a write (preCombine); the older one has data."""
        return newer

    def pre_combine_pairs(self, older: BufferedBatch, newer: BufferedBatch, props: Props) -> BufferedBatch:
        """Choose between versions in one incoming batch; the results equal those of ``pre_combine_pair``."""
        return newer

    def is_deleted(self, record: Record, context: ArrowRecordContext, props: Props) -> bool:
        """Say whether the payload class considers a version a delete."""
        return record.is_delete or record.record is None or is_flagged(record, context)

    def find_deleted(self, batch: BufferedBatch, props: Props) -> np.ndarray:
        """Return for each record whether the payload class considers it a delete."""
        return np.asarray(batch.deletes | (batch.rows == NO_ROW) | find_flagged(batch))

    def mandatory_fields(self, schema: pa.Schema, config: TableConfig, props: Props) -> Sequence[str]:
        marker = DELETE_FIELD.read(props)
        extra = (*self.columns, *list_option_ordering_fields(props), *((marker,) if marker else ()))
        return (*super().mandatory_fields(schema, config, props), *(name for name in extra if has_field(schema, name)))

    def merge(
        self, older: BufferedRecord[Any], newer: BufferedRecord[Any], context: RecordContext[Any], props: Props
    ) -> BufferedRecord[Any]:
        if older.record is None or older.is_commit_time_delete or newer.is_commit_time_delete:
            return newer
        arrow = to_reader_context(context)
        result = self.combine(older, newer, arrow, props)
        if result is not None:
            return result
        if newer.is_delete or older.is_delete:
            return newer if newer.is_delete else older
        sign = compare_carried(older, newer, arrow)
        ordering = older.ordering_value if sign is not None and sign > 0 else newer.ordering_value
        return BufferedRecord(newer.record_key, ordering, None, None, HoodieOperation.DELETE)

    def merge_batch(
        self, older: BufferedBatch, newer: BufferedBatch, context: RecordContext[Any], props: Props
    ) -> BufferedBatch:
        return _merge_pairs(older, newer, lambda a, b: _resolve_absent(a, b, self.combine_batch(a, b, props)))

    def pre_combine(
        self, older: BufferedRecord[Any], newer: BufferedRecord[Any], context: RecordContext[Any], props: Props
    ) -> BufferedRecord[Any]:
        """Choose between two versions in one incoming batch of a write (Hudi's HoodiePreCombineAvroRecordMerger)."""
        if older.record is None or older.is_commit_time_delete or newer.is_commit_time_delete:
            return newer
        return self.pre_combine_pair(older, newer, to_reader_context(context), props)

    def pre_combine_batch(
        self, older: BufferedBatch, newer: BufferedBatch, context: RecordContext[Any], props: Props
    ) -> BufferedBatch:
        """Choose between versions in one incoming batch; the results equal those of ``pre_combine``."""
        return _merge_pairs(older, newer, lambda a, b: self.pre_combine_pairs(a, b, props))

    def insert_batch(self, newer: BufferedBatch, context: RecordContext[Any], props: Props) -> BufferedBatch:
        """Return log records without base row unchanged, or as deletes (getInsertValue)."""
        mask = ~newer.deletes
        at = np.flatnonzero(mask)
        if len(at):
            mask[at] = self.find_deleted(newer.take(at), props)
        return newer.deleted(mask) if mask.any() else newer


def _merge_pairs(
    older: BufferedBatch, newer: BufferedBatch, merge: Callable[[BufferedBatch, BufferedBatch], BufferedBatch]
) -> BufferedBatch:
    """Apply a merge to the pairs that the payload class decides; in all other pairs the newer version wins."""
    pairs = (older.rows != NO_ROW) & ~older.commit_time_deletes & ~newer.commit_time_deletes
    at = np.flatnonzero(pairs)
    if len(at) == len(newer):
        return merge(older, newer) if len(at) else newer
    return replace_records(newer, at, merge(older.take(at), newer.take(at))) if len(at) else newer


def _resolve_absent(older: BufferedBatch, newer: BufferedBatch, combined: CombineResult) -> BufferedBatch:
    """Replace the results of pairs for which the payload class returned nothing by deletes."""
    absent, result = combined.absent, combined.records
    if not absent.any():
        return result
    result = result.where(~(absent & newer.deletes), newer)
    result = result.where(~(absent & older.deletes & ~newer.deletes), older)
    bare = absent & ~older.deletes & ~newer.deletes
    if not bare.any():
        return result
    at = np.flatnonzero(bare)
    mine, theirs = older.take(at), newer.take(at)
    deletes = BufferedBatch(
        newer.context,
        theirs.keys,
        np.full(len(at), NO_ROW, np.int64),
        select_greater(mine.order, theirs.order),
        np.full(len(at), DELETE, np.int8),
    )
    return replace_records(result, at, deletes)
