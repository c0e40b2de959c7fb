"""Where the table of ``hoodie demo`` lies: a place to keep, or a folder that goes away."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hoodie_py.errors import InvalidQueryError, StorageError
from hoodie_py.files import TableFiles


@contextmanager
def open_demo_place(keep: str | None, options: Mapping[str, Any]) -> Iterator[str]:
    """Give the URI of a place for a table; it goes away afterwards unless ``keep`` names it.

    Raises:
        InvalidQueryError: there is something at that place already.
        StorageError: the place cannot be looked at.
    """
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="hoodie-demo-") as folder:
            yield str(Path(folder) / "demo_table")
        return
    target = TableFiles.open(keep, options)
    if _has_content(target):
        hint = "Give --keep a new folder."
        raise InvalidQueryError("There is something at that place already.", path=target.uri, hint=hint)
    yield target.uri


def _has_content(target: TableFiles) -> bool:
    try:
        return bool(target.list(""))
    except StorageError as error:
        if error.missing:
            return False
        raise
