"""Options of Java Hudi that ask for features that are missing here.

If ignoring an option would give other rows or another table, the option is an ``UnsupportedFeatureError``. If rows and
table are right and only something beside the write is missing (no catalog is informed, no service runs, files have
another layout), it is a ``HoodieWarning``. A value that asks for nothing, such as ``false``, gives neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.options.parse import Flag, Option, Text
from hoodie_py.options.read import READ_PATHS

_NO_BACKGROUND = "No table service runs in the background."
_NO_INDEX = "No such index is built."
_SERVICE_HINT = "Call compact() or clean(), or set hoodie.compact.inline and hoodie.clean.automatic."


@dataclass(frozen=True, slots=True)
class UnsupportedOption:
    """An option that has no effect here."""

    option: Option
    what: str  # the missing feature, a sentence
    hint: str | None = None  # what to do instead
    refused: bool = False  # whether the option is an error; otherwise it is a warning
    harmless: tuple[str, ...] = ()  # values, in lower case, that do not ask for the feature

    def is_asked(self, options: Mapping[str, str]) -> bool:
        """Say whether options ask for the feature. Raises InvalidQueryError if the value is not valid."""
        self.option.check(options)
        text = self.option.find_text(options)
        return text is not None and text.lower() not in self.harmless

    @property
    def message(self) -> str:
        """The text of the warning."""
        return f"{self.option}: {self.what}" + (f" {self.hint}" if self.hint else "")

    def refuse(self, options: Mapping[str, str]) -> None:
        """Raise the error."""
        raise UnsupportedFeatureError(f"{self.option}={self.option.find_text(options)}: {self.what}", hint=self.hint)


def _refuse_flag(key: str, what: str, hint: str | None = None, on: bool = True) -> UnsupportedOption:
    """Declare a flag that is refused if it is on, or with ``on=False`` if it is off."""
    return UnsupportedOption(Flag(key, default=not on), what, hint, refused=True, harmless=("false" if on else "true",))


def _refuse_text(key: str, what: str, hint: str | None = None, harmless: tuple[str, ...] = ()) -> UnsupportedOption:
    return UnsupportedOption(Text(key), what, hint, refused=True, harmless=harmless)


def _warn_of_flag(key: str, what: str, hint: str | None = None) -> UnsupportedOption:
    return UnsupportedOption(Flag(key, default=False), what, hint, harmless=("false",))


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
    _warn_of_text("hoodie.logfile.data.block.format", "Log blocks are Avro.", harmless=("avro",)),
    _warn_of_text(
        "hoodie.parquet.outputtimestamptype", "Times are stored in microseconds.", harmless=("timestamp_micros",)
    ),
)
