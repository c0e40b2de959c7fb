"""Build partitions of the metadata table anew, after the table's files have changed under it (Hudi
``HoodieTableMetadataUtil.deleteMetadataTable``, then ``initializeIfNeeded``).

The properties name the partitions as inflight ones until each is complete, so that a killed run forgets none.
"""

from __future__ import annotations

from collections.abc import Sequence

from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.formats.metadata_table import index_definitions as names
from hoodie_py.table.metadata_table.definitions import read_definitions
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.lock.lock import HeldLock
from hoodie_py.writer.metadata_build.build import build_partition
from hoodie_py.writer.metadata_build.record_portions import find_maker
from hoodie_py.writer.timeline.session import WriteSession

_FIRST = (names.FILES, names.COLUMN_STATS, names.PARTITION_STATS, names.BLOOM_FILTERS, names.RECORD_INDEX)


def check_rebuildable(snapshot: Snapshot) -> None:
    """Refuse a table with a partition of the metadata table that cannot be built here.

    Raises:
        UnsupportedFeatureError: names the partition.
    """
    for name in (*snapshot.config.metadata_partitions, *snapshot.config.metadata_partitions_inflight):
        try:
            find_maker(name)
        except UnsupportedFeatureError as error:
            raise UnsupportedFeatureError(
                f"Building the index {name!r} anew: {error.message}", hint="Drop that index first."
            ) from error


def rebuild_partitions(session: WriteSession, partitions: Sequence[str], holding: HeldLock) -> tuple[str, ...]:
    """Build partitions from the table's files, in the order in which they need each other. Call it under the lock.

    Raises:
        HoodieError: as ``build_index``.
    """
    left = sorted(partitions, key=lambda name: (_FIRST.index(name) if name in _FIRST else len(_FIRST), name))
    for name in left:
        snapshot = session.look()
        definition = read_definitions(session.files, snapshot.config).get(name)
        build_partition(session, snapshot, name, definition, holding, stays_noted=True)
    return tuple(left)
