from __future__ import annotations

from dataclasses import replace

import pytest

from hoodie_py import InvalidQueryError, UnsupportedFeatureError
from hoodie_py.formats.config.merge_config import MergeMode
from hoodie_py.formats.config.table_config import PARTITION_EXTRACTOR, TableConfig
from hoodie_py.metastore.sync import choose_extractor

CONFIG = TableConfig("t", 9, MergeMode.COMMIT_TIME_ORDERING, None, None)
JAVA = "org.apache.hudi.hive."


@pytest.mark.parametrize(
    ("name", "path", "values"),
    [
        ("MultiPartKeysValueExtractor", "city=sf/2026", ("sf", "2026")),
        ("MultiPartKeysValueExtractor", "", ()),
        ("HiveStylePartitionValueExtractor", "city=sf", ("sf",)),
        ("SinglePartPartitionValueExtractor", "a/b=c", ("a/b=c",)),
        ("SlashEncodedDayPartitionValueExtractor", "2026/1/02", ("2026-01-02",)),
        ("SlashEncodedDayPartitionValueExtractor", "year=2026/month=01/day=02", ("2026-01-02",)),
        ("SlashEncodedHourPartitionValueExtractor", "2026/01/02/3", ("2026-01-02-03",)),
        ("NonPartitionedExtractor", "any", ()),
    ],
)
def test_values_of_paths(name, path, values) -> None:
    assert choose_extractor(CONFIG, ("a",), JAVA + name)(path) == values


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("MultiPartKeysValueExtractor", "a=b=c"),
        ("HiveStylePartitionValueExtractor", "sf"),
        ("SlashEncodedDayPartitionValueExtractor", "2026-01-02"),
    ],
)
def test_paths_of_another_form(name, path) -> None:
    with pytest.raises(InvalidQueryError, match="not of the form"):
        choose_extractor(CONFIG, ("a",), JAVA + name)(path)


@pytest.mark.parametrize(
    ("config", "fields", "path", "values"),
    [
        (CONFIG, ("a",), "x/y", ("x/y",)),
        (replace(CONFIG, hive_style_partitioning=True), ("a",), "a=x", ("x",)),
        (replace(CONFIG, slash_separated_date_partitioning=True), ("a",), "2026/01/02", ("2026-01-02",)),
        (CONFIG, ("a", "b"), "x/b=y", ("x", "y")),
        (CONFIG, (), "", ()),
        (
            replace(CONFIG, properties={PARTITION_EXTRACTOR: f"{JAVA}MultiPartKeysValueExtractor"}),
            ("a",), "x", ("x",),
        ),
    ],
)  # fmt: skip
def test_the_table_tells_the_class(config, fields, path, values) -> None:
    assert choose_extractor(config, fields, None)(path) == values


def test_classes_of_users_are_refused() -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"com\.example\.Mine"):
        choose_extractor(CONFIG, ("a",), "com.example.Mine")
