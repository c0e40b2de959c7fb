from __future__ import annotations

import pytest

from hoodie_py.errors import InvalidQueryError
from hoodie_py.formats.parquet.bloom import BloomSettings
from hoodie_py.writer.settings import FileSettings, PlanSettings, WriteSettings


def test_defaults_are_hudi_s() -> None:
    settings = WriteSettings.from_options({"hoodie.unrelated": 1, "hoodie.compaction.target.io": None})
    assert settings.plan == PlanSettings()
    assert settings.file == FileSettings(bloom=BloomSettings(fitted=True))
    assert settings.plan.strategies == ("LogFileSizeBasedCompactionStrategy",)
    assert (settings.plan.target_io_mb, settings.plan.delta_commits, settings.plan.delta_seconds) == (512_000, 5, 3600)
    assert (settings.metadata_mode, settings.multi_writer, settings.clock_skew_ms) == ("auto", False, 200)


def test_strategies_are_class_names_with_or_without_package() -> None:
    package = "org.apache.hudi.table.action.compact.strategy"
    options = {"hoodie.compaction.strategy": f"{package}.DayBasedCompactionStrategy, UnBoundedCompactionStrategy"}
    assert WriteSettings.from_options(options).plan.strategies == (
        "DayBasedCompactionStrategy",
        "UnBoundedCompactionStrategy",
    )
    assert WriteSettings.from_options(options, "BoundedIOCompactionStrategy").plan.strategies == (
        "BoundedIOCompactionStrategy",
    )


@pytest.mark.parametrize(
    ("options", "trigger"),
    [
        ({}, None),
        ({"hoodie.compact.inline.max.delta.commits": 3}, "NUM_COMMITS"),
        ({"hoodie.compact.inline.max.delta.seconds": "60"}, "NUM_COMMITS"),
        ({"hoodie.compact.inline.trigger.strategy": "time_elapsed"}, "TIME_ELAPSED"),
    ],
)
def test_a_trigger_counts_only_where_one_is_asked_for(options: dict[str, object], trigger: str | None) -> None:
    assert WriteSettings.from_options(options).plan.trigger == trigger


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, False),
        ({"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}, True),
        ({"hoodie.clean.failed.writes.policy": "LAZY"}, True),
        ({"hoodie.cleaner.policy.failed.writes": "lazy"}, True),
        ({"hoodie.clean.failed.writes.policy": "EAGER"}, False),
    ],
)
def test_several_writers_are_declared_by_mode_or_policy(options: dict[str, object], expected: bool) -> None:
    assert WriteSettings.from_options(options).multi_writer is expected


def test_files() -> None:
    options = {
        "hoodie.parquet.compression.codec": "SNAPPY", "hoodie.parquet.block.size": 1024,
        "hoodie.parquet.bloom.filter.enabled": False,
    }  # fmt: skip
    assert WriteSettings.from_options(options).file == FileSettings("snappy", None, 1024, None)
    bloom = WriteSettings.from_options({"hoodie.index.bloom.num_entries": "100"}).file.bloom
    assert bloom is not None
    assert bloom.entries == 100


def test_pages_and_blocks() -> None:
    options = {
        "hoodie.parquet.page.size": "4096",
        "hoodie.parquet.dictionary.enabled": "false",
        "hoodie.logfile.data.block.max.size": "1000",
    }
    file = WriteSettings.from_options(options).file
    assert (file.page_bytes, file.dictionary, file.log_block_bytes) == (4096, False, 1000)


def test_bloom_filters_are_as_the_options_of_hudi_say() -> None:
    options = {
        "hoodie.index.bloom.num_entries": "100", "hoodie.index.bloom.fpp": "0.5", "hoodie.other": "x",
        "hoodie.bloom.index.filter.dynamic.max.entries": "7", "hoodie.bloom.index.filter.type": "simple",
    }  # fmt: skip
    assert WriteSettings.from_options(options).file.bloom == BloomSettings(100, 0.5, 7, dynamic=False)
    assert WriteSettings.from_options({}).file.bloom == BloomSettings(fitted=True)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hoodie.index.bloom.num_entries", "0"),
        ("hoodie.index.bloom.num_entries", "x"),
        ("hoodie.index.bloom.fpp", "1"),
        ("hoodie.index.bloom.fpp", "nan"),
        ("hoodie.index.bloom.fpp", "0"),
        ("hoodie.bloom.index.filter.type", "CUCKOO"),
        ("hoodie.bloom.index.filter.dynamic.max.entries", "-1"),
        ("hoodie.compaction.target.io", "-1"),
        ("hoodie.compaction.target.io", "many"),
        ("hoodie.parquet.block.size", "0"),
        ("hoodie.parquet.compression.codec", "lza"),
        ("hoodie.metadata.mode", "maybe"),
        ("hoodie.compact.inline.trigger.strategy", "SOMETIMES"),
        ("hoodie.write.concurrency.mode", "none"),
    ],
)
def test_bad_values_are_named(key: str, value: str) -> None:
    with pytest.raises(InvalidQueryError, match=key):
        WriteSettings.from_options({key: value})
