"""Resolve Hudi's writer options: strings become typed values with Hudi's defaults (Hudi ``HoodieWriteConfig``).

Keys that do not concern this package's writes are ignored, as in Java. The defaults are those of Hudi 1.2.0 except one:
new base files get the codec of the table's own files, while Java's default is gzip (``base_codec``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, cast

from hoodie_py.errors import InvalidQueryError
from hoodie_py.formats.parquet.bloom import BloomSettings
from hoodie_py.options import write as keys
from hoodie_py.options.check import check_write_options
from hoodie_py.writer.index_settings import IndexSettings

MetadataMode = Literal["auto", "disable", "refuse"]


@dataclass(frozen=True, slots=True)
class PlanSettings:
    """The settings of a compaction plan.

    Attributes:
        strategies: class names of the strategies to apply in turn, without package.
        target_io_mb: MB to read and write in one plan.
        log_size_threshold: minimum bytes of log files in a chosen slice.
        log_number_threshold: minimum number of log files in a chosen slice.
        target_partitions: number of partitions to choose, or of days back for strategies by days.
        partition_regex: pattern that chosen partition paths contain.
        max_file_size: bytes that a slice without base file is expected to write.
        trigger: the condition on changes since the last compaction; None: always plan.
        delta_commits, delta_seconds: the trigger's thresholds.
    """

    strategies: tuple[str, ...] = ("LogFileSizeBasedCompactionStrategy",)
    target_io_mb: int = keys.COMPACTION_TARGET_IO.default
    log_size_threshold: int = keys.COMPACTION_LOG_SIZE_THRESHOLD.default
    log_number_threshold: int = keys.COMPACTION_LOG_NUMBER_THRESHOLD.default
    target_partitions: int = keys.COMPACTION_TARGET_PARTITIONS.default
    partition_regex: str | None = None
    max_file_size: int = keys.PARQUET_MAX_FILE_SIZE.default
    trigger: str | None = None
    delta_commits: int = keys.TRIGGER_DELTA_COMMITS.default
    delta_seconds: int = keys.TRIGGER_DELTA_SECONDS.default


@dataclass(frozen=True, slots=True)
class ArchivalSettings:
    """The settings of archival.

    Attributes:
        min_commits, max_commits: with more than ``max_commits`` completed commits in the active timeline, all but
            ``min_commits`` are archived.
        beyond_savepoint: whether commits after the first savepoint are archived, too.
        after_clean: whether commits stay whose files the last clean retained.
        clean_policy, clean_commits: what cleans keep; commits that they retain are not archived.
        trigger, delta_commits: when compactions are planned; delta commits that count for that are not archived.
        block_records: records per block in an archive file of timeline layout 1.
        batch, file_bytes: number of history files of timeline layout 2 that are merged into one, and their maximum
            bytes.
        versions: number of manifests of the history that stay for readers.
    """

    min_commits: int = keys.KEEP_MIN_COMMITS.default
    max_commits: int = keys.KEEP_MAX_COMMITS.default
    beyond_savepoint: bool = False
    after_clean: bool = False
    clean_policy: str = keys.KEEP_LATEST_COMMITS
    clean_commits: int = keys.COMMITS_RETAINED.default
    trigger: str = keys.TRIGGERS[0]
    delta_commits: int = keys.TRIGGER_DELTA_COMMITS.default
    block_records: int = keys.ARCHIVE_BATCH.default
    batch: int = keys.HISTORY_BATCH.default
    file_bytes: int = keys.HISTORY_FILE_BYTES.default
    versions: int = keys.HISTORY_VERSIONS.default


@dataclass(frozen=True, slots=True)
class FileSettings:
    """The settings of data files.

    Attributes:
        codec: None for the codec of the table's own files.
        level: None for the codec's default.
        row_group_bytes, page_bytes: sizes of row groups and pages in base files.
        bloom: the filter over record keys; None for no filter.
        dictionary: whether base files use dictionaries.
        log_block_bytes: maximum bytes in memory of the rows in a data block of a log file.
    """

    codec: str | None = None
    level: int | None = None
    row_group_bytes: int = keys.PARQUET_BLOCK_SIZE.default
    bloom: BloomSettings | None = field(default_factory=BloomSettings)
    page_bytes: int = keys.PARQUET_PAGE_SIZE.default
    dictionary: bool = keys.PARQUET_DICTIONARY.default
    log_block_bytes: int = keys.LOG_BLOCK_BYTES.default


@dataclass(frozen=True, slots=True)
class WriteSettings:
    """The settings of one call that writes.

    Attributes:
        plan: for compaction plans.
        file: for base files.
        archival: for the archival of the timeline.
        metadata_mode: how to treat a metadata table: update it or refuse ("auto"), switch it off ("disable"), or refuse
            the write ("refuse").
        multi_writer: whether other writers may work at the same time, so that heartbeats count.
        non_blocking: whether they may write the same file groups at the same time.
        clock_skew_ms: maximum difference between the clocks of writers.
        small_file_bytes: new records fill base files below this size.
        rewrite_ratio: how many times the bytes of its new records a filled file may have; None: any number.
        small_file_candidates: on merge-on-read tables, the maximum number of them that a write fills in a partition.
        options: all options as given, for readers, mergers and lock providers.
        table_index: the index that the table's files show; None if only the options name one.
    """

    plan: PlanSettings = field(default_factory=PlanSettings)
    file: FileSettings = field(default_factory=FileSettings)
    archival: ArchivalSettings = field(default_factory=ArchivalSettings)
    metadata_mode: MetadataMode = "auto"
    multi_writer: bool = False
    non_blocking: bool = False
    clock_skew_ms: int = keys.CLOCK_SKEW_MS.default
    small_file_bytes: int = keys.PARQUET_SMALL_FILE_LIMIT.default
    rewrite_ratio: float | None = keys.REWRITE_RATIO.default
    small_file_candidates: int = keys.SMALL_FILE_CANDIDATES.default
    options: Mapping[str, str] = field(default_factory=dict)
    table_index: IndexSettings | None = None

    @property
    def index(self) -> IndexSettings:
        """The index of a write; errors as for ``IndexSettings.from_options``."""
        return self.table_index or IndexSettings.from_options(self.options)

    @classmethod
    def from_options(cls, options: Mapping[str, object] | None, strategy: str | None = None) -> WriteSettings:
        """Resolve options; an explicit ``strategy`` takes precedence over the options.

        Raises:
            InvalidQueryError: a value is out of range.
        """
        texts = {str(key): _to_text(value) for key, value in (options or {}).items() if value is not None}
        check_write_options(texts)
        return cls(
            plan=_read_plan_settings(texts, strategy),
            file=_read_file_settings(texts),
            archival=_read_archival_settings(texts),
            metadata_mode=cast("MetadataMode", keys.METADATA_MODE.read(texts)),
            multi_writer=_is_multi_writer(texts),
            non_blocking=keys.CONCURRENCY_MODE.read(texts) == keys.NON_BLOCKING,
            clock_skew_ms=keys.CLOCK_SKEW_MS.read(texts),
            small_file_bytes=keys.PARQUET_SMALL_FILE_LIMIT.read(texts),
            rewrite_ratio=_read_rewrite_ratio(texts),
            small_file_candidates=keys.SMALL_FILE_CANDIDATES.read(texts),
            options=texts,
        )


def _read_plan_settings(texts: Mapping[str, str], strategy: str | None) -> PlanSettings:
    named = (strategy,) if strategy else keys.COMPACTION_STRATEGY.read(texts) or PlanSettings().strategies
    triggers = (keys.TRIGGER_STRATEGY, keys.TRIGGER_DELTA_COMMITS, keys.TRIGGER_DELTA_SECONDS)
    asked = any(key.find_text(texts) for key in triggers)
    return PlanSettings(
        strategies=tuple(each.strip().rpartition(".")[2] for name in named for each in name.split(",") if each.strip()),
        target_io_mb=keys.COMPACTION_TARGET_IO.read(texts),
        log_size_threshold=keys.COMPACTION_LOG_SIZE_THRESHOLD.read(texts),
        log_number_threshold=keys.COMPACTION_LOG_NUMBER_THRESHOLD.read(texts),
        target_partitions=keys.COMPACTION_TARGET_PARTITIONS.read(texts),
        partition_regex=keys.COMPACTION_PARTITION_REGEX.read(texts),
        max_file_size=keys.PARQUET_MAX_FILE_SIZE.read(texts),
        trigger=keys.TRIGGER_STRATEGY.read(texts) if asked else None,
        delta_commits=keys.TRIGGER_DELTA_COMMITS.read(texts),
        delta_seconds=keys.TRIGGER_DELTA_SECONDS.read(texts),
    )


def _read_archival_settings(texts: Mapping[str, str]) -> ArchivalSettings:
    settings = ArchivalSettings(
        min_commits=keys.KEEP_MIN_COMMITS.read(texts),
        max_commits=keys.KEEP_MAX_COMMITS.read(texts),
        beyond_savepoint=keys.ARCHIVE_BEYOND_SAVEPOINT.read(texts),
        after_clean=keys.ARCHIVE_AFTER_CLEAN.read(texts),
        clean_policy=keys.CLEAN_POLICY.read(texts),
        clean_commits=keys.COMMITS_RETAINED.read(texts),
        trigger=keys.TRIGGER_STRATEGY.read(texts),
        delta_commits=keys.TRIGGER_DELTA_COMMITS.read(texts),
        block_records=keys.ARCHIVE_BATCH.read(texts),
        batch=keys.HISTORY_BATCH.read(texts),
        file_bytes=keys.HISTORY_FILE_BYTES.read(texts),
        versions=keys.HISTORY_VERSIONS.read(texts),
    )
    least, most = settings.min_commits, settings.max_commits
    if most <= least and settings.clean_policy == keys.KEEP_LATEST_COMMITS:
        raise InvalidQueryError(
            f"{keys.KEEP_MAX_COMMITS}={most} is not greater than {keys.KEEP_MIN_COMMITS}={least}.",
            hint=f"Give {keys.KEEP_MAX_COMMITS} a greater number.",
        )
    return settings


def _read_rewrite_ratio(texts: Mapping[str, str]) -> float | None:
    """Return the ratio; None if a limit was given without one, which is an order to fill as Java does."""
    if keys.PARQUET_SMALL_FILE_LIMIT.find_text(texts) and not keys.REWRITE_RATIO.find_text(texts):
        return None
    return keys.REWRITE_RATIO.read(texts)


def _read_file_settings(texts: Mapping[str, str]) -> FileSettings:
    return FileSettings(
        codec=keys.PARQUET_CODEC.read_given(texts),
        level=keys.PARQUET_CODEC_LEVEL.read_given(texts),
        row_group_bytes=keys.PARQUET_BLOCK_SIZE.read(texts),
        bloom=_read_bloom_settings(texts) if keys.BLOOM_ENABLED.read(texts) else None,
        page_bytes=keys.PARQUET_PAGE_SIZE.read(texts),
        dictionary=keys.PARQUET_DICTIONARY.read(texts),
        log_block_bytes=keys.LOG_BLOCK_BYTES.read(texts),
    )


def _read_bloom_settings(texts: Mapping[str, str]) -> BloomSettings:
    """Return the settings of a bloom filter; without a number of entries, small filters fit their file."""
    settings = BloomSettings(
        keys.BLOOM_ENTRIES.read(texts),
        keys.BLOOM_FPP.read(texts),
        keys.BLOOM_MAX_ENTRIES.read(texts),
        dynamic=keys.BLOOM_TYPE.read(texts) == keys.BLOOM_TYPE.choices[0],
        fitted=keys.BLOOM_ENTRIES.read_given(texts) is None,
    )
    settings.choose_shape(1)
    return settings


def _is_multi_writer(texts: Mapping[str, str]) -> bool:
    return keys.CONCURRENCY_MODE.read(texts) != keys.SINGLE_WRITER or keys.FAILED_WRITES_POLICY.read(texts) != "EAGER"


def _to_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
