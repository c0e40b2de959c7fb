"""A local copy of the parts of a remote Lance file that a read needs, as the lance library opens only paths.

The copy has the file's size, and holes where the pages of other columns are. So a read fetches only its columns,
through this package's own storage, and the library gets no credentials.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from hoodie_py.errors import StorageError
from hoodie_py.files import TableFiles
from hoodie_py.formats.lance import Range
from hoodie_py.reader.memory.spill_directory import SpillDirectory

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
