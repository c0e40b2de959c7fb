"""What a store can answer other than the thing asked for.

    StorageFault              anything else the store refused or failed
    ├── NotFoundError         no such file or folder                             (also FileNotFoundError)
    ├── AlreadyExistsError    put_if_absent found a file in its place            (also FileExistsError)
    ├── ChangedError          put_if_match found another version of the file
    ├── AccessDeniedError     credentials are missing, wrong or not sufficient   (also PermissionError)
    ├── PathError             the path leads out of the store                    (also ValueError)
    ├── ShortReadError        fewer bytes came back than were asked for          (also EOFError)
    ├── TimeoutFault          no answer in time                                  (also TimeoutError)
    ├── UnknownOutcomeError   the store did not say whether a write landed
    └── UnsupportedStoreError the scheme is unknown, its package is missing, or it cannot do what was asked

A fault names the operation, the path and the cause, and what to do where that is known. It never holds credentials.
"""

from __future__ import annotations

from typing import Any


class StorageFault(Exception):
    """Root of the tree.

    Args:
        reason: what went wrong, without place and operation.
        operation: the verb, such as ``read``.
        path: where, as a URI or path without credentials.
        hint: what the user can do about it.
        details: further attributes of the subclass.
    """

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
        self.reason = reason
        self.operation = operation
        self.path = path
        self.hint = hint
        self.details = details

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
    """There is no such file or folder."""


class AlreadyExistsError(StorageFault, FileExistsError):
    """There is a file already; nothing was written over it."""

    @property
    def identical(self) -> bool | None:
        """Whether the file holds exactly the bytes that were offered; None where it could not be read.

        A writer whose bytes nobody else writes may take True as its own earlier, unanswered attempt.
        """
        found: bool | None = self.details.get("identical")
        return found


class ChangedError(StorageFault):
    """The file is not the version that was to be replaced; nothing was written over it."""


class AccessDeniedError(StorageFault, PermissionError):
    """The store does not let these credentials do it, or there are none."""


class PathError(StorageFault, ValueError):
    """The path is malformed or leads out of the store."""


class ShortReadError(StorageFault, EOFError):
    """Fewer bytes came back than were asked for: the file is shorter, or the answer was cut off."""


class TimeoutFault(StorageFault, TimeoutError):
    """No answer in time."""


class UnknownOutcomeError(StorageFault):
    """The store did not say whether the write landed, and reading back did not tell either."""


class UnsupportedStoreError(StorageFault):
    """This store cannot be used, or cannot do what was asked."""

    @property
    def package(self) -> str | None:
        """The package whose installation would help."""
        found: str | None = self.details.get("package")
        return found
