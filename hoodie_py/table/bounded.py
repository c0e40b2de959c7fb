"""Files that a reader takes whole, as long as they are not larger than it believes.

What a parser refuses for its size need not be read first: no more than the limit comes into memory.
"""

from __future__ import annotations

from hoodie_py.errors import CorruptFileError
from hoodie_py.files import TableFiles
from hoodie_py.formats.limits import get_limits, raise_limit_error


def read_bounded(files: TableFiles, path: str, limit: str = "metadata_bytes") -> bytes:
    """Return a whole file.

    Args:
        files: the table's files.
        path: which one.
        limit: its largest size, as a name of ``Limits``.

    Raises:
        CorruptFileError: it is larger.
        FileMissingError: there is no such file.
        StorageError: the store refused.
    """
    most = getattr(get_limits(), limit)
    data = files.read(path, most + 1)
    if len(data) > most:
        raise_limit_error(CorruptFileError, f"A file has more than {most} bytes", limit, path=path)
    return data
