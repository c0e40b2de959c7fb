"""The records of a new partition, portion by portion: what the writers of each commit would have put there by now.

Each maker yields portions; a key that comes again replaces the one before. Groups are numbered: the makers of most
partitions get their number of groups, that of a partitioned record index a number for each partition of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, tzinfo
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.arrays import repeat_value
from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.formats.hfile.files_partition import ALL_PARTITIONS
from hoodie_py.formats.metadata_table import index_definitions as names
from hoodie_py.formats.metadata_table.record_index_keys import (
    RECORD_INDEX_COLUMN,
    RECORD_INDEX_TYPE,
    find_file_groups,
    make_locations,
)
from hoodie_py.table.timeline.time_travel import parse_zone
from hoodie_py.writer.metadata_build.sources import IndexSource
from hoodie_py.writer.metadata_table.file_lists import list_files

_FILES_AT_ONCE = 50_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Groups = npt.NDArray[np.int64]


class Portion(NamedTuple):
    """Records (``key`` and columns of HoodieMetadataRecord), and the number of each one's file group."""

    records: pa.Table
    groups: Groups


class GroupPlan(NamedTuple):
    """The file groups of a new partition: ``file_ids``, and where those of each partition of the table begin and how
    many there are, for a partitioned record index.
    """

    file_ids: tuple[str, ...]
    by_partition: Mapping[str, tuple[int, int]]


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
    for file_slice, keys, _ in source.read_records():
        millis = parse_millis(file_slice.base_instant, zone)
        none = np.zeros(len(keys), np.int64)
        locations = make_locations([file_slice.partition_path], [file_slice.file_id], none, millis, None)
        columns = [keys, repeat_value(RECORD_INDEX_TYPE, pa.int32(), len(keys)), locations]
        records = pa.Table.from_arrays(columns, ["key", "type", RECORD_INDEX_COLUMN])
        first, count = groups.by_partition.get(file_slice.partition_path, (0, len(groups.file_ids)))
        yield Portion(records, first + find_file_groups(keys, count))


_MAKERS: Mapping[str, MakePortions] = {
    names.FILES: make_file_lists,
    names.RECORD_INDEX: make_record_locations,
}
_BY_PREFIX: Mapping[str, MakePortions] = {}


def parse_millis(instant: str, zone: tzinfo) -> int:
    """Return an instant in milliseconds since 1970; 0 for one that is no time, as of a bootstrap."""
    try:
        whole = datetime.strptime(instant[:14], "%Y%m%d%H%M%S").replace(tzinfo=zone)
    except ValueError:
        return 0
    return round((whole - _EPOCH).total_seconds()) * 1000 + int(instant[14:17] or "999")


def find_maker(partition: str) -> MakePortions:
    """Return the maker of a partition.

    Raises UnsupportedFeatureError if there is none.
    """
    by_prefix = (maker for prefix, maker in _BY_PREFIX.items() if partition.startswith(prefix))
    found = _MAKERS.get(partition) or next(by_prefix, None)
    if found is None:
        raise UnsupportedFeatureError(f"Building the index {partition[:100]!r}.")
    return found


def _in_first_group(records: pa.Table) -> Portion:
    return Portion(records, np.zeros(records.num_rows, np.int64))
