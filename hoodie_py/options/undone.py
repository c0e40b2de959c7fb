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

_NO_CATALOG = "No catalog is told of the table."
_NO_CLUSTERING = "Tables are not clustered."
_NO_INDEX = "No such index is built."
_CLUSTERING_HINT = "Let another writer do it."
_SERVICE_HINT = "Call compact() or clean(), or set hoodie.compact.inline and hoodie.clean.automatic."


@dataclass(frozen=True, slots=True)
class UnsupportedOption:
    """An option that has no effect here.

    Attributes:
        option: the option.
        what: the missing feature, a sentence.
        hint: what to do instead.
        refused: whether the option is an error; otherwise it is a warning.
        harmless: values, in lower case, that do not ask for the feature.
    """

    option: Option
    what: str
    hint: str | None = None
    refused: bool = False
    harmless: tuple[str, ...] = ()

    def is_asked(self, options: Mapping[str, str]) -> bool:
        """Say whether options ask for the feature.

        Raises:
            InvalidQueryError: the value is not valid.
        """
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
    _refuse_text(READ_PATHS, "A read is of one table.", "Read each and put them together."),
)

OF_WRITES = (
    # Rows, or the table, would be other than asked for
    _refuse_flag("hoodie.partition.ttl.inline", "Old partitions are not deleted."),
    _refuse_text("hoodie.precommit.validators", "Writes are not validated."),
    _refuse_text("hoodie.prewrite.validators", "Writes are not validated."),
    _refuse_flag("hoodie.errortable.enable", "There is no table for rows that fail; they are an error of the write."),
    _refuse_flag(
        "hoodie.datasource.write.insert.drop.duplicates",
        "Inserts of known keys are not dropped by this option.",
        "Use the operation insert with hoodie.datasource.insert.dup.policy=drop.",
    ),
    _refuse_flag(
        "hoodie.merge.allow.duplicate.on.inserts", "Inserts do not merge with known keys.", "Upsert them.", on=False
    ),
    _refuse_flag("hoodie.datasource.write.schema.allow.auto.evolution.column.drop", "Columns are never dropped."),
    _refuse_flag("hoodie.allow.operation.metadata.field", "Files do not keep the operation of a row."),
    _refuse_text("hoodie.datasource.write.commitmeta.key.prefix", "Commits do not keep options.", harmless=("_",)),
    _refuse_text("hoodie.datasource.write.partitions.to.delete", "Partitions cannot be deleted by an option."),
    _refuse_text("hoodie.clean.partition.filter.regex", "A clean is of all partitions."),
    _refuse_text("hoodie.clean.partition.filter.selected", "A clean is of all partitions."),
    _refuse_text("hoodie.cleaner.partition.filter.regex", "A clean is of all partitions."),
    _refuse_text("hoodie.cleaner.partition.filter.selected", "A clean is of all partitions."),
    _refuse_text("hoodie.index.class", "Indexes of one's own are not handled.", "Set hoodie.index.type."),
    _refuse_flag("hoodie.metaserver.enabled", "Tables of a metaserver are not handled."),
    _refuse_flag("hoodie.auto.commit", "A write always commits.", on=False),
    # Something beside the write does not happen
    _warn_of_flag("hoodie.datasource.hive_sync.enable", _NO_CATALOG),
    _warn_of_flag("hoodie.datasource.meta.sync.enable", _NO_CATALOG),
    _warn_of_flag("hoodie.clustering.inline", _NO_CLUSTERING, _CLUSTERING_HINT),
    _warn_of_flag("hoodie.clustering.schedule.inline", _NO_CLUSTERING, _CLUSTERING_HINT),
    _warn_of_flag("hoodie.clustering.async.enabled", _NO_CLUSTERING, _CLUSTERING_HINT),
    _warn_of_flag("hoodie.datasource.clustering.inline.enable", _NO_CLUSTERING, _CLUSTERING_HINT),
    _warn_of_flag("hoodie.datasource.clustering.async.enable", _NO_CLUSTERING, _CLUSTERING_HINT),
    _warn_of_flag("hoodie.layout.optimize.enable", _NO_CLUSTERING, _CLUSTERING_HINT),
    _warn_of_flag("hoodie.datasource.compaction.async.enable", "Nothing runs beside a write.", _SERVICE_HINT),
    _warn_of_flag("hoodie.clean.async", "Nothing runs beside a write.", _SERVICE_HINT),
    _warn_of_flag("hoodie.clean.async.enabled", "Nothing runs beside a write.", _SERVICE_HINT),
    _warn_of_flag("hoodie.archive.automatic", "The timeline is not archived.", _CLUSTERING_HINT),
    _warn_of_flag("hoodie.archive.async", "The timeline is not archived.", _CLUSTERING_HINT),
    _warn_of_flag("hoodie.log.compaction.inline", "Log files are not compacted into log files."),
    _warn_of_flag("hoodie.log.compaction.enable", "Log files are not compacted into log files."),
    _warn_of_flag("hoodie.table.service.manager.enabled", "Services are not handed to a manager."),
    _warn_of_flag("hoodie.metrics.on", "No metrics are reported."),
    _warn_of_flag("hoodie.metrics.executor.enable", "No metrics are reported."),
    _warn_of_flag("hoodie.write.commit.callback.on", "Nobody is called after a commit."),
    _warn_of_flag("hoodie.rollback.instant.backup.enabled", "A rollback keeps no copy of the instants."),
    _warn_of_flag("hoodie.write.ignore.failed", "Rows that fail are an error of the write."),
    _warn_of_flag(
        "hoodie.datasource.write.streaming.ignore.failed.batch", "A batch that fails is an error of the stream."
    ),
    _warn_of_text(
        "hoodie.write.num.retries.on.conflict.failures",
        "A write that meets another one is not tried again.",
        "Catch ConflictError and write again.",
        harmless=("0",),
    ),
    _warn_of_flag("hoodie.metadata.index.column.stats.enable", _NO_INDEX),
    _warn_of_flag("hoodie.metadata.index.partition.stats.enable", _NO_INDEX),
    _warn_of_flag("hoodie.metadata.index.bloom.filter.enable", _NO_INDEX),
    _warn_of_flag("hoodie.metadata.index.secondary.enable", _NO_INDEX),
    _warn_of_flag("hoodie.metadata.index.expression.enable", _NO_INDEX),
    _warn_of_flag("hoodie.metadata.record.index.enable", _NO_INDEX),
    _warn_of_flag("hoodie.metadata.record.level.index.enable", _NO_INDEX),
    _warn_of_flag("hoodie.metadata.global.record.level.index.enable", _NO_INDEX),
    _warn_of_text("hoodie.bulkinsert.user.defined.partitioner.class", "Rows are not laid out by a class."),
    _warn_of_text("hoodie.logfile.data.block.format", "Log blocks are Avro.", harmless=("avro",)),
    _warn_of_text(
        "hoodie.parquet.outputtimestamptype", "Times are stored in microseconds.", harmless=("timestamp_micros",)
    ),
)
