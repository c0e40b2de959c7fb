"""Writes the definitions of indexes, ``.hoodie/.index_defs/index.json`` (Hudi
``HoodieTableMetaClient.buildIndexDefinition``).

Call all of it under the table's lock.
"""

from __future__ import annotations

from dataclasses import replace

from hoodie_py.files import TableFiles
from hoodie_py.formats.avro.schema import parse_record
from hoodie_py.formats.config.table_config import INDEX_DEFINITIONS_PATH, TableConfig
from hoodie_py.formats.metadata_table.index_definitions import (
    COLUMN_STATS,
    INDEX_DEFINITIONS_FILE,
    IndexDefinition,
    IndexDefinitions,
    find_definitions_path,
)
from hoodie_py.formats.metadata_table.indexed_columns import META_COLUMNS
from hoodie_py.formats.metadata_table.record_ranges import find_field
from hoodie_py.table.metadata_table.definitions import read_definitions
from hoodie_py.writer.metadata_table.column_statistics import MeasuredCommit
from hoodie_py.writer.metadata_table.table_properties import change_properties
from hoodie_py.writer.metadata_table.update import MetadataCommit


def write_definition(files: TableFiles, config: TableConfig, definition: IndexDefinition) -> None:
    """Add a definition to the file, or replace it there, and name the file in the table's properties.

    Raises:
        CorruptFileError: the file is damaged.
        StorageError: the store refused.
    """
    write_definitions(files, config, read_definitions(files, config).put(definition))


def write_definitions(files: TableFiles, config: TableConfig, definitions: IndexDefinitions) -> None:
    """Write the file, and name it in the table's properties."""
    path = find_definitions_path(config)
    place = path or INDEX_DEFINITIONS_FILE
    if files.is_local:
        folder, _, name = place.rpartition("/")
        files.delete(f"{folder}/.{name}.crc")  # Hadoop's checksum of the file that was there
    files.put(place, definitions.to_bytes())
    if path is None:
        change_properties(files, {INDEX_DEFINITIONS_PATH: place})


def define_new_columns(commit: MetadataCommit) -> None:
    """Add the columns that a write brought, and has statistics of, to the definition of ``column_stats``.

    The next write tells by it that no list chose the columns, so that it measures them as well. Errors as for
    ``write_definition``.
    """
    measured, before = commit.prepared.get(COLUMN_STATS), commit.snapshot.schema.text
    if not isinstance(measured, MeasuredCommit) or before is None:
        return
    known = parse_record(before)
    names = (name for name in measured.indexed.names if name not in META_COLUMNS)
    new = [name for name in names if find_field(known, name) is None]
    if not new:
        return
    defined = read_definitions(commit.session.files, commit.snapshot.config).get(COLUMN_STATS)
    if defined is not None and not set(new) <= set(defined.columns):
        columns = tuple(dict.fromkeys((*defined.columns, *new)))
        write_definition(commit.session.files, commit.snapshot.config, replace(defined, columns=columns))
