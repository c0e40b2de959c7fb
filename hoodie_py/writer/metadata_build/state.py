"""Which partitions the metadata table has, in the table's properties, and the definitions of indexes (Hudi
``HoodieTableConfig.setMetadataPartitionState``, ``HoodieTableMetaClient.buildIndexDefinition``).

Call all of it under the table's lock.
"""

from __future__ import annotations

from collections.abc import Collection
from collections.abc import Set as AbstractSet

from hoodie_py.files import TableFiles
from hoodie_py.formats.config.table_config import (
    INDEX_DEFINITIONS_PATH,
    METADATA_PARTITIONS,
    METADATA_PARTITIONS_INFLIGHT,
    TableConfig,
)
from hoodie_py.formats.metadata_table.index_definitions import (
    INDEX_DEFINITIONS_FILE,
    IndexDefinition,
    IndexDefinitions,
    find_definitions_path,
)
from hoodie_py.table.metadata_table.definitions import read_definitions
from hoodie_py.writer.metadata_table.table_properties import change_properties


class PartitionState:
    """The two lists of partitions in the table's properties, as they were when ``config`` was loaded."""

    def __init__(self, files: TableFiles, config: TableConfig) -> None:
        self._files = files
        self._complete = frozenset(config.metadata_partitions)
        self._inflight = frozenset(config.metadata_partitions_inflight)

    def begin(self, partition: str) -> None:
        """Note that a partition is being built."""
        self._write(self._complete, self._inflight | {partition})

    def finish(self, partition: str) -> None:
        """Note that a partition is complete."""
        self._write(self._complete | {partition}, self._inflight - {partition})

    def give_up(self, partition: str) -> None:
        """Note that a partition is not being built."""
        self._write(self._complete, self._inflight - {partition})

    def drop(self, partitions: Collection[str]) -> None:
        """Note that partitions are gone."""
        self._write(self._complete.difference(partitions), self._inflight.difference(partitions))

    def _write(self, complete: AbstractSet[str], inflight: AbstractSet[str]) -> None:
        texts = {
            METADATA_PARTITIONS: ",".join(sorted(complete)),
            METADATA_PARTITIONS_INFLIGHT: ",".join(sorted(inflight)),
        }
        change_properties(self._files, texts)
        self._complete, self._inflight = frozenset(complete), frozenset(inflight)


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
