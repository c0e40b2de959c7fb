"""Options of writes (Java Hudi HoodieCompactionConfig, HoodieWriteConfig and others).

The defaults are those of Hudi 1.2.0 unless a comment says otherwise. The keys of table properties are in
``formats.table_config``, the options of reads in ``read``.
"""

from __future__ import annotations

from hoodie_py.options.parse import Choice, Flag, Names, Number, Option, Real, Size, Text

SINGLE_WRITER = "SINGLE_WRITER"
TRIGGERS = ("NUM_COMMITS", "NUM_COMMITS_AFTER_LAST_REQUEST", "TIME_ELAPSED", "NUM_AND_TIME", "NUM_OR_TIME")
CODECS = ("zstd", "snappy", "gzip", "uncompressed")

# Which file slices a compaction plan takes
COMPACTION_STRATEGY = Names("hoodie.compaction.strategy")  # class names of strategies
COMPACTION_TARGET_IO = Number("hoodie.compaction.target.io", 500 * 1024, unit="MB")  # read and written by one plan
COMPACTION_LOG_SIZE_THRESHOLD = Size("hoodie.compaction.logfile.size.threshold", 0)  # log files of a slice
COMPACTION_LOG_NUMBER_THRESHOLD = Number("hoodie.compaction.logfile.num.threshold", 0)  # log files of a slice
COMPACTION_TARGET_PARTITIONS = Number("hoodie.compaction.daybased.target.partitions", 10)
COMPACTION_PARTITION_REGEX = Text("hoodie.compaction.partition.path.regex")
PARQUET_MAX_FILE_SIZE = Size("hoodie.parquet.max.file.size", 120 * 1024 * 1024)  # also of a slice without base file
PARQUET_SMALL_FILE_LIMIT = Size("hoodie.parquet.small.file.limit", 100 * 1024 * 1024)  # below it files are filled up

# When a compaction plan is made
TRIGGER_STRATEGY = Choice("hoodie.compact.inline.trigger.strategy", TRIGGERS)
TRIGGER_DELTA_COMMITS = Number("hoodie.compact.inline.max.delta.commits", 5)
TRIGGER_DELTA_SECONDS = Number("hoodie.compact.inline.max.delta.seconds", 3600, unit="seconds")

# Base files
PARQUET_CODEC = Choice("hoodie.parquet.compression.codec", CODECS, unhandled=("LZO", "BROTLI", "LZ4", "LZ4_RAW"))
PARQUET_CODEC_LEVEL = Number("hoodie.parquet.compression.codec.zstd.level", 0)  # not Java's own; zstd and gzip
PARQUET_BLOCK_SIZE = Size("hoodie.parquet.block.size", 8 * 1024 * 1024, least=1)  # of a row group; Java's is 120 MB
BLOOM_ENABLED = Flag("hoodie.parquet.bloom.filter.enabled", default=True)
BLOOM_TYPE = Choice("hoodie.bloom.index.filter.type", ("DYNAMIC_V0", "SIMPLE"))
BLOOM_ENTRIES = Number("hoodie.index.bloom.num_entries", 60_000, least=1)
BLOOM_FPP = Real("hoodie.index.bloom.fpp", 1e-9, above=0.0, below=1.0)
BLOOM_MAX_ENTRIES = Number("hoodie.bloom.index.filter.dynamic.max.entries", 100_000, least=1)

# Concurrent writers
CONCURRENCY_MODE = Choice(
    "hoodie.write.concurrency.mode",
    (SINGLE_WRITER, "OPTIMISTIC_CONCURRENCY_CONTROL", "NON_BLOCKING_CONCURRENCY_CONTROL"),
)
FAILED_WRITES_POLICY = Choice(
    "hoodie.clean.failed.writes.policy", ("EAGER", "LAZY", "NEVER"), aliases=("hoodie.cleaner.policy.failed.writes",)
)
LOCK_PROVIDER = Text("hoodie.write.lock.provider")
CLOCK_SKEW_MS = Number("hoodie.time.generator.max_expected_clock_skew_ms", 200, unit="milliseconds")

# The metadata table
METADATA_MODE = Choice("hoodie.metadata.mode", ("auto", "disable", "refuse"))  # not Java's own

# What a write does
RECORD_POSITIONS = Flag("hoodie.write.record.positions", default=True)  # log blocks have positions of base rows
INSERT_DUPLICATES = Choice("hoodie.datasource.insert.dup.policy", ("none", "drop", "fail"))  # inserts of known keys
BULK_INSERT_SORT = Choice(
    "hoodie.bulkinsert.sort.mode",
    ("NONE", "GLOBAL_SORT", "PARTITION_SORT"),
    unhandled=("PARTITION_PATH_REPARTITION", "PARTITION_PATH_REPARTITION_AND_SORT"),
)
ROW_WRITER = Flag("hoodie.datasource.write.row.writer.enable", default=True)  # bulk inserts keep rows marked deleted

# Table services after a write
TABLE_SERVICES = Flag("hoodie.table.services.enabled", default=True)  # false: none of those below
INLINE_COMPACT = Flag("hoodie.compact.inline", default=False)
INLINE_SCHEDULE = Flag("hoodie.compact.schedule.inline", default=False)
AUTOMATIC_CLEAN = Flag("hoodie.clean.automatic", default=False)  # Java's default is true

# Which records of a write are combined, and how existing records are found
COMBINE_BEFORE_UPSERT = Flag("hoodie.combine.before.upsert", default=True)
COMBINE_BEFORE_INSERT = Flag("hoodie.combine.before.insert", default=False)
COMBINE_BEFORE_DELETE = Flag("hoodie.combine.before.delete", default=True)
INDEX_TYPE = Text("hoodie.index.type")
SIMPLE_UPDATE_PARTITION = Flag("hoodie.simple.index.update.partition.path", default=True)
BLOOM_UPDATE_PARTITION = Flag("hoodie.bloom.index.update.partition.path", default=True)
BUCKET_ENGINE = Text("hoodie.index.bucket.engine")
BUCKET_COUNT = Number("hoodie.bucket.index.num.buckets", 256, least=1, most=99_999_999)  # file ids have eight digits
BUCKET_HASH_FIELD = Names("hoodie.bucket.index.hash.field")
BUCKET_EXPRESSIONS = Text("hoodie.bucket.index.partition.expressions")  # other numbers of buckets for some partitions

OPTIONS: tuple[Option, ...] = (
    COMPACTION_STRATEGY, COMPACTION_TARGET_IO, COMPACTION_LOG_SIZE_THRESHOLD, COMPACTION_LOG_NUMBER_THRESHOLD,
    COMPACTION_TARGET_PARTITIONS, COMPACTION_PARTITION_REGEX, PARQUET_MAX_FILE_SIZE, PARQUET_SMALL_FILE_LIMIT,
    TRIGGER_STRATEGY, TRIGGER_DELTA_COMMITS, TRIGGER_DELTA_SECONDS, PARQUET_CODEC, PARQUET_CODEC_LEVEL,
    PARQUET_BLOCK_SIZE, BLOOM_ENABLED, BLOOM_TYPE, BLOOM_ENTRIES, BLOOM_FPP, BLOOM_MAX_ENTRIES, CONCURRENCY_MODE,
    FAILED_WRITES_POLICY, LOCK_PROVIDER, CLOCK_SKEW_MS, METADATA_MODE, RECORD_POSITIONS, INSERT_DUPLICATES,
    BULK_INSERT_SORT, ROW_WRITER, TABLE_SERVICES, INLINE_COMPACT, INLINE_SCHEDULE, AUTOMATIC_CLEAN,
    COMBINE_BEFORE_UPSERT, COMBINE_BEFORE_INSERT, COMBINE_BEFORE_DELETE, INDEX_TYPE, SIMPLE_UPDATE_PARTITION,
    BLOOM_UPDATE_PARTITION, BUCKET_ENGINE, BUCKET_COUNT, BUCKET_HASH_FIELD, BUCKET_EXPRESSIONS,
)  # fmt: skip
