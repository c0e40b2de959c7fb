"""Spark reads tables with mergers that a user's script or notebook defines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import BufferedRecord, HoodieTable, RecordContext, RecordMerger, UnsupportedFeatureError
from hoodie_py.spark import register
from integration.corpus_compare import differences
from integration.corpus_mergers import HighestPrice
from integration.spark_custom import STRATEGY, TABLE, make_custom

BONUS = 1000.0
NAME = "merging"  # Spark 4.0 does not let formats that it found by itself be replaced


class AddsPrices(RecordMerger):
    strategy_id = STRATEGY

    def merge(
        self, older: BufferedRecord[Any], newer: BufferedRecord[Any], context: RecordContext[Any], props: Any
    ) -> BufferedRecord[Any]:
        if older.is_delete or newer.is_delete:
            return newer
        total = context.get_value(older, "price") + context.get_value(newer, "price") + BONUS
        return context.replace(newer, price=total)


@pytest.fixture
def custom(corpus_copy: Callable[[str], Path]) -> Path:
    return make_custom(corpus_copy(TABLE))


@pytest.fixture
def expected(custom: Path) -> pa.Table:
    table = HoodieTable.open(str(custom)).scan(merger=AddsPrices).to_arrow()
    assert max(table["price"].to_pylist()) > BONUS
    return table


def test_the_class_reaches_workers_that_cannot_import_it(spark: Any, custom: Path, expected: pa.Table) -> None:
    register(spark, mergers=[AddsPrices], name=NAME)
    assert differences(spark.read.format(NAME).load(str(custom)).toArrow(), expected) == []
    narrow = spark.read.format(NAME).option("columns", "id,price").load(str(custom))
    assert differences(narrow.toArrow(), expected.select(["id", "price"])) == []


def test_registering_again_replaces_the_merger(spark: Any, custom: Path) -> None:
    class KeepsOlder(RecordMerger):
        strategy_id = STRATEGY

        def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
            return older

    for merger in (AddsPrices, KeepsOlder, AddsPrices):
        register(spark, mergers=[merger], name=NAME)
        want = HoodieTable.open(str(custom)).scan(merger=merger).to_arrow()
        assert differences(spark.read.format(NAME).load(str(custom)).toArrow(), want) == []


def test_a_missing_merger_is_named_together_with_the_remedy(spark: Any, custom: Path) -> None:
    register(spark, name=NAME)
    with pytest.raises(Exception, match="MergeError") as caught:
        spark.read.format(NAME).load(str(custom)).collect()
    assert STRATEGY in str(caught.value)


def test_the_format_that_spark_found_takes_mergers_too_or_says_what_to_do(
    spark: Any, custom: Path, expected: pa.Table
) -> None:
    spark.read.format("hoodie").load(str(custom))
    try:
        register(spark, mergers=[AddsPrices])
    except UnsupportedFeatureError as error:  # Spark 4.0
        assert 'name="hudi"' in str(error)  # noqa: PT017 - older Spark only
    else:
        assert differences(spark.read.format("hoodie").load(str(custom)).toArrow(), expected) == []
    register(spark)


def test_an_option_names_the_merger_by_its_python_path(spark: Any, corpus: Callable[[str], Path]) -> None:
    table = str(corpus("custom_highest_price_updates_mor_v9"))
    classes = "com.acme.JavaMerger,integration.corpus_mergers.HighestPrice"
    option = "hoodie.write.record.merge.custom.implementation.classes"
    register(spark, name=NAME)
    rows = spark.read.format(NAME).option(option, classes).load(table)
    assert differences(rows.toArrow(), HoodieTable.open(table).scan(options={option: classes}).to_arrow()) == []
    assert differences(rows.toArrow(), HoodieTable.open(table).scan(merger=HighestPrice).to_arrow()) == []
