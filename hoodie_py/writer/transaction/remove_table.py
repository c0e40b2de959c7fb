"""Remove a table, so that another one can be created in its place (Java's save mode Overwrite, which deletes the path).

The removal runs under the table's lock.
"""

from __future__ import annotations

from hoodie_py.errors import ConflictError
from hoodie_py.files import TableFiles
from hoodie_py.formats.config.table_config import PROPERTIES_FILE
from hoodie_py.formats.names import METADATA_FOLDER
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.timeline.folder_tree import remove_tree
from hoodie_py.writer.timeline.session import WriteSession
from hoodie_py.writer.transaction.pending import list_pending_writes

_LOCKS = ("lock", ".locks")  # hold the lock that is held during the removal


def remove_table(session: WriteSession, snapshot: Snapshot, kept: str | None = None) -> None:
    """Remove a table's files. ``kept``: a folder of temporary files, relative to the base path, that stays.

    Raises:
        ConflictError: a write is pending, or another writer holds the lock.
        StorageError: the store refused; the table is damaged.
    """
    files = snapshot.files
    with session.hold_lock():
        pending = list_pending_writes(session.look())
        if pending:
            raise ConflictError(
                f"Making the table anew beside a pending {pending[0].action}.",
                hint="Let it finish, or roll it back.",
                instant=pending[0].request_time,
            )
        # Data files first, properties last: a removal that is cut short leaves a table that cannot be read, never one
        # that shows some of its rows.
        for info in files.list(""):
            if info.name != METADATA_FOLDER:
                _remove(files, info.path, is_dir=info.is_dir and not info.is_link)
        properties = f"{METADATA_FOLDER}/{PROPERTIES_FILE}"
        stays = (properties, *(f"{METADATA_FOLDER}/{name}" for name in _LOCKS), *([] if kept is None else [kept]))
        _remove_inside(files, METADATA_FOLDER, stays)
        files.delete_with_checksum(properties)


def _remove_inside(files: TableFiles, folder: str, kept: tuple[str, ...]) -> None:
    for info in files.list(folder):
        if any(each == info.path for each in kept):
            continue
        if any(each.startswith(f"{info.path}/") for each in kept):
            _remove_inside(files, info.path, kept)
        else:
            _remove(files, info.path, is_dir=info.is_dir and not info.is_link)


def _remove(files: TableFiles, path: str, *, is_dir: bool) -> None:
    if is_dir:
        remove_tree(files, path)
    else:
        files.delete(path)
