"""Hudi's writer options, resolved: what a caller gives as strings becomes typed values with Hudi's own defaults.

Keys that do not concern what this package writes are passed over, as in Java. The defaults are those of Hudi 1.2.0
save one: base files have the codec of those that the table has, where Java's default is gzip (``base_codec``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, cast

from hoodie_py.errors import InvalidQueryError
from hoodie_py.formats.bloom import BloomSettings
from hoodie_py.options import write as keys
from hoodie_py.options.parse import flag, option
from hoodie_py.writer.index_settings import IndexSettings

MetadataMode = Literal["auto", "disable", "refuse"]
METADATA_MODES = ("auto", "disable", "refuse")
TRIGGERS = ("NUM_COMMITS", "NUM_COMMITS_AFTER_LAST_REQUEST", "TIME_ELAPSED", "NUM_AND_TIME", "NUM_OR_TIME")
CODECS = ("zstd", "snappy", "gzip", "uncompressed")

_OPTIMISTIC = "OPTIMISTIC_CONCURRENCY_CONTROL"
_NON_BLOCKING = "NON_BLOCKING_CONCURRENCY_CONTROL"
_SINGLE = "SINGLE_WRITER"


@dataclass(frozen=True, slots=True)
class PlanSettings:
    """What a compaction plan takes.

    Attributes:
        strategies: class names, without package, of the strategies to apply in turn.
        target_io_mb: MB to read and write in one plan.
        log_size_threshold: bytes of log files from which a slice is taken.
        log_number_threshold: log files from which a slice is taken.
        target_partitions: partitions to take, or days back, for the strategies that go by days.
        partition_regex: what partition paths must contain a match of.
        max_file_size: bytes that a slice without base file is expected to write.
        trigger: what must have happened since the last compaction; None plans whatever there is.
        delta_commits, delta_seconds: the trigger's thresholds.
    """

    strategies: tuple[str, ...] = ("LogFileSizeBasedCompactionStrategy",)
    target_io_mb: int = 500 * 1024
    log_size_threshold: int = 0
    log_number_threshold: int = 0
    target_partitions: int = 10
    partition_regex: str | None = None
    max_file_size: int = 120 * 1024 * 1024
    trigger: str | None = None
    delta_commits: int = 5
    delta_seconds: int = 3600


@dataclass(frozen=True, slots=True)
class FileSettings:
    """What base files look like: codec (None for that of the table's own) and level, bytes of a row group, and the
    bloom filter over record keys (None for none).
    """

    codec: str | None = None
    level: int | None = None
    row_group_bytes: int = 8 * 1024 * 1024
    bloom: BloomSettings | None = field(default_factory=BloomSettings)


@dataclass(frozen=True, slots=True)
class WriteSettings:
    """Settings of one call that writes.

    Attributes:
        plan: for compaction plans.
        file: for base files.
        metadata_mode: what to do about a metadata table: keep it right or refuse ("auto"), switch it off ("disable"),
            or refuse.
        multi_writer: whether other writers work beside this one, so that heartbeats count.
        clock_skew_ms: how far clocks of writers may be apart.
        small_file_bytes: base files below this size are filled up with new records, where they are rewritten anyway.
        options: all options as given, for readers, mergers and lock providers.
        table_index: the index that the table shows to have; None where options alone say it.
    """

    plan: PlanSettings = field(default_factory=PlanSettings)
    file: FileSettings = field(default_factory=FileSettings)
    metadata_mode: MetadataMode = "auto"
    multi_writer: bool = False
    clock_skew_ms: int = 200
    small_file_bytes: int = 100 * 1024 * 1024
    options: Mapping[str, str] = field(default_factory=dict)
    table_index: IndexSettings | None = None

    @property
    def index(self) -> IndexSettings:
        """The index of a write; errors as for ``IndexSettings.of``."""
        return self.table_index or IndexSettings.of(self.options)

    @classmethod
    def of(cls, options: Mapping[str, object] | None, strategy: str | None = None) -> WriteSettings:
        """Resolve options; an explicit strategy wins over theirs.

        Raises:
            InvalidQueryError: a value out of range.
        """
        texts = {str(key): _text(value) for key, value in (options or {}).items() if value is not None}
        return cls(
            plan=_plan(texts, strategy),
            file=_file(texts),
            metadata_mode=cast("MetadataMode", _choice(texts, keys.METADATA_MODE, METADATA_MODES, "auto")),
            multi_writer=_multi_writer(texts),
            clock_skew_ms=_number(texts, keys.CLOCK_SKEW_MS, 200),
            small_file_bytes=_number(texts, keys.PARQUET_SMALL_FILE_LIMIT, 100 * 1024 * 1024),
            options=texts,
        )


def _plan(texts: Mapping[str, str], strategy: str | None) -> PlanSettings:
    default = PlanSettings()
    named = strategy or option(texts, keys.COMPACTION_STRATEGY) or default.strategies[0]
    asked = any(
        option(texts, key) for key in (keys.TRIGGER_STRATEGY, keys.TRIGGER_DELTA_COMMITS, keys.TRIGGER_DELTA_SECONDS)
    )
    trigger = _choice(texts, keys.TRIGGER_STRATEGY, TRIGGERS, TRIGGERS[0])
    return PlanSettings(
        strategies=tuple(name.strip().rpartition(".")[2] for name in named.split(",") if name.strip()),
        target_io_mb=_number(texts, keys.COMPACTION_TARGET_IO, default.target_io_mb),
        log_size_threshold=_number(texts, keys.COMPACTION_LOG_SIZE_THRESHOLD, default.log_size_threshold),
        log_number_threshold=_number(texts, keys.COMPACTION_LOG_NUMBER_THRESHOLD, default.log_number_threshold),
        target_partitions=_number(texts, keys.COMPACTION_TARGET_PARTITIONS, default.target_partitions),
        partition_regex=option(texts, keys.COMPACTION_PARTITION_REGEX),
        max_file_size=_number(texts, keys.PARQUET_MAX_FILE_SIZE, default.max_file_size),
        trigger=trigger if asked else None,
        delta_commits=_number(texts, keys.TRIGGER_DELTA_COMMITS, default.delta_commits),
        delta_seconds=_number(texts, keys.TRIGGER_DELTA_SECONDS, default.delta_seconds),
    )


def _file(texts: Mapping[str, str]) -> FileSettings:
    default = FileSettings()
    level = option(texts, keys.PARQUET_CODEC_LEVEL)
    return FileSettings(
        codec=_choice(texts, keys.PARQUET_CODEC, CODECS, "") or None,
        level=None if level is None else _number(texts, keys.PARQUET_CODEC_LEVEL, 0),
        row_group_bytes=_number(texts, keys.PARQUET_BLOCK_SIZE, default.row_group_bytes, least=1),
        bloom=BloomSettings.from_options(texts) if flag(texts, keys.BLOOM_ENABLED, default=True) else None,
    )


def _multi_writer(texts: Mapping[str, str]) -> bool:
    mode = (option(texts, keys.CONCURRENCY_MODE, _SINGLE) or _SINGLE).upper()
    if mode not in (_SINGLE, _OPTIMISTIC, _NON_BLOCKING):
        raise _refused(keys.CONCURRENCY_MODE, mode, f"{_SINGLE}, {_OPTIMISTIC}, {_NON_BLOCKING}")
    policy = option(texts, keys.FAILED_WRITES_POLICY) or option(texts, keys.FAILED_WRITES_POLICY_ALIAS) or "EAGER"
    return mode != _SINGLE or policy.upper() == "LAZY"


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _choice(texts: Mapping[str, str], key: str, choices: tuple[str, ...], default: str) -> str:
    value = option(texts, key)
    if value is None:
        return default
    for choice in choices:
        if value.lower() == choice.lower():
            return choice
    raise _refused(key, value, ", ".join(choices))


def _number(texts: Mapping[str, str], key: str, default: int, least: int = 0) -> int:
    value = option(texts, key)
    if value is None:
        return default
    if not (value.isascii() and value.isdigit() and len(value) < 19 and int(value) >= least):
        raise _refused(key, value, f"a whole number from {least} on")
    return int(value)


def _refused(key: str, value: str, wanted: str) -> InvalidQueryError:
    return InvalidQueryError(f"{key} cannot be {value[:100]!r}.", hint=f"Give {wanted}.")
