"""Payload classes that fill one version with values of the other, column by column.

They agree with Hudi's OverwriteNonDefaultsWithLatestAvroPayload and PartialUpdateAvroPayload. Only top-level columns
are compared. A row made from both versions has no operation, and its ordering value is read from the new row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from hoodie_py.formats.names import META_FIELDS_WITH_OPERATION, OPERATION_FIELD
from hoodie_py.reader.merge.partial_update import choose_values
from hoodie_py.reader.payloads.merger import CombineResult, PayloadMerger, Props
from hoodie_py.reader.payloads.ordering import (
    Record,
    compare_fields,
    compare_row,
    find_first_difference,
    read_row_ordering,
    to_parts,
)
from hoodie_py.reader.payloads.overwrite import OrderingPreCombinePayload, compare_pair, compare_pairs
from hoodie_py.reader.payloads.values import (
    equals_default,
    find_defaults,
    get_default_value,
    make_merged_record,
    make_merged_records,
    replace_records,
)
from hoodie_py.reader.record.arrow_context import ArrowRecordContext
from hoodie_py.reader.record.batch import BufferedBatch
from hoodie_py.reader.record.row_store import NO_ROW

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
