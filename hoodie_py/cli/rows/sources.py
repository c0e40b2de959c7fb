"""Read rows from Parquet, CSV and JSON lines, in the forms that ``rows/files`` writes.

If there is a table, its schema gives the types: a CSV field ``007`` stays text in a string column. For other columns
pyarrow infers the type. In CSV, an empty field is null, a quoted empty field is an empty string, and nested columns are
JSON text. Decimals and times are text, and binary values are base64.
"""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from hoodie_py.cli.options import RowFormat
from hoodie_py.errors import InvalidQueryError
from hoodie_py.formats.names import META_FIELDS
from hoodie_py.writer.input.input_data import read_input

_META_TYPES = dict.fromkeys(META_FIELDS, pa.string())  # else pyarrow infers a number for an instant
_LINES_AT_ONCE = 50_000
_NO_NUMBERS = ("NaN", "Infinity", "-Infinity")


def read_rows(
    path: Path, format_: RowFormat, schema: pa.Schema | None = None, options: Mapping[str, str] | None = None
) -> pa.Table:
    """Read a file of rows.

    ``schema``: the columns of the target table, if there is one. ``options``: options of the write; they decide whether
    values in JSON may have wider types than the table. Texts in CSV have no types of their own.

    Raises:
        InvalidQueryError: the file does not have that format, or values do not have the table's types.
        OSError: the file cannot be read.
    """
    known = schema if schema is not None else pa.schema([])
    try:
        if format_ is RowFormat.parquet:
            return pyarrow.parquet.ParquetFile(path).read()
        return _read_csv(path, known) if format_ is RowFormat.csv else _read_json_lines(path, known, options)
    except pa.ArrowException as error:
        raise InvalidQueryError(f"The file cannot be read as {format_}: {error}", path=str(path)) from error
    except InvalidQueryError as error:
        raise error.locate(path=str(path)) from error.__cause__


def _read_csv(path: Path, schema: pa.Schema) -> pa.Table:
    convert = pyarrow.csv.ConvertOptions(
        column_types=_META_TYPES
        | {field.name: pa.string() if _is_read_as_text(field.type) else field.type for field in schema},
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    parse = pyarrow.csv.ParseOptions(newlines_in_values=True)
    rows = pyarrow.csv.read_csv(path, convert_options=convert, parse_options=parse)
    for at, name in enumerate(rows.column_names):
        index = schema.get_field_index(name)
        if index >= 0 and _is_read_as_text(schema.field(index).type):
            rows = rows.set_column(at, name, _parse_texts(rows.column(at), schema.field(index)))
    return rows


def _is_read_as_text(type_: pa.DataType) -> bool:
    """Whether CSV values of a type are read as text and parsed here.

    pyarrow parses such values otherwise or not at all.
    """
    return bool(
        pa.types.is_binary(type_)
        or pa.types.is_nested(type_)
        or pa.types.is_timestamp(type_)
        or pa.types.is_date(type_)
    )


def _parse_texts(texts: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    if pa.types.is_nested(field.type) or pa.types.is_binary(field.type):
        nested = pa.types.is_nested(field.type)
        rows = [{field.name: _parse_json(text) if nested and text is not None else text} for text in texts.to_pylist()]
        return _to_table(rows, pa.schema([field]), 0).column(0)
    try:
        return texts.cast(field.type)
    except pa.ArrowInvalid as error:
        raise InvalidQueryError(f"Texts that are no {field.type}: {error}", column=field.name) from error


def _read_json_lines(path: Path, schema: pa.Schema, options: Mapping[str, str] | None) -> pa.Table:
    parts: list[pa.Table] = []
    with path.open(encoding="utf-8-sig") as lines:
        numbered = enumerate(lines, start=1)
        while batch := list(itertools.islice(numbered, _LINES_AT_ONCE)):
            rows = [_parse_row(text, number) for number, text in batch if text.strip()]
            parts.append(_to_table(rows, schema, batch[0][0], options))
    if not parts:
        return schema.empty_table()
    return pa.concat_tables(parts, promote_options="permissive")


def _parse_row(text: str, line: int) -> dict[str, Any]:
    row = _parse_json(text, line)
    if not isinstance(row, dict):
        raise InvalidQueryError("A line is no JSON object.", line=line)
    return row


def _parse_json(text: str, line: int | None = None) -> Any:
    try:
        return json.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError) as error:
        raise InvalidQueryError(f"Not JSON: {error}", line=line) from None


def _to_table(
    rows: list[dict[str, Any]], schema: pa.Schema, first_line: int, options: Mapping[str, str] | None = None
) -> pa.Table:
    types = {field.name: field.type for field in schema}
    for at, row in enumerate(rows):
        for name, value in row.items():
            try:
                row[name] = from_json_value(value, types.get(name))
            except (ValueError, ArithmeticError) as error:
                message = f"A value is no {types.get(name)}: {error}"
                raise InvalidQueryError(message, column=name, line=first_line + at) from None
    return read_input(rows, schema, options).read_all()


def from_json_value(value: Any, type_: pa.DataType | None) -> Any:
    """Return a parsed JSON value as a Python value that pyarrow converts to a type.

    Numbers with a fraction are expected as Decimals. ``type_`` is None for columns that the table does not have.

    Raises:
        ValueError: a text is no value of the type.
        ArithmeticError: a text is no number.
    """
    if type_ is None:
        return _from_untyped(value)
    if isinstance(value, dict):
        if pa.types.is_struct(type_):
            fields = {field.name: field.type for field in type_}
            return {name: from_json_value(each, fields.get(name)) for name, each in value.items()}
        if pa.types.is_map(type_):
            return [(name, from_json_value(each, type_.item_type)) for name, each in value.items()]
    if isinstance(value, list) and pa.types.is_list(type_):
        return [from_json_value(each, type_.value_type) for each in value]
    if pa.types.is_floating(type_):
        return float(value) if isinstance(value, Decimal) or value in _NO_NUMBERS else value
    if isinstance(value, str):
        return _from_text(value, type_)
    return Decimal(value) if pa.types.is_decimal(type_) and isinstance(value, int) else _from_untyped(value, type_)


def _from_text(text: str, type_: pa.DataType) -> Any:
    if pa.types.is_binary(type_):
        return base64.b64decode(text, validate=True)
    if pa.types.is_timestamp(type_):
        return datetime.fromisoformat(text)
    if pa.types.is_date(type_):
        return date.fromisoformat(text)
    return Decimal(text) if pa.types.is_decimal(type_) else text


def _from_untyped(value: Any, type_: pa.DataType | None = None) -> Any:
    if isinstance(value, Decimal):
        return value if type_ is not None and pa.types.is_decimal(type_) else float(value)
    if isinstance(value, dict):
        return {name: _from_untyped(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_from_untyped(each) for each in value]
    return value
