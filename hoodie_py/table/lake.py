"""Finds the tables below a folder: folders that have a ``.hoodie`` folder. Nothing below a table is searched."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike, fspath
from typing import Any

from hoodie_py.errors import InvalidQueryError
from hoodie_py.files import TableFiles
from hoodie_py.formats.names import METADATA_FOLDER

DEPTH = 4
_MOST_FOLDERS = 50_000


def find_tables(
    uri: str | PathLike[str], storage_options: Mapping[str, Any] | None = None, depth: int = DEPTH
) -> list[str]:
    """Return the base paths of the tables at or below a folder, sorted.

    Folders whose names begin with ``.`` or ``_`` are skipped, and so are symbolic links.

    Args:
        uri: a local path or anything fsspec knows.
        storage_options: as for ``HoodieTable.open``.
        depth: how many levels below the folder are searched.

    Raises:
        InvalidQueryError: there are more than 50,000 folders.
        FileMissingError: there is no such folder.
        StorageError: the store refused.
    """
    text = fspath(uri)
    files = TableFiles.open(text, storage_options)
    found: list[str] = []
    level, seen = [""], 0
    for _ in range(depth + 1):
        seen += len(level)
        if seen > _MOST_FOLDERS:
            raise InvalidQueryError(
                f"There are more than {_MOST_FOLDERS:,} folders to look into.",
                hint="Name folders nearer to the tables.",
            )
        below: list[str] = []
        for path, listing in zip(level, files.list_many(level), strict=True):
            folders = [each for each in listing if each.is_dir]
            if any(each.name == METADATA_FOLDER for each in folders):
                found.append(path)
            else:
                below += [each.path for each in folders if not each.name.startswith((".", "_")) and not each.is_link]
        level = below
        if not level:
            break
    return sorted(f"{text.rstrip('/')}/{path}" if path else text for path in found)
