"""Payload classes that take one version whole.

Agree with Hudi's OverwriteWithLatestAvroPayload, DefaultHoodieRecordPayload, EventTimeAvroPayload,
ReverseOrderHoodieRecordPayload, HoodieAvroPayload, RewriteAvroPayload, HoodieJsonPayload and EmptyHoodieRecordPayload.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from hoodie_py.options.read import SAME_ORDERING_UPDATES
from hoodie_py.reader.arrow_context import ArrowRecordContext
from hoodie_py.reader.batch import BufferedBatch
from hoodie_py.reader.payload_merger import Combined, PayloadMerger, Props
from hoodie_py.reader.payload_ordering import (
    Record,
    compare_carried,
    compare_orders,
    compare_row,
    compare_rows,
    field_types,
    incomparable,
    ordering_field,
    payload_ordering_fields,
    row_ordering,
)
from hoodie_py.reader.payload_values import delete_marker, saying, says
from hoodie_py.reader.row_store import NO_ROW

_MODEL = "org.apache.hudi.common.model"


class OverwriteWithLatestAvroPayload(PayloadMerger):
    """The newer version; a delete if it is one."""

    payload_classes: ClassVar[tuple[str, ...]] = (f"{_MODEL}.OverwriteWithLatestAvroPayload",)

    def combine(self, older: Record, newer: Record, context: ArrowRecordContext, props: Props) -> Record | None:
        return None if self.is_deleted(newer, context, props) else newer

    def combine_batch(self, older: BufferedBatch, newer: BufferedBatch, props: Props) -> Combined:
        return Combined(newer, self.deleted(newer, props))


class HoodieAvroPayload(OverwriteWithLatestAvroPayload):
    """The newer version; no row means delete, its flag does not."""

    payload_classes = (
        f"{_MODEL}.HoodieAvroPayload",
        f"{_MODEL}.RewriteAvroPayload",
        "org.apache.hudi.common.HoodieJsonPayload",
    )

    def is_deleted(self, record: Record, context: ArrowRecordContext, props: Props) -> bool:
        return record.is_delete or record.record is None

    def deleted(self, batch: BufferedBatch, props: Props) -> np.ndarray:
        return np.asarray(batch.deletes | (batch.rows == NO_ROW))


class EmptyHoodieRecordPayload(OverwriteWithLatestAvroPayload):
    """Always a delete."""

    payload_classes = (f"{_MODEL}.EmptyHoodieRecordPayload",)

    def is_deleted(self, record: Record, context: ArrowRecordContext, props: Props) -> bool:
        return True

    def deleted(self, batch: BufferedBatch, props: Props) -> np.ndarray:
        return np.ones(len(batch), bool)


class PreCombinesByOrdering(PayloadMerger):
    """Within a writer's batch the greater ordering value wins, the newer version on a tie."""

    lowest_wins = False

    def pre_combine_pair(self, older: Record, newer: Record, context: ArrowRecordContext, props: Props) -> Record:
        sign = compare_carried(older, newer, context)
        if sign is None:
            raise incomparable(newer.record_key, older.ordering_value, newer.ordering_value, context.ordering_fields)
        return older if (sign < 0 if self.lowest_wins else sign > 0) else newer

    def pre_combine_pairs(self, older: BufferedBatch, newer: BufferedBatch, props: Props) -> BufferedBatch:
        sign, stuck = compare_orders(older.order, newer.order)
        refuse(older, newer, stuck)
        return newer.where(~(sign < 0 if self.lowest_wins else sign > 0), older)


class DefaultHoodieRecordPayload(PreCombinesByOrdering):
    """The version with the greater ordering value, read from the rows; on a tie the newer, unless an option forbids it.

    An older row whose ordering is null loses.  With a delete field configured only the marker in it means delete.
    """

    payload_classes = (f"{_MODEL}.DefaultHoodieRecordPayload",)

    def combine(self, older: Record, newer: Record, context: ArrowRecordContext, props: Props) -> Record | None:
        if not self._updates(older, newer, context, props):
            return older
        return None if self.is_deleted(newer, context, props) else newer

    def combine_batch(self, older: BufferedBatch, newer: BufferedBatch, props: Props) -> Combined:
        updates = self._updating(older, newer, props)
        return Combined(newer.where(updates, older), updates & self.deleted(newer, props))

    def is_deleted(self, record: Record, context: ArrowRecordContext, props: Props) -> bool:
        marker = delete_marker(props)
        if marker is None:
            return super().is_deleted(record, context, props)
        return record.is_delete or record.record is None or says(record, context, *marker)

    def deleted(self, batch: BufferedBatch, props: Props) -> np.ndarray:
        marker = delete_marker(props)
        if marker is None:
            return super().deleted(batch, props)
        return np.asarray(batch.deletes | (batch.rows == NO_ROW) | saying(batch, *marker))

    def _updates(self, older: Record, newer: Record, context: ArrowRecordContext, props: Props) -> bool:
        fields = payload_ordering_fields(context, props)
        mine, theirs = row_ordering(older, context, fields), row_ordering(newer, context, fields)
        if not fields or mine == (None,):
            return True
        sign = compare_row(mine, theirs, field_types(context, fields))
        if sign is None:
            raise incomparable(newer.record_key, mine, theirs, fields)
        return SAME_ORDERING_UPDATES.as_java(props) if sign == 0 else (sign > 0) == self.lowest_wins

    def _updating(self, older: BufferedBatch, newer: BufferedBatch, props: Props) -> np.ndarray:
        fields = payload_ordering_fields(older.context, props)
        if not fields:
            return np.ones(len(newer), bool)
        unordered = np.asarray(ordering_field(older, fields[0]).is_null()) & (len(fields) == 1)
        sign, stuck = compare_rows(older, newer, fields)
        refuse(older, newer, stuck & ~unordered)
        wins = sign > 0 if self.lowest_wins else sign < 0
        return np.asarray(unordered | wins | ((sign == 0) & SAME_ORDERING_UPDATES.as_java(props)))


class EventTimeAvroPayload(DefaultHoodieRecordPayload):
    """As the default payload, with the flag alone to mean delete."""

    payload_classes = (f"{_MODEL}.EventTimeAvroPayload",)

    def is_deleted(self, record: Record, context: ArrowRecordContext, props: Props) -> bool:
        return PayloadMerger.is_deleted(self, record, context, props)

    def deleted(self, batch: BufferedBatch, props: Props) -> np.ndarray:
        return PayloadMerger.deleted(self, batch, props)


class ReverseOrderHoodieRecordPayload(DefaultHoodieRecordPayload):
    """As the default payload, the lowest ordering value wins."""

    payload_classes = (f"{_MODEL}.ReverseOrderHoodieRecordPayload",)
    lowest_wins = True


def refuse(older: BufferedBatch, newer: BufferedBatch, stuck: np.ndarray) -> None:
    """Raise where the ordering values of a pair do not compare.

    Raises:
        MergeError: names the first such key.
    """
    if stuck.any():
        at = int(np.argmax(stuck))
        fields = older.context.ordering_fields
        raise incomparable(newer.keys[at].as_py(), older.order.value(at), newer.order.value(at), fields)
