"""Spark users see which error a read failed with, where, and what to do."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def refusal(action: Callable[[], Any]) -> tuple[str, str]:
    """Name of the hoodie_py error, and the whole text."""
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException) as caught:
        action()
    text = str(caught.value)
    check_sentence_first(text)
    names = re.findall(r"hoodie_py[\w.]*\.(\w+):", text)
    assert names, text
    return names[-1], text


def check_sentence_first(text: str) -> None:
    """After Spark's own words there is the sentence, and no traceback before it."""
    sentence, traceback = text.find("hoodie_py.errors."), text.find("Traceback (most recent call last)")
    assert 0 <= sentence < traceback, text
    words = text[:sentence].strip().splitlines()  # before 4.2 an empty line comes first
    assert len(words) <= 2, text  # over Connect Spark has two lines


def load(spark: Any, path: Any, **options: str) -> Callable[[], Any]:
    return lambda: spark.read.format("hoodie").options(**options).load(path).collect()


def test_no_table_there(spark: Any, tmp_path: Path) -> None:
    name, text = refusal(load(spark, str(tmp_path / "nowhere")))
    assert name == "TableNotFoundError"
    assert "nowhere" in text


def test_no_path_and_several_paths(spark: Any, tmp_path: Path) -> None:
    name, text = refusal(lambda: spark.read.format("hoodie").load().schema)
    assert (name, "No path was given" in text) == ("InvalidQueryError", True)
    name, text = refusal(load(spark, [str(tmp_path / "a"), str(tmp_path / "b")]))
    assert (name, "Several paths" in text) == ("InvalidQueryError", True)


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"hoodie.datasource.query.type": "incremental"}, "InvalidQueryError", "begin.instanttime"),
        ({"columns": "id,price_in_gold"}, "InvalidQueryError", "price_in_gold"),
    ],
)
def test_bad_options(spark: Any, corpus: Callable[[str], Path], options: dict[str, str], error: str, said: str) -> None:
    name, text = refusal(load(spark, str(corpus("event_time_updates_mor_v9")), **options))
    assert name == error
    assert said in text


def test_a_schema_that_the_table_does_not_have(spark: Any, corpus: Callable[[str], Path]) -> None:
    path = str(corpus("event_time_updates_mor_v9"))
    name, text = refusal(lambda: spark.read.format("hoodie").schema("id string, gold int").load(path).collect())
    assert name == "InvalidQueryError"
    assert "'gold'" in text


def test_a_broken_file_is_named(spark: Any, corpus_copy: Callable[[str], Path]) -> None:
    where = corpus_copy("event_time_updates_mor_v9")
    broken = next(where.glob("p0/*.parquet"))
    broken.write_bytes(b"PAR1 this is no parquet file PAR1")
    name, text = refusal(load(spark, str(where)))
    assert name == "CorruptFileError"
    assert broken.name in text
