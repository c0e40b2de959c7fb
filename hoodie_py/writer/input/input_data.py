"""Read rows that a caller passes, in whatever form, as a stream of Arrow batches.

Accepted are all objects with an Arrow stream (``__arrow_c_stream__``: pyarrow, polars, pandas 2.2, DuckDB, a ``Scan``
of this package), pyarrow datasets, pandas frames and lists of dicts. Values are never changed.

Dicts take the types of the table's columns if all values fit, because Python's values do not determine a type: 1 may be
any number. If some do not fit, they keep the type that Arrow infers, provided that a write of Arrow columns of that
type would widen the table's column (``evolution``, ``schema_changes``). So dicts and Arrow columns follow one rule. All
other values are refused; nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import to_numbers
from hoodie_py.arrow.java_text import widen_floats
from hoodie_py.arrow.layouts import make_plain_reader
from hoodie_py.errors import InvalidQueryError
from hoodie_py.options.write import LOSSLESS, LOSSY, SCHEMA_CHANGES
from hoodie_py.writer.input.evolution import is_widened

_OF_PANDAS = (pa.int64(), pa.float64())
_TAKEN = "Give anything with an Arrow stream (pyarrow, polars, DuckDB, a scan), a pandas DataFrame or a list of dicts."

_MISFITS = (pa.ArrowException, TypeError, ValueError, OverflowError)
_MOST_SHOWN = 5


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
        return _read_dicts(data, schema, _Widening.from_options(options)).to_reader()
    raise InvalidQueryError(f"The data is a {type(data).__name__}, which is not rows.", hint=_TAKEN)


def is_held(data: Any) -> bool:
    """Whether the caller holds all rows in Python's or Arrow's memory, so that they need not be read in pieces."""
    held = isinstance(data, pa.Table | pa.RecordBatch | pa.ChunkedArray | Sequence) or _is_from(
        data, "pandas", "DataFrame"
    )
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


def _read_dicts(rows: Sequence[Any], schema: pa.Schema, widening: _Widening) -> pa.Table:
    for at, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise InvalidQueryError(f"Row {at} is a {type(row).__name__}, not a dict.", hint=_TAKEN, rows=[at])
    names = list(dict.fromkeys(name for row in rows for name in row))
    if not names and not rows:
        names = schema.names
    arrays = [_make_column(rows, name, schema, widening) for name in names]
    return pa.table(dict(zip(names, arrays, strict=True)))


def _make_column(rows: Sequence[Mapping[str, Any]], name: Any, schema: pa.Schema, widening: _Widening) -> pa.Array:
    if not isinstance(name, str):
        raise InvalidQueryError(f"A dict has the key {name!r}, which is no name of a column.")
    values = [row.get(name) for row in rows]
    at = schema.get_field_index(name)
    type_ = schema.field(at).type if at >= 0 else None
    try:
        return widening.make_array(values, type_)
    except _MISFITS as error:
        bad = _find_first_misfits(values, type_)
        wanted = "one type" if type_ is None else str(type_)
        raise InvalidQueryError(
            f"Values of column {name!r} cannot be stored as {wanted}: {error}.",
            hint=widening.explain(values, type_),
            column=name,
            rows=bad,
            values=[repr(values[each])[:60] for each in bad],
        ) from error


@dataclass(frozen=True, slots=True)
class _Widening:
    """Whether values may keep a type that is wider than the table's, and whether even if that loses something."""

    allowed: bool
    with_loss: bool = False

    @classmethod
    def from_options(cls, options: Mapping[str, str] | None) -> Self:
        """Read the options of a write; None for a write that must not change the schema."""
        changes = None if options is None else SCHEMA_CHANGES.read(options)
        return cls(changes in (LOSSLESS, LOSSY), changes == LOSSY)

    def make_array(self, values: Sequence[Any], type_: pa.DataType | None) -> pa.Array:
        """Make a column of values for a table's column of type ``type_``; None: the table lacks the column.

        Raises:
            one of ``_MISFITS``: values do not fit.
        """
        try:
            found = _make_array(values, type_)
            if type_ is None or not _has_singles(type_):
                return found
            wider = self._widen(values, type_, with_loss=False)
            if wider is not None and not self.allowed:
                raise ValueError("they have more digits than single floats")
        except _MISFITS:
            wider = self._widen(values, type_, with_loss=self.with_loss) if self.allowed and type_ is not None else None
            if wider is None:
                raise
        return found if wider is None else _make_array(values, wider)

    def explain(self, values: Sequence[Any], type_: pa.DataType | None) -> str | None:
        """Return what a caller can do about values that do not fit; None if nothing helps."""
        if type_ is None or self._widen(values, type_, with_loss=True) is None:
            return None
        if self.allowed:
            return (
                f"Say allow_loss=True (option {SCHEMA_CHANGES}={LOSSY}) to give the table's column their type for good."
            )
        return "Values must have the table's types here."

    @staticmethod
    def _widen(values: Sequence[Any], type_: pa.DataType, *, with_loss: bool) -> pa.DataType | None:
        """Return the type, widened where values do not fit; None if that is not possible or changes nothing."""
        try:
            wider = _widen_type(_infer(values, type_), type_, with_loss=with_loss)
        except _MISFITS:
            return None
        return None if wider.equals(type_) else wider


def _infer(values: Sequence[Any], type_: pa.DataType) -> pa.Array:
    """Return values in the type that Arrow infers; for maps, their items."""
    if not pa.types.is_map(type_):
        return pa.array(values)
    pairs = [each.items() if isinstance(each, Mapping) else each for each in values if each is not None]
    return pa.array([item for each in pairs for _, item in each])


def _widen_type(natural: pa.Array, type_: pa.DataType, *, with_loss: bool) -> pa.DataType:
    if pa.types.is_map(type_):
        item = _widen_type(natural, type_.item_type, with_loss=with_loss)
        return pa.map_(type_.key_field, type_.item_field.with_type(item))
    if pa.types.is_list(type_):
        if not pa.types.is_list(natural.type):
            return type_
        value = _widen_type(natural.flatten(), type_.value_type, with_loss=with_loss)
        return pa.list_(type_.value_field.with_type(value))
    if pa.types.is_struct(type_):
        if not pa.types.is_struct(natural.type):
            return type_
        inner = {field.name: natural.field(at) for at, field in enumerate(natural.type)}
        return pa.struct(
            [
                field.with_type(_widen_type(inner[field.name], field.type, with_loss=with_loss))
                if field.name in inner and not pa.types.is_map(field.type)
                else field
                for field in type_
            ]
        )
    if _holds(type_, natural) or not is_widened(type_, natural.type, with_loss=with_loss):
        return type_
    return natural.type


def _holds(type_: pa.DataType, natural: pa.Array) -> bool:
    """Whether a type that is not nested can store all values unchanged."""
    if pa.types.is_nested(natural.type):
        return True
    try:
        if pa.types.is_float32(type_) and pa.types.is_float64(natural.type):
            numbers = natural.filter(natural.is_valid())
            widened = widen_floats(numbers.cast(type_))
            return bool(np.array_equal(to_numbers(widened), to_numbers(numbers), equal_nan=True))
        if pa.types.is_integer(type_) and not pa.types.is_integer(natural.type):
            return bool(natural.null_count == len(natural))
        natural.cast(type_)
    except pa.ArrowException:
        return False
    return True


def _has_singles(type_: pa.DataType) -> bool:
    if pa.types.is_map(type_):
        return _has_singles(type_.item_type)
    if pa.types.is_list(type_):
        return _has_singles(type_.value_type)
    if pa.types.is_struct(type_):
        return any(_has_singles(field.type) for field in type_)
    return bool(pa.types.is_float32(type_))


def _make_array(values: Sequence[Any], type_: pa.DataType | None) -> pa.Array:
    """Make a column of Python values without changing any; pyarrow alone would truncate 1.5 to a whole number."""
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
    """Return a type with the struct fields that only the values have; pyarrow alone would drop these values."""
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


def _find_first_misfits(values: Sequence[Any], type_: pa.DataType | None) -> list[int]:
    """Find the first values that cannot be converted; without a type, the first that differs from the ones before."""
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


_KINDS = (
    pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, pa.types.is_string, pa.types.is_binary,
    pa.types.is_date, pa.types.is_decimal, _is_aware, _is_naive,
)  # fmt: skip
