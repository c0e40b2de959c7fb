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
