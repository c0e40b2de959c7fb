"""The lock file of Hudi's ``FileSystemBasedLockProvider``, for local disks.

The lock is held while the file exists. Java looks only at its existence and age, so its content is free. Here the
content names the owner, so that a holder notices when another writer took the lock over.
"""

from __future__ import annotations

import json
import os
import socket
import time
import uuid
from collections.abc import Callable

from hoodie_py.errors import CommitStateUnknownError, ConflictError, FileMissingError
from hoodie_py.files import TableFiles
from hoodie_py.formats.names import METADATA_FOLDER

LOCK_FILE = f"{METADATA_FOLDER}/lock"

_PAUSE = 1.0
_SETTLE = 0.2
_MINUTE = 60.0


class FileSystemLock:
    """A lock file that only one writer can create.

    ``expire_minutes``: the age from which a lock file counts as left by a dead writer, 0 for never. ``pause``: seconds
    between attempts. ``now`` returns seconds since 1970.

    Examples:
        >>> lock = FileSystemLock(trips.files, expire_minutes=5)
        >>> trips.upsert([{"id": "d", "city": "la", "price": 5.0, "ts": 1}], lock=lock).rows_inserted
        1
    """

    def __init__(
        self,
        files: TableFiles,
        path: str = LOCK_FILE,
        *,
        expire_minutes: float = 0,
        pause: float = _PAUSE,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._files = files
        self._path = path
        self._expire = expire_minutes * _MINUTE
        self._pause = pause
        self._now = now
        self._content = b""
        self._touched = 0.0
        self.renew_every: float | None = self._expire / 3 if self._expire else None

    def acquire(self, timeout: float) -> None:
        """Create the file once no other writer has it. Raises ConflictError after ``timeout`` seconds."""
        deadline = time.monotonic() + timeout
        owner = {"owner": str(uuid.uuid4()), "host": socket.gethostname(), "pid": os.getpid()}
        content = json.dumps(owner).encode()
        while not self._create(content):
            if time.monotonic() >= deadline:
                raise ConflictError(
                    "Another writer has the table's lock.",
                    hint="Try again later. If its owner has ended, remove the file.",
                    path=f"{self._files.uri}/{self._path}",
                )
            time.sleep(min(self._pause, max(deadline - time.monotonic(), 0)))
        self._content = content

    def renew(self) -> None:
        """Check that the file is this lock's own, and rewrite it if it can expire. Raises ConflictError."""
        if not self._content or not self._is_own(self._content):
            self._content = b""
            raise ConflictError("The lock file is no longer this writer's.", path=f"{self._files.uri}/{self._path}")
        if self._expire:
            self._files.put(self._path, self._content)
            self._touched = self._now()

    def release(self) -> None:
        """Remove the file if it is this lock's own."""
        content, self._content = self._content, b""
        if content and self._is_own(content):
            self._files.delete_with_checksum(self._path)

    def _create(self, content: bytes) -> bool:
        broken = self._is_left_over()
        if broken:
            self._files.delete_with_checksum(self._path)
        try:
            self._files.put_if_absent(self._path, content, unique=True)
        except (ConflictError, CommitStateUnknownError):
            return False  # if the file is this writer's own after all, the next attempt finds that out
        self._touched = self._now()
        if broken:
            # Another writer may have found the same old file, and may delete only now what it takes for that file:
            # this writer's new one. So wait, then look whether the file is still there.
            time.sleep(_SETTLE)
        return self._is_own(content)

    def _is_left_over(self) -> bool:
        if not self._expire:
            return False
        try:
            written = self._files.stat(self._path).modified
        except FileMissingError:
            return False
        return written is not None and self._now() - written / 1000 > self._expire

    def _is_own(self, content: bytes) -> bool:
        if self._expire and self._now() - self._touched > self._expire:
            return False  # another writer may have judged the file left over
        try:
            return self._files.read(self._path, len(content) + 1) == content
        except FileMissingError:
            return False
