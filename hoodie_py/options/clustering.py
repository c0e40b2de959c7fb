"""Options of clustering (Java Hudi HoodieClusteringConfig). The defaults are those of Hudi 1.2.0."""

from __future__ import annotations

from hoodie_py.options.parse import Choice, Flag, Names, Number, Option, Size, Text

_PLAN = "hoodie.clustering.plan.strategy"

# Which file slices a plan takes
PLAN_STRATEGY = Text(f"{_PLAN}.class")
SMALL_FILE_LIMIT = Size(f"{_PLAN}.small.file.limit", 300 * 1024 * 1024)  # larger base files stay as they are
MAX_GROUP_BYTES = Size(f"{_PLAN}.max.bytes.per.group", 2 * 1024 * 1024 * 1024, least=1)
MAX_GROUPS = Number(f"{_PLAN}.max.num.groups", 30, least=1)
TARGET_FILE_BYTES = Size(f"{_PLAN}.target.file.max.bytes", 1024 * 1024 * 1024, least=1)
SINGLE_GROUPS = Flag(f"{_PLAN}.single.group.clustering.enabled", default=True)

# Which partitions
NO_FILTER, RECENT_DAYS, SELECTED_PARTITIONS, DAY_ROLLING = "NONE", "RECENT_DAYS", "SELECTED_PARTITIONS", "DAY_ROLLING"
PARTITION_FILTER = Choice(
    "hoodie.clustering.plan.partition.filter.mode", (NO_FILTER, RECENT_DAYS, SELECTED_PARTITIONS, DAY_ROLLING)
)
LOOKBACK_PARTITIONS = Number(f"{_PLAN}.daybased.lookback.partitions", 2)
SKIP_LATEST_PARTITIONS = Number(f"{_PLAN}.daybased.skipfromlatest.partitions", 0)
BEGIN_PARTITION = Text(f"{_PLAN}.cluster.begin.partition")
END_PARTITION = Text(f"{_PLAN}.cluster.end.partition")
PARTITION_REGEX = Text(f"{_PLAN}.partition.regex.pattern")
PARTITIONS_SELECTED = Names(f"{_PLAN}.partition.selected")

# In what order the rows go into the new files
SORT_COLUMNS = Names(f"{_PLAN}.sort.columns")
LAYOUT = Text("hoodie.layout.optimize.strategy")
CURVE_BUILD = Choice("hoodie.layout.optimize.curve.build.method", ("DIRECT", "SAMPLE"))

PRESERVE_METADATA = Flag("hoodie.clustering.preserve.commit.metadata", default=True)  # rows keep their meta columns

# How a plan is carried out, and when
EXECUTION_STRATEGY = Text("hoodie.clustering.execution.strategy.class")
INLINE_CLUSTERING = Flag(
    "hoodie.clustering.inline", default=False, aliases=("hoodie.datasource.clustering.inline.enable",)
)
INLINE_MAX_COMMITS = Number("hoodie.clustering.inline.max.commits", 4)
SCHEDULE_INLINE = Flag("hoodie.clustering.schedule.inline", default=False)
ASYNC_MAX_COMMITS = Number("hoodie.clustering.async.max.commits", 4)

# What happens to updates of file groups that a pending plan names
UPDATES_STRATEGY = Text("hoodie.clustering.updates.strategy")
ROLLBACK_ON_CONFLICT = Flag("hoodie.clustering.rollback.pending.replacecommit.on.conflict", default=False)

OPTIONS: tuple[Option, ...] = tuple(each for each in globals().values() if isinstance(each, Option))
