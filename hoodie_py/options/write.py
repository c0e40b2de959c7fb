"""Writer options by the names Java Hudi gives them (its HoodieCompactionConfig, HoodieWriteConfig and friends).

Users pass these as strings; the defaults that Hudi documents are in ``writer.settings``. Keys of ``hoodie.properties``
are in ``table_config``, a reader's options in ``option_keys``.
"""

from __future__ import annotations

# What a compaction plan takes
COMPACTION_STRATEGY = "hoodie.compaction.strategy"  # class name of a strategy, or several, joined with commas
COMPACTION_TARGET_IO = "hoodie.compaction.target.io"  # MB read and written by one plan
COMPACTION_LOG_SIZE_THRESHOLD = "hoodie.compaction.logfile.size.threshold"  # bytes of log files of a slice
COMPACTION_LOG_NUMBER_THRESHOLD = "hoodie.compaction.logfile.num.threshold"  # log files of a slice
COMPACTION_TARGET_PARTITIONS = "hoodie.compaction.daybased.target.partitions"
COMPACTION_PARTITION_REGEX = "hoodie.compaction.partition.path.regex"
PARQUET_MAX_FILE_SIZE = "hoodie.parquet.max.file.size"  # bytes; stands for what a slice without base file will write
PARQUET_SMALL_FILE_LIMIT = "hoodie.parquet.small.file.limit"  # bytes below which a base file takes more records

# When a plan is made
TRIGGER_STRATEGY = "hoodie.compact.inline.trigger.strategy"
TRIGGER_DELTA_COMMITS = "hoodie.compact.inline.max.delta.commits"
TRIGGER_DELTA_SECONDS = "hoodie.compact.inline.max.delta.seconds"

# What base files look like
PARQUET_CODEC = "hoodie.parquet.compression.codec"
PARQUET_CODEC_LEVEL = "hoodie.parquet.compression.codec.zstd.level"  # not Java's own; zstd and gzip
PARQUET_BLOCK_SIZE = "hoodie.parquet.block.size"  # bytes of a row group
BLOOM_ENABLED = "hoodie.parquet.bloom.filter.enabled"  # sizes: see bloom.py

# Working beside other writers
CONCURRENCY_MODE = "hoodie.write.concurrency.mode"
FAILED_WRITES_POLICY = "hoodie.clean.failed.writes.policy"
FAILED_WRITES_POLICY_ALIAS = "hoodie.cleaner.policy.failed.writes"
LOCK_PROVIDER = "hoodie.write.lock.provider"
CLOCK_SKEW_MS = "hoodie.time.generator.max_expected_clock_skew_ms"

# The metadata table
METADATA_MODE = "hoodie.metadata.mode"  # not Java's own: auto, disable, refuse

# What a write does
RECORD_POSITIONS = "hoodie.write.record.positions"  # log blocks say which base rows their records are
INSERT_DUPLICATES = "hoodie.datasource.insert.dup.policy"  # insert of known keys: none (they double), drop, fail
BULK_INSERT_SORT = "hoodie.bulkinsert.sort.mode"  # NONE, GLOBAL_SORT, PARTITION_SORT
ROW_WRITER = "hoodie.datasource.write.row.writer.enable"  # Java's: its bulk insert stores rows that are marked deleted

# Table services after a write
INLINE_COMPACT = "hoodie.compact.inline"
INLINE_SCHEDULE = "hoodie.compact.schedule.inline"
AUTOMATIC_CLEAN = "hoodie.clean.automatic"

# Which records of a write are made one, and how existing records are found
COMBINE_BEFORE_UPSERT = "hoodie.combine.before.upsert"
COMBINE_BEFORE_INSERT = "hoodie.combine.before.insert"
COMBINE_BEFORE_DELETE = "hoodie.combine.before.delete"
INDEX_TYPE = "hoodie.index.type"
SIMPLE_UPDATE_PARTITION = "hoodie.simple.index.update.partition.path"
BLOOM_UPDATE_PARTITION = "hoodie.bloom.index.update.partition.path"
BUCKET_ENGINE = "hoodie.index.bucket.engine"
BUCKET_COUNT = "hoodie.bucket.index.num.buckets"
BUCKET_HASH_FIELD = "hoodie.bucket.index.hash.field"
BUCKET_EXPRESSIONS = "hoodie.bucket.index.partition.expressions"  # other numbers of buckets for some partitions
