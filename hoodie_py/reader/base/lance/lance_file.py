"""LanceFileReader: reads a Lance base file in batches, only the columns that a read needs.

A base file is one Lance *file* of format 2, not a dataset (Hudi ``HoodieSparkLanceWriter``). Its layout is checked
here; its pages are decoded by the lance library in another process (``process``). A local file is opened in place. For
a remote file the pages of the wanted columns are copied first, as the library opens only paths: the copy has the file's
size, and holes where the pages of other columns are. So the library gets no credentials.

The library cannot filter: rows are filtered after reading. A file has no column statistics, but it has the range and
the bloom filter of its keys, like other base files.

Format 2.0, which Hudi 1.2 writes, cannot store a null struct: its fields are null instead. Where the table requires a
field of a struct and the file has null there, the struct itself was null. Elsewhere the two cases cannot be
distinguished, and the struct keeps its null fields, as in Java. (Java 1.2.0 fails on a null BLOB.)
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from hoodie_py.arrow.arrays import call, make_batch_without_columns
from hoodie_py.arrow.fields import is_any_list
from hoodie_py.errors import StorageError, locate_errors
from hoodie_py.files import TableFiles
from hoodie_py.formats.lance import LanceLayout, Range, read_footer, read_layout
from hoodie_py.reader.base.lance.process import check_installed, read_batches, read_schema
from hoodie_py.reader.base.stored_columns import StoredColumns
from hoodie_py.reader.file_slice import BaseFile
from hoodie_py.reader.memory.spill_directory import SpillDirectory
from hoodie_py.reader.schema_evolution.by_name import conform_batch

if TYPE_CHECKING:
    import pyarrow.parquet as pq


def restore_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the rows of a file, with null structs wherever a required field of ``schema`` is null."""
    for at, name in enumerate(batch.schema.names):
        wanted = schema.field(name).type
        if _has_required(wanted):
            field = batch.schema.field(at).with_nullable(True)
            batch = batch.set_column(at, field, restore_array(batch.column(at), wanted))
    return batch


def restore_array(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Return a column of the same type with null structs; unchanged if ``wanted`` is of another kind."""
    if pa.types.is_struct(array.type) and pa.types.is_struct(wanted):
        return _restore_struct(array, wanted)
    if pa.types.is_list(array.type) and is_any_list(wanted) and _has_required(wanted):
        return pa.Array.from_buffers(
            array.type,
            len(array),
            array.buffers()[:2],
            null_count=array.null_count,
            offset=array.offset,
            children=[restore_array(array.values, wanted.value_type)],
        )
    return array


def _restore_struct(array: pa.Array, wanted: pa.StructType) -> pa.Array:
    missing = array.is_null()
    children = []
    for at, field in enumerate(array.type):
        place = wanted.get_field_index(field.name)
        child = array.field(at)
        if place >= 0:
            child = restore_array(child, wanted.field(place).type)
            if not wanted.field(place).nullable:
                missing = call("or", missing, child.is_null())
        children.append(child)
    if not children:
        return array
    return pa.StructArray.from_arrays(children, fields=list(array.type), mask=missing)


def _has_required(type_: pa.DataType) -> bool:
    if pa.types.is_struct(type_):
        return any(not field.nullable or _has_required(field.type) for field in type_)
    return is_any_list(type_) and _has_required(type_.value_type)


_STEP = 8 << 20  # bytes that are fetched at a time
_GAP = 64 << 10  # parts that are closer come in one request


@contextmanager
def copy_parts(
    files: TableFiles, path: str, size: int, parts: Sequence[Range], tail: bytes, directory: str | None
) -> Iterator[str]:
    """Return a context manager with the path of a copy, which is removed at the end.

    ``parts``: the ranges to copy, ascending. ``tail``: the file's last bytes, already read.

    Raises:
        StorageError: the file cannot be read, or the disk is full.
    """
    place = SpillDirectory(directory)
    try:
        copy = place.path / "part.lance"
        try:
            with copy.open("wb") as target:
                # The copy has the file's size and offsets; what is not copied is a hole, which needs no disk space.
                target.truncate(size)
                for start, data in _fetch(files, path, parts, size - len(tail)):
                    target.seek(start)
                    target.write(data)
                target.seek(size - len(tail))
                target.write(tail)
        except OSError as error:
            raise StorageError(
                f"A remote Lance file cannot be copied to disk: {(error.strerror or str(error)).rstrip('.')}.",
                hint="Free space there, or give another directory by hoodie.memory.spillable.map.path.",
                operation="copy",
                path=str(place.path),
            ) from error
        yield str(copy)
    finally:
        place.close()


def _fetch(files: TableFiles, path: str, parts: Sequence[Range], end: int) -> Iterator[tuple[int, bytes]]:
    """Yield the bytes of ranges up to ``end``; several ranges are fetched at a time."""
    for step in _divide(_join(parts, end)):
        yield from zip((start for start, _ in step), files.read_ranges(path, step), strict=True)


def _join(parts: Sequence[Range], end: int) -> Iterator[Range]:
    """Join ranges that are close to each other, and cut long ones."""
    joined: list[Range] = []
    for start, stop in parts:
        if joined and start - joined[-1][1] <= _GAP:
            joined[-1] = joined[-1][0], max(joined[-1][1], stop)
        else:
            joined.append((start, stop))
    for start, stop in joined:
        for at in range(start, min(stop, end), _STEP):
            yield at, min(at + _STEP, stop, end)


def _divide(parts: Iterator[Range]) -> Iterator[list[Range]]:
    step: list[Range] = []
    held = 0
    for start, stop in parts:
        if held + stop - start > _STEP and step:
            yield step
            step, held = [], 0
        step.append((start, stop))
        held += stop - start
    if step:
        yield step


_TAIL = 1 << 20  # bytes at the end of a file that are read first: the layout, with a bloom filter of some 430 KB
_GROUP_ROWS = 1 << 16  # rows of a part (``group_rows``)
_BATCH_BYTES = 64 << 20  # bytes of the file that a batch may come from, however few rows that are


class LanceFileReader:
    """One open Lance file; arguments and errors as for ``BaseFileReader``.

    ``directory``: for copies of remote files; None for the system's temporary directory.

    Raises:
        UnsupportedFeatureError: the lance library is missing, or the file's version or a type is not supported.
    """

    def __init__(
        self,
        files: TableFiles,
        base_file: BaseFile,
        times: pa.Schema | None = None,
        directory: str | None = None,
    ) -> None:
        self.path = base_file.path
        self._files = files
        self._times = times
        self._directory = directory
        with locate_errors(path=self.path):
            check_installed()
            self._size = base_file.size if base_file.size > 0 else files.stat(self.path).size
            self._tail, self._layout = _read_layout(files, self.path, self._size)
        self.columns = frozenset(self._layout.columns)

    @property
    def num_rows(self) -> int:
        """The number of rows, from the file's descriptor."""
        return self._layout.rows

    @property
    def schema(self) -> pa.Schema:
        """The stored columns, with the types that batches have."""
        return self._stored.schema

    @property
    def retyped(self) -> frozenset[str]:
        """Columns of a wrong type."""
        return self._stored.retyped

    @property
    def group_rows(self) -> Sequence[int]:
        """The number of rows of each part; parts are arbitrary, as Lance has no row groups and can find any row."""
        whole, rest = divmod(self.num_rows, _GROUP_ROWS)
        return [_GROUP_ROWS] * whole + [rest] * bool(rest)

    @property
    def footer(self) -> pq.FileMetaData | None:
        """None: there are no statistics."""
        return None

    @property
    def key_facts(self) -> Mapping[bytes, bytes]:
        """The metadata of the file's schema."""
        return self._layout.metadata

    @cached_property
    def _stored(self) -> StoredColumns:
        with locate_errors(path=self.path), self._open(()) as path:
            return StoredColumns(read_schema(path), self._times)

    def read_batches(
        self,
        schema: pa.Schema,
        batch_rows: int,
        row_groups: Sequence[int] | None = None,
        *,
        coded: Collection[str] = (),
        column_threads: bool = False,
    ) -> Iterator[pa.RecordBatch]:
        """Read rows in file order with the schema's columns; as for ``OpenBaseFile``."""
        return self._read(schema, batch_rows, row_groups)

    def _read(self, schema: pa.Schema, rows: int, groups: Sequence[int] | None) -> Iterator[pa.RecordBatch]:
        ranges = self._find_rows(groups)
        names = [name for name in schema.names if name in self.columns]
        if not names:
            for start, stop in ranges:
                for at in range(start, stop, rows):
                    yield conform_batch(make_batch_without_columns(min(rows, stop - at)), schema)
            return
        with locate_errors(path=self.path):
            conform = self._stored.make_conformer(schema)
            rows = max(1, min(rows, _BATCH_BYTES * self.num_rows // self._size))
            with self._open(names) as path:
                for start, stop in ranges:
                    with closing(read_batches(path, names, start, stop - start, rows)) as batches:
                        for batch in batches:
                            yield conform(self._restore(batch, schema), None)

    def _restore(self, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
        return batch if self._layout.has_null_structs else restore_batch(batch, schema)

    def _find_rows(self, groups: Sequence[int] | None) -> list[tuple[int, int]]:
        """Return where the rows of some groups begin and end; adjacent groups become one range."""
        if groups is None:
            return [(0, self.num_rows)]
        ranges: list[tuple[int, int]] = []
        for group in groups:
            start, stop = group * _GROUP_ROWS, min((group + 1) * _GROUP_ROWS, self.num_rows)
            if ranges and ranges[-1][1] == start:
                ranges[-1] = ranges[-1][0], stop
            else:
                ranges.append((start, stop))
        return ranges

    def _open(self, names: Collection[str]) -> AbstractContextManager[str]:
        """Return a context manager with the path of a local file that has the pages of some columns."""
        local = self._files.local_path(self.path)
        if local is not None:
            return nullcontext(local)
        parts = self._layout.find_ranges(names)
        if parts is None:
            parts = [(0, self._layout.start)] if names else []
        return copy_parts(self._files, self.path, self._size, parts, self._tail, self._directory)


def _read_layout(files: TableFiles, path: str, size: int) -> tuple[bytes, LanceLayout]:
    """Read the layout; return it after the bytes that it was read from."""
    needed = min(size, _TAIL)
    tail = files.read_range(path, size - needed, size)
    footer = read_footer(tail, size)
    while isinstance(footer, int):
        tail = files.read_range(path, size - footer, size)
        footer = read_footer(tail, size)
    if size - footer.start > len(tail):
        tail = files.read_range(path, footer.start, size)
    layout = read_layout(tail, size, footer)
    return (tail if size <= _TAIL else tail[-(size - footer.start) :]), layout
