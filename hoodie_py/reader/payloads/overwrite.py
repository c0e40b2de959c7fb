"""Payload classes in which one of the two versions wins unchanged.

They agree with Hudi's OverwriteWithLatestAvroPayload, DefaultHoodieRecordPayload, EventTimeAvroPayload,
ReverseOrderHoodieRecordPayload, HoodieAvroPayload, RewriteAvroPayload, HoodieJsonPayload and EmptyHoodieRecordPayload.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from hoodie_py.arrow.fields import find_field_type
from hoodie_py.options.read import SAME_ORDERING_UPDATES
from hoodie_py.reader.payloads.merger import CombineResult, PayloadMerger, Props
from hoodie_py.reader.payloads.ordering import (
    Record,
    compare_carried,
    compare_fields,
    compare_orders,
    compare_row,
    find_first_difference,
    find_payload_ordering_fields,
    make_incomparable_error,
    read_ordering_field,
    read_row_ordering,
)
from hoodie_py.reader.payloads.values import find_delete_marker, find_text, has_text
from hoodie_py.reader.record.arrow_context import ArrowRecordContext
from hoodie_py.reader.record.batch import BufferedBatch
from hoodie_py.reader.record.row_store import NO_ROW

_MODEL = "org.apache.hudi.common.model"


class OverwriteWithLatestAvroPayload(PayloadMerger):
    """The newer version wins; if it is a delete, the record is deleted."""

    payload_classes: ClassVar[tuple[str, ...]] = (f"{_MODEL}.OverwriteWithLatestAvroPayload",)

    def combine(self, older: Record, newer: Record, context: ArrowRecordContext, props: Props) -> Record | None:
        return None if self.is_deleted(newer, context, props) else newer

    def combine_batch(self, older: BufferedBatch, newer: BufferedBatch, props: Props) -> CombineResult:
        return CombineResult(newer, self.find_deleted(newer, props))


class HoodieAvroPayload(OverwriteWithLatestAvroPayload):
    """The newer version wins; a missing row is a delete, and ``_hoodie_is_deleted`` is not read."""

    payload_classes = (
        f"{_MODEL}.HoodieAvroPayload",
        f"{_MODEL}.RewriteAvroPayload",
        "org.apache.hudi.common.HoodieJsonPayload",
    )

    def is_deleted(self, record: Record, context: ArrowRecordContext, props: Props) -> bool:
        return record.is_delete or record.record is None

    def find_deleted(self, batch: BufferedBatch, props: Props) -> np.ndarray:
        return np.asarray(batch.deletes | (batch.rows == NO_ROW))


class EmptyHoodieRecordPayload(OverwriteWithLatestAvroPayload):
    """Always a delete."""

    payload_classes = (f"{_MODEL}.EmptyHoodieRecordPayload",)

    def is_deleted(self, record: Record, context: ArrowRecordContext, props: Props) -> bool:
        return True

    def find_deleted(self, batch: BufferedBatch, props: Props) -> np.ndarray:
        return np.ones(len(batch), bool)


class OrderingPreCombinePayload(PayloadMerger):
    """In one incoming batch of a write the greater ordering value wins, the newer version on a tie."""

    lowest_wins = False

    def pre_combine_pair(self, older: Record, newer: Record, context: ArrowRecordContext, props: Props) -> Record:
        sign = compare_pair(older, newer, context)
        return older if (sign < 0 if self.lowest_wins else sign > 0) else newer

    def pre_combine_pairs(self, older: BufferedBatch, newer: BufferedBatch, props: Props) -> BufferedBatch:
        sign = compare_pairs(older, newer)
        return newer.where(~(sign < 0 if self.lowest_wins else sign > 0), older)


class DefaultHoodieRecordPayload(OrderingPreCombinePayload):
    """The greater ordering value in the row wins; on a tie the newer version, unless an option forbids it.

    An older row with a null ordering value loses. If a delete field is configured, only its marker means delete.
    """

    payload_classes = (f"{_MODEL}.DefaultHoodieRecordPayload",)

    def combine(self, older: Record, newer: Record, context: ArrowRecordContext, props: Props) -> Record | None:
        if not self._is_update(older, newer, context, props):
            return older
        return None if self.is_deleted(newer, context, props) else newer

    def combine_batch(self, older: BufferedBatch, newer: BufferedBatch, props: Props) -> CombineResult:
        updates = self._find_updates(older, newer, props)
        return CombineResult(newer.where(updates, older), updates & self.find_deleted(newer, props))

    def is_deleted(self, record: Record, context: ArrowRecordContext, props: Props) -> bool:
        marker = find_delete_marker(props)
        if marker is None:
            return super().is_deleted(record, context, props)
        return record.is_delete or record.record is None or has_text(record, context, *marker)

    def find_deleted(self, batch: BufferedBatch, props: Props) -> np.ndarray:
        marker = find_delete_marker(props)
        if marker is None:
            return super().find_deleted(batch, props)
        return np.asarray(batch.deletes | (batch.rows == NO_ROW) | find_text(batch, *marker))

    def _is_update(self, older: Record, newer: Record, context: ArrowRecordContext, props: Props) -> bool:
        fields = find_payload_ordering_fields(context, props)
        mine, theirs = read_row_ordering(older, context, fields), read_row_ordering(newer, context, fields)
        if not fields or mine == (None,):
            return True
        sign = compare_row(mine, theirs, [find_field_type(context.schema, name) for name in fields])
        if sign is None:
            raise make_incomparable_error(newer.record_key, mine, theirs, fields)
        return SAME_ORDERING_UPDATES.read_as_java(props) if sign == 0 else (sign > 0) == self.lowest_wins

    def _find_updates(self, older: BufferedBatch, newer: BufferedBatch, props: Props) -> np.ndarray:
        fields = find_payload_ordering_fields(older.context, props)
        if not fields:
            return np.ones(len(newer), bool)
        unordered = np.asarray(read_ordering_field(older, fields[0]).is_null()) & (len(fields) == 1)
        sign, stuck = find_first_difference(compare_fields(older, newer, fields), len(newer))
        _check_comparable(older, newer, stuck & ~unordered)
        wins = sign > 0 if self.lowest_wins else sign < 0
        return np.asarray(unordered | wins | ((sign == 0) & SAME_ORDERING_UPDATES.read_as_java(props)))


class EventTimeAvroPayload(DefaultHoodieRecordPayload):
    """Like the default payload, but only the column ``_hoodie_is_deleted`` means delete."""

    payload_classes = (f"{_MODEL}.EventTimeAvroPayload",)

    def is_deleted(self, record: Record, context: ArrowRecordContext, props: Props) -> bool:
        return PayloadMerger.is_deleted(self, record, context, props)

    def find_deleted(self, batch: BufferedBatch, props: Props) -> np.ndarray:
        return PayloadMerger.find_deleted(self, batch, props)


class ReverseOrderHoodieRecordPayload(DefaultHoodieRecordPayload):
    """Like the default payload, but the lowest ordering value wins."""

    payload_classes = (f"{_MODEL}.ReverseOrderHoodieRecordPayload",)
    lowest_wins = True


def compare_pair(older: Record, newer: Record, context: ArrowRecordContext) -> int:
    """Compare the ordering values that two records carry; MergeError if they do not compare."""
    sign = compare_carried(older, newer, context)
    if sign is None:
        raise make_incomparable_error(
            newer.record_key, older.ordering_value, newer.ordering_value, context.ordering_fields
        )
    return sign


def compare_pairs(older: BufferedBatch, newer: BufferedBatch) -> np.ndarray:
    """Compare the ordering values that records carry; MergeError, with the first key, where a pair does not compare."""
    sign, stuck = compare_orders(older.order, newer.order)
    _check_comparable(older, newer, stuck)
    return sign


def _check_comparable(older: BufferedBatch, newer: BufferedBatch, stuck: np.ndarray) -> None:
    if stuck.any():
        at = int(np.argmax(stuck))
        fields = older.context.ordering_fields
        mine, theirs = older.order.get_value(at), newer.order.get_value(at)
        raise make_incomparable_error(newer.keys[at].as_py(), mine, theirs, fields)
