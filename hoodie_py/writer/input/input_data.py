"""Read rows that a caller hands over, in whatever form, as a stream of Arrow batches.

Taken are all objects with an Arrow stream (``__arrow_c_stream__``: pyarrow, polars, pandas 2.2, DuckDB, a ``Scan`` of
this package), pyarrow datasets, pandas frames and lists of dicts. Dicts take the types of the table's columns, because
Python's values say too little: 1 may be any number. Nothing else is guessed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from hoodie_py.errors import InvalidQueryError

_OF_PANDAS = (pa.int64(), pa.float64())
_TAKEN = "Give anything with an Arrow stream (pyarrow, polars, DuckDB, a scan), a pandas DataFrame or a list of dicts."


def read_input(data: Any, schema: pa.Schema | None = None) -> pa.RecordBatchReader:
    """Return rows as a stream of batches. Nothing is read before the stream is. Values of dicts take the types of
    ``schema``, the table's columns.

    Raises:
        InvalidQueryError: the data is no rows, or values of dicts do not fit; names the column and the first rows.
    """
    if isinstance(data, pa.RecordBatchReader):
        return data
    if isinstance(data, pa.Table):
        return data.to_reader()
    if isinstance(data, pa.RecordBatch):
        return pa.RecordBatchReader.from_batches(data.schema, [data])
    if _is_from(data, "pandas", "DataFrame"):
        return _read_pandas(data, schema or pa.schema([]))
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data)
    if hasattr(data, "__arrow_c_array__"):
        batch = pa.record_batch(data)
        return pa.RecordBatchReader.from_batches(batch.schema, [batch])
    if _is_from(data, "pyarrow", "Dataset") or _is_from(data, "pyarrow", "Scanner"):
        scanner = data.scanner() if hasattr(data, "scanner") else data
        return scanner.to_reader()
    if isinstance(data, Sequence) and not isinstance(data, str | bytes | bytearray):
        return _read_dicts(data, schema or pa.schema([])).to_reader()
    raise InvalidQueryError(f"The data is a {type(data).__name__}, which is not rows.", hint=_TAKEN)


def is_held(data: Any) -> bool:
    """Say whether the caller has all rows in Python's or Arrow's memory, so that they need not be read in pieces."""
    held = isinstance(data, pa.Table | pa.RecordBatch | Sequence) or _is_from(data, "pandas", "DataFrame")
    return held or hasattr(data, "__arrow_c_array__")


def read_pieces(stream: pa.RecordBatchReader, most_bytes: int) -> Iterator[pa.Table]:
    """Yield the rows of a stream in pieces of about so many bytes, at least one piece."""
    held: list[pa.RecordBatch] = []
    size, any_yet = 0, False
    for batch in stream:
        held.append(batch)
        size += batch.nbytes
        if size >= most_bytes:
            yield pa.Table.from_batches(held, stream.schema)
            held, size, any_yet = [], 0, True
    if held or not any_yet:
        yield pa.Table.from_batches(held, stream.schema)


def _is_from(data: Any, package: str, name: str) -> bool:
    """Whether data is an instance of a class or of its subclass; does not import the package."""
    return any(cls.__name__ == name and cls.__module__.startswith(package) for cls in type(data).__mro__)


def _read_pandas(frame: Any, schema: pa.Schema) -> pa.RecordBatchReader:
    """Read a pandas frame without its index; missing values of text columns become null.

    Whole numbers take the integer type of the table's column where they fit: pandas makes them int64, or float64 beside
    missing values, whatever they were.
    """
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
        return pa.table(
            [_narrow(table.column(at), table.field(at), schema) for at in range(table.num_columns)],
            names=table.column_names,
        ).to_reader()
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InvalidQueryError(f"The pandas frame has values that do not go together: {error}") from error


def _narrow(column: pa.ChunkedArray, field: pa.Field, schema: pa.Schema) -> pa.ChunkedArray:
    at = schema.get_field_index(field.name)
    type_ = field.type if at < 0 else schema.field(at).type
    if field.type not in _OF_PANDAS or not pa.types.is_integer(type_):
        return column
    try:
        return column.cast(type_)
    except pa.ArrowInvalid:  # a fraction, or too large
        return column


def _read_dicts(rows: Sequence[Any], schema: pa.Schema) -> pa.Table:
    for at, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise InvalidQueryError(f"Row {at} is a {type(row).__name__}, not a dict.", hint=_TAKEN, rows=[at])
    names = list(dict.fromkeys(name for row in rows for name in row))
    if not names and not rows:
        names = schema.names
    arrays = [_make_column(rows, name, schema) for name in names]
    return pa.table(dict(zip(names, arrays, strict=True)))


def _make_column(rows: Sequence[Mapping[str, Any]], name: Any, schema: pa.Schema) -> pa.Array:
    if not isinstance(name, str):
        raise InvalidQueryError(f"A dict has the key {name!r}, which is no name of a column.")
    values = [row.get(name) for row in rows]
    at = schema.get_field_index(name)
    type_ = schema.field(at).type if at >= 0 else None
    try:
        return _make_array(values, type_)
    except _MISFITS as error:
        bad = _find_first_misfits(values, type_)
        wanted = "one type" if type_ is None else str(type_)
        raise InvalidQueryError(
            f"Values of column {name!r} cannot be stored as {wanted}: {error}.",
            column=name,
            rows=bad,
            values=[repr(values[each])[:60] for each in bad],
        ) from error


_MISFITS = (pa.ArrowException, TypeError, ValueError, OverflowError)
_MOST_SHOWN = 5


def _make_array(values: Sequence[Any], type_: pa.DataType | None) -> pa.Array:
    """Make a column of Python values without changing any; pyarrow alone would cut 1.5 to a whole number."""
    if type_ is None:
        return pa.array(values)
    groups: dict[tuple[type, bool], list[Any]] = {}
    for value in values:  # one type at a time: for mixed types pyarrow infers a common one, which hides misfits
        groups.setdefault((type(value), getattr(value, "tzinfo", None) is None), []).append(value)
    for group in groups.values():
        try:
            natural = pa.array(group).type
        except _MISFITS:  # pyarrow infers no type, for example of maps as lists of pairs
            continue
        _check_kind(natural, type_)
        type_ = _add_fields(type_, natural)
    return pa.array(values, type_)


def _add_fields(type_: pa.DataType, natural: pa.DataType) -> pa.DataType:
    """Return a type with the struct fields that it lacks and values have; pyarrow alone would drop these values."""
    if pa.types.is_list(natural) and pa.types.is_list(type_):
        return pa.list_(type_.value_field.with_type(_add_fields(type_.value_type, natural.value_type)))
    if not pa.types.is_struct(natural) or not pa.types.is_struct(type_):
        return type_
    own = {field.name: field for field in type_}
    for field in natural:
        known = own.get(field.name)
        if known is not None:
            own[field.name] = known.with_type(_add_fields(known.type, field.type))
        elif not pa.types.is_null(field.type):
            own[field.name] = field
    return pa.struct(list(own.values()))


def _check_kind(natural: pa.DataType, type_: pa.DataType) -> None:
    """Refuse values whose natural type is of another kind than the column's.

    Raises:
        ValueError: names the natural type.
    """
    if pa.types.is_struct(natural) and pa.types.is_struct(type_):
        for field in type_:
            at = natural.get_field_index(field.name)
            if at >= 0:
                _check_kind(natural.field(at).type, field.type)
    elif pa.types.is_list(natural) and pa.types.is_list(type_):
        _check_kind(natural.value_type, type_.value_type)
    elif any(same(natural) != same(type_) for same in _KINDS if same(natural)) and not _is_wider(natural, type_):
        raise ValueError(f"they are {natural}")


def _is_aware(type_: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(type_) and type_.tz is not None)


def _is_naive(type_: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(type_) and type_.tz is None)


def _is_wider(natural: pa.DataType, type_: pa.DataType) -> bool:
    """Whether whole numbers become floats or decimals."""
    wide = pa.types.is_floating(type_) or pa.types.is_decimal(type_)
    return bool(pa.types.is_integer(natural) and wide)


_KINDS = (
    pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, pa.types.is_string, pa.types.is_binary,
    pa.types.is_date, pa.types.is_decimal, _is_aware, _is_naive,
)  # fmt: skip


def _find_first_misfits(values: Sequence[Any], type_: pa.DataType | None) -> list[int]:
    """Find the first values that cannot be converted; without a type, the first that differs from those before it."""
    if type_ is None:
        low, high = 0, len(values)  # bisect for the longest prefix that has one type
        while low + 1 < high:
            middle = (low + high) // 2
            low, high = (middle, high) if _can_convert(values[:middle], None) else (low, middle)
        return [max(high - 1, 0)] if values else []
    found: list[int] = []
    for at, value in enumerate(values):
        if not _can_convert([value], type_):
            found.append(at)
            if len(found) == _MOST_SHOWN:
                break
    return found


def _can_convert(values: Sequence[Any], type_: pa.DataType | None) -> bool:
    try:
        _make_array(values, type_)
    except _MISFITS:
        return False
    return True
