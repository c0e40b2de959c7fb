"""The makers of the records of the metadata table's partitions (Hudi ``MetadataPartitionType``).

A partition without a maker cannot be kept right here, and the write is refused (``metadata_table``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from hoodie_py.formats.hfile.files_partition import FILES_PARTITION
from hoodie_py.formats.metadata_table.index_definitions import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    EXPRESSION_PREFIX,
    PARTITION_STATS,
    RECORD_INDEX,
    SECONDARY_PREFIX,
)
from hoodie_py.table.metadata_table.view import MetadataView
from hoodie_py.writer.metadata_table.bloom_filters import make_bloom_filters, read_commit_blooms
from hoodie_py.writer.metadata_table.column_statistics import make_column_statistics, measure_commit
from hoodie_py.writer.metadata_table.expression_index import make_expression_records, measure_expression
from hoodie_py.writer.metadata_table.file_lists import make_file_lists
from hoodie_py.writer.metadata_table.partition_statistics import make_partition_statistics
from hoodie_py.writer.metadata_table.record_index import make_record_index, prepare_record_index
from hoodie_py.writer.metadata_table.secondary_index import make_secondary_index, prepare_secondary_index
from hoodie_py.writer.metadata_table.update import MetadataCommit, PartitionRecords

MakeRecords = Callable[[MetadataCommit, str, MetadataView], PartitionRecords]
Prepare = Callable[[MetadataCommit, str], object]


@dataclass(frozen=True, slots=True)
class Maker:
    """How the records of a partition are made.

    Attributes:
        make_records: makes them, under the lock. The view shows the metadata table before the commit.
        prepare: reads what depends only on the operation's own files and on slices that no other writer may change,
            before the lock; ``make_records`` finds the result in ``MetadataCommit.prepared``. None: nothing.
    """

    make_records: MakeRecords
    prepare: Prepare | None = None


_MAKERS: Mapping[str, Maker] = {
    FILES_PARTITION: Maker(make_file_lists),
    BLOOM_FILTERS: Maker(make_bloom_filters, read_commit_blooms),
    COLUMN_STATS: Maker(make_column_statistics, measure_commit),
    PARTITION_STATS: Maker(make_partition_statistics, measure_commit),
    RECORD_INDEX: Maker(make_record_index, prepare_record_index),
}
_BY_PREFIX: Mapping[str, Maker] = {
    EXPRESSION_PREFIX: Maker(make_expression_records, measure_expression),
    SECONDARY_PREFIX: Maker(make_secondary_index, prepare_secondary_index),
}


def find_maker(partition: str) -> Maker | None:
    """Return the maker of a partition, None if it has none."""
    found = _MAKERS.get(partition)
    if found is not None:
        return found
    return next((maker for prefix, maker in _BY_PREFIX.items() if partition.startswith(prefix)), None)


def prepare_records(commit: MetadataCommit, partitions: Sequence[str]) -> MetadataCommit:
    """Read what can be read before the lock, and return the commit with it; what it has of other partitions stays.
    Errors are those of the makers.

    A maker sees what those before it have prepared, in the order of the partitions.
    """
    prepared = dict(commit.prepared)
    for partition in partitions:
        maker = find_maker(partition)
        if maker is not None and maker.prepare is not None:
            prepared[partition] = maker.prepare(replace(commit, prepared=prepared), partition)
    return replace(commit, prepared=prepared) if prepared else commit
