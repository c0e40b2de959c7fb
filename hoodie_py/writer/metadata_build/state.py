"""Which partitions the metadata table has, in the table's properties (Hudi
``HoodieTableConfig.setMetadataPartitionState``).

Call all of it under the table's lock.
"""

from __future__ import annotations

from collections.abc import Collection
from collections.abc import Set as AbstractSet

from hoodie_py.files import TableFiles
from hoodie_py.formats.config.table_config import (
    METADATA_PARTITIONS,
    METADATA_PARTITIONS_INFLIGHT,
    TableConfig,
)
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
