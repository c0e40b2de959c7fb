"""Read the definitions of a table's indexes."""

from __future__ import annotations

from hoodie_py.errors import FileMissingError, locate_errors
from hoodie_py.files import TableFiles
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.metadata_table.index_definitions import IndexDefinitions, find_definitions_path
from hoodie_py.table.bounded import read_bounded


def read_definitions(files: TableFiles, config: TableConfig) -> IndexDefinitions:
    """Return the definitions; none if the table's properties name no file, or the file is missing, as in Java.

    Raises:
        CorruptFileError: the file is truncated or not a file of index definitions.
        InvalidTableError: its path leads out of the table, or definitions contradict each other.
        UnsupportedFeatureError: a definition has a later version.
        StorageError: the store refused.
    """
    path = find_definitions_path(config)
    if path is None:
        return IndexDefinitions()
    with locate_errors(path=path):
        try:
            return IndexDefinitions.from_bytes(read_bounded(files, path, "properties_bytes"))
        except FileMissingError:
            return IndexDefinitions()
