"""Options of reads (Java Hudi DataSourceReadOptions, HoodieReaderConfig and others).

Users pass them as strings, to reads and to writes, because a write reads the rows that it merges with. The keys of
table properties are in ``formats.table_config``.
"""

from __future__ import annotations

from hoodie_py.formats.config import merge_config, table_config
from hoodie_py.options.parse import Choice, Flag, Names, Number, Option, Size, Text

SKIP_MERGE = "skip_merge"

# The kind of query
QUERY_TYPE = Choice(
    "hoodie.datasource.query.type",
    ("snapshot", "read_optimized"),
    aliases=("hoodie.datasource.view.type",),
    unhandled=("INCREMENTAL", "CDC"),
)
AS_READ_OPTIMIZED = Flag("hoodie.query.as.ro.table", default=False)  # set by Hive sync for _ro tables; it wins
AS_OF_INSTANT = Text("as.of.instant")  # time travel; compares with request times
READ_PATHS = Text("hoodie.datasource.read.paths")

# How records merge
MERGE_TYPE = Choice("hoodie.datasource.merge.type", ("payload_combine", SKIP_MERGE))
MERGE_USE_POSITIONS = Flag("hoodie.merge.use.record.positions", default=True)  # where log blocks have positions
CUSTOM_MERGER_CLASSES = Names(
    "hoodie.write.record.merge.custom.implementation.classes", ("hoodie.datasource.write.record.merger.impls",)
)
DELETE_FIELD = Text(merge_config.DELETE_FIELD)  # column whose value marks a row as deleted ...
DELETE_MARKER = Text(merge_config.DELETE_MARKER)  # ... when it equals this text
UNAVAILABLE_VALUE = Text(merge_config.UNAVAILABLE_VALUE)  # placeholder that keeps the older value
ORDERING_FIELDS_PROPERTY = Names(table_config.ORDERING_FIELDS)  # where mergers look for their ordering fields
ORDERING_FIELD_PROPERTY = Names("hoodie.payload.ordering.field")  # where payload classes look for theirs
SAME_ORDERING_UPDATES = Flag("hoodie.payload.update.on.same.ordering.field", default=True)  # equal values update

# Resources
# Bytes of log records held in memory before they spill; 0: a share of the machine's memory.
MERGE_MEMORY = Size("hoodie.memory.merge.max.size", 0)
COMPACTION_MEMORY = Size("hoodie.memory.compaction.max.size", 0)  # the same in a compaction
SPILL_PATH = Names("hoodie.memory.spillable.map.path")  # local directories for spilled records; the first one counts
READ_THREADS = Number("hoodie_py.read.threads", 0, 1, unit="threads", most=1024)  # not of Java

OPTIONS: tuple[Option, ...] = tuple(each for each in globals().values() if isinstance(each, Option))
