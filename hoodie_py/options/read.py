"""Options of reads (Java Hudi DataSourceReadOptions, HoodieReaderConfig and others).

Users pass them as strings, to reads and to writes: a write also reads the rows that it merges. The keys of table
properties are in ``formats.table_config``.
"""

from __future__ import annotations

from hoodie_py.formats.config import merge_config, table_config
from hoodie_py.options.parse import Choice, Flag, Names, Number, Option, Size, Text

SKIP_MERGE = "skip_merge"

# The kind of query
QUERY_TYPE = Choice(
    "hoodie.datasource.query.type",
    ("snapshot", "read_optimized", "incremental"),
    aliases=("hoodie.datasource.view.type",),
)
INCREMENTAL_FORMAT = Choice("hoodie.datasource.query.incremental.format", ("latest_state", "cdc"))
AS_READ_OPTIMIZED = Flag("hoodie.query.as.ro.table", default=False)  # set by Hive sync for _ro tables; it wins
AS_OF_INSTANT = Text("as.of.instant")  # time travel; compares with request times
READ_PATHS = Text("hoodie.datasource.read.paths")

# Ranges of commits: the start is exclusive, the end inclusive
RANGE_START = Text("hoodie.datasource.read.begin.instanttime")
RANGE_END = Text("hoodie.datasource.read.end.instanttime")
# Read the latest slices if files of the range are gone; by default on from table version 8 on, as in Java
FALLBACK_TO_FULL_SCAN = Flag("hoodie.datasource.read.incr.fallback.fulltablescan.enable", default=True)
RANGE_PATH_GLOB = Text("hoodie.datasource.read.incr.path.glob")
RANGE_FILTERS = Names("hoodie.datasource.read.incr.filters")  # SQL conditions, separated by commas
SKIP_COMPACTION = Flag("hoodie.datasource.read.incr.skip_compact", default=False)
USE_END_SCHEMA = Flag("hoodie.datasource.read.schema.use.end.instanttime", default=False)
# Up to table version 6: what to do if an unfinished commit is older than a completed one
HOLES_POLICY = Choice("hoodie.read.timeline.holes.resolution.policy", ("FAIL", "BLOCK", "USE_TRANSITION_TIME"))
RANGE_TABLE_VERSION = Number("hoodie.datasource.read.incr.table.version", 0, 1)  # below 8: compare request times

# The table's metadata table: whether reads use it
METADATA_ENABLE = Flag("hoodie.metadata.enable", default=True)
DATA_SKIPPING = Flag("hoodie.enable.data.skipping", default=True)  # whether its indexes exclude file slices

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

# Not of Java. The folder with the source files of a metadata-only bootstrap, in place of the folder that the table
# names; and the kinds of store, such as file, s3 or gs, where source files may lie besides the table's own kind. No
# other setting lets a read leave the table's kind of store.
BOOTSTRAP_SOURCE = Text("hoodie_py.read.bootstrap.source")
BOOTSTRAP_STORES = Names("hoodie_py.read.bootstrap.stores")

# Resources
# Bytes of log records held in memory before they spill; 0: a share of the machine's memory.
MERGE_MEMORY = Size("hoodie.memory.merge.max.size", 0)
COMPACTION_MEMORY = Size("hoodie.memory.compaction.max.size", 0)  # the same for a compaction
SPILL_PATH = Names("hoodie.memory.spillable.map.path")  # local directories for spilled records; the first one counts
READ_THREADS = Number("hoodie_py.read.threads", 0, 1, unit="threads", most=1024)  # not of Java

# Streams; Spark passes names in lower case
STREAM_START = Text("hoodie.datasource.streaming.startOffset", ("hoodie.datasource.streaming.startoffset",))
STREAM_TABLE_VERSION = Number("hoodie.datasource.read.streaming.table.version", 0, 1)  # as RANGE_TABLE_VERSION

OPTIONS: tuple[Option, ...] = tuple(each for each in globals().values() if isinstance(each, Option))
