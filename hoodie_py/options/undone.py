"""Options of Java Hudi that ask for features that are missing here.

An option is an error (``UnsupportedFeatureError``) if ignoring it would give other rows or another table. It is a
warning (``HoodieWarning``) if rows and table are right and only something beside the write is missing: no catalog is
informed, no service runs, files have another layout. A value that asks for nothing, such as ``false``, gives neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.options.parse import Flag, Option, Text
from hoodie_py.options.read import READ_PATHS

_NO_BACKGROUND = "No table service runs in the background."
_NO_INDEX = "No such index is built."
_NO_CLASS = "Classes of Java do not run here."
_NO_EXTRACTOR = "Values of partitions are found by their fields alone."
_AFTER_COMMIT = "The write is committed when a table service after it fails, so that is a warning."
_MERGE_HANDLES = (
    "FileGroupReaderBasedMergeHandle", "HoodieWriteMergeHandle", "HoodieMergeHandle", "HoodieMergeHandleWithChangeLog",
    "HoodieSortedMergeHandle", "HoodieSortedMergeHandleWithChangeLog",
)  # fmt: skip
_SERVICE_HINT = "Call compact(), or set hoodie.compact.inline; writes clean and archive by themselves."


@dataclass(frozen=True, slots=True)
class UnsupportedOption:
    """An option that has no effect here."""

    option: Option
    what: str  # the missing feature, a sentence
    hint: str | None = None  # what to do instead
    refused: bool = False  # whether the option is an error; otherwise it is a warning
    harmless: tuple[str, ...] = ()  # values that do not ask for the feature, in lower case; classes without package

    def is_asked(self, options: Mapping[str, str]) -> bool:
        """Say whether options ask for the feature. Raises InvalidQueryError if the value is not valid."""
        self.option.check(options)
        text = (self.option.find_text(options) or "").lower()
        return bool(text) and text not in self.harmless and text.rpartition(".")[2] not in self.harmless

    @property
    def message(self) -> str:
        """The text of the warning."""
        return f"{self.option}: {self.what}" + (f" {self.hint}" if self.hint else "")

    def refuse(self, options: Mapping[str, str]) -> None:
        """Raise UnsupportedFeatureError with the option's value."""
        raise UnsupportedFeatureError(f"{self.option}={self.option.find_text(options)}: {self.what}", hint=self.hint)


def _refuse_flag(key: str, what: str, hint: str | None = None, on: bool = True) -> UnsupportedOption:
    """Declare a flag that is refused if it is on, or with ``on=False`` if it is off."""
    return UnsupportedOption(Flag(key, default=not on), what, hint, refused=True, harmless=("false" if on else "true",))


def _refuse_text(key: str, what: str, hint: str | None = None, harmless: tuple[str, ...] = ()) -> UnsupportedOption:
    return UnsupportedOption(Text(key), what, hint, refused=True, harmless=harmless)


def _refuse_class(key: str, what: str, *own: str) -> UnsupportedOption:
    """Declare a class name that is refused unless it is one of Java Hudi's ``own``, named without their package."""
    return _refuse_text(key, what, harmless=tuple(each.lower() for each in own))


def _warn_of_class(key: str, what: str, *own: str) -> UnsupportedOption:
    return _warn_of_text(key, what, harmless=tuple(each.lower() for each in own))


def _warn_of_flag(key: str, what: str, hint: str | None = None, on: bool = True) -> UnsupportedOption:
    """Declare a flag that gives a warning if it is on, or with ``on=False`` if it is off."""
    return UnsupportedOption(Flag(key, default=not on), what, hint, harmless=("false" if on else "true",))


def _warn_of_text(key: str, what: str, hint: str | None = None, harmless: tuple[str, ...] = ()) -> UnsupportedOption:
    return UnsupportedOption(Text(key), what, hint, harmless=harmless)


OF_READS = (
    _refuse_flag(
        "hoodie.datasource.read.extract.partition.values.from.path",
        "Partition columns are read from the files, not from paths.",
    ),
    _refuse_flag(
        "hoodie.datasource.read.partition.value.extractor.enabled",
        "Partition columns are read from the files, not from paths.",
    ),
    _refuse_flag("hoodie.bootstrap.data.queries.only", "Meta columns are always read."),
    _refuse_text(READ_PATHS, "A read has one table.", "Read each table and concatenate the rows."),
    *(
        _refuse_flag(f"hoodie.datasource.read.{key}", "A read gives the table's rows.", f"Call {instead}.")
        for key, instead in (
            ("create.filesystem.relation", "table.inspect.files()"),
            ("table.valued.function.timeline.relation", "table.inspect.timeline()"),
            ("table.valued.function.timeline.relation.archived", "table.inspect.timeline(archived=True)"),
        )
    ),
    _refuse_text(
        "hoodie.datasource.read.table.valued.function.filesystem.relation.subpath",
        "A read gives the table's rows.",
        "Call table.inspect.files().",
    ),
    _refuse_flag("hoodie.datasource.read.incr.skip_cluster", "A range counts clusterings, which change no rows."),
    _refuse_text("hoodie.read.blob.inline.mode", "The bytes of a blob are always read.", harmless=("content",)),
)

OF_WRITES = (
    # Errors: without the feature, rows or the table would be different
    _refuse_flag("hoodie.partition.ttl.inline", "Old partitions are not deleted."),
    _refuse_text("hoodie.precommit.validators", "Writes are not validated."),
    _refuse_text("hoodie.prewrite.validators", "Writes are not validated."),
    _refuse_flag("hoodie.errortable.enable", "A row that fails makes the write fail; no error table stores it."),
    _refuse_flag(
        "hoodie.datasource.write.insert.drop.duplicates",
        "This option does not drop inserts of existing keys.",
        "Use the operation insert with hoodie.datasource.insert.dup.policy=drop.",
    ),
    _refuse_flag(
        "hoodie.merge.allow.duplicate.on.inserts", "Inserts do not merge with existing keys.", "Upsert them.", on=False
    ),
    _refuse_flag("hoodie.allow.operation.metadata.field", "The operation of a row is not stored."),
    _refuse_text("hoodie.datasource.write.commitmeta.key.prefix", "Commits do not store options.", harmless=("_",)),
    _refuse_text("hoodie.clean.partition.filter.regex", "A clean is of all partitions."),
    _refuse_text("hoodie.clean.partition.filter.selected", "A clean is of all partitions."),
    _refuse_text("hoodie.cleaner.partition.filter.regex", "A clean is of all partitions."),
    _refuse_text("hoodie.cleaner.partition.filter.selected", "A clean is of all partitions."),
    _refuse_text("hoodie.index.class", "Indexes of user classes are not supported.", "Set hoodie.index.type."),
    _refuse_flag("hoodie.metaserver.enabled", "Tables of a metaserver are not supported."),
    _refuse_flag("hoodie.auto.commit", "A write always commits.", on=False),
    _refuse_text("hoodie.write.schema", "A write has the columns of its rows.", "Give the rows these columns."),
    _refuse_text(
        "hoodie.write.partial.update.schema",
        "A write has whole rows.",
        "Set columns by update() or merge().",
    ),
    _refuse_text("hoodie.write.rolling.metadata.keys", "Commits take no metadata over from earlier ones."),
    _refuse_text("hoodie.metadata.dir.filter.regex", "The metadata table lists all folders."),
    _refuse_text("hoodie.metadata.index.drop", "A write drops no index.", "Call table.index.drop() or `hoodie index`."),
    _refuse_flag(
        "hoodie.metadata.auto.initialize",
        "A new table has a metadata table.",
        "Set hoodie.metadata.mode=disable, which switches it off.",
        on=False,
    ),
    _refuse_text("hoodie.datasource.partition_extractor_class", _NO_EXTRACTOR),
    _refuse_text("hoodie.table.partition_extractor_class", _NO_EXTRACTOR),
    _refuse_text("hoodie.bootstrap.base.path", "A write bootstraps no table."),
    _refuse_text(
        "hoodie.table.partial.update.mode",
        "A write does not set it.",
        "Give it to HoodieTable.create(properties=...).",
    ),
    *(
        _refuse_text(key, f"A new table has {only!r}.", harmless=(only.lower(),))
        for key, only in (
            ("hoodie.archivelog.folder", "archived"),
            ("hoodie.timeline.path", "timeline"),
            ("hoodie.timeline.history.path", "history"),
            ("hoodie.table.format", "native"),
            ("hoodie.table.log.file.format", "HOODIE_LOG"),
            ("hoodie.table.rt.file.format", "HOODIE_LOG"),
            ("hoodie.bucket.index.partition.rule.type", "regex"),
        )
    ),
    _refuse_class("hoodie.write.merge.handle.class", _NO_CLASS, *_MERGE_HANDLES),
    _refuse_class("hoodie.compact.merge.handle.class", _NO_CLASS, *_MERGE_HANDLES),
    _refuse_class("hoodie.write.concat.handle.class", _NO_CLASS, "HoodieConcatHandle"),
    _refuse_class("hoodie.compaction.plan.generator", _NO_CLASS, "HoodieCompactionPlanGenerator"),
    _refuse_class("hoodie.keygen.datetime.parser.class", _NO_CLASS, "HoodieDateTimeParser"),
    _refuse_class("hoodie.deltastreamer.keygen.datetime.parser.class", _NO_CLASS, "HoodieDateTimeParser"),
    _refuse_text("hoodie.client.init.callback.classes", _NO_CLASS),
    # Warnings: rows and the table are right without the feature
    _warn_of_flag("hoodie.datasource.hive_sync.bucket_sync", "Catalogs are not told of buckets."),
    _warn_of_flag("hoodie.datasource.hive_sync.sync_comment", "Catalogs are not told of comments of columns."),
    _warn_of_flag("hoodie.meta.sync.decode_partition", "Values of partitions are as in their paths."),
    _warn_of_flag("hoodie.clustering.async.enabled", _NO_BACKGROUND, _SERVICE_HINT),
    _warn_of_flag("hoodie.datasource.clustering.async.enable", _NO_BACKGROUND, _SERVICE_HINT),
    _warn_of_flag("hoodie.datasource.compaction.async.enable", _NO_BACKGROUND, _SERVICE_HINT),
    _warn_of_flag("hoodie.clean.async", _NO_BACKGROUND, _SERVICE_HINT),
    _warn_of_flag("hoodie.clean.async.enabled", _NO_BACKGROUND, _SERVICE_HINT),
    _warn_of_flag(
        "hoodie.log.compaction.enable",
        "No log compaction is planned beside writes.",
        "Set hoodie.log.compaction.inline.",
    ),
    _warn_of_flag("hoodie.table.service.manager.enabled", "No service manager runs table services."),
    _warn_of_flag("hoodie.metrics.on", "No metrics are reported."),
    _warn_of_flag("hoodie.metrics.executor.enable", "No metrics are reported."),
    _warn_of_flag("hoodie.write.commit.callback.on", "No callback is called after a commit."),
    _warn_of_flag("hoodie.rollback.instant.backup.enabled", "A rollback keeps no copy of the instants."),
    _warn_of_flag("hoodie.write.ignore.failed", "A row that fails makes the write fail."),
    _warn_of_flag("hoodie.datasource.write.streaming.ignore.failed.batch", "A batch that fails makes the stream fail."),
    _warn_of_text(
        "hoodie.write.num.retries.on.conflict.failures",
        "A write that conflicts with another one is not retried.",
        "Catch ConflictError and write again.",
        harmless=("0",),
    ),
    _warn_of_flag(
        "hoodie.write.concurrency.early.conflict.detection.enable",
        "Conflicts are found when a write commits, not while it runs.",
    ),
    _warn_of_flag("hoodie.metadata.index.expression.enable", _NO_INDEX),
    _warn_of_text(
        "hoodie.bulkinsert.user.defined.partitioner.class",
        "No class chooses the layout of rows.",
        harmless=(
            "org.apache.hudi.execution.bulkinsert.rowcustomcolumnssortpartitioner",
            "org.apache.hudi.execution.bulkinsert.rddcustomcolumnssortpartitioner",
        ),
    ),
    *(
        _warn_of_flag(f"hoodie.{key}", what)
        for key, what in (
            ("allow.empty.commit", "A write without rows makes no commit."),
            ("bulkinsert.sort.suffix.record_key", "Rows are sorted by the columns that are named, no further."),
            ("clustering.enable.expirations", "Clusterings do not expire."),
            (
                "clustering.fail.on.pending.ingestion.during.conflict.resolution",
                "A clustering does not fail because a write is at work.",
            ),
            ("fail.on.timeline.archiving", _AFTER_COMMIT),
            ("fail.writes.on.inline.table.service.exception", _AFTER_COMMIT),
            ("layout.optimize.enable", "No layout is switched on by it. Set hoodie.layout.optimize.strategy."),
            ("merge.data.validation.enabled", "Rows of merged files are not counted again. Call verify()."),
            ("meta.sync.no_partition_metadata", "Catalogs are told of partitions."),
            ("meta.sync.touch.partitions.enabled", "Catalogs are told of partitions that change, not of others."),
            ("datasource.hive_sync.recreate_table_on_error", "An entry is not dropped because it cannot be changed."),
            ("datasource.hive_sync.use_spark_catalog", "Entries are not made by Spark."),
            ("metadata.auto.delete.partitions", "A write drops no index. Call table.index.drop()."),
            ("metadata.bloom.filter.enable", "Files of the metadata table have no bloom filters."),
            ("metadata.index.async", "Indexes are built before the write. Call table.index.build() beside writes."),
            ("metadata.log.compaction.enable", "Log files of the metadata table are compacted only."),
            ("metadata.metrics.enable", "No metrics are reported."),
            ("metadata.record.index.enable.validation.on.initialization", "An index is checked by verify() only."),
            ("metadata.record.level.index.defer.init", "An index is built by the write that asks for it."),
            ("metadata.table.service.manager.enabled", "No service manager runs table services."),
            ("metrics.lock.enable", "No metrics are reported."),
            ("metricscompaction.log.blocks.on", "No metrics are reported."),
            ("parquet.writelegacyformat.enabled", "Files have the newer format of Parquet."),
            ("write.auto.upgrade", "A write upgrades no table. Call table.upgrade()."),
            ("write.track.event.time.watermark", "Commits store no watermarks."),
        )
    ),
    _warn_of_flag("_.hoodie.allow.multi.write.on.same.instant", "Each write has an instant of its own."),
    _warn_of_flag(
        "hoodie.copyonwrite.insert.auto.split",
        "Files are split by size alone.",
        "Set hoodie.parquet.max.file.size.",
        on=False,
    ),
    _warn_of_flag(
        "hoodie.write.concurrency.schema.conflict.resolution.enable",
        "Writes that change the columns beside each other always conflict.",
        on=False,
    ),
    _warn_of_flag(
        "hoodie.meta.sync.sync_snapshot_with_table_name",
        "A merge-on-read table always has an entry under its own name.",
        "Set hoodie.datasource.hive_sync.table.strategy.",
        on=False,
    ),
    *(
        _warn_of_text(f"hoodie.{key}", what, harmless=harmless)
        for key, what, harmless in (
            (
                "clustering.plan.strategy.file.slices.sort.by",
                "Plans take the slices of a partition by size.",
                ("size",),
            ),
            ("datasource.hive_sync.base_file_format", "Entries are of Parquet files.", ("parquet",)),
            ("datasource.write.secondarykey.column", "Set hoodie.metadata.index.secondary.column.", ()),
            ("datasource.write.streaming.retry.count", "A batch that fails is not tried again.", ("0",)),
            ("logfile.max.size", "A write makes one log file of a file group, however large.", ("1073741824",)),
            ("metadata.compact.trigger.strategy", "The number of commits alone decides.", ("num_commits",)),
            ("metadata.index.bloom.filter.column.list", "Only record keys have bloom filters.", ()),
            ("metadata.write.concurrency.mode", "Only writers of the table write it.", ("single_writer",)),
            ("meta_sync.global.replicate.timestamp", "Catalogs are not told of it.", ()),
            ("prewrite.cleaner.policy", "A write cleans after it, or not at all.", ("none",)),
            ("storage.layout.type", "The index decides about the layout.", ("default", "bucket")),
            ("write.empty.clean.interval.hours", "A clean that finds nothing leaves no instant.", ("-1",)),
        )
    ),
    *(
        _warn_of_text(f"hoodie.{key}", _NO_INDEX)
        for key in (
            "expression.index.function",
            "expression.index.type",
            "metadata.index.expression.column",
            "metadata.index.expression.options",
        )
    ),
    _warn_of_class(
        "hoodie.write.lock.conflict.resolution.strategy",
        "Writes conflict if they change the same file group.",
        "SimpleConcurrentFileWritesConflictResolutionStrategy",
        "BucketIndexConcurrentFileWritesConflictResolutionStrategy",
    ),
    _warn_of_class("hoodie.fileid.prefix.provider.class", _NO_CLASS, "RandomFileIdPrefixProvider"),
    _warn_of_class("hoodie.writestatus.class", _NO_CLASS, "WriteStatus", "MetadataMergeWriteStatus"),
    _warn_of_class("hoodie.parquet.spark.row.write.support.class", _NO_CLASS, "HoodieRowParquetWriteSupport"),
    _warn_of_class("hoodie.avro.write.support.class", _NO_CLASS, "HoodieAvroWriteSupport"),
    _warn_of_class("hoodie.parquet.write.config.injector.class", _NO_CLASS),
    _warn_of_class("hoodie.storage.layout.partitioner.class", _NO_CLASS, "SparkBucketIndexPartitioner"),
    _warn_of_text("hoodie.logfile.data.block.format", "Log blocks are Avro.", harmless=("avro",)),
    _warn_of_text(
        "hoodie.parquet.outputtimestamptype", "Times are stored in microseconds.", harmless=("timestamp_micros",)
    ),
)
