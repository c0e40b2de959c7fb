"""Options of writes and table services (Java Hudi HoodieWriteConfig, HoodieCompactionConfig, HoodieCleanConfig,
HoodieLockConfig, StorageBasedLockConfig, KeyGeneratorOptions and others).

The defaults are those of Hudi 1.2.0 unless a comment says otherwise. The keys of table properties are in
``formats.table_config``, the options of reads in ``read``.
"""

from __future__ import annotations

from hoodie_py.formats.config.table_config import TIMESTAMP_KEYGEN_PREFIXES
from hoodie_py.formats.parquet import CODECS
from hoodie_py.options.parse import Choice, Flag, Names, Number, Option, Real, Size, Text

SINGLE_WRITER = "SINGLE_WRITER"
NON_BLOCKING = "NON_BLOCKING_CONCURRENCY_CONTROL"
TRIGGERS = ("NUM_COMMITS", "NUM_COMMITS_AFTER_LAST_REQUEST", "TIME_ELAPSED", "NUM_AND_TIME", "NUM_OR_TIME")

# Which file slices a compaction plan takes
COMPACTION_STRATEGY = Names("hoodie.compaction.strategy")  # class names of strategies
COMPACTION_TARGET_IO = Number("hoodie.compaction.target.io", 500 * 1024, unit="MB")  # read and written by one plan
COMPACTION_LOG_SIZE_THRESHOLD = Size("hoodie.compaction.logfile.size.threshold", 0)  # log files of a slice
COMPACTION_LOG_NUMBER_THRESHOLD = Number("hoodie.compaction.logfile.num.threshold", 0)  # log files of a slice
COMPACTION_TARGET_PARTITIONS = Number("hoodie.compaction.daybased.target.partitions", 10)
COMPACTION_PARTITION_REGEX = Text("hoodie.compaction.partition.path.regex")
PARQUET_MAX_FILE_SIZE = Size("hoodie.parquet.max.file.size", 120 * 1024 * 1024)  # also assumed for a missing base file
PARQUET_SMALL_FILE_LIMIT = Size("hoodie.parquet.small.file.limit", 100 * 1024 * 1024)  # inserts fill up smaller files
REWRITE_RATIO = Real("hoodie.parquet.small.file.rewrite.ratio", 4.0)  # not Java's own: which rewriting pays
SMALL_FILE_CANDIDATES = Number("hoodie.merge.small.file.group.candidates.limit", 1)  # of a partition; merge-on-read

# When a compaction plan is made
TRIGGER_STRATEGY = Choice("hoodie.compact.inline.trigger.strategy", TRIGGERS)
TRIGGER_DELTA_COMMITS = Number("hoodie.compact.inline.max.delta.commits", 5)
TRIGGER_DELTA_SECONDS = Number("hoodie.compact.inline.max.delta.seconds", 3600, unit="seconds")

# Base files
PARQUET_CODEC = Choice("hoodie.parquet.compression.codec", tuple(CODECS), unhandled=("LZO", "BROTLI", "LZ4", "LZ4_RAW"))
PARQUET_CODEC_LEVEL = Number("hoodie.parquet.compression.codec.zstd.level", 0)  # not Java's own; zstd and gzip
PARQUET_BLOCK_SIZE = Size("hoodie.parquet.block.size", 8 * 1024 * 1024, least=1)  # of a row group; Java's is 120 MB
PARQUET_PAGE_SIZE = Size("hoodie.parquet.page.size", 1024 * 1024, least=1)
PARQUET_DICTIONARY = Flag("hoodie.parquet.dictionary.enabled", default=True)  # of columns whose values repeat
LOG_BLOCK_BYTES = Size("hoodie.logfile.data.block.max.size", 256 * 1024 * 1024, least=1)  # rows of a block in memory
BLOOM_ENABLED = Flag("hoodie.parquet.bloom.filter.enabled", default=True)
BLOOM_TYPE = Choice("hoodie.bloom.index.filter.type", ("DYNAMIC_V0", "SIMPLE"))
BLOOM_ENTRIES = Number("hoodie.index.bloom.num_entries", 60_000, least=1)
BLOOM_FPP = Real("hoodie.index.bloom.fpp", 1e-9, above=0.0, below=1.0)
BLOOM_MAX_ENTRIES = Number("hoodie.bloom.index.filter.dynamic.max.entries", 100_000, least=1)

# Concurrent writers
CONCURRENCY_MODE = Choice(
    "hoodie.write.concurrency.mode",
    (SINGLE_WRITER, "OPTIMISTIC_CONCURRENCY_CONTROL", NON_BLOCKING),
)
FAILED_WRITES_POLICY = Choice(
    "hoodie.clean.failed.writes.policy", ("EAGER", "LAZY", "NEVER"), aliases=("hoodie.cleaner.policy.failed.writes",)
)
LOCK_PROVIDER = Text("hoodie.write.lock.provider")
CLOCK_SKEW_MS = Number("hoodie.time.generator.max_expected_clock_skew_ms", 200, unit="milliseconds")

# The metadata table
STATISTICS_COLUMNS = Names("hoodie.metadata.index.column.stats.column.list")  # columns with statistics; else the first
STATISTICS_MOST_COLUMNS = Number("hoodie.metadata.index.column.stats.max.columns.to.index", 32, least=1)
METADATA_MODE = Choice("hoodie.metadata.mode", ("auto", "disable", "refuse"))  # not Java's own
METADATA_COMPACT_COMMITS = Number("hoodie.metadata.compact.max.delta.commits", 10, least=1)

# What a write does
RECORD_POSITIONS = Flag("hoodie.write.record.positions", default=True)  # log blocks have positions of base rows
PARTIAL_UPDATES = Flag("hoodie.spark.sql.merge.into.partial.updates", default=True)  # log blocks of some columns
INSERT_DUPLICATES = Choice("hoodie.datasource.insert.dup.policy", ("none", "drop", "fail"))  # inserts of known keys
BULK_INSERT_SORT = Choice(
    "hoodie.bulkinsert.sort.mode",
    ("NONE", "GLOBAL_SORT", "PARTITION_SORT", "PARTITION_PATH_REPARTITION", "PARTITION_PATH_REPARTITION_AND_SORT"),
)
STATIC_PARTITIONS = Text("hoodie.static.overwrite.partition.paths")  # what an insert overwrite replaces; comma list
PARTITIONS_TO_DELETE = Text("hoodie.datasource.write.partitions.to.delete")  # comma list, * for any characters
BULK_INSERT_SORT_COLUMNS = Names("hoodie.bulkinsert.user.defined.partitioner.sort.columns")
ROW_WRITER = Flag("hoodie.datasource.write.row.writer.enable", default=True)  # bulk inserts keep rows marked deleted

# Table services after a write
TABLE_SERVICES = Flag("hoodie.table.services.enabled", default=True)  # false: none of the services below runs
INLINE_COMPACT = Flag("hoodie.compact.inline", default=False)
INLINE_SCHEDULE = Flag("hoodie.compact.schedule.inline", default=False)
AUTOMATIC_CLEAN = Flag("hoodie.clean.automatic", default=True)
AUTOMATIC_ARCHIVE = Flag("hoodie.archive.automatic", default=True)
ASYNC_ARCHIVE = Flag("hoodie.archive.async", default=False)  # same as inline: Java's write waits for it, too

# What leaves the active timeline
KEEP_MIN_COMMITS = Number("hoodie.keep.min.commits", 20, least=1)  # commits that remain when others are archived
KEEP_MAX_COMMITS = Number("hoodie.keep.max.commits", 30, least=1)  # up to this number nothing is archived
ARCHIVE_BEYOND_SAVEPOINT = Flag("hoodie.archive.beyond.savepoint", default=False)
ARCHIVE_AFTER_CLEAN = Flag("hoodie.archive.block.on.latest.clean.ectr", default=False)
ARCHIVE_BATCH = Number("hoodie.commits.archival.batch", 10, least=1)  # records of a block in an archive file
HISTORY_BATCH = Number("hoodie.timeline.compaction.batch.size", 10, least=2)  # history files merged at once
HISTORY_FILE_BYTES = Size("hoodie.timeline.compaction.target.file.max.bytes", 1000 * 1024 * 1024, least=1)
HISTORY_VERSIONS = Number("hoodie.timeline.manifest.retained.versions", 3, least=1)  # manifests that are kept

# Which records of a write are combined, and how existing records are found
COMBINE_BEFORE_UPSERT = Flag("hoodie.combine.before.upsert", default=True)
COMBINE_BEFORE_INSERT = Flag("hoodie.combine.before.insert", default=False)
COMBINE_BEFORE_DELETE = Flag("hoodie.combine.before.delete", default=True)
INDEX_TYPE = Text("hoodie.index.type")
SIMPLE_UPDATE_PARTITION = Flag("hoodie.simple.index.update.partition.path", default=True)
BLOOM_UPDATE_PARTITION = Flag("hoodie.bloom.index.update.partition.path", default=True)
RECORD_UPDATE_PARTITION = Flag("hoodie.record.index.update.partition.path", default=False)
BUCKET_ENGINE = Text("hoodie.index.bucket.engine")
BUCKET_COUNT = Number("hoodie.bucket.index.num.buckets", 256, least=1, most=99_999_999)  # file ids have eight digits
BUCKET_HASH_FIELD = Names("hoodie.bucket.index.hash.field")
BUCKET_EXPRESSIONS = Text("hoodie.bucket.index.partition.expressions")  # other numbers of buckets for some partitions
# Consistent hashing: the bounds for the number of buckets of a partition (by default both are BUCKET_COUNT), and the
# sizes at which a clustering splits and merges buckets, as multiples of the largest size of a base file.
BUCKET_MOST = Number("hoodie.bucket.index.max.num.buckets", 256, least=1, most=99_999_999)
BUCKET_LEAST = Number("hoodie.bucket.index.min.num.buckets", 256, least=1, most=99_999_999)
BUCKET_SPLIT = Real("hoodie.bucket.index.split.threshold", 2.0)
BUCKET_MERGE = Real("hoodie.bucket.index.merge.threshold", 0.2)

# Keys and partition paths
# For complex keys of one field below table version 9: whether a key is the bare value, and whether to refuse them.
COMPLEX_KEY_VALUE_ONLY = Flag("hoodie.write.complex.keygen.new.encoding", default=False)
ALLOW_DEFAULT_PARTITION = Flag("hoodie.skip.default.partition.validation", default=False)
COMPLEX_KEY_CHECK = Flag("hoodie.write.complex.keygen.validation.enable", default=True)
CONSISTENT_TIMESTAMPS = Flag("hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled", default=False)

# Settings of the timestamp key generator, below TIMESTAMP_KEYGEN_PREFIXES
TIMESTAMP_TYPE = "timestamp.type"
TIMESTAMP_UNIT = "timestamp.scalar.time.unit"
INPUT_DATE_FORMAT = "input.dateformat"
INPUT_DATE_FORMAT_DELIMITER = "input.dateformat.list.delimiter.regex"
INPUT_ZONE = "input.timezone"
OUTPUT_DATE_FORMAT = "output.dateformat"
OUTPUT_ZONE = "output.timezone"
BOTH_ZONES = "timezone"
DATE_PARSER = "datetime.parser.class"

# Columns that the rows lack, or are the first to have
NULL_FOR_MISSING = Flag("hoodie.write.set.null.for.missing.columns", default=False)
RECONCILE_SCHEMA = Flag("hoodie.datasource.write.reconcile.schema", default=False)
DROP_MISSING = Flag("hoodie.datasource.write.schema.allow.auto.evolution.column.drop", default=False)
SCHEMA_ON_READ = Flag("hoodie.schema.on.read.enable", default=False)

# Which schema changes rows may cause. Not Java's own: Java's rule is LOSSY (``writer/schema_changes``)
LOSSLESS, LOSSY = "LOSSLESS", "LOSSY"
SCHEMA_CHANGES = Choice("hoodie.write.schema.changes", (LOSSLESS, LOSSY, "NONE"))

# Locks and heartbeats, and the lock providers of Java Hudi that are supported here
LOCK_WAIT_MS = Real("hoodie.write.lock.wait_time_ms", 60_000)  # how long one try waits for a lock
LOCK_RETRIES = Number("hoodie.write.lock.client.num_retries", 0)  # further tries; Java's default is 50
LOCK_CLIENT_PAUSE_MS = Real("hoodie.write.lock.client.wait_time_ms_between_retry", 5000)  # between tries
LOCK_RETRY_WAIT_MS = Real("hoodie.write.lock.wait_time_ms_between_retry", 1000)
LOCK_FILE_SYSTEM_PATH = Text("hoodie.write.lock.filesystem.path")  # folder of the lock file
LOCK_FILE_SYSTEM_EXPIRE = Real("hoodie.write.lock.filesystem.expire", 0)  # minutes; 0: never
LOCK_STORAGE_VALIDITY = Real("hoodie.write.lock.storage.validity.timeout.secs", 300)
LOCK_STORAGE_RENEW = Real(
    "hoodie.write.lock.storage.renew.interval.secs", 30, aliases=("hoodie.write.lock.storage.heartbeat.poll.secs",)
)
HEARTBEAT_INTERVAL_MS = Real("hoodie.client.heartbeat.interval_in_ms", 60_000)
HEARTBEAT_MISSES = Real("hoodie.client.heartbeat.tolerable.misses", 2)
_LOCK_PACKAGE = "org.apache.hudi.client.transaction.lock"
FILE_SYSTEM_PROVIDER = f"{_LOCK_PACKAGE}.FileSystemBasedLockProvider"
STORAGE_PROVIDER = f"{_LOCK_PACKAGE}.StorageBasedLockProvider"
IN_PROCESS_PROVIDER = f"{_LOCK_PACKAGE}.InProcessLockProvider"
NOOP_PROVIDER = f"{_LOCK_PACKAGE}.NoopLockProvider"

# What a clean removes
KEEP_LATEST_COMMITS = "KEEP_LATEST_COMMITS"
KEEP_LATEST_FILE_VERSIONS = "KEEP_LATEST_FILE_VERSIONS"

CLEAN_POLICY = Choice(
    "hoodie.clean.policy",
    (KEEP_LATEST_COMMITS, KEEP_LATEST_FILE_VERSIONS),
    aliases=("hoodie.cleaner.policy",),
    unhandled=("KEEP_LATEST_BY_HOURS",),
)
COMMITS_RETAINED = Number("hoodie.clean.commits.retained", 10, 1, ("hoodie.cleaner.commits.retained",))
VERSIONS_RETAINED = Number("hoodie.clean.fileversions.retained", 3, 1, ("hoodie.cleaner.fileversions.retained",))
CLEAN_TRIGGER = Choice("hoodie.clean.trigger.strategy", ("NUM_COMMITS",))
CLEAN_TRIGGER_COMMITS = Number("hoodie.clean.trigger.max.commits", 1, 0, ("hoodie.clean.max.commits",))  # since a clean
MOST_COMMITS_TO_CLEAN = Number("hoodie.clean.max.commits.to.clean", (1 << 63) - 1)  # commits that one clean covers
DELETE_BOOTSTRAP_SOURCE = Flag(
    "hoodie.clean.delete.bootstrap.base.file", default=False, aliases=("hoodie.cleaner.delete.bootstrap.base.file",)
)

SAVEPOINTED = "savepointed_timestamps"  # extra metadata of a clean: savepoints that it kept, comma list

_TIMESTAMP_SETTINGS = (
    TIMESTAMP_TYPE, TIMESTAMP_UNIT, INPUT_DATE_FORMAT, INPUT_DATE_FORMAT_DELIMITER, INPUT_ZONE, OUTPUT_DATE_FORMAT,
    OUTPUT_ZONE, BOTH_ZONES, DATE_PARSER,
)  # fmt: skip
OPTIONS: tuple[Option, ...] = (
    *(each for each in globals().values() if isinstance(each, Option)),
    *(Text(prefix + name) for prefix in TIMESTAMP_KEYGEN_PREFIXES for name in _TIMESTAMP_SETTINGS),
)
