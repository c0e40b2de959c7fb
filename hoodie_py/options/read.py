"""Reader options by the names Java Hudi gives them (its DataSourceReadOptions, HoodieReaderConfig and friends).

Users pass these as strings; a key that is not here does not concern a read. Where Hudi renamed a key, the older name
follows as ``..._ALIAS``. Keys of ``hoodie.properties`` are in ``table_config``.
"""

from __future__ import annotations

from hoodie_py.formats import merge_config

# Which question is asked
QUERY_TYPE = "hoodie.datasource.query.type"  # snapshot (default), read_optimized, incremental
QUERY_TYPE_ALIAS = "hoodie.datasource.view.type"
AS_OF_INSTANT = "as.of.instant"  # time travel; compares with request times
BEGIN_INSTANT = "hoodie.datasource.read.begin.instanttime"  # incremental range, exclusive
END_INSTANT = "hoodie.datasource.read.end.instanttime"  # incremental range, inclusive
START_COMMIT_ALIAS = "hoodie.datasource.read.start.timestamp"  # table-valued function hudi_table_changes
INCREMENTAL_FORMAT = "hoodie.datasource.query.incremental.format"  # latest_state (default), cdc
INCREMENTAL_TABLE_VERSION = "hoodie.datasource.read.incr.table.version"  # forces request-time or completion-time ranges
INCREMENTAL_FULL_SCAN = "hoodie.datasource.read.incr.fallback.fulltablescan.enable"  # range reaches cleaned files
INCREMENTAL_PATH_GLOB = "hoodie.datasource.read.incr.path.glob"  # only partitions that match
INCREMENTAL_FILTERS = "hoodie.datasource.read.incr.filters"  # filters as SQL text
INCREMENTAL_SKIP_INSERT_OVERWRITE = "hoodie.datasource.read.incr.skip_insert_overwrite"
INCREMENTAL_SKIP_COMPACTION = "hoodie.datasource.read.incr.skip_compact"
INCREMENTAL_SKIP_CLUSTERING = "hoodie.datasource.read.incr.skip_cluster"
END_INSTANT_SCHEMA = "hoodie.datasource.read.schema.use.end.instanttime"  # schema as of the end of the range
TIMELINE_HOLES_POLICY = "hoodie.read.timeline.holes.resolution.policy"  # FAIL (default), BLOCK, USE_TRANSITION_TIME
READ_PATHS = "hoodie.datasource.read.paths"

# How records merge
MERGE_TYPE = "hoodie.datasource.merge.type"  # payload_combine (default), skip_merge
MERGE_USE_POSITIONS = "hoodie.merge.use.record.positions"  # pair rows by position where blocks have positions
CUSTOM_MERGER_CLASSES = "hoodie.write.record.merge.custom.implementation.classes"  # comma list of merger classes
CUSTOM_MERGER_CLASSES_ALIAS = "hoodie.datasource.write.record.merger.impls"
DELETE_FIELD = merge_config.DELETE_FIELD
DELETE_MARKER = merge_config.DELETE_MARKER
UNAVAILABLE_VALUE = merge_config.UNAVAILABLE_VALUE
ORDERING_FIELDS_PROPERTY = "hoodie.table.ordering.fields"  # what mergers find their ordering fields under
ORDERING_FIELD_PROPERTY = "hoodie.payload.ordering.field"  # ... and payload classes theirs
SAME_ORDERING_UPDATES = "hoodie.payload.update.on.same.ordering.field"  # whether an equal ordering value updates (true)
OPTIMIZED_LOG_SCAN = "hoodie.optimized.log.blocks.scan.enable"

# Schema and listing
SCHEMA_ON_READ = "hoodie.schema.on.read.enable"  # full schema evolution by column id
SCHEMA_EVOLUTION = "hoodie.schema.evolution.enable"
EXTRACT_PARTITION_VALUES = "hoodie.datasource.read.extract.partition.values.from.path"
METADATA_ENABLE = "hoodie.metadata.enable"  # list files through the metadata table where that is usable
DATA_SKIPPING = "hoodie.enable.data.skipping"  # prune files by column statistics
FILE_INDEX_LISTING_MODE = "hoodie.datasource.read.file.index.listing.mode"  # lazy, eager

# Resources
MERGE_MEMORY = "hoodie.memory.merge.max.size"  # bytes of log records held before they spill
MERGE_MEMORY_FRACTION = "hoodie.memory.merge.fraction"
COMPACTION_MEMORY = "hoodie.memory.compaction.max.size"
COMPACTION_MEMORY_FRACTION = "hoodie.memory.compaction.fraction"
DFS_BUFFER_SIZE = "hoodie.memory.dfs.buffer.max.size"
SPILL_PATH = "hoodie.memory.spillable.map.path"  # local directories for spilled records, comma list
SPILL_TYPE = "hoodie.common.spillable.diskmap.type"  # BITCASK, ROCKS_DB
READ_THREADS = "hoodie_py.read.threads"  # this package's own: file slices that a scan reads at the same time

QUERY_TYPES = ("snapshot", "read_optimized", "incremental")
SKIP_MERGE = "skip_merge"
MERGE_TYPES = ("payload_combine", SKIP_MERGE)
INCREMENTAL_FORMATS = ("latest_state", "cdc")
