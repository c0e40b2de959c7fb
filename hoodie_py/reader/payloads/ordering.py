"""Ordering values as payload classes compare them, and row values as they read them.

They agree with Hudi's DefaultHoodieRecordPayload and OrderingValues. A payload class uses two ordering values:

* the value that the record carries, in which a null is the default;
* the value that it reads from the row, in which a null is null and compares with nothing.

Several fields compare one by one; the first difference decides.

Flags, markers, defaults and rows made from two versions are here, too. Each question has a form for one record and a
form for a batch; both give the same answer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.arrays import to_booleans
from hoodie_py.arrow.fields import find_top_level_name, has_field, read_field_values
from hoodie_py.errors import InvalidQueryError, MergeError
from hoodie_py.formats.names import IS_DELETED_FIELD
from hoodie_py.options.read import DELETE_FIELD, DELETE_MARKER, ORDERING_FIELD_PROPERTY, ORDERING_FIELDS_PROPERTY
from hoodie_py.reader.record.arrow_context import ArrowRecordContext, Row
from hoodie_py.reader.record.batch import BufferedBatch
from hoodie_py.reader.record.ordering import ForeignValue, OrderingColumn, compare
from hoodie_py.reader.record.record import DEFAULT_ORDERING, NO_OPERATION, BufferedRecord, RecordContext
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


def to_reader_context(context: RecordContext[Any]) -> ArrowRecordContext:
    """Return the context as an ArrowRecordContext: payload classes need the table's schema and defaults.

    Raises:
        MergeError: it is another kind of context.
    """
    if not isinstance(context, ArrowRecordContext):
        raise MergeError("The rules of Hudi's payload classes work on the reader's own rows only.")
    return context


def is_flagged(record: Record, context: ArrowRecordContext) -> bool:
    """Say whether the row's ``_hoodie_is_deleted`` is true."""
    return IS_DELETED_FIELD in context.schema.names and context.get_value(record, IS_DELETED_FIELD) is True


def find_flagged(batch: BufferedBatch) -> np.ndarray:
    """Say for each record whether its row's ``_hoodie_is_deleted`` is true."""
    if IS_DELETED_FIELD not in batch.context.schema.names:
        return np.zeros(len(batch), bool)
    return to_booleans(batch.column(IS_DELETED_FIELD))


def has_text(record: Record, context: ArrowRecordContext, column: str, text: str, *, ignore_case: bool = False) -> bool:
    """Say whether a column's value, as text, equals a text."""
    value = context.get_value(record, column) if _has_text_form(context, column) else None
    if value is None:
        return False
    found = pa.scalar(value, context.schema.field(column).type).cast(pa.string()).as_py()
    return bool(found.lower() == text.lower() if ignore_case else found == text)


def find_text(batch: BufferedBatch, column: str, text: str, *, ignore_case: bool = False) -> np.ndarray:
    """Say for each record whether a column's value, as text, equals a text."""
    if not _has_text_form(batch.context, column):
        return np.zeros(len(batch), bool)
    values = batch.column(column).cast(pa.string())
    if ignore_case:
        values, text = pc.utf8_lower(values), text.lower()
    return to_booleans(pc.equal(values, text))


def _has_text_form(context: ArrowRecordContext, column: str) -> bool:
    """Say whether the table has a column whose values have a text form; bytes and nested values have none."""
    if column not in context.schema.names:
        return False
    type_ = context.schema.field(column).type
    return not (pa.types.is_nested(type_) or is_bytes(type_))


def find_delete_marker(props: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the table's delete field and the text that means delete; None if the table has no delete field.

    Raises:
        InvalidQueryError: the delete field has no marker.
    """
    field, marker = DELETE_FIELD.read(props), DELETE_MARKER.read(props)
    if field is None:
        return None
    if marker is None:
        raise InvalidQueryError(f"{DELETE_FIELD} is set and {DELETE_MARKER} is not.", hint="Set both or neither.")
    return field, marker


def is_bytes(type_: pa.DataType) -> bool:
    """Say whether a column holds bytes."""
    return bool(pa.types.is_binary(type_) or pa.types.is_large_binary(type_) or pa.types.is_fixed_size_binary(type_))


def get_default_value(context: ArrowRecordContext, column: str) -> Any:
    """Return a column's default as a Python value of the column's type; None if it is null."""
    default = context.defaults.get(column)
    return None if default is None else pa.scalar(default, context.schema.field(column).type).as_py()


def equals_default(value: Any, default: Any, type_: pa.DataType) -> bool:
    """Say whether a value equals its column's default. A null equals a null default; bytes and records never match."""
    if default is None or value is None:
        return value is None and default is None
    return _has_equality(type_, default) and bool(value == default)


def find_defaults(values: pa.Array, default: Any) -> np.ndarray:
    """Return for each value whether it equals its column's default."""
    type_ = values.type
    if default is None:
        return np.asarray(values.is_null())
    if not _has_equality(type_, default):
        return np.zeros(len(values), bool)
    if pa.types.is_map(type_):
        return np.asarray(np.asarray(values.is_valid()) & (np.diff(np.asarray(values.offsets)) == 0))
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return _find_default_lists(values, default)
    return to_booleans(pc.equal(values, pa.scalar(default, type_)))


def _find_default_lists(values: pa.Array, default: list[Any]) -> np.ndarray:
    same = to_booleans(pc.equal(pc.list_value_length(values), len(default)))
    for i, item in enumerate(default):
        at = np.flatnonzero(same)
        if not len(at):
            break
        same[at] = find_defaults(pc.list_element(values.take(pa.array(at)), i), item)
    return same


def _has_equality(type_: pa.DataType, default: Any) -> bool:
    """Say whether a value of the type can equal a default in Java; bytes, records and filled maps cannot."""
    if pa.types.is_map(type_):
        return not default
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return all(item is None or _has_equality(type_.value_type, item) for item in default)
    return not (pa.types.is_struct(type_) or pa.types.is_decimal(type_) or is_bytes(type_))


def make_merged_record(base: Record, values: Mapping[str, Any], key: str, context: ArrowRecordContext) -> Record:
    """Make a record of the base's row with other values. Its ordering is read from the row; it has no operation."""
    changed = replace(context.replace(replace(base, record_key=key), **values), operation=None)
    return replace(changed, ordering_value=context.ordering_value(changed))


def make_merged_records(base: BufferedBatch, columns: Mapping[str, pa.Array]) -> BufferedBatch:
    """Make records of the base's rows, which all have data, with other columns.

    Their ordering values are read from the rows; they have no operation.
    """
    context = base.context
    batch = context.store.take(base.rows)
    for name, values in columns.items():
        at = batch.schema.get_field_index(name)
        batch = batch.set_column(at, batch.schema.field(at).with_nullable(True), values)
    first = context.store.add(batch)
    order = OrderingColumn.from_columns([read_field_values(batch, name) for name in context.ordering_fields], len(base))
    rows, codes = np.arange(first, first + len(base)), np.full(len(base), NO_OPERATION, np.int8)
    return BufferedBatch(context, base.keys, rows, order, codes)


def replace_records(whole: BufferedBatch, at: np.ndarray, part: BufferedBatch) -> BufferedBatch:
    """Return ``whole`` with the records at the indices ``at`` replaced by ``part``; keys stay."""
    if not len(at):
        return whole
    index = np.arange(len(whole))
    index[at] = len(whole) + np.arange(len(at))
    mixed = BufferedBatch.concat([whole, part]).take(index)
    return BufferedBatch(whole.context, whole.keys, mixed.rows, mixed.order, mixed.codes)
