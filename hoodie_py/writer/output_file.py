"""Write a new file to memory, or to a local scratch file once it is large, then put it into the table.

The table gets the file whole and by create-if-absent: no file is overwritten, and no part of a file appears.
"""

from __future__ import annotations

import io
from tempfile import NamedTemporaryFile
from types import TracebackType
from typing import IO, Self, cast

from hoodie_py.files import TableFiles

IN_MEMORY = 32 * 1024 * 1024


class OutputFile:
    """Write a file that appears in the table only when it is published.

    Args:
        files: the table's files.
        path: of the file; nobody else uses the name.
        in_memory: bytes; larger content goes to a scratch file in the temporary folder.
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
        """The stream to write the content to; it can only append."""
        return cast("IO[bytes]", self)

    def write(self, data: bytes) -> int:
        """Append bytes."""
        if self._scratch is None and self._size + len(data) > self._most:
            self._scratch = NamedTemporaryFile(prefix="hoodie-")  # noqa: SIM115 - closed by ``close``
            self._scratch.write(self._memory.getbuffer())
            self._memory = io.BytesIO()
        (self._memory if self._scratch is None else self._scratch).write(data)
        self._size += len(data)
        return len(data)

    def publish(self) -> int:
        """Put the file into the table and return its size in bytes.

        Raises:
            ConflictError: a file with that name exists.
            CommitStateUnknownError: the store did not say whether the file was written.
            StorageError: the store refused.
        """
        if self._scratch is None:
            self._files.put_if_absent(self._path, self._memory.getvalue(), unique=True)
        else:
            self._scratch.flush()
            self._files.create_from(self._path, self._scratch.name)
        return self._size

    def close(self) -> None:
        """Delete the scratch file."""
        if self._scratch is not None:
            self._scratch.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
