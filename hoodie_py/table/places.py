"""Where a table keeps its own files, relative to the base path.

Layout 1 (table version 6): instants in ``.hoodie/``, the archive in ``.hoodie/<archive folder>``. Layout 2 (versions 8 and 9):
instants in ``.hoodie/<timeline path>``, the archive in a folder below that one. The folder names come from the table's
properties, so they are checked to stay inside the table (Hudi ``HoodieTableMetaClient``, ``TimelineLayout``).
"""

from __future__ import annotations

from hoodie_py.formats.names import check_inside
from hoodie_py.formats.table_config import TableConfig

METADATA_FOLDER = ".hoodie"
PROPERTIES_FILE = f"{METADATA_FOLDER}/hoodie.properties"
PROPERTIES_BACKUP = f"{METADATA_FOLDER}/hoodie.properties.backup"
PARTITION_METAFILE = ".hoodie_partition_metadata"


def timeline_folder(config: TableConfig) -> str:
    """Folder of the active timeline's files.

    Raises:
        InvalidTableError: the properties name a folder outside the table.
    """
    if config.timeline_layout < 2:
        return METADATA_FOLDER
    return _below(METADATA_FOLDER, config.timeline_path)


def archive_folder(config: TableConfig) -> str:
    """Folder of the archived timeline: log files (layout 1) or the LSM history (layout 2).

    Raises:
        InvalidTableError: the properties name a folder outside the table.
    """
    if config.timeline_layout < 2:
        return _below(METADATA_FOLDER, config.archive_folder)
    return _below(timeline_folder(config), config.history_path)


def join(folder: str, name: str) -> str:
    """``folder/name``, where "" is the table's base path."""
    return f"{folder}/{name}" if folder else name


def _below(folder: str, name: str) -> str:
    rest = check_inside(name.strip("/"))
    return f"{folder}/{rest}" if rest else folder
