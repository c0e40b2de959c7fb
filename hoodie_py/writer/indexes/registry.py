"""The makers of each partition of the metadata table: records of one commit, and portions of a whole build (Hudi
``MetadataPartitionType``).

A partition without a maker cannot be kept right here, and the write is refused (``metadata_table``). A build yields the
records, portion by portion, that the writers of all commits would have left by now. A key that comes again replaces the
earlier one. Records carry the number of their file group: makers of most partitions number their groups, the maker of a
partitioned record index numbers them across all partitions of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.errors import InvalidTableError, UnsupportedFeatureError
from hoodie_py.formats.indexes import definitions as names
from hoodie_py.formats.indexes.definitions import (
    ALL_PARTITIONS,
    BLOOM_FILTERS,
    COLUMN_STATS,
    EXPRESSION_PREFIX,
    FILES_PARTITION,
    PARTITION_STATS,
    RECORD_INDEX,
    SECONDARY_PREFIX,
)
from hoodie_py.formats.indexes.keys import find_file_groups, find_secondary_groups
from hoodie_py.table.indexes.view import MetadataView
from hoodie_py.table.timeline.time_travel import parse_zone
from hoodie_py.writer.indexes.blooms import make_bloom_filters, read_commit_blooms
from hoodie_py.writer.indexes.column_ranges import make_column_statistics, measure_commit
from hoodie_py.writer.indexes.expressions import make_expression_records, measure_expression
from hoodie_py.writer.indexes.files import list_files, make_file_lists
from hoodie_py.writer.indexes.group_changes import KEY
from hoodie_py.writer.indexes.index import GroupPlan, MetadataCommit, PartitionRecords, Portion
from hoodie_py.writer.indexes.partition_ranges import make_partition_statistics
from hoodie_py.writer.indexes.record_keys import find_epoch_millis, make_record_index, prepare_record_index
from hoodie_py.writer.indexes.record_keys import make_records as make_location_records
from hoodie_py.writer.indexes.secondary_keys import make_index_keys, make_secondary_index, prepare_secondary_index
from hoodie_py.writer.indexes.secondary_keys import make_records as make_secondary_records
from hoodie_py.writer.indexes.table_expressions import make_expressions
from hoodie_py.writer.indexes.table_ranges import make_blooms, make_column_ranges, make_partition_ranges
from hoodie_py.writer.indexes.table_source import IndexSource

MakeRecords = Callable[[MetadataCommit, str, MetadataView], PartitionRecords]
Prepare = Callable[[MetadataCommit, str], object]


@dataclass(frozen=True, slots=True)
class Maker:
    """How the records of a partition are made.

    Attributes:
        make_records: makes them, under the lock. The view shows the metadata table before the commit.
        prepare: reads, before the lock, what depends only on the operation's own files and on slices that no other
            writer may change; ``make_records`` finds the result in ``MetadataCommit.prepared``. None: nothing to read.
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
    """Read what can be read before the lock, and return the commit with it. Results for other partitions stay.

    Each maker sees the results of the makers before it, in the order of the partitions. Errors are the makers'.
    """
    prepared = dict(commit.prepared)
    for partition in partitions:
        maker = find_maker(partition)
        if maker is not None and maker.prepare is not None:
            prepared[partition] = maker.prepare(replace(commit, prepared=prepared), partition)
    return replace(commit, prepared=prepared) if prepared else commit


_FILES_AT_ONCE = 50_000

MakePortions = Callable[[IndexSource, GroupPlan], Iterator[Portion]]


def make_file_portions(source: IndexSource, _groups: GroupPlan) -> Iterator[Portion]:
    """Yield the records of ``files``: the table's partitions, and the files of each."""
    every = sorted(source.files)
    some: dict[str, Mapping[str, int]] = {}
    for number, path in enumerate(every, 1):
        some[path] = source.files[path]
        if number == len(every) or sum(map(len, some.values())) >= _FILES_AT_ONCE:
            records = list_files(some, {})
            yield _in_first_group(records.filter(pc.not_equal(records["key"], ALL_PARTITIONS)))
            some = {}
    records = list_files({path: {} for path in every}, {})
    yield _in_first_group(records.filter(pc.equal(records["key"], ALL_PARTITIONS)))


def make_record_locations(source: IndexSource, groups: GroupPlan) -> Iterator[Portion]:
    """Yield the records of the record index: the file group of each record key of the newest slices."""
    zone = parse_zone(source.snapshot.timezone, source.snapshot.config.timezone)
    for file_slice, batch in source.read_records():
        keys = batch.column(KEY)
        millis = np.array([find_slice_millis(file_slice.base_instant, zone)], np.int64)
        places = [(file_slice.partition_path, file_slice.file_id)]
        records = make_location_records(keys, places, np.zeros(len(keys), np.int64), millis)
        first, count = groups.by_partition.get(file_slice.partition_path, (0, len(groups.file_ids)))
        yield Portion(records, first + find_file_groups(keys, count))


def make_secondary_keys(source: IndexSource, groups: GroupPlan) -> Iterator[Portion]:
    """Yield the records of a secondary index: the column's value and the key of each record of the newest slices.

    Raises:
        InvalidTableError: the index has no definition.
        UnsupportedFeatureError: the column's type cannot be indexed.
    """
    definition = source.definition
    if definition is None or len(definition.columns) != 1:
        raise InvalidTableError("A secondary index needs the definition that names its column.")
    column, version = definition.columns[0], definition.version or 1
    for _, batch in source.read_records(column):
        found = make_index_keys(pa.Table.from_batches([batch]))
        yield Portion(make_secondary_records(found), find_secondary_groups(found, len(groups.file_ids), version))


_PORTION_MAKERS: Mapping[str, MakePortions] = {
    names.FILES_PARTITION: make_file_portions,
    names.COLUMN_STATS: make_column_ranges,
    names.PARTITION_STATS: make_partition_ranges,
    names.BLOOM_FILTERS: make_blooms,
    names.RECORD_INDEX: make_record_locations,
}
_PORTIONS_BY_PREFIX: Mapping[str, MakePortions] = {
    names.EXPRESSION_PREFIX: make_expressions,
    names.SECONDARY_PREFIX: make_secondary_keys,
}


def find_slice_millis(instant: str, zone: tzinfo) -> int:
    """Return a base instant in milliseconds since 1970; 0 if it is no time, such as a bootstrap's."""
    try:
        return find_epoch_millis(instant, zone)
    except InvalidTableError:
        return 0


def find_portion_maker(partition: str) -> MakePortions:
    """Return the maker of a partition.

    Raises UnsupportedFeatureError if there is none.
    """
    by_prefix = (maker for prefix, maker in _PORTIONS_BY_PREFIX.items() if partition.startswith(prefix))
    found = _PORTION_MAKERS.get(partition) or next(by_prefix, None)
    if found is None:
        raise UnsupportedFeatureError(f"Building the index {partition[:100]!r}.", hint="Let Java Hudi build it.")
    return found


def _in_first_group(records: pa.Table) -> Portion:
    return Portion(records, np.zeros(records.num_rows, np.int64))
