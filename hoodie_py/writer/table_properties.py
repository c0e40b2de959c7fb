"""Changes to ``hoodie.properties`` (Hudi ``HoodieTableConfig.modify``).

Java copies the file to a backup, deletes it, writes it anew. A store that replaces a file in one step needs neither;
comments, order and escapes of the other lines stay as they are. Only called under the table's lock.
"""

from __future__ import annotations

from collections.abc import Mapping

from hoodie_py.files import TableFiles
from hoodie_py.formats.properties import render_properties
from hoodie_py.formats.table_config import PROPERTIES_FILE
from hoodie_py.table.timeline_loader import METADATA_FOLDER


def change_properties(files: TableFiles, changes: Mapping[str, str | None]) -> None:
    """Set keys of the table's properties, or remove those whose value is None.

    Raises:
        FileMissingError: another writer is replacing the file, which the lock should have kept from happening.
        StorageError: the store refused.
    """
    path = f"{METADATA_FOLDER}/{PROPERTIES_FILE}"
    before = files.read(path)
    after = render_properties(before, changes)
    if after == before:
        return
    if files.local_path(path) is not None:
        # Hadoop's checksum goes first: with none beside it the file is taken as it is.
        files.delete(f"{METADATA_FOLDER}/.{PROPERTIES_FILE}.crc")
    files.put(path, after)
