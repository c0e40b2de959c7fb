"""A merger that lives in the user's own script or notebook decides what Spark reads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import BufferedRecord, HoodieTable, RecordContext, RecordMerger
from hoodie_py.spark import register
from integration.corpus_compare import differences
from integration.spark_custom import STRATEGY, TABLE, make_custom

BONUS = 1000.0


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
    register(spark, mergers=[AddsPrices])
    try:
        assert differences(spark.read.format("hoodie").load(str(custom)).toArrow(), expected) == []
        narrow = spark.read.format("hoodie").option("columns", "id,price").load(str(custom))
        assert differences(narrow.toArrow(), expected.select(["id", "price"])) == []
    finally:
        register(spark)


def test_registering_again_replaces_the_merger(spark: Any, custom: Path) -> None:
    class KeepsOlder(RecordMerger):
        strategy_id = STRATEGY

        def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
            return older

    try:
        for merger in (AddsPrices, KeepsOlder, AddsPrices):
            register(spark, mergers=[merger])
            want = HoodieTable.open(str(custom)).scan(merger=merger).to_arrow()
            assert differences(spark.read.format("hoodie").load(str(custom)).toArrow(), want) == []
    finally:
        register(spark)


def test_a_missing_merger_is_named_together_with_the_remedy(spark: Any, custom: Path) -> None:
    register(spark)
    with pytest.raises(Exception, match="MergeError") as caught:
        spark.read.format("hoodie").load(str(custom)).collect()
    assert STRATEGY in str(caught.value)
