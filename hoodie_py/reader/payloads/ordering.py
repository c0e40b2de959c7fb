"""Ordering values as payload classes compare them.

They agree with Hudi's DefaultHoodieRecordPayload and OrderingValues. A payload class uses two ordering values:

* the value that the record carries, in which a null is the default;
* the value that it reads from the row, in which a null is null and compares with nothing.

Several fields compare one by one; the first difference decides.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.fields import find_top_level_name, has_field, read_field_values
from hoodie_py.errors import MergeError
from hoodie_py.options.read import ORDERING_FIELD_PROPERTY, ORDERING_FIELDS_PROPERTY
from hoodie_py.reader.record.arrow_context import ArrowRecordContext, Row
from hoodie_py.reader.record.batch import BufferedBatch
from hoodie_py.reader.record.ordering import ForeignValue, OrderingColumn, compare
from hoodie_py.reader.record.record import DEFAULT_ORDERING, BufferedRecord
from hoodie_py.reader.record.row_store import NO_ROW

Record = BufferedRecord[Row]
Comparison = tuple[np.ndarray, np.ndarray]  # int8 sign of older against newer, bool: they do not compare


def find_payload_ordering_fields(context: ArrowRecordContext, props: Mapping[str, str]) -> tuple[str, ...]:
    """Return the fields by which a payload class orders rows: the table's, else those of the reader's options."""
    if context.ordering_fields:
        return context.ordering_fields
    return tuple(name for name in list_option_ordering_fields(props) if has_field(context.schema, name))


def list_option_ordering_fields(props: Mapping[str, str]) -> list[str]:
    """List the ordering fields that the options name."""
    text = ORDERING_FIELDS_PROPERTY.find_text(props) or ORDERING_FIELD_PROPERTY.find_text(props) or ""
    return [name.strip() for name in text.split(",") if name.strip()]


def read_row_ordering(record: Record, context: ArrowRecordContext, fields: Sequence[str]) -> tuple[Any, ...]:
    """Read one record's ordering values from its row, None for null; without a row return the values it carries."""
    if record.record is not None:
        return tuple(context.get_value(record, name) for name in fields)
    return to_parts(record.ordering_value, len(fields))


def compare_row(older: Sequence[Any], newer: Sequence[Any], types: Sequence[pa.DataType]) -> int | None:
    """Compare two ordering values part by part; None if the deciding parts do not compare."""
    for mine, theirs, type_ in zip(older, newer, types, strict=True):
        sign = _compare_one(mine, theirs, type_)
        if sign is None or sign:
            return sign
    return 0


def compare_carried(older: Record, newer: Record, context: ArrowRecordContext) -> int | None:
    """Compare the ordering values that two records carry; None if they do not compare."""
    types = context.ordering_types
    return compare_row(to_parts(older.ordering_value, len(types)), to_parts(newer.ordering_value, len(types)), types)


def compare_fields(
    older: BufferedBatch, newer: BufferedBatch, fields: Sequence[str], *, carried: bool = False
) -> list[Comparison]:
    """Compare the ordering values of pairs field by field; the older records all have data.

    Newer records without data, with ``carried`` all newer records, are compared by the ordering value they carry.
    """
    has_data = (newer.rows != NO_ROW) & (not carried)
    steps = []
    for i, name in enumerate(fields):
        mine, theirs = read_ordering_field(older, name), read_ordering_field(newer, name)
        right = OrderingColumn.from_columns([theirs], len(newer))
        if not has_data.all():
            right = right.where(has_data, _get_part(newer.order, i))
        sign, mixed = compare(OrderingColumn.from_columns([mine], len(older)), right)
        null = np.asarray(mine.is_null()) | (np.asarray(theirs.is_null()) & has_data)
        steps.append((sign, mixed | null))
    return steps


def find_first_difference(steps: Sequence[Comparison], length: int) -> Comparison:
    """Combine the comparisons of single fields: the first that differs, or that does not compare, decides."""
    sign, stuck = np.zeros(length, np.int8), np.zeros(length, bool)
    for part_sign, part_stuck in steps:
        undecided = (sign == 0) & ~stuck
        stuck |= undecided & part_stuck
        sign = np.where(undecided & ~part_stuck, part_sign, sign).astype(np.int8)
    return sign, stuck


def compare_orders(older: OrderingColumn, newer: OrderingColumn) -> Comparison:
    """Compare the ordering values that records carry."""
    return find_first_difference(
        [compare(_get_part(older, i), _get_part(newer, i)) for i in range(len(older.parts))], len(newer)
    )


def read_ordering_field(batch: BufferedBatch, name: str) -> pa.Array:
    """Return the values of one ordering field; null for records without data."""
    column = find_top_level_name(batch.context.schema, name)
    return read_field_values(batch.context.store.take(batch.rows, [column]), name)


def select_greater(older: OrderingColumn, newer: OrderingColumn) -> OrderingColumn:
    """Return the greater ordering value of each pair; the newer one on a tie or if they do not compare."""
    sign, stuck = compare_orders(older, newer)
    return older.where((sign > 0) & ~stuck, newer)


def make_incomparable_error(key: str, older: Any, newer: Any, fields: Sequence[str]) -> MergeError:
    """Make the error for two ordering values that do not compare."""
    return MergeError(
        f"Ordering values of two versions of a record do not compare: {older} and {newer}.",
        hint="A null ordering value has no order against other values; write the record again with a value.",
        key=key,
        ordering_fields=",".join(fields),
    )


def _get_part(order: OrderingColumn, index: int) -> OrderingColumn:
    part = order.parts[index]
    return OrderingColumn((part,), part.default, order.foreign)


def to_parts(value: Any, count: int) -> tuple[Any, ...]:
    """Return an ordering value as a tuple with one value per field."""
    return value if isinstance(value, tuple) else (value,) * count


def _compare_one(older: Any, newer: Any, type_: pa.DataType) -> int | None:
    if pa.types.is_int32(type_):  # its 0 is the default
        older, newer = (0 if value is DEFAULT_ORDERING else value for value in (older, newer))
    if older is None or newer is None or isinstance(newer, ForeignValue):
        return None
    if (older is DEFAULT_ORDERING) != (newer is DEFAULT_ORDERING):
        return None
    if isinstance(older, float):
        older, newer = _rank_double(older), _rank_double(newer)
    return int(older > newer) - int(older < newer)


def _rank_double(value: float) -> tuple[bool, float, float]:
    """Return a key that sorts floats as Double.compareTo does: NaN is the greatest, -0.0 is less than 0.0."""
    return (True, 0.0, 0.0) if math.isnan(value) else (False, value, math.copysign(1.0, value))
