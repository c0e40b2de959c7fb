"""Change ``hoodie.properties`` (Hudi ``HoodieTableConfig.modify``).

Java copies the file to a backup, deletes it and writes a new one. This writer replaces it in one step, so it needs no
backup; comments, order and escapes of the other lines are kept. As in Java, a missing or truncated file is first
restored from the backup that a killed writer left. A backup that is not needed is deleted. The caller holds the table's
lock.
"""

from __future__ import annotations

from collections.abc import Mapping

from hoodie_py.errors import CorruptFileError, FileMissingError, InvalidTableError
from hoodie_py.files import TableFiles
from hoodie_py.formats.config.properties import update_properties
from hoodie_py.formats.config.table_config import PROPERTIES_BACKUP_FILE, PROPERTIES_FILE
from hoodie_py.formats.config.whole_properties import parse_whole_table_config, seal_properties
from hoodie_py.formats.names import METADATA_FOLDER
from hoodie_py.table.bounded import read_bounded

_PATH = f"{METADATA_FOLDER}/{PROPERTIES_FILE}"
_BACKUP = f"{METADATA_FOLDER}/{PROPERTIES_BACKUP_FILE}"


def change_properties(files: TableFiles, changes: Mapping[str, str | None]) -> None:
    """Set keys of the table's properties; remove keys whose value is None.

    Raises:
        FileMissingError: file and backup are missing.
        InvalidTableError: the file is truncated, and no whole backup exists.
        StorageError: the store refused.
    """
    before, is_backup = _read_whole(files)
    after = update_properties(before, changes)
    if is_backup or after != before:
        if files.local_path(_PATH) is not None:
            # Delete Hadoop's checksum first: Java reads a file without one, but refuses a file with a wrong one.
            files.delete(f"{METADATA_FOLDER}/.{PROPERTIES_FILE}.crc")
        files.put(_PATH, seal_properties(after))
    files.delete(_BACKUP)


def _read_whole(files: TableFiles) -> tuple[bytes, bool]:
    """Return the file's content, or the backup's if only the backup is whole; and whether it came from the backup."""
    try:
        before = read_bounded(files, _PATH, "properties_bytes")
        parse_whole_table_config(before)
    except (FileMissingError, InvalidTableError, CorruptFileError):
        try:
            backup = read_bounded(files, _BACKUP, "properties_bytes")
        except FileMissingError:
            backup = b""
        if not backup:
            raise
        parse_whole_table_config(backup)
        return backup, True
    return before, False
