"""The partitions of the metadata table that a commit keeps up, and the definitions of their indexes, at one look.

Indexes are built and dropped beside a write: before it begins by every process, and by Java Hudi's indexer also after
that. So the records of a commit are prepared for one ``KeptIndexes``, and completed under the lock for whatever has
changed since.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hoodie_py.errors import HoodieError
from hoodie_py.formats.avro.container import read_single
from hoodie_py.formats.indexes.definitions import COLUMN_STATS, FILES_PARTITION, PARTITION_STATS, IndexDefinitions
from hoodie_py.formats.timeline.instants import INDEXING, Instant, locate_requested
from hoodie_py.table.bounded import read_bounded
from hoodie_py.table.indexes.view import read_definitions
from hoodie_py.table.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class KeptIndexes:
    """The partitions that get the records of a commit, and the definitions of the table's indexes."""

    partitions: tuple[str, ...] = ()
    definitions: IndexDefinitions = field(default_factory=IndexDefinitions)

    @classmethod
    def read(cls, snapshot: Snapshot) -> KeptIndexes:
        """Read the indexes of a table.

        Raises:
            HoodieError: as ``read_definitions``.
        """
        partitions = tuple(list_kept_partitions(snapshot))
        if not set(partitions) - {FILES_PARTITION}:
            return cls(partitions)
        return cls(partitions, read_definitions(snapshot.files, snapshot.config))

    def list_changed(self, before: KeptIndexes) -> list[str]:
        """Return the partitions that were not kept up before, or whose index has changed."""
        return [
            name
            for name in self.partitions
            if name not in before.partitions
            or any(self.definitions.get(each) != before.definitions.get(each) for each in _list_definitions(name))
        ]


def _list_definitions(partition: str) -> tuple[str, ...]:
    """Return the names of the definitions that describe a partition."""
    return (COLUMN_STATS,) if partition == PARTITION_STATS else (partition,)


def list_kept_partitions(snapshot: Snapshot) -> list[str]:
    """Return the partitions that get the records of a commit: complete ones, and those being built by an indexer."""
    config = snapshot.config
    # Without a pending indexing instant, an inflight partition is what a killed build left: builds hold the table's
    # lock. The next build, this package's or Java's, begins it anew.
    building = len(snapshot.timeline.select_pending().select_actions(INDEXING))
    inflight = config.metadata_partitions_inflight if building else ()
    return list(dict.fromkeys((*config.metadata_partitions, *inflight)))


def list_planned_partitions(snapshot: Snapshot, indexing: Instant) -> frozenset[str]:
    """Return the partitions that a pending instant of Java's indexer builds (Hudi ``HoodieIndexPlan``).

    Raises:
        CorruptFileError, FileMissingError: the plan is damaged or gone.
        StorageError: the store refused.
    """
    path = locate_requested(snapshot.config, indexing)
    try:
        plan = read_single(read_bounded(snapshot.files, path), "HoodieIndexPlan")
    except HoodieError as error:
        raise error.locate(path=path, instant=indexing.request_time) from error.__cause__
    infos = plan.get("indexPartitionInfos") or ()
    return frozenset(str(info.get("metadataPartitionPath")) for info in infos if isinstance(info, dict))
