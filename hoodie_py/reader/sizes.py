"""Checks for ``integrity="strict"`` that a slice's files have the sizes of the commits' write statistics."""

from __future__ import annotations

from collections.abc import Mapping

from hoodie_py.errors import CorruptFileError
from hoodie_py.files import TableFiles
from hoodie_py.reader.file_slice import FileSlice


def check_sizes(files: TableFiles, file_slice: FileSlice, expected: Mapping[str, int]) -> None:
    """Compare the size of each file with the statistics, where they name the file.

    Raises:
        CorruptFileError: a file is shorter or longer than its commit says.
    """
    base = () if file_slice.base_file is None else (file_slice.base_file,)
    for file in (*base, *file_slice.log_files):
        want = expected.get(file.path)
        if want is None:
            continue
        have = files.stat(file.path).size
        if have != want:
            raise CorruptFileError(
                f"The file has {have} bytes, its commit's statistics say {want}.",
                path=file.path,
                hint="Restore the file, or read without integrity='strict'.",
            )
