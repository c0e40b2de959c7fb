"""Options about the partitions of the metadata table (Java Hudi HoodieMetadataConfig): which a table gets, how many
file groups they have, and what is indexed. The defaults are those of Hudi 1.2.0 for Java writers.
"""

from __future__ import annotations

from hoodie_py.options.parse import Flag, Number, Option, Real, Size, Text

_PREFIX = "hoodie.metadata."

# Which indexes a write builds where the table lacks them; Java's Spark writers switch statistics on by default
COLUMN_STATS_ENABLE = Flag(f"{_PREFIX}index.column.stats.enable", default=False)
PARTITION_STATS_ENABLE = Flag(f"{_PREFIX}index.partition.stats.enable", default=False)
BLOOM_ENABLE = Flag(f"{_PREFIX}index.bloom.filter.enable", default=False)
RECORD_ENABLE = Flag(f"{_PREFIX}global.record.level.index.enable", False, (f"{_PREFIX}record.index.enable",))
PARTITIONED_RECORD_ENABLE = Flag(f"{_PREFIX}record.level.index.enable", default=False)
SECONDARY_ENABLE = Flag(f"{_PREFIX}index.secondary.enable", default=True)
SECONDARY_COLUMN = Text(f"{_PREFIX}index.secondary.column")
INDEX_NAME = Text("hoodie.index.name")

# Number of file groups of a new partition
COLUMN_STATS_GROUPS = Number(f"{_PREFIX}index.column.stats.file.group.count", 2, least=1, most=10_000)
PARTITION_STATS_GROUPS = Number(f"{_PREFIX}index.partition.stats.file.group.count", 1, least=1, most=10_000)
BLOOM_GROUPS = Number(f"{_PREFIX}index.bloom.filter.file.group.count", 4, least=1, most=10_000)
EXPRESSION_GROUPS = Number(f"{_PREFIX}index.expression.file.group.count", 2, least=1, most=10_000)
RECORD_LEAST_GROUPS = Number(
    f"{_PREFIX}global.record.level.index.min.filegroup.count", 10, 0, (f"{_PREFIX}record.index.min.filegroup.count",)
)
RECORD_MOST_GROUPS = Number(
    f"{_PREFIX}global.record.level.index.max.filegroup.count",
    10_000,
    1,
    (f"{_PREFIX}record.index.max.filegroup.count",),
    most=10_000,
)
PARTITIONED_LEAST_GROUPS = Number(
    f"{_PREFIX}record.level.index.min.filegroup.count",
    1,
    0,
    (f"{_PREFIX}partitioned.record.index.min.filegroup.count",),
)
PARTITIONED_MOST_GROUPS = Number(
    f"{_PREFIX}record.level.index.max.filegroup.count",
    10,
    1,
    (f"{_PREFIX}partitioned.record.index.max.filegroup.count",),
    most=10_000,
)
RECORD_GROUP_BYTES = Size(f"{_PREFIX}record.index.max.filegroup.size", 1 << 30, least=48)
RECORD_GROWTH = Real(f"{_PREFIX}record.index.growth.factor", 2.0)

OPTIONS: tuple[Option, ...] = tuple(each for each in globals().values() if isinstance(each, Option))
