"""A new data file on its way: written to memory, or to a local scratch file once it is large, then put into the table.

The table gets the file whole and with create-if-absent, so nothing is ever written over, and never a part of it.
"""

from __future__ import annotations

import io
from tempfile import NamedTemporaryFile
from types import TracebackType
from typing import IO, Self, cast

from hoodie_py.files import TableFiles

IN_MEMORY = 32 * 1024 * 1024


class OutputFile:
    """A file that appears in the table when it is published, and not at all otherwise.

    Args:
        files: the table's files.
        path: where it will lie; a name that nobody else uses.
        in_memory: bytes from which on the content goes to a scratch file in the temporary folder.
    """

    def __init__(self, files: TableFiles, path: str, in_memory: int = IN_MEMORY) -> None:
        self._files = files
        self._path = path
        self._most = in_memory
        self._memory = io.BytesIO()
        self._scratch: IO[bytes] | None = None
        self._size = 0

    @property
    def sink(self) -> IO[bytes]:
        """Where to write the content; it can do no more than that."""
        return cast("IO[bytes]", self)

    def write(self, data: bytes) -> int:
        """Append bytes."""
        if self._scratch is None and self._size + len(data) > self._most:
            self._scratch = NamedTemporaryFile(prefix="hoodie-")  # noqa: SIM115 - closed in __exit__
            self._scratch.write(self._memory.getbuffer())
            self._memory = io.BytesIO()
        (self._memory if self._scratch is None else self._scratch).write(data)
        self._size += len(data)
        return len(data)

    def publish(self) -> int:
        """Put the file into the table and return its size in bytes.

        Raises:
            ConflictError: there is a file of that name.
            CommitStateUnknownError: the store did not say whether the file was written.
            StorageError: the store refused.
        """
        if self._scratch is None:
            self._files.put_if_absent(self._path, self._memory.getvalue(), unique=True)
        else:
            self._scratch.flush()
            self._files.create_from(self._path, self._scratch.name)
        return self._size

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._scratch is not None:
            self._scratch.close()
