"""Convert values to the type of a table's column if nothing is lost.

Integers, floats, decimals and units of time are widened. Arrow's layouts of text, bytes and lists are converted. Struct
fields are matched by name. Numbers, dates and bytes become texts as Java prints them, and texts become the decimals or
dates that they show (Hudi ``SchemaChangeUtils.shouldPromoteType``). A conversion that might lose something is tried on
every value. All others are refused; the caller can cast explicitly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.fields import is_any_list, is_text
from hoodie_py.arrow.rebuild import rebuild_list, rebuild_map
from hoodie_py.errors import CorruptFileError, InvalidQueryError
from hoodie_py.formats.logical_types.vector import Vector
from hoodie_py.reader.schema_evolution.by_name import conform_array, convert_values
from hoodie_py.writer.row_errors import make_rows_error, refuse_rows

_MOST_MISFITS = 5
_INT_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}
_FLOATS = (pa.float16(), pa.float32(), pa.float64())


def fit_column(
    values: pa.ChunkedArray, field: pa.Field, *, fill_missing: bool = False, exact: bool = True
) -> pa.ChunkedArray:
    """Convert a column to the table's type.

    ``fill_missing``: missing struct fields become null. ``exact``: texts and floats with other digits than a decimal's
    are refused; if False, they are rounded to the decimal, as in Java.

    Raises:
        InvalidQueryError: the type or a value does not fit, or a required column has nulls; names column, types and the
            first rows.
    """
    if isinstance(values.type, pa.BaseExtensionType):
        values = pa.chunked_array([each.storage for each in values.chunks], values.type.storage_type)
    if not field.nullable:
        refuse_rows(pc.is_null(values), "Nulls in a column that the table requires.", column=field.name)
    if values.type.equals(field.type):
        return values
    check_types(values.type, field.type, field.name, fill_missing=fill_missing)
    return _convert_chunks(values, field, partial(_fit, exact=exact))


def check_cast(values: pa.ChunkedArray, field: pa.Field) -> None:
    """Refuse values that a cast to the field's type would change.

    Raises:
        InvalidQueryError: names column, type and the first rows.
    """
    _convert_chunks(values, field, lambda array, type_: array.cast(type_))


def check_vectors(values: pa.ChunkedArray, vector: Vector, column: str) -> None:
    """Refuse lists whose length differs from the dimension of a column of vectors.

    Null elements are refused before.

    Raises:
        InvalidQueryError: names the column and the first rows.
    """
    lengths = pc.list_value_length(values)
    message = f"Vectors whose length is not {vector.dimension}, as the type {vector.descriptor} asks."
    refuse_rows(pc.not_equal(lengths, vector.dimension), message, column=column, values=values)


def _convert_chunks(
    values: pa.ChunkedArray, field: pa.Field, fit: Callable[[pa.Array, pa.DataType], pa.Array]
) -> pa.ChunkedArray:
    try:
        return pa.chunked_array([fit(each, field.type) for each in values.chunks], field.type)
    except _MISFITS as error:
        rows = _find_first_misfits(values, lambda each: fit(each, field.type))
        raise make_rows_error(
            rows,
            f"Values of column {field.name!r} do not fit the table's type {field.type}: {error}.",
            column=field.name,
            values=values,
        ) from error


def check_types(source: pa.DataType, target: pa.DataType, column: str, *, fill_missing: bool = False) -> None:
    """Refuse a type that the table's column cannot take.

    Names of nested fields are added to ``column``. ``fill_missing``: a struct may lack fields.

    Raises:
        InvalidQueryError: names the column and both types.
    """
    if pa.types.is_dictionary(source):
        source = source.value_type
    if pa.types.is_struct(source) and pa.types.is_struct(target):
        _check_fields(source, target, column, fill_missing=fill_missing)
    elif is_any_list(source) and pa.types.is_list(target):
        check_types(source.value_type, target.value_type, f"{column}.element", fill_missing=fill_missing)
    elif pa.types.is_map(source) and pa.types.is_map(target):
        check_types(source.key_type, target.key_type, f"{column}.key")
        check_types(source.item_type, target.item_type, f"{column}.value", fill_missing=fill_missing)
    elif not (source.equals(target) or pa.types.is_null(source) or _can_widen(source, target)):
        raise InvalidQueryError(
            f"Column {column!r} has the type {source} in the rows and {target} in the table.",
            hint="Cast it before it is written.",
            column=column,
        )


def _check_fields(source: pa.StructType, target: pa.StructType, column: str, *, fill_missing: bool) -> None:
    for field in target:
        at = source.get_field_index(field.name)
        if at >= 0:
            check_types(source.field(at).type, field.type, f"{column}.{field.name}", fill_missing=fill_missing)
        elif not (fill_missing and field.nullable):
            raise InvalidQueryError(
                f"The rows lack the field {field.name!r} of column {column!r}.", column=f"{column}.{field.name}"
            )


_MISFITS = (pa.ArrowException, ValueError, OverflowError, CorruptFileError)


def _can_widen(source: pa.DataType, target: pa.DataType) -> bool:
    if pa.types.is_integer(target):
        return bool(pa.types.is_integer(source) and _can_hold_int(source, target))
    if target in _FLOATS:
        return bool(pa.types.is_integer(source) or (source in _FLOATS and source.bit_width <= target.bit_width))
    if pa.types.is_decimal(target):
        return bool(is_text(source) or pa.types.is_floating(source) or _can_hold_digits(source, target))
    if pa.types.is_string(target):
        return bool(is_text(source) or any(is_type(source) for is_type in _PRINTED))
    if pa.types.is_binary(target):
        return bool(_is_bytes(source) or is_text(source))
    if pa.types.is_date32(target):
        return bool(pa.types.is_date64(source) or is_text(source))
    if pa.types.is_timestamp(target) and pa.types.is_timestamp(source):
        return bool((source.tz is None) == (target.tz is None))
    return False


def _is_bytes(source: pa.DataType) -> bool:
    fixed = pa.types.is_binary(source) or pa.types.is_large_binary(source) or pa.types.is_fixed_size_binary(source)
    return bool(fixed or source == pa.binary_view())


_PRINTED = (pa.types.is_signed_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_date32, _is_bytes)


def _can_hold_int(source: pa.DataType, target: pa.DataType) -> bool:
    if pa.types.is_unsigned_integer(source):
        return bool(source.bit_width < target.bit_width)
    return bool(source.bit_width <= target.bit_width)


def _can_hold_digits(source: pa.DataType, target: pa.DataType) -> bool:
    whole = target.precision - target.scale
    if pa.types.is_integer(source):
        return bool(_INT_DIGITS[source.bit_width] <= whole)
    if not pa.types.is_decimal(source):
        return False
    return bool(source.scale <= target.scale and source.precision - source.scale <= whole)


def _fit(array: pa.Array, target: pa.DataType, *, exact: bool) -> pa.Array:
    """Convert an array to a type that ``check_types`` allows.

    Raises:
        ArrowInvalid, ValueError: a value does not fit, or a required field is null.
    """
    source = array.type
    if pa.types.is_dictionary(source):
        return _fit(array.dictionary_decode(), target, exact=exact)
    if source.equals(target):
        return array
    if pa.types.is_struct(target) and pa.types.is_struct(source):
        return _fit_struct(array, target, exact=exact)
    if pa.types.is_list(target) and is_any_list(source):
        return _fit_list(array, target, exact=exact)
    if pa.types.is_map(target) and pa.types.is_map(source):
        return _fit_map(array, target, exact=exact)
    if source in _FLOATS and target == pa.float64():
        # By its text, so that 1.1 stays 1.1, as in Hudi (``HoodieAvroUtils.rewritePrimaryType``).
        return conform_array(array.cast(pa.float32()), target)
    if pa.types.is_date64(source):
        days = array.cast(target)
        if not days.cast(source).equals(array):
            raise ValueError("a time of the day in a date")
        return days
    if _is_promoted(source, target):
        return convert_values(array, target, exact=exact)
    return array.cast(target)


def _is_promoted(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether values are converted to another kind: numbers to texts, texts to dates, and so on."""
    if is_text(source):
        return bool(pa.types.is_date32(target) or pa.types.is_decimal(target))
    if pa.types.is_string(target):
        return not _is_bytes(source)
    return bool(pa.types.is_floating(source) and pa.types.is_decimal(target))


def _fit_struct(array: pa.StructArray, target: pa.StructType, *, exact: bool) -> pa.Array:
    children = []
    for field in target:
        at = array.type.get_field_index(field.name)
        child = pa.nulls(len(array), field.type) if at < 0 else _fit(array.field(at), field.type, exact=exact)
        if not field.nullable and child.null_count:
            _refuse_nulls(child.filter(array.is_valid()), field)
        children.append(child)
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(children, fields=list(target), mask=mask)


def _fit_list(array: pa.Array, target: pa.ListType, *, exact: bool) -> pa.Array:
    _refuse_nulls(array.flatten(), target.value_field)
    return rebuild_list(array, target, partial(_fit, exact=exact))


def _fit_map(array: pa.MapArray, target: pa.MapType, *, exact: bool) -> pa.Array:
    if len(array):
        start, stop = array.offsets[0].as_py(), array.offsets[-1].as_py()
        _refuse_nulls(array.items[start:stop], target.item_field)
    fit = partial(_fit, exact=exact)
    return rebuild_map(array, target, fit, fit)


def _refuse_nulls(values: pa.Array, field: pa.Field) -> None:
    if not field.nullable and values.null_count:
        raise ValueError(f"a null in {field.name!r}, which the table requires")


def _find_first_misfits(values: pa.ChunkedArray, fit: Callable[[pa.Array], object]) -> list[int]:
    """Find the first rows that do not fit, by bisection."""
    found: list[int] = []
    start = 0
    for chunk in values.chunks:
        for at in _iterate_misfits(chunk, fit):
            found.append(start + at)
            if len(found) == _MOST_MISFITS:
                return found
        start += len(chunk)
    return found


def _iterate_misfits(array: pa.Array, fit: Callable[[pa.Array], object], first: int = 0) -> Iterator[int]:
    try:
        fit(array)
    except _MISFITS:
        if len(array) == 1:
            yield first
            return
        half = len(array) // 2
        yield from _iterate_misfits(array[:half], fit, first)
        yield from _iterate_misfits(array[half:], fit, first + half)
