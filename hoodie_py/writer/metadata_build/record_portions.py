"""The records of a new partition, portion by portion: what the writers of each commit would have put there by now.

Each maker yields portions; a key that comes again replaces the one before. Groups are numbered: the makers of most
partitions get their number of groups, that of a partitioned record index a number for each partition of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import tzinfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.errors import InvalidTableError, UnsupportedFeatureError
from hoodie_py.formats.hfile.files_partition import ALL_PARTITIONS
from hoodie_py.formats.metadata_table import index_definitions as names
from hoodie_py.formats.metadata_table.record_index_keys import find_file_groups
from hoodie_py.formats.metadata_table.secondary_keys import find_secondary_groups
from hoodie_py.table.timeline.time_travel import parse_zone
from hoodie_py.writer.metadata_build.expression_portions import make_expressions
from hoodie_py.writer.metadata_build.portion import GroupPlan, Portion
from hoodie_py.writer.metadata_build.sources import IndexSource
from hoodie_py.writer.metadata_build.statistic_portions import make_blooms, make_column_ranges, make_partition_ranges
from hoodie_py.writer.metadata_table.file_lists import list_files
from hoodie_py.writer.metadata_table.group_changes import KEY
from hoodie_py.writer.metadata_table.record_index import find_epoch_millis
from hoodie_py.writer.metadata_table.record_index import make_records as make_location_records
from hoodie_py.writer.metadata_table.secondary_index import make_index_keys
from hoodie_py.writer.metadata_table.secondary_index import make_records as make_secondary_records

_FILES_AT_ONCE = 50_000

MakePortions = Callable[[IndexSource, GroupPlan], Iterator[Portion]]


def make_file_lists(source: IndexSource, _groups: GroupPlan) -> Iterator[Portion]:
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
    """Yield the records of a secondary index: of each record of the newest slices the column's value with the key.

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


_MAKERS: Mapping[str, MakePortions] = {
    names.FILES: make_file_lists,
    names.COLUMN_STATS: make_column_ranges,
    names.PARTITION_STATS: make_partition_ranges,
    names.BLOOM_FILTERS: make_blooms,
    names.RECORD_INDEX: make_record_locations,
}
_BY_PREFIX: Mapping[str, MakePortions] = {
    names.EXPRESSION_PREFIX: make_expressions,
    names.SECONDARY_PREFIX: make_secondary_keys,
}


def find_slice_millis(instant: str, zone: tzinfo) -> int:
    """Return a base instant in milliseconds since 1970; 0 for one that is no time, as of a bootstrap."""
    try:
        return find_epoch_millis(instant, zone)
    except InvalidTableError:
        return 0


def find_maker(partition: str) -> MakePortions:
    """Return the maker of a partition.

    Raises UnsupportedFeatureError if there is none.
    """
    by_prefix = (maker for prefix, maker in _BY_PREFIX.items() if partition.startswith(prefix))
    found = _MAKERS.get(partition) or next(by_prefix, None)
    if found is None:
        raise UnsupportedFeatureError(f"Building the index {partition[:100]!r}.", hint="Let Java Hudi build it.")
    return found


def _in_first_group(records: pa.Table) -> Portion:
    return Portion(records, np.zeros(records.num_rows, np.int64))
