"""Write rows as CSV, JSON lines or Parquet, batch by batch, to a file or to stdout.

In CSV, nested and binary columns are JSON text, null is an empty field, and an empty string is quoted. CSV keeps texts
exactly, so that it can be read back; texts that a spreadsheet takes for formulas are not changed either. Control
characters are escaped only for a terminal. In JSON lines, decimals are text, binary is base64 and NaN is "NaN".
"""

from __future__ import annotations

import json
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import pyarrow as pa

from hoodie_py.cli.values import escape_controls, to_json
from hoodie_py.errors import InvalidQueryError


@contextmanager
def open_output(path: Path | None) -> Iterator[IO[bytes]]:
    """Open a file, or stdout if no path is given, for writing bytes.

    A file gets its name only when it is complete.
    """
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    if not path.parent.is_dir():
        raise InvalidQueryError(f"There is no folder {str(path.parent)!r}.", hint="Make it first.")
    if path.is_dir():
        raise InvalidQueryError(f"{str(path)!r} is a folder.", hint="Give the name of a file.")
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with unfinished.open("wb") as target:
            yield target
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


class RowWriter(ABC):
    """Writes batches of one schema. As a context manager it finishes the format, unless the block raised."""

    def __init__(self, target: IO[bytes], schema: pa.Schema) -> None:
        self.target = target
        self.schema = schema

    @abstractmethod
    def write(self, batch: pa.RecordBatch) -> None:
        """Write a batch."""

    def close(self) -> None:  # noqa: B027 - a format may have nothing to finish
        """Finish the format."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()


class JsonWriter(RowWriter):
    """Writes one JSON object per line."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Write a batch."""
        columns = [column.to_pylist() for column in batch.columns]
        for row in zip(*columns, strict=True):
            line = json.dumps({name: to_json(value) for name, value in zip(batch.schema.names, row, strict=True)})
            self.target.write(line.encode() + b"\n")


class CsvWriter(RowWriter):
    """Writes comma-separated values; the first line has the names."""

    def __init__(self, target: IO[bytes], schema: pa.Schema) -> None:
        from pyarrow.csv import CSVWriter

        super().__init__(target, schema)
        self._is_shown = target.isatty()
        self._schema = pa.schema([self._name_field(field) for field in schema])
        self._csv = CSVWriter(pa.PythonFile(target, "w"), self._schema)

    def write(self, batch: pa.RecordBatch) -> None:
        """Write a batch."""
        self._csv.write_batch(pa.record_batch(list(map(self._make_column, batch.columns)), schema=self._schema))

    def _name_field(self, field: pa.Field) -> pa.Field:
        is_text = _needs_json(field.type) or (self._is_shown and _is_text(field.type))
        name = escape_controls(field.name) if self._is_shown else field.name
        return pa.field(name, pa.string() if is_text else field.type)

    def _make_column(self, column: pa.Array) -> pa.Array:
        if _needs_json(column.type):
            return _as_json(column)
        if self._is_shown and _is_text(column.type):
            values = column.to_pylist()
            return pa.array([None if value is None else escape_controls(value) for value in values], pa.string())
        return column

    def close(self) -> None:
        """Flush what is buffered."""
        self._csv.close()


class ParquetWriter(RowWriter):
    """Writes a Parquet file."""

    def __init__(self, target: IO[bytes], schema: pa.Schema) -> None:
        from pyarrow.parquet import ParquetWriter as Writer  # it imports the clients of all stores

        super().__init__(target, schema)
        self._parquet = Writer(pa.PythonFile(target, "w"), schema)

    def write(self, batch: pa.RecordBatch) -> None:
        """Write a batch as a row group."""
        self._parquet.write_batch(batch)

    def close(self) -> None:
        """Write the footer."""
        self._parquet.close()


def _is_text(type_: pa.DataType) -> bool:
    if pa.types.is_dictionary(type_):
        type_ = type_.value_type
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_))


def _needs_json(type_: pa.DataType) -> bool:
    return bool(pa.types.is_nested(type_) or pa.types.is_binary(type_) or pa.types.is_large_binary(type_))


def _as_json(column: pa.Array) -> pa.Array:
    return pa.array([None if value is None else _to_csv_text(value) for value in column.to_pylist()], pa.string())


def _to_csv_text(value: Any) -> str:
    plain = to_json(value)
    return plain if isinstance(plain, str) else json.dumps(plain)
