"""All exceptions that hoodie_py raises on purpose.

    HoodieError
    ├── TableNotFoundError        no Hudi table at that place                (also FileNotFoundError)
    ├── InvalidTableError         broken or contradictory table metadata
    ├── UnsupportedFeatureError   valid Hudi that this version does not handle
    ├── CorruptFileError          a data, log or timeline file whose bytes are wrong
    ├── InvalidQueryError         unknown column, bad filter, instant, range or option  (also ValueError)
    ├── MergeError                a merger is missing or failed, or values cannot be ordered
    ├── ConflictError             another writer got there first
    ├── CommitStateUnknownError   the store did not say whether a commit landed
    └── StorageError              the store refused or failed an operation   (also OSError)
        └── FileMissingError      there is no such file or folder            (also FileNotFoundError)

An error has a message, a place and a remedy: ``where`` holds the place (table, path, offset, block, key, instant,
file_group, column ...), ``hint`` the remedy. A lower layer raises with the facts that it knows, and a layer above adds
facts with ``locate``. No error holds storage options or credentials.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self


class HoodieError(Exception):
    """Root of the tree.

    ``where`` is the place, as named facts (path, offset, key, instant, ...); None values are left out.
    """

    def __init__(self, message: str, *, hint: str | None = None, **where: Any) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.where: dict[str, Any] = {name: value for name, value in where.items() if value is not None}

    def locate(self, **where: Any) -> Self:
        """Add facts about the place, without changing known ones, and return the error itself."""
        for name, value in where.items():
            if value is not None:
                self.where.setdefault(name, value)
        return self

    def __str__(self) -> str:
        place = ", ".join(f"{name}={value}" for name, value in self.where.items())
        text = f"{self.message} [{place}]" if place else self.message
        return f"{text} {self.hint}" if self.hint else text

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self.hint, self.where)


@contextmanager
def locate_errors(**where: Any) -> Iterator[None]:
    """Add facts about the place to errors of the block."""
    try:
        yield
    except HoodieError as error:
        error.locate(**where)
        raise


def _rebuild(cls: type[HoodieError], message: str, hint: str | None, where: dict[str, Any]) -> HoodieError:
    return cls(message, hint=hint, **where)


class TableNotFoundError(HoodieError, FileNotFoundError):
    """There is no Hudi table at the given place."""


class InvalidTableError(HoodieError):
    """The table's own metadata is broken or contradicts itself."""


class UnsupportedFeatureError(HoodieError):
    """Valid Hudi that this version does not handle; the message names the feature."""


class CorruptFileError(HoodieError):
    """The bytes of a file are wrong; ``where`` names file, offset and block."""


class InvalidQueryError(HoodieError, ValueError):
    """The question itself is wrong: an unknown column, a bad filter, instant, range or option."""


class MergeError(HoodieError):
    """A merger is missing or failed, or versions of a record cannot be ordered."""


class ConflictError(HoodieError):
    """Another writer changed the table first."""


class CommitStateUnknownError(HoodieError):
    """The store did not say whether the commit landed; nothing was cleaned up."""


class StorageError(HoodieError, OSError):
    """The store refused or failed an operation; ``where`` names the operation and the path."""

    missing = False  # whether there is no such file or folder


class FileMissingError(StorageError, FileNotFoundError):
    """There is no such file or folder."""

    missing = True


class HoodieWarning(UserWarning):
    """A reader skipped something by Hudi's rules; the rows are those that Java Hudi reads."""
