"""Converts the batches of a file to the schema of a read: columns by name, types widened, nulls for missing columns.

The promotions are those of Hudi's schema-on-write evolution (AvroSchemaCompatibility, HoodieAvroUtils.rewriteRecord):
int -> long -> float -> double (single floats by their text: 1.1 stays 1.1), numbers and dates to string, string <->
bytes, wider decimals, timestamps of another unit, struct fields by name at every depth. Anything else is an error.

Columns whose type was altered with schema-on-read may change further (``SchemaChangeUtils.isTypeUpdateAllow``): numbers
and strings to decimals, decimals to other precisions, strings to dates. Numbers are converted to decimals through their
texts in Java, rounded half up (``HoodieAvroUtils``, ``rewriteRecordWithNewSchema``); a float 1.1 becomes 1.10, not
1.10000002. Each distinct value is converted once.

A value that does not fit the new type is an error: Java makes some of them null, and a compaction would make that
permanent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date
from decimal import ROUND_HALF_UP, Context, Decimal, DecimalException
from typing import Any

import pyarrow as pa

from hoodie_py.arrow.arrays import call, keep_where, make_batch_without_columns, repeat_value, take
from hoodie_py.arrow.fields import is_text, make_nullable
from hoodie_py.arrow.java_text import convert_distinct, print_floats, widen_floats
from hoodie_py.arrow.rebuild import rebuild_list, rebuild_map
from hoodie_py.errors import CorruptFileError, UnsupportedFeatureError
from hoodie_py.formats.logical_types.variant import is_variant, refuse_shredded
from hoodie_py.formats.logical_types.vector import find_vector


class NullColumns:
    """Makes columns of nulls; one array per type serves many batches by slices."""

    def __init__(self) -> None:
        self._made: dict[pa.DataType, pa.Array] = {}

    def make(self, type_: pa.DataType, length: int) -> pa.Array:
        """Return ``length`` nulls."""
        made = self._made.get(type_)
        if made is None or len(made) < length:
            made = self._made[type_] = pa.nulls(length, type_)
        return made.slice(0, length)


def conform_batch(
    batch: pa.RecordBatch,
    schema: pa.Schema,
    defaults: Mapping[str, Any] | None = None,
    absent: NullColumns | None = None,
) -> pa.RecordBatch:
    """Return the batch with exactly the schema's columns; missing columns have their default, else null.

    ``absent``: makes the nulls if many batches lack the same columns.

    Raises:
        UnsupportedFeatureError: a column cannot be promoted to the wanted type.
    """
    arrays = []
    for field in schema:
        at = batch.schema.get_field_index(field.name)
        if at < 0:
            default = None if defaults is None else defaults.get(field.name)
            if default is None and absent is not None:
                arrays.append(absent.make(field.type, batch.num_rows))
            else:
                arrays.append(repeat_value(default, field.type, batch.num_rows))
            continue
        try:
            arrays.append(conform_column(batch.column(at), field))
        except (CorruptFileError, UnsupportedFeatureError) as error:
            error.locate(column=field.name)
            raise
    if not arrays:
        return make_batch_without_columns(batch.num_rows)
    return pa.RecordBatch.from_arrays(arrays, schema=make_nullable(schema))


class Conformer:
    """Converts the batches of one file to a schema; the file's schema is compared only once.

    ``loose``: batches may keep the file's metadata and non-null fields.
    """

    def __init__(self, schema: pa.Schema, defaults: Mapping[str, Any] | None = None, *, loose: bool = False) -> None:
        self._defaults = defaults
        self._loose = loose
        self._schema = make_nullable(schema)
        self._source: pa.Schema | None = None
        self._same: list[int] | None = None

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the batch with exactly the schema's columns; errors as ``conform_batch``."""
        if self._source is not batch.schema and (self._source is None or not self._source.equals(batch.schema)):
            self._source = batch.schema
            self._same = self._find_columns(batch.schema)
        if self._same is None:
            return conform_batch(batch, self._schema, self._defaults)
        if self._loose and self._same == list(range(batch.num_columns)):
            return batch
        return pa.RecordBatch.from_arrays([batch.column(i) for i in self._same], schema=self._schema)

    def _find_columns(self, source: pa.Schema) -> list[int] | None:
        """Return the columns' indexes in a batch; None if one is missing or has another type."""
        places = [source.get_field_index(name) for name in self._schema.names]
        if not places or min(places) < 0:
            return None
        same = (source.field(at).type.equals(field.type) for at, field in zip(places, self._schema, strict=True))
        return places if all(same) else None


def conform_column(array: pa.Array, field: pa.Field) -> pa.Array:
    """Promote an array to a column of the table; stored vectors are bytes or lists.

    Raises:
        UnsupportedFeatureError: the promotion is not one that Hudi allows, or variants are stored shredded.
        CorruptFileError: a vector of another dimension than the column's.
    """
    if field.metadata is None:
        return conform_array(array, field.type)
    if is_variant(field):
        refuse_shredded(array.type)
    vector = find_vector(field)
    return conform_array(array, field.type) if vector is None else vector.to_lists(array)


def conform_array(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Promote an array to the target type; return it unchanged if the types are equal.

    Raises:
        UnsupportedFeatureError: the promotion is not one that Hudi allows.
    """
    source = array.type
    if source.equals(target):
        return array
    if pa.types.is_struct(target) and pa.types.is_struct(source):
        return _conform_struct(array, target)
    if _is_list(target) and _is_list(source):
        return rebuild_list(array, target, conform_array)
    if pa.types.is_map(target) and pa.types.is_map(source):
        return rebuild_map(array, target, conform_array, conform_array)
    if pa.types.is_string(target) and not _is_text(source):
        return _to_text(array)
    if not _can_promote(source, target):
        raise UnsupportedFeatureError(f"A column stored as {source} is not readable as {target}.")
    try:
        if pa.types.is_float32(source) and pa.types.is_float64(target):
            return widen_floats(array)
        return array.cast(target, safe=not _may_lose_digits(source, target))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise UnsupportedFeatureError(f"A column stored as {source} is not readable as {target}: {error}") from error


def _conform_struct(array: pa.Array, target: pa.DataType) -> pa.Array:
    names = [field.name for field in array.type]
    children = [
        conform_column(array.field(names.index(field.name)), field)
        if field.name in names
        else pa.nulls(len(array), field.type)
        for field in target
    ]
    if not children:
        return array
    mask = call("is_null", array) if array.null_count else None
    for child, field in zip(children, target, strict=True):
        if not field.nullable and child.null_count and _count_nulls_inside(child, mask):
            raise UnsupportedFeatureError(
                f"A struct has no value in its field {field.name!r}, which the table requires."
            )
    return pa.StructArray.from_arrays(children, fields=list(target), mask=mask)


def _count_nulls_inside(child: pa.Array, mask: pa.Array | None) -> int:
    """Count the nulls of a struct's field where the struct itself is not null."""
    return int((child if mask is None else keep_where(child, call("invert", mask))).null_count)


def _is_list(type_: pa.DataType) -> bool:
    return bool(pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_fixed_size_list(type_))


def _is_text(type_: pa.DataType) -> bool:
    return is_text(type_) or _is_bytes(type_.value_type if pa.types.is_dictionary(type_) else type_)


def _is_bytes(type_: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(type_)
        or pa.types.is_large_binary(type_)
        or pa.types.is_fixed_size_binary(type_)
        or type_ == pa.binary_view()
    )


_PLAIN = (pa.types.is_integer, pa.types.is_boolean, pa.types.is_date, pa.types.is_decimal)  # Arrow prints them as Java
_NUMBERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64())


def _can_promote(source: pa.DataType, target: pa.DataType) -> bool:
    if pa.types.is_null(source):
        return True
    if pa.types.is_dictionary(source):
        return _can_promote(source.value_type, target) or source.value_type.equals(target)
    if source in _NUMBERS and target in _NUMBERS:
        return _NUMBERS.index(source) <= _NUMBERS.index(target)
    if _is_text(source) and _is_text(target):
        return True
    if pa.types.is_decimal(target):
        return bool(pa.types.is_integer(source) or pa.types.is_decimal(source))
    if pa.types.is_timestamp(source) and pa.types.is_timestamp(target):
        return True
    if pa.types.is_unsigned_integer(source):
        return target in _NUMBERS[2:] or bool(pa.types.is_decimal(target))
    return bool(pa.types.is_time(source) and pa.types.is_integer(target))


def _may_lose_digits(source: pa.DataType, target: pa.DataType) -> bool:
    """Say whether a cast may round: integers to floats, as in Java, and nanoseconds to microseconds."""
    return bool(
        (pa.types.is_integer(source) and pa.types.is_floating(target))
        or (pa.types.is_timestamp(source) and source.unit == "ns")
    )


def _to_text(array: pa.Array) -> pa.Array:
    """Print values as Java's String.valueOf does."""
    type_ = array.type
    if pa.types.is_floating(type_):
        return print_floats(array)
    if any(is_type(type_) for is_type in _PLAIN):
        return array.cast(pa.string())
    if pa.types.is_null(type_):
        return pa.nulls(len(array), pa.string())
    raise UnsupportedFeatureError(f"A column stored as {type_} is not readable as string.")


_WIDE = Context(prec=400, Emax=100_000, Emin=-100_000)
_LONGEST_TEXT = 400
_DATE = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})", re.ASCII)


def convert_values(array: pa.Array, target: pa.DataType, *, exact: bool = False) -> pa.Array:
    """Convert primitive values to another type. ``exact``: refuse texts and floats that decimals would round.

    Raises:
        UnsupportedFeatureError: Hudi does not know the change.
        CorruptFileError: a value does not fit the type, or is no number or date.
    """
    if pa.types.is_dictionary(array.type):
        array = take(array.dictionary, array.indices)
    source = array.type
    if is_text(source) and pa.types.is_date32(target):
        return _convert_texts(array, target, _parse_date)
    if pa.types.is_decimal(target) and not source.equals(target):
        if is_text(source):
            return _convert_texts(array, target, lambda text: _round(text, target, exact=exact))
        if pa.types.is_floating(source):
            return _convert_floats(array, target, exact=exact)
        if pa.types.is_integer(source) or pa.types.is_decimal(source):
            return _rescale(array, target)
    return conform_array(array, target)


def _convert_texts(array: pa.Array, target: pa.DataType, convert: Callable[[str], Any]) -> pa.Array:
    coded = array.dictionary_encode()
    try:
        values = pa.array([None if text is None else convert(text) for text in coded.dictionary.to_pylist()], target)
    except (ValueError, OverflowError, DecimalException, pa.ArrowException) as error:
        raise _make_error(array, target, error) from error
    return take(values, coded.indices)


def _convert_floats(array: pa.Array, target: pa.DataType, *, exact: bool) -> pa.Array:
    try:
        return convert_distinct(array, target, lambda text: _round(text, target, exact=exact))
    except (ValueError, DecimalException, pa.ArrowException) as error:
        raise _make_error(array, target, error) from error


def _round(text: str, target: pa.DataType, *, exact: bool) -> Decimal:
    if len(text) > _LONGEST_TEXT:
        raise ValueError("a text that long is no number")
    value = _WIDE.create_decimal(text)
    rounded = value.quantize(Decimal(1).scaleb(-target.scale), ROUND_HALF_UP, _WIDE)
    if exact and rounded != value:
        raise ValueError(f"{text[:40]} has more digits")
    return rounded


def _parse_date(text: str) -> date:
    found = _DATE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text[:40]!r} is no date")
    return date(*map(int, found.groups()))


def _rescale(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Return whole numbers or decimals with another precision and scale."""
    try:
        if pa.types.is_integer(array.type):
            array = array.cast(pa.decimal128(20, 0))
        wide = pa.decimal256(76, max(target.scale, array.type.scale))
        return array.cast(wide).cast(target)
    except pa.ArrowException as error:
        raise _make_error(array, target, error) from error


def _make_error(array: pa.Array, target: pa.DataType, error: Exception) -> CorruptFileError:
    return CorruptFileError(
        f"A value stored as {array.type} does not fit {target}: {error}",
        hint="Alter the column to a type that holds all its values, such as string.",
    )
