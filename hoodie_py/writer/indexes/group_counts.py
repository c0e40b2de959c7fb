"""The number of file groups of a new partition of the metadata table, and their names (Hudi
``HoodieTableMetadataUtil.estimateFileGroupCount``, ``getFileIDForFileGroup``).

The number never changes later, as it decides which group contains a key. Only the record index and secondary indexes
grow with the table: a group should stay below a size limit even after the table has grown by a factor.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from hoodie_py.errors import InvalidQueryError
from hoodie_py.formats.indexes import definitions as names
from hoodie_py.options import indexes as options_of_indexes

_RECORD_BYTES = 48  # Java's estimate for one record of a record index
_PREFIXES = {
    names.FILES_PARTITION: "files-",
    names.COLUMN_STATS: "col-stats-",
    names.PARTITION_STATS: "partition-stats-",
    names.BLOOM_FILTERS: "bloom-filters-",
    names.RECORD_INDEX: "record-index-",
}


def count_fixed_groups(partition: str, options: Mapping[str, str]) -> int | None:
    """Return the number of file groups of a partition; None if it depends on the number of records.

    Raises InvalidQueryError if an option is bad.
    """
    if partition == names.FILES_PARTITION:
        return 1
    if partition == names.COLUMN_STATS:
        return options_of_indexes.COLUMN_STATS_GROUPS.read(options)
    if partition == names.PARTITION_STATS:
        return options_of_indexes.PARTITION_STATS_GROUPS.read(options)
    if partition == names.BLOOM_FILTERS:
        return options_of_indexes.BLOOM_GROUPS.read(options)
    if partition.startswith(names.EXPRESSION_PREFIX):
        return options_of_indexes.EXPRESSION_GROUPS.read(options)
    return None


def estimate_groups(records: int, options: Mapping[str, str], *, partitioned: bool) -> int:
    """Return the number of file groups for ``records`` record keys. ``partitioned``: for one partition of the table.

    Raises InvalidQueryError if an option is bad.
    """
    least = (
        options_of_indexes.PARTITIONED_LEAST_GROUPS if partitioned else options_of_indexes.RECORD_LEAST_GROUPS
    ).read(options)
    most = (options_of_indexes.PARTITIONED_MOST_GROUPS if partitioned else options_of_indexes.RECORD_MOST_GROUPS).read(
        options
    )
    if least > most:
        raise InvalidQueryError(f"A record index cannot have at least {least} and at most {most} file groups.")
    if least == most:
        return most
    # In single precision, as in Java: the number must be the same.
    expected = math.ceil(float(np.float32(records) * np.float32(options_of_indexes.RECORD_GROWTH.read(options))))
    wanted = expected // (options_of_indexes.RECORD_GROUP_BYTES.read(options) // _RECORD_BYTES)
    return max(1, min(max(wanted, least), most))


def make_group_ids(partition: str, count: int) -> list[str]:
    """Return the file ids of a partition's file groups, except for a partitioned record index."""
    prefix = find_group_prefix(partition)
    return [f"{prefix}{number:04d}-0" for number in range(count)]


def find_group_prefix(partition: str) -> str:
    """Return the prefix of the file ids in a partition."""
    return _PREFIXES.get(partition, f"{partition.replace('_', '-')}-")
