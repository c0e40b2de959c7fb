"""Build the indexes that the options of a write switch on and that the table lacks (Hudi
``HoodieBackedTableMetadataWriter.initializeIfNeeded``, ``MetadataPartitionType.isMetadataPartitionEnabled``).

As in Java this comes before the write, so the write itself keeps them up. Unlike Java's Spark writers, an option that
is not given switches nothing on, and one that is off drops nothing.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping

from hoodie_py.errors import ConflictError, HoodieWarning
from hoodie_py.formats.metadata_table import index_definitions as names
from hoodie_py.formats.metadata_table.index_definitions import IndexDefinition
from hoodie_py.options import indexes as keys
from hoodie_py.options.read import METADATA_ENABLE
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.metadata_build.build import build_index
from hoodie_py.writer.metadata_build.requests import define_index
from hoodie_py.writer.timeline.session import WriteSession

_SWITCHES = (
    (keys.COLUMN_STATS_ENABLE, names.COLUMN_STATS),
    (keys.PARTITION_STATS_ENABLE, names.PARTITION_STATS),
    (keys.BLOOM_ENABLE, names.BLOOM_FILTERS),
    (keys.RECORD_ENABLE, names.RECORD_INDEX),
    (keys.PARTITIONED_RECORD_ENABLE, names.RECORD_INDEX),
)


def build_wanted(session: WriteSession, snapshot: Snapshot) -> Snapshot:
    """Build what the options ask for, and return the table after that. Beside a pending write of another writer nothing
    is built, with a warning: a later write builds it.

    Raises:
        HoodieError: as ``build_index``.
    """
    options = session.settings.options
    built = False
    for partition, definition in _list_wanted(snapshot, options):
        if partition in snapshot.config.metadata_partitions:
            continue
        try:
            build_index(session, snapshot, partition, definition)
        except ConflictError as error:
            text = f"The index {partition} is not built now; a later write builds it: {error}"
            warnings.warn(HoodieWarning(text), stacklevel=4)
            break
        built = True
    return session.look() if built else snapshot


def _list_wanted(snapshot: Snapshot, options: Mapping[str, str]) -> Iterator[tuple[str, IndexDefinition | None]]:
    """Yield the partitions that are switched on, in the order in which they need each other."""
    if METADATA_ENABLE.read_given(options) is False:
        return
    if METADATA_ENABLE.read_given(options):
        yield names.FILES, None
    config = snapshot.config
    on = [name for switch, name in _SWITCHES if switch.read(options)]
    for name in dict.fromkeys(on):
        if name == names.PARTITION_STATS:
            has_columns = names.COLUMN_STATS in (*on, *config.metadata_partitions)
            if not (has_columns and config.is_partitioned and config.has_logs_named_by_commit):
                continue  # as in Java
        partitioned = name == names.RECORD_INDEX and keys.PARTITIONED_RECORD_ENABLE.read(options)
        yield define_index(snapshot, name, partitioned=partitioned, options=options)
    column = keys.SECONDARY_COLUMN.read(options)
    if column is not None and keys.SECONDARY_ENABLE.read(options) and config.has_logs_named_by_commit:
        yield define_index(snapshot, keys.INDEX_NAME.read(options) or names.SECONDARY_PREFIX + column, column)
