"""List or remove all files below a metadata folder, such as the markers of an instant.

Links to folders are not followed: they may lead to the table's data files, which must not be listed as markers, and
must never be removed. Folders nest no deeper than partition paths.
"""

from __future__ import annotations

from collections.abc import Iterator

from hoodie_py.errors import FileMissingError, InvalidTableError
from hoodie_py.files import FileInfo, TableFiles
from hoodie_py.table.view.partitions import MAX_DEPTH


def list_tree(files: TableFiles, folder: str) -> Iterator[str]:
    """Yield the paths of all files below a folder, at any depth; nothing for a missing folder.

    Raises:
        InvalidTableError: folders nest deeper than partition paths can.
        StorageError: the store refused.
    """
    if files.is_local:
        for _, listing in _iterate_folders(files, folder):
            yield from (info.path for info in listing if not info.is_dir)
        return
    for info in files.list_tree(folder):
        if info.path.count("/") - folder.count("/") > MAX_DEPTH + 1:
            raise _make_depth_error(info.path)
        yield info.path


def remove_tree(files: TableFiles, folder: str) -> None:
    """Delete everything below a folder, then the folder. A missing folder is no error.

    A link is removed, but not what it leads to. Errors as for ``list_tree``.
    """
    if not files.is_local:
        files.delete_many([info.path for info in files.list_tree(folder)])
        return
    if _is_link(files, folder):
        files.delete(folder)
        return
    emptied = []
    for path, listing in _iterate_folders(files, folder):
        emptied.append(path)
        for info in listing:
            if info.is_link or not info.is_dir:
                files.delete(info.path)
    for path in reversed(emptied):
        files.remove_folder(path)


def _iterate_folders(files: TableFiles, folder: str) -> Iterator[tuple[str, list[FileInfo]]]:
    """Yield folders, outer ones first, each with the files and folders directly inside."""
    level = [] if _is_link(files, folder) else [folder]
    for _ in range(MAX_DEPTH + 1):
        inner: list[str] = []
        for path in level:
            try:
                listing = files.list(path)
            except FileMissingError:
                continue
            yield path, listing
            inner += [info.path for info in listing if info.is_dir and not info.is_link]
        if not inner:
            return
        level = inner
    raise _make_depth_error(level[0])


def _make_depth_error(path: str) -> InvalidTableError:
    return InvalidTableError(f"Folders nest deeper than {MAX_DEPTH} levels.", path=path[:500])


def _is_link(files: TableFiles, folder: str) -> bool:
    try:
        return files.stat(folder).is_link
    except FileMissingError:
        return False
