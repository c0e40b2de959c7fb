"""The place of the table of ``hoodie demo``: one that the user names, or a temporary folder."""

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
    """Give the block the URI for a table: ``keep``, or a temporary folder that is removed after the block.

    Raises:
        InvalidQueryError: the place is not empty.
        StorageError: the place cannot be listed.
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
