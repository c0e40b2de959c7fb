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
file_group, column ...), ``hint`` the remedy. A lower layer raises it with the facts that it knows; a layer above adds
facts with ``locate``. No error contains storage options or credentials.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self


class HoodieError(Exception):
    """Root of the tree.

    ``where`` is the place, as named facts (path, offset, key, instant, ...); None values are left out.

    Examples:
        >>> try:
        ...     trips.scan(columns=["prize"])
        ... except HoodieError as error:
        ...     print(error.message)
        ...     print(error.hint)
        Unknown column 'prize'.
        Did you mean 'price'? The table has: _hoodie_commit_time, _hoodie_commit_seqno, _hoodie_record_key, ...
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
    """There is no Hudi table at the given place.

    Examples:
        >>> HoodieTable.open("nowhere")
        Traceback (most recent call last):
            ...
        hoodie_py.errors.TableNotFoundError: There is no Hudi table here: there is no .hoodie/hoodie.properties. ...
    """


class InvalidTableError(HoodieError):
    """The table's own metadata is broken or contradicts itself.

    Examples:
        >>> from pathlib import Path
        >>> size = Path("trips/.hoodie/hoodie.properties").write_text("hoodie.table.version=nine")
        >>> HoodieTable.open("trips")
        Traceback (most recent call last):
            ...
        hoodie_py.errors.InvalidTableError: The properties file is not whole: its last line has no end. ...
    """


class UnsupportedFeatureError(HoodieError):
    """Valid Hudi that this version does not handle; the message names the feature.

    Examples:
        >>> HoodieTable.create("old", trips.schema, record_key="id", table_version=5)
        Traceback (most recent call last):
            ...
        hoodie_py.errors.UnsupportedFeatureError: Tables of version 5 cannot be made. Give table_version=6, 8 or 9.
    """


class CorruptFileError(HoodieError):
    """The bytes of a file are wrong; ``where`` names file, offset and block.

    Examples:
        >>> from pathlib import Path
        >>> file = trips.file_slices(filter="city = 'la'")[0].base_file
        >>> size = Path(trips.uri, file.path).write_bytes(b"PAR1 no such file PAR1")
        >>> trips.scan().to_arrow()
        Traceback (most recent call last):
            ...
        hoodie_py.errors.CorruptFileError: The base file cannot be read as Parquet: Parquet file size is ... ...
    """


class InvalidQueryError(HoodieError, ValueError):
    """The question itself is wrong: an unknown column, a bad filter, instant, range or option.

    Examples:
        >>> trips.scan(columns=["prize"])
        Traceback (most recent call last):
            ...
        hoodie_py.errors.InvalidQueryError: Unknown column 'prize'. Did you mean 'price'? The table has: ...
    """


class MergeError(HoodieError):
    """A merger is missing or failed, or versions of a record cannot be ordered.

    Examples:
        >>> class Unready(RecordMerger):
        ...     strategy_id = "d3f2b3c1-6c7a-4e0f-8d0b-8f5a1a0e9c22"
        ...
        ...     def merge(self, older, newer, context, props):
        ...         raise ValueError("not yet")
        >>> trips.scan(merger=Unready).to_arrow()
        Traceback (most recent call last):
            ...
        hoodie_py.errors.MergeError: The merger failed: ValueError: not yet [key=a, merger=Unready, instants=..., ...
    """


class ConflictError(HoodieError):
    """Another writer changed the table first.

    Examples:
        >>> HoodieTable.create(trips.uri, trips.schema, record_key="id")
        Traceback (most recent call last):
            ...
        hoodie_py.errors.ConflictError: There is a Hudi table already. [table=.../trips] Open it with ...
    """


class CommitStateUnknownError(HoodieError):
    """The store did not say whether the commit landed; nothing was cleaned up.

    Examples:
        >>> try:
        ...     result = trips.delete(["b"])
        ... except CommitStateUnknownError as error:  # look at the timeline before you write again
        ...     print(error.where)
        >>> result.rows_deleted
        1
    """


class StorageError(HoodieError, OSError):
    """The store refused or failed an operation; ``where`` names the operation and the path.

    Examples:
        >>> from pathlib import Path
        >>> try:
        ...     trips.files.read("sf/nothing.parquet")
        ... except StorageError as error:
        ...     print(error.where["operation"], Path(error.where["path"]).name)
        read nothing.parquet
    """

    missing = False  # whether there is no such file or folder


class FileMissingError(StorageError, FileNotFoundError):
    """There is no such file or folder.

    Examples:
        >>> trips.files.read("sf/nothing.parquet")
        Traceback (most recent call last):
            ...
        hoodie_py.errors.FileMissingError: no such file or folder [operation=read, path=.../trips/sf/nothing.parquet]
    """

    missing = True


class HoodieWarning(UserWarning):
    """A reader skipped something by Hudi's rules; the rows are the ones that Java Hudi reads.

    Examples:
        >>> import warnings
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("error", HoodieWarning)  # what is skipped is an error in this block
        ...     trips.scan().count()
        3
    """
