"""The lock object of Hudi's ``StorageBasedLockProvider``, for stores with conditional writes.

``.hoodie/.locks/table_lock.json`` contains ``{"expired", "validUntil", "owner"}``. A writer takes the lock by replacing
an expired version with a valid one, on condition that the version's etag is unchanged (If-Match; on Google Cloud
Storage the generation). It renews the lock by replacing its own version, and releases it by writing an expired version.
If the etag still matches, no other writer had the lock in between.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass

from hoodie_py.errors import (
    CommitStateUnknownError,
    ConflictError,
    CorruptFileError,
    FileMissingError,
    InvalidQueryError,
    StorageError,
)
from hoodie_py.files import TableFiles
from hoodie_py.formats.names import METADATA_FOLDER

LOCK_OBJECT = f"{METADATA_FOLDER}/.locks/table_lock.json"
VALIDITY_SECONDS = 300.0
RENEW_SECONDS = 30.0

_PAUSE = 1.0
_SKEW_MS = 500  # the largest difference between the writers' clocks, as in Java
_LEAST_RATIO = 10
_LONGEST = 64 * 1024


@dataclass(frozen=True, slots=True)
class LockState:
    """The content of the lock object; ``valid_until`` is in milliseconds since 1970."""

    expired: bool
    valid_until: int
    owner: str

    def to_bytes(self) -> bytes:
        """Encode as Java does."""
        return json.dumps({"expired": self.expired, "validUntil": self.valid_until, "owner": self.owner}).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> LockState:
        """Parse the object. Raises CorruptFileError."""
        try:
            found = json.loads(data) if len(data) <= _LONGEST else None
        except (ValueError, RecursionError):
            found = None
        fields = found if isinstance(found, dict) else {}
        expired, until, owner = fields.get("expired"), fields.get("validUntil"), fields.get("owner")
        if not isinstance(expired, bool) or type(until) is not int or not isinstance(owner, str):
            raise CorruptFileError(
                "The lock object does not say who has the lock.",
                hint="Remove it once no writer runs.",
                path=LOCK_OBJECT,
            )
        return cls(expired, until, owner)


class StorageLock:
    """A lock object on a store with conditional writes.

    ``validity``: seconds until a lock that is not renewed expires. ``renew_every``: seconds between renewals, at most a
    tenth of ``validity``. ``pause``: seconds between attempts. ``now`` returns seconds since 1970.

    Raises:
        InvalidQueryError: the renewal interval is too long for the validity.

    Examples:
        >>> table = HoodieTable.create(
        ...     f"{s3.uri}/locked", trips.schema, record_key="id", storage_options=s3.storage_options
        ... )
        >>> lock = StorageLock(table.files)
        >>> table.upsert([{"id": "d", "city": "la", "price": 5.0, "ts": 1}], lock=lock).rows_inserted
        1
    """

    def __init__(
        self,
        files: TableFiles,
        *,
        validity: float = VALIDITY_SECONDS,
        renew_every: float = RENEW_SECONDS,
        pause: float = _PAUSE,
        now: Callable[[], float] = time.time,
    ) -> None:
        if renew_every <= 0 or validity < _LEAST_RATIO * renew_every:
            raise InvalidQueryError(f"A lock's validity must be at least {_LEAST_RATIO} times its renewal interval.")
        self.renew_every: float | None = renew_every
        self._files = files
        self._validity = validity
        self._pause = pause
        self._now = now
        self._owner = str(uuid.uuid4())
        self._mark: str | None = None
        self._until = 0
        self._guard = threading.Lock()

    def acquire(self, timeout: float) -> None:
        """Take the lock.

        Raises:
            ConflictError: other writers had it for ``timeout`` seconds.
            CorruptFileError: the lock object cannot be read.
            StorageError: the store failed, or has no conditional writes.
        """
        deadline = time.monotonic() + timeout
        with self._guard:
            while not self._try():
                if time.monotonic() >= deadline:
                    raise ConflictError(
                        "Another writer has the table's lock.", hint="Try again later.", path=self._format_place()
                    )
                time.sleep(min(self._pause, max(deadline - time.monotonic(), 0)))

    def renew(self) -> None:
        """Extend the lock. If it was just extended, only check that it is still this writer's.

        Raises ConflictError once it is lost, StorageError if the store does not answer.
        """
        with self._guard:
            if self._mark is None:
                raise ConflictError("The lock is not held.", path=self._format_place())
            if self._is_fresh():  # stores slow down writers that replace an object more than once a second
                self._ensure_unchanged()
                return
            state = self._make_state()
            try:
                self._mark = self._files.put_if_match(LOCK_OBJECT, state.to_bytes(), self._mark, unique=True)
                self._until = state.valid_until
            except ConflictError:
                if not self._adopt():  # an earlier renewal whose answer got lost changed the mark
                    self._mark = None
                    raise
            except CommitStateUnknownError as error:
                raise StorageError(
                    "The store did not say whether the lock was renewed.", path=self._format_place()
                ) from error

    def release(self) -> None:
        """Mark the lock expired. A lost lock stays untouched."""
        with self._guard:
            mark, self._mark = self._mark, None
            if mark is None:
                return
            state = LockState(expired=True, valid_until=self._until, owner=self._owner)
            try:
                self._files.put_if_match(LOCK_OBJECT, state.to_bytes(), mark, unique=True)
            except ConflictError:
                if self._adopt():  # as in `renew`, the newer version may be this writer's own
                    last, self._mark = self._mark or mark, None
                    self._files.put_if_match(LOCK_OBJECT, state.to_bytes(), last, unique=True)

    def _is_fresh(self) -> bool:
        """Whether this writer wrote the lock within half a renewal interval."""
        age = self._now() + self._validity - self._until / 1000
        return self.renew_every is not None and 0 <= age < self.renew_every / 2

    def _ensure_unchanged(self) -> None:
        try:
            _, found = self._files.read_with_etag(LOCK_OBJECT)
        except FileMissingError:
            found = ""
        if found != self._mark and not self._adopt():
            self._mark = None
            raise ConflictError(
                "The lock object is another version by now: another writer took it over.", path=self._format_place()
            )

    def _try(self) -> bool:
        try:
            data, mark = self._files.read_with_etag(LOCK_OBJECT)
        except FileMissingError:
            try:
                self._files.put_if_absent(LOCK_OBJECT, self._make_state().to_bytes(), unique=True)
            except (ConflictError, CommitStateUnknownError):
                return False  # the next attempt finds out whose it is
            return self._adopt()
        found = LockState.from_bytes(data)
        if found.owner == self._owner and not found.expired:  # taken by an earlier attempt whose answer got lost
            return self._adopt()
        if not found.expired and self._now() * 1000 <= found.valid_until + _SKEW_MS:
            return False
        state = self._make_state()
        try:
            self._mark = self._files.put_if_match(LOCK_OBJECT, state.to_bytes(), mark, unique=True)
        except (ConflictError, CommitStateUnknownError):
            return False
        self._until = state.valid_until
        return True

    def _adopt(self) -> bool:
        """Adopt the object's current version if this writer owns it and it is valid; return whether that is so."""
        try:
            data, mark = self._files.read_with_etag(LOCK_OBJECT)
        except FileMissingError:
            return False
        found = LockState.from_bytes(data)
        if found.owner != self._owner or found.expired or self._now() * 1000 > found.valid_until:
            return False
        self._mark, self._until = mark, found.valid_until
        return True

    def _make_state(self) -> LockState:
        # Rounded down: a lock that was just written must not look as if it had been written later than now.
        until = int((self._now() + self._validity) * 1000)
        return LockState(expired=False, valid_until=until, owner=self._owner)

    def _format_place(self) -> str:
        return f"{self._files.uri}/{LOCK_OBJECT}"
