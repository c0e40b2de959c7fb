"""Payload classes in which one of the two versions wins unchanged, or fills columns of the other.

The former agree with Hudi's OverwriteWithLatestAvroPayload, DefaultHoodieRecordPayload, EventTimeAvroPayload,
ReverseOrderHoodieRecordPayload, HoodieAvroPayload, RewriteAvroPayload, HoodieJsonPayload and EmptyHoodieRecordPayload.

The latter agree with Hudi's OverwriteNonDefaultsWithLatestAvroPayload and PartialUpdateAvroPayload. Only top-level
columns are compared. A row made from both versions has no operation, and its ordering value is read from the new row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.fields import find_field_type
from hoodie_py.formats.names import META_FIELDS_WITH_OPERATION, OPERATION_FIELD
from hoodie_py.options.read import SAME_ORDERING_UPDATES
from hoodie_py.reader.merge.partial_update import choose_values
from hoodie_py.reader.payloads.merger import CombineResult, PayloadMerger, Props
from hoodie_py.reader.payloads.ordering import (
    Record,
    compare_carried,
    compare_fields,
    compare_orders,
    compare_row,
    equals_default,
    find_defaults,
    find_delete_marker,
    find_first_difference,
    find_payload_ordering_fields,
    find_text,
    get_default_value,
    has_text,
    make_incomparable_error,
    make_merged_record,
    make_merged_records,
    read_ordering_field,
    read_row_ordering,
    replace_records,
    to_parts,
)
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


_META = frozenset(META_FIELDS_WITH_OPERATION) - {OPERATION_FIELD}


class OverwriteNonDefaultsWithLatestAvroPayload(OrderingPreCombinePayload):
    """The newer version wins; where it has the column's default (null if none is set) the older value stays."""

    payload_classes = ("org.apache.hudi.common.model.OverwriteNonDefaultsWithLatestAvroPayload",)

    def combine(self, older: Record, newer: Record, context: ArrowRecordContext, props: Props) -> Record | None:
        if self.is_deleted(newer, context, props):
            return None
        values = {
            field.name: context.get_value(older, field.name)
            for field in context.schema
            if equals_default(context.get_value(newer, field.name), get_default_value(context, field.name), field.type)
        }
        return make_merged_record(newer, values, newer.record_key, context)

    def combine_batch(self, older: BufferedBatch, newer: BufferedBatch, props: Props) -> CombineResult:
        absent = self.find_deleted(newer, props)
        at = np.flatnonzero(~absent)
        base, other = newer.take(at), older.take(at)
        defaults = base.context.defaults
        takes = {name: find_defaults(base.column(name), defaults.get(name)) for name in base.context.schema.names}
        return CombineResult(replace_records(newer, at, fill_columns(base, other, takes)), absent)

    def pre_combine_pair(self, older: Record, newer: Record, context: ArrowRecordContext, props: Props) -> Record:
        return newer if newer.record is None else super().pre_combine_pair(older, newer, context, props)

    def pre_combine_pairs(self, older: BufferedBatch, newer: BufferedBatch, props: Props) -> BufferedBatch:
        at = np.flatnonzero(newer.rows != NO_ROW)
        return replace_records(newer, at, super().pre_combine_pairs(older.take(at), newer.take(at), props))


class PartialUpdateAvroPayload(PayloadMerger):
    """The greater ordering value wins, the newer version on a tie; nulls of the winner are filled from the loser.

    The older version wins only if both ordering values exist and have one class. Even then the meta columns come from
    the newer version. Java reads the older value from an Avro record and the newer one from a Spark row. So decimals,
    dates and texts never have one class, and milliseconds are always less than microseconds.
    """

    payload_classes = ("org.apache.hudi.common.model.PartialUpdateAvroPayload",)

    def combine(self, older: Record, newer: Record, context: ArrowRecordContext, props: Props) -> Record | None:
        if self.is_deleted(newer, context, props):
            return None
        if not _is_later(older, newer, context):
            return _fill_record(newer, older, newer.record_key, context)
        return None if self.is_deleted(older, context, props) else _merge_disordered_record(older, newer, context)

    def combine_batch(self, older: BufferedBatch, newer: BufferedBatch, props: Props) -> CombineResult:
        absent = self.find_deleted(newer, props)
        at = np.flatnonzero(~absent)
        later = np.zeros(len(newer), bool)
        later[at] = _find_later(older.take(at), newer.take(at))
        absent |= later & self.find_deleted(older, props)
        at = np.flatnonzero(~absent)
        return CombineResult(
            replace_records(newer, at, _merge_pairs(older.take(at), newer.take(at), later[at])), absent
        )

    def pre_combine_pair(self, older: Record, newer: Record, context: ArrowRecordContext, props: Props) -> Record:
        sign = compare_pair(older, newer, context)
        if newer.record is None:
            return newer
        if sign > 0:
            return _merge_disordered_record(older, newer, context)
        return _fill_record(newer, older, newer.record_key, context)

    def pre_combine_pairs(self, older: BufferedBatch, newer: BufferedBatch, props: Props) -> BufferedBatch:
        sign = compare_pairs(older, newer)
        at = np.flatnonzero(newer.rows != NO_ROW)
        return replace_records(newer, at, _merge_pairs(older.take(at), newer.take(at), sign[at] > 0))


def fill_columns(base: BufferedBatch, other: BufferedBatch, takes: Mapping[str, np.ndarray]) -> BufferedBatch:
    """Make records of the base's rows, with the other's values where the column's mask is true."""
    if not len(base):
        return base
    columns = {
        name: choose_values(mask, other.column(name), base.column(name)) for name, mask in takes.items() if mask.any()
    }
    return make_merged_records(base, columns)


def _merge_pairs(older: BufferedBatch, newer: BufferedBatch, later: np.ndarray) -> BufferedBatch:
    """Fill the nulls of the winners from the losers; ``later`` marks the pairs whose older version wins."""
    base, other = newer.where(~later, older), older.where(~later, newer)
    takes = {}
    for name in base.context.schema.names:
        mask = np.asarray(base.column(name).is_null())
        if name in _META and later.any():
            mask = np.where(later, np.asarray(newer.column(name).is_valid()), mask)
        takes[name] = mask
    return fill_columns(base, other, takes)


def _fill_record(base: Record, other: Record, key: str, context: ArrowRecordContext) -> Record:
    values = {
        name: context.get_value(other, name) for name in context.schema.names if context.get_value(base, name) is None
    }
    return make_merged_record(base, values, key, context)


def _merge_disordered_record(older: Record, newer: Record, context: ArrowRecordContext) -> Record:
    """Make the record where the older version wins: its values, but the newer version's meta columns."""
    values: dict[str, Any] = {}
    for name in context.schema.names:
        first, second = (newer, older) if name in _META else (older, newer)
        value = context.get_value(first, name)
        values[name] = context.get_value(second, name) if value is None else value
    return make_merged_record(older, values, newer.record_key, context)


def _may_be_later(context: ArrowRecordContext) -> bool:
    """Say whether the ordering types have the same class and unit in Java's Avro records and in Spark's rows."""
    return not any(
        pa.types.is_decimal(type_)
        or pa.types.is_date32(type_)
        or pa.types.is_string(type_)
        or (pa.types.is_timestamp(type_) and type_.unit == "ms")
        for type_ in context.declared_ordering_types
    )


def _is_later(older: Record, newer: Record, context: ArrowRecordContext) -> bool:
    if not _may_be_later(context):
        return False
    fields = context.ordering_fields
    mine, theirs = read_row_ordering(older, context, fields), to_parts(newer.ordering_value, len(fields))
    signs = [compare_row([a], [b], [type_]) for a, b, type_ in zip(mine, theirs, context.ordering_types, strict=True)]
    return None not in signs and next((sign > 0 for sign in signs if sign), False)


def _find_later(older: BufferedBatch, newer: BufferedBatch) -> np.ndarray:
    """Return for each pair whether the older version wins: all parts compare, and the first that differs is greater."""
    if not _may_be_later(older.context):
        return np.zeros(len(newer), bool)
    steps = compare_fields(older, newer, older.context.ordering_fields, carried=True)
    sign = find_first_difference(steps, len(newer))[0]
    return np.asarray(np.logical_and.reduce([sign > 0, *(~mixed for _, mixed in steps)]))
