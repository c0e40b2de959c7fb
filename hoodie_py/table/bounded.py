"""Reads whole files up to a size limit, so that a damaged or hostile file cannot fill the memory.

At most one byte more than the limit is read; a larger file is an error.
"""

from __future__ import annotations

from hoodie_py.errors import CorruptFileError
from hoodie_py.files import TableFiles
from hoodie_py.formats.limits import get_limits, raise_limit_error


def read_bounded(files: TableFiles, path: str, limit: str = "metadata_bytes") -> bytes:
    """Return a whole file.

    ``limit``: name of the field of ``Limits`` with the largest size in bytes.

    Raises:
        CorruptFileError: the file is larger.
        FileMissingError: there is no such file.
        StorageError: the store refused.
    """
    most = getattr(get_limits(), limit)
    data = files.read(path, most + 1)
    if len(data) > most:
        raise_limit_error(CorruptFileError, f"A file has more than {most} bytes", limit, path=path)
    return data
