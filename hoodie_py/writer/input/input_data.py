"""Read rows that a caller passes, in whatever form, as a stream of Arrow batches.

Accepted are all objects with an Arrow stream (``__arrow_c_stream__``: pyarrow, polars, pandas 2.2, DuckDB, a ``Scan``
of this package), pyarrow datasets, pandas frames and lists of dicts. Dicts take the types of the table's columns,
because Python's values do not determine a type: 1 may be any number. Values that do not fit keep their own type if a
write of Arrow columns of that type would widen the table's (``dict_types``). Nothing else is guessed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from hoodie_py.arrow.layouts import make_plain_reader
from hoodie_py.errors import InvalidQueryError
from hoodie_py.writer.input.dict_types import MISFITS, Widening, find_first_misfits

_OF_PANDAS = (pa.int64(), pa.float64())
_TAKEN = "Give anything with an Arrow stream (pyarrow, polars, DuckDB, a scan), a pandas DataFrame or a list of dicts."


def read_input(
    data: Any, schema: pa.Schema | None = None, options: Mapping[str, str] | None = None
) -> pa.RecordBatchReader:
    """Return rows as a stream of batches in plain layouts (``arrow/layouts``). The data is read lazily.

    Values of dicts take the types of ``schema``, the table's columns. If the options of a write let its schema change,
    they may take wider types; None: they may not.

    Raises:
        InvalidQueryError: the data is no rows, or values of dicts do not fit; names the column and the first rows.
    """
    return make_plain_reader(_open_rows(data, schema or pa.schema([]), options))


def _open_rows(data: Any, schema: pa.Schema, options: Mapping[str, str] | None) -> pa.RecordBatchReader:
    if isinstance(data, pa.RecordBatchReader):
        return data
    if isinstance(data, pa.Table):
        return data.to_reader()
    if isinstance(data, pa.RecordBatch):
        return pa.RecordBatchReader.from_batches(data.schema, [data])
    if _is_from(data, "pandas", "DataFrame"):
        return _read_pandas(data, schema)
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data)
    if hasattr(data, "__arrow_c_array__"):
        batch = pa.record_batch(data)
        return pa.RecordBatchReader.from_batches(batch.schema, [batch])
    if _is_from(data, "pyarrow", "Dataset") or _is_from(data, "pyarrow", "Scanner"):
        scanner = data.scanner() if hasattr(data, "scanner") else data
        return scanner.to_reader()
    if isinstance(data, Sequence) and not isinstance(data, str | bytes | bytearray):
        return _read_dicts(data, schema, Widening.from_options(options)).to_reader()
    raise InvalidQueryError(f"The data is a {type(data).__name__}, which is not rows.", hint=_TAKEN)


def is_held(data: Any) -> bool:
    """Whether the caller holds all rows in Python's or Arrow's memory, so that they need not be read in pieces."""
    held = isinstance(data, pa.Table | pa.RecordBatch | Sequence) or _is_from(data, "pandas", "DataFrame")
    return held or hasattr(data, "__arrow_c_array__")


def read_pieces(stream: pa.RecordBatchReader, most_bytes: int) -> Iterator[pa.Table]:
    """Yield the rows of a stream in pieces of about ``most_bytes``, at least one piece."""
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
    """Whether data is an instance of a class or of its subclass. The package is not imported for that."""
    return any(cls.__name__ == name and cls.__module__.startswith(package) for cls in type(data).__mro__)


def _read_pandas(frame: Any, schema: pa.Schema) -> pa.RecordBatchReader:
    """Read a pandas frame. Missing values of text columns become null, and named levels of the index become columns.

    Whole numbers take the integer type of the table's column if they fit: pandas turns integers into int64, or into
    float64 beside missing values.
    """
    try:
        table = pa.Table.from_pandas(_take_named_levels(frame), preserve_index=False).replace_schema_metadata(None)
        return pa.table(
            [_narrow(table.column(at), table.field(at), schema) for at in range(table.num_columns)],
            names=table.column_names,
        ).to_reader()
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InvalidQueryError(f"The pandas frame has values that do not go together: {error}") from error


def _take_named_levels(frame: Any) -> Any:
    """Return a frame with the named levels of its index as columns, before the others.

    Raises:
        ValueError: a column has the name of a level, but other values.
    """
    named = [name for name in frame.index.names if name is not None]
    twice = next((name for name in named if named.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"two levels of the index are named {twice!r}")
    for name in named:
        if name in frame.columns and not frame.index.get_level_values(name).equals(frame.set_index(name).index):
            raise ValueError(f"the index and a column are named {name!r} and have different values")
    new = [name for name in named if name not in frame.columns]
    return frame.reset_index(level=new) if new else frame


def _narrow(column: pa.ChunkedArray, field: pa.Field, schema: pa.Schema) -> pa.ChunkedArray:
    at = schema.get_field_index(field.name)
    type_ = field.type if at < 0 else schema.field(at).type
    if field.type not in _OF_PANDAS or not pa.types.is_integer(type_):
        return column
    try:
        return column.cast(type_)
    except pa.ArrowInvalid:  # a fraction, or too large
        return column


def _read_dicts(rows: Sequence[Any], schema: pa.Schema, widening: Widening) -> pa.Table:
    for at, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise InvalidQueryError(f"Row {at} is a {type(row).__name__}, not a dict.", hint=_TAKEN, rows=[at])
    names = list(dict.fromkeys(name for row in rows for name in row))
    if not names and not rows:
        names = schema.names
    arrays = [_make_column(rows, name, schema, widening) for name in names]
    return pa.table(dict(zip(names, arrays, strict=True)))


def _make_column(rows: Sequence[Mapping[str, Any]], name: Any, schema: pa.Schema, widening: Widening) -> pa.Array:
    if not isinstance(name, str):
        raise InvalidQueryError(f"A dict has the key {name!r}, which is no name of a column.")
    values = [row.get(name) for row in rows]
    at = schema.get_field_index(name)
    type_ = schema.field(at).type if at >= 0 else None
    try:
        return widening.make_array(values, type_)
    except MISFITS as error:
        bad = find_first_misfits(values, type_)
        wanted = "one type" if type_ is None else str(type_)
        raise InvalidQueryError(
            f"Values of column {name!r} cannot be stored as {wanted}: {error}.",
            hint=widening.explain(values, type_),
            column=name,
            rows=bad,
            values=[repr(values[each])[:60] for each in bad],
        ) from error
