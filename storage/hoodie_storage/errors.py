"""Errors of stores.

    StorageFault              every other failure of the store
    ├── NotFoundError         no such file or folder                             (also FileNotFoundError)
    ├── AlreadyExistsError    put_if_absent found an existing file               (also FileExistsError)
    ├── ChangedError          put_if_match found another version of the file
    ├── AccessDeniedError     credentials are missing, wrong or not sufficient   (also PermissionError)
    ├── PathError             the path leads out of the store                    (also ValueError)
    ├── ShortReadError        the store sent fewer bytes than requested          (also EOFError)
    ├── TimeoutFault          the request timed out                              (also TimeoutError)
    ├── UnknownOutcomeError   it is not known whether a write happened
    └── UnsupportedStoreError the scheme is unknown, its package is missing, or the store lacks the verb

A fault names the operation, the path and the cause, and if possible a remedy. It never contains credentials.
"""

from __future__ import annotations

from typing import Any


class StorageFault(Exception):
    """Root of the tree."""

    def __init__(
        self,
        reason: str,
        *,
        operation: str | None = None,
        path: str | None = None,
        hint: str | None = None,
        **details: Any,
    ) -> None:
        super().__init__(reason)
        self.reason = reason  # what went wrong, without place and operation
        self.operation = operation  # the verb, such as ``read``
        self.path = path  # a URI or path without credentials
        self.hint = hint  # what the user can do about it
        self.details = details  # further attributes of the subclass

    def __str__(self) -> str:
        place = " ".join(part for part in (self.operation, self.path) if part)
        text = f"{place}: {self.reason}" if place else self.reason
        return f"{text}. {self.hint}" if self.hint else text

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.reason, self.operation, self.path, self.hint, self.details)


def _rebuild(
    cls: type[StorageFault], reason: str, operation: str | None, path: str | None, hint: str | None, details: Any
) -> StorageFault:
    return cls(reason, operation=operation, path=path, hint=hint, **details)


class NotFoundError(StorageFault, FileNotFoundError):
    """The file or folder does not exist."""


class AlreadyExistsError(StorageFault, FileExistsError):
    """The file exists already; it was not overwritten."""

    @property
    def identical(self) -> bool | None:
        """Whether the file has exactly the bytes of this write; None if it could not be read.

        If no other writer writes the same bytes, True means that an earlier attempt of this write succeeded.
        """
        found: bool | None = self.details.get("identical")
        return found


class ChangedError(StorageFault):
    """The file is another version than the one to replace; it was not overwritten."""


class AccessDeniedError(StorageFault, PermissionError):
    """The credentials are missing, or do not allow the operation."""


class PathError(StorageFault, ValueError):
    """The path is malformed or leads out of the store."""


class ShortReadError(StorageFault, EOFError):
    """The store sent fewer bytes than requested: the file is shorter, or the answer was cut off."""


class TimeoutFault(StorageFault, TimeoutError):
    """The request timed out."""


class UnknownOutcomeError(StorageFault):
    """The store did not say whether the write happened, and reading the file back did not settle it."""


class UnsupportedStoreError(StorageFault):
    """The store cannot be used, or lacks the verb."""

    @property
    def package(self) -> str | None:
        """The package whose installation would help."""
        found: str | None = self.details.get("package")
        return found
