"""The bytes of blobs: stored in the rows, or in files that rows refer to (Hudi's SQL function ``read_blob``).

A reference comes from the table and is not trusted. It is opened only below the places that the caller allows, with the
same scheme and host (``hoodie_storage.location.Place``).
On a local disk the store also refuses symbolic links that lead out of the folder, and what is no regular file. Ranges
must lie inside their file, and the bytes of a call are bounded before any of them is read.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from hoodie_py.errors import HoodieError, InvalidQueryError, InvalidTableError
from hoodie_py.files import TableFiles
from hoodie_py.formats.logical_types.blob import BLOB_TYPE, INLINE, OUT_OF_LINE, check_blob
from hoodie_storage.errors import PathError
from hoodie_storage.location import Place, parse_place

MEMORY_LIMIT = 1 << 30  # bytes of a result, by default

_LOCAL = frozenset({"file", "local"})
_SHOWN = 200
_FILES_AT_ONCE = 8


def read_blob(
    column: pa.Array | pa.ChunkedArray,
    allow: Sequence[str | os.PathLike[str]] = (),
    *,
    storage_options: Mapping[str, Any] | None = None,
    memory_limit: int = MEMORY_LIMIT,
) -> pa.Array | pa.ChunkedArray:
    """Return the bytes of a column of blobs as large binary; null stays null.

    Args:
        column: structs as a scan gives them (``type``, ``data``, ``reference``).
        allow: folders, by URI or local path, below which references are opened; none by default.
        storage_options: for those of ``allow`` that are not local, as for ``HoodieTable.open``.
        memory_limit: most bytes of the result; read fewer rows at a time for more.

    Raises:
        InvalidQueryError: the column has no blobs, a reference is not below an allowed folder, or the bytes exceed the
            limit; ``where`` names the row.
        InvalidTableError: a blob without a type, a reference without a path, or a range outside its file; or a link
            leads out of an allowed folder.
        FileMissingError: there is no such file.
        StorageError: the store refused or failed.

    Examples:
        >>> place = pa.struct(
        ...     [
        ...         pa.field("external_path", pa.string(), nullable=False),
        ...         pa.field("offset", pa.int64()),
        ...         pa.field("length", pa.int64()),
        ...         pa.field("managed", pa.bool_(), nullable=False),
        ...     ]
        ... )
        >>> kind = pa.field("type", pa.string(), nullable=False)
        >>> blob = pa.struct([kind, ("data", pa.binary()), ("reference", place)])
        >>> read_blob(pa.array([{"type": "INLINE", "data": b"abc", "reference": None}], blob)).to_pylist()
        [b'abc']
    """
    if isinstance(column, pa.ChunkedArray):
        chunks = []
        for chunk in column.chunks:
            chunks.append(read_blob(chunk, allow, storage_options=storage_options, memory_limit=memory_limit))
            memory_limit -= chunks[-1].nbytes
        return pa.chunked_array(chunks, pa.large_binary())
    try:
        check_blob(column.type)
    except InvalidQueryError:
        message = f"A column of type {column.type} is no column of blobs."
        raise InvalidQueryError(message, hint=f"Give one of type {BLOB_TYPE}.") from None
    read = _Reading([_Allowed.open(each, storage_options) for each in allow], memory_limit)
    values = [read.add(row, value) for row, value in enumerate(column.to_pylist())]
    read.fetch(values)
    return pa.array(values, pa.large_binary())


def _parse_place(text: str) -> Place | None:
    """Parse a place, with the local disk's scheme where there is none; None if it is refused."""
    try:
        place = parse_place(text)
    except PathError:
        return None
    return replace(place, scheme=place.scheme or "file", host=place.host or "")


@dataclass(frozen=True, slots=True)
class _Allowed:
    """An allowed folder."""

    place: Place
    files: TableFiles

    @classmethod
    def open(cls, place: str | os.PathLike[str], storage_options: Mapping[str, Any] | None) -> _Allowed:
        scheme = os.fspath(place).partition(":")[0].lower()
        options = storage_options if "://" in os.fspath(place) and scheme not in _LOCAL else None
        files = TableFiles.open(place, options)
        found = _parse_place(files.uri)
        if found is None:
            raise InvalidQueryError("A place that blobs may be in is neither a URI nor a path.", hint="Name a folder.")
        return cls(found, files)


@dataclass(slots=True)
class _File:
    """A file that rows refer to, with row numbers and ranges; None as an end is the file's end."""

    allowed: _Allowed
    path: str
    rows: list[int] = field(default_factory=list)
    ranges: list[tuple[int, int | None]] = field(default_factory=list)


class _Reading:
    """Collects the references of a column's rows, and reads them file by file."""

    def __init__(self, allowed: Sequence[_Allowed], memory_limit: int) -> None:
        self._allowed = sorted(allowed, key=lambda allowed: -len(allowed.place.segments))
        self._left = memory_limit
        self._limit = memory_limit
        self._files: dict[tuple[int, str], _File] = {}

    def add(self, row: int, blob: Mapping[str, Any] | None) -> bytes | None:
        """Return the bytes of a row that stores them; note a reference, and return None."""
        if blob is None:
            return None
        kind, data, reference = blob["type"], blob["data"], blob["reference"]
        if kind == INLINE:
            self._charge(len(data or b""), row)
            return None if data is None else bytes(data)
        if kind != OUT_OF_LINE:
            raise InvalidTableError(f"A blob has the type {str(kind)[:40]!r}.", row=row)
        if reference is None or not reference["external_path"]:
            raise InvalidTableError("A blob out of line refers to no file.", row=row)
        start, length = reference["offset"], reference["length"]
        if (start is None) != (length is None) or min(start or 0, length or 0) < 0:
            raise InvalidTableError(f"A blob has the offset {start} and the length {length}.", row=row)
        file = self._find_file(row, str(reference["external_path"]))
        file.rows.append(row)
        file.ranges.append((start or 0, None if length is None else start + length))
        return None

    def fetch(self, values: list[bytes | None]) -> None:
        """Read the references that were noted, and put the bytes into ``values`` at their rows."""
        files = list(self._files.values())
        if not files:
            return
        with ThreadPoolExecutor(min(len(files), _FILES_AT_ONCE), "hoodie-blobs") as pool:
            sizes = list(pool.map(_find_size, files))
            for file, size in zip(files, sizes, strict=True):
                self._close_ranges(file, size)
            for file, found in zip(files, pool.map(_read_file, files), strict=True):
                for row, data in zip(file.rows, found, strict=True):
                    values[row] = data

    def _find_file(self, row: int, path: str) -> _File:
        place = _parse_place(path)
        for number, allowed in enumerate(self._allowed):
            inside = None if place is None else place.find_inside(allowed.place)
            if inside:
                return self._files.setdefault((number, inside), _File(allowed, inside))
        shown = path.partition("?")[0][:_SHOWN] if place is not None else None  # not the tokens of signed URIs
        raise InvalidQueryError(
            "A blob refers to a file that is below none of the allowed places.",
            hint="Allow its folder with allow=[...], if the table may name files there.",
            row=row,
            path=shown,
        )

    def _close_ranges(self, file: _File, size: int) -> None:
        for i, (start, stop) in enumerate(file.ranges):
            end = size if stop is None else stop
            if not start <= end <= size:
                message = f"A blob has the range from {start} to {end} of a file of {size} bytes."
                raise InvalidTableError(message, row=file.rows[i], path=file.path)
            self._charge(end - start, file.rows[i])
            file.ranges[i] = (start, end)

    def _charge(self, size: int, row: int) -> None:
        self._left -= size
        if self._left < 0:
            message = f"The blobs have more bytes than memory_limit, which is {self._limit}."
            raise InvalidQueryError(message, hint="Read fewer rows at a time, or give a higher memory_limit.", row=row)


def _find_size(file: _File) -> int:
    files, path = file.allowed.files, file.path
    try:
        found = files.stat(path)
        if found.is_dir:
            raise InvalidTableError("A blob refers to a folder.", path=path)
        if not found.size:
            files.read(path, 1)  # a pipe has no size, either, and is refused
        return found.size
    except HoodieError as error:
        raise error.locate(row=file.rows[0]) from None


def _read_file(file: _File) -> list[bytes]:
    try:
        return file.allowed.files.read_ranges(file.path, [(start, stop or 0) for start, stop in file.ranges])
    except HoodieError as error:
        raise error.locate(row=file.rows[0]) from None
