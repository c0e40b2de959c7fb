"""Options of Java Hudi that ask for what is not done here.

The rule: where rows, or what the table is, would be other than asked for, the option is an ``UnsupportedFeatureError``;
where rows and table are as asked for and only something beside the write does not happen (a catalog is not told, no
service runs, files are laid out otherwise), it is a ``HoodieWarning``. A value that asks for nothing says nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.options.parse import Flag, Option, Text

_NO_CATALOG = "No catalog is told of the table."
_NO_CLUSTERING = "Tables are not clustered."
_NO_INDEX = "No such index is built."
_CLUSTERING_HINT = "Let another writer do it."
_SERVICE_HINT = "Call compact() or clean(), or set hoodie.compact.inline and hoodie.clean.automatic."


@dataclass(frozen=True, slots=True)
class Undone:
    """An option that is not honoured.

    Attributes:
        option: its key and kind.
        what: what is not done, a sentence.
        hint: what to do instead.
        refused: whether asking for it is an error, else a warning.
        harmless: texts, in lower case, that ask for nothing.
    """

    option: Option
    what: str
    hint: str | None = None
    refused: bool = False
    harmless: tuple[str, ...] = ()

    def asked(self, options: Mapping[str, str]) -> bool:
        """Say whether options ask for it.

        Raises:
            InvalidQueryError: the text has no meaning.
        """
        self.option.check(options)
        text = self.option.text(options)
        return text is not None and text.lower() not in self.harmless

    @property
    def message(self) -> str:
        """What is said where a warning is."""
        return f"{self.option}: {self.what}" + (f" {self.hint}" if self.hint else "")

    def refuse(self, options: Mapping[str, str]) -> None:
        """Raise the error."""
        raise UnsupportedFeatureError(f"{self.option}={self.option.text(options)}: {self.what}", hint=self.hint)


def _refused(key: str, what: str, hint: str | None = None, on: bool = True) -> Undone:
    """A flag that is refused where it is on, or off."""
    return Undone(Flag(key, default=not on), what, hint, refused=True, harmless=("false" if on else "true",))


def _refused_text(key: str, what: str, hint: str | None = None, harmless: tuple[str, ...] = ()) -> Undone:
    return Undone(Text(key), what, hint, refused=True, harmless=harmless)


def _warned(key: str, what: str, hint: str | None = None) -> Undone:
    return Undone(Flag(key, default=False), what, hint, harmless=("false",))


def _warned_text(key: str, what: str, hint: str | None = None, harmless: tuple[str, ...] = ()) -> Undone:
    return Undone(Text(key), what, hint, harmless=harmless)


OF_READS = (
    _refused(
        "hoodie.datasource.read.extract.partition.values.from.path",
        "Partition columns are read from the files, not from paths.",
    ),
    _refused(
        "hoodie.datasource.read.partition.value.extractor.enabled",
        "Partition columns are read from the files, not from paths.",
    ),
    _refused("hoodie.bootstrap.data.queries.only", "Meta columns are always read."),
    _refused_text("hoodie.datasource.read.paths", "A read is of one table.", "Read each and put them together."),
)

OF_WRITES = (
    # Rows, or the table, would be other than asked for
    _refused("hoodie.partition.ttl.inline", "Old partitions are not deleted."),
    _refused_text("hoodie.precommit.validators", "Writes are not validated."),
    _refused_text("hoodie.prewrite.validators", "Writes are not validated."),
    _refused("hoodie.errortable.enable", "There is no table for rows that fail; they are an error of the write."),
    _refused(
        "hoodie.datasource.write.insert.drop.duplicates",
        "Inserts of known keys are not dropped by this option.",
        "Use the operation insert with hoodie.datasource.insert.dup.policy=drop.",
    ),
    _refused(
        "hoodie.merge.allow.duplicate.on.inserts", "Inserts do not merge with known keys.", "Upsert them.", on=False
    ),
    _refused("hoodie.datasource.write.schema.allow.auto.evolution.column.drop", "Columns are never dropped."),
    _refused("hoodie.allow.operation.metadata.field", "Files do not keep the operation of a row."),
    _refused_text("hoodie.datasource.write.commitmeta.key.prefix", "Commits do not keep options.", harmless=("_",)),
    _refused_text("hoodie.datasource.write.partitions.to.delete", "Partitions cannot be deleted by an option."),
    _refused_text("hoodie.clean.partition.filter.regex", "A clean is of all partitions."),
    _refused_text("hoodie.clean.partition.filter.selected", "A clean is of all partitions."),
    _refused_text("hoodie.cleaner.partition.filter.regex", "A clean is of all partitions."),
    _refused_text("hoodie.cleaner.partition.filter.selected", "A clean is of all partitions."),
    _refused_text("hoodie.index.class", "Indexes of one's own are not handled.", "Set hoodie.index.type."),
    _refused("hoodie.metaserver.enabled", "Tables of a metaserver are not handled."),
    _refused("hoodie.auto.commit", "A write always commits.", on=False),
    # Something beside the write does not happen
    _warned("hoodie.datasource.hive_sync.enable", _NO_CATALOG),
    _warned("hoodie.datasource.meta.sync.enable", _NO_CATALOG),
    _warned("hoodie.clustering.inline", _NO_CLUSTERING, _CLUSTERING_HINT),
    _warned("hoodie.clustering.schedule.inline", _NO_CLUSTERING, _CLUSTERING_HINT),
    _warned("hoodie.clustering.async.enabled", _NO_CLUSTERING, _CLUSTERING_HINT),
    _warned("hoodie.datasource.clustering.inline.enable", _NO_CLUSTERING, _CLUSTERING_HINT),
    _warned("hoodie.datasource.clustering.async.enable", _NO_CLUSTERING, _CLUSTERING_HINT),
    _warned("hoodie.layout.optimize.enable", _NO_CLUSTERING, _CLUSTERING_HINT),
    _warned("hoodie.datasource.compaction.async.enable", "Nothing runs beside a write.", _SERVICE_HINT),
    _warned("hoodie.clean.async", "Nothing runs beside a write.", _SERVICE_HINT),
    _warned("hoodie.clean.async.enabled", "Nothing runs beside a write.", _SERVICE_HINT),
    _warned("hoodie.archive.automatic", "The timeline is not archived.", _CLUSTERING_HINT),
    _warned("hoodie.archive.async", "The timeline is not archived.", _CLUSTERING_HINT),
    _warned("hoodie.log.compaction.inline", "Log files are not compacted into log files."),
    _warned("hoodie.log.compaction.enable", "Log files are not compacted into log files."),
    _warned("hoodie.table.service.manager.enabled", "Services are not handed to a manager."),
    _warned("hoodie.metrics.on", "No metrics are reported."),
    _warned("hoodie.metrics.executor.enable", "No metrics are reported."),
    _warned("hoodie.write.commit.callback.on", "Nobody is called after a commit."),
    _warned("hoodie.rollback.instant.backup.enabled", "A rollback keeps no copy of the instants."),
    _warned("hoodie.write.ignore.failed", "Rows that fail are an error of the write."),
    _warned("hoodie.datasource.write.streaming.ignore.failed.batch", "A batch that fails is an error of the stream."),
    _warned_text(
        "hoodie.write.num.retries.on.conflict.failures",
        "A write that meets another one is not tried again.",
        "Catch ConflictError and write again.",
        harmless=("0",),
    ),
    _warned("hoodie.metadata.index.column.stats.enable", _NO_INDEX),
    _warned("hoodie.metadata.index.partition.stats.enable", _NO_INDEX),
    _warned("hoodie.metadata.index.bloom.filter.enable", _NO_INDEX),
    _warned("hoodie.metadata.index.secondary.enable", _NO_INDEX),
    _warned("hoodie.metadata.index.expression.enable", _NO_INDEX),
    _warned("hoodie.metadata.record.index.enable", _NO_INDEX),
    _warned("hoodie.metadata.record.level.index.enable", _NO_INDEX),
    _warned("hoodie.metadata.global.record.level.index.enable", _NO_INDEX),
    _warned_text("hoodie.bulkinsert.user.defined.partitioner.class", "Rows are not laid out by a class."),
    _warned_text("hoodie.logfile.data.block.format", "Log blocks are Avro.", harmless=("avro",)),
    _warned_text(
        "hoodie.parquet.outputtimestamptype", "Times are stored in microseconds.", harmless=("timestamp_micros",)
    ),
)
