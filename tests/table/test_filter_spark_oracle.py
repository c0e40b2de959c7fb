"""Every filter gives the rows that Spark itself gives: Spark evaluates the same texts on the same rows."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie_py.errors import HoodieError, InvalidQueryError
from hoodie_py.table.filter.evaluate import evaluate
from hoodie_py.table.filter.sql_parser import parse_sql
from hoodie_py.table.filter.sql_settings import UTC_SESSION, SqlSettings
from tests.table.filter_examples import ANSWERED, RAISING
from tests.table.filter_rows import SCHEMA, rows
from tests.table.lenient_filters import LENIENT

pytestmark = pytest.mark.spark
CHUNK = 50
ZONE, ANSI = "spark.sql.session.timeZone", "spark.sql.ansi.enabled"


@pytest.fixture(scope="module")
def spark_rows(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The rows of ``filter_rows`` as a Spark DataFrame."""
    settings = {"spark.sql.subexpressionElimination.enabled": "false", "spark.sql.caseSensitive": "true"}
    settings |= {"spark.sql.codegen.factoryMode": "NO_CODEGEN", "spark.sql.codegen.wholeStage": "false"}
    for key, value in settings.items():  # no expression is computed earlier than its own filter would compute it
        spark.conf.set(key, value)
    place = tmp_path_factory.mktemp("filter") / "rows.parquet"
    pq.write_table(pa.Table.from_batches([rows()]), place)
    yield spark.read.parquet(str(place)).coalesce(1).cache()
    for key in settings:
        spark.conf.unset(key)


@contextmanager
def session(spark: Any, settings: SqlSettings) -> Iterator[None]:
    """Give the Spark session other settings for a while."""
    changed = {ZONE: str(settings.zone), ANSI: str(settings.ansi).lower()}
    before = {name: spark.conf.get(name) for name in changed}
    try:
        for name, value in changed.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def differences(spark_rows: Any, texts: list[str], settings: SqlSettings = UTC_SESSION) -> list[str]:
    """Texts for which some row's true, false or null differs from Spark's."""
    batch, wrong = rows(), []
    for start in range(0, len(texts), CHUNK):
        chunk = texts[start : start + CHUNK]
        columns = [f"cast(({text}\n) as boolean) as c{i}" for i, text in enumerate(chunk)]
        table = spark_rows.selectExpr("id", *columns).toArrow().sort_by("id")
        for i, text in enumerate(chunk):
            try:
                got = evaluate(parse_sql(text, batch.schema, settings=settings), batch).to_pylist()
            except HoodieError as error:
                wrong.append(f"{text}: {error}")
                continue
            expected = table.column(f"c{i}").to_pylist()
            bad = [row for row in range(len(got)) if got[row] != expected[row]]
            if bad:
                wrong.append(
                    f"{text}: rows {bad[:3]}: {[got[r] for r in bad[:3]]}, Spark {[expected[r] for r in bad[:3]]}"
                )
    return wrong


def test_answers_are_those_of_spark(spark_rows: Any) -> None:
    """Each listed filter has Spark's truth value in every row."""
    assert differences(spark_rows, ANSWERED) == []


@pytest.mark.parametrize("zone", ["America/New_York", "-03:30"])
def test_answers_in_other_time_zones_are_those_of_spark(spark: Any, spark_rows: Any, zone: str) -> None:
    """Times without a zone are in the session's, in literals, casts and comparisons."""
    settings = SqlSettings(zone)
    with session(spark, settings):
        assert differences(spark_rows, [*ANSWERED, *generated(random.Random(12), 60)], settings) == []


def test_answers_without_ansi_mode_are_those_of_spark(spark: Any, spark_rows: Any) -> None:
    """What ANSI mode refuses is null, or keeps its low bits; texts beside numbers get other types."""
    settings = SqlSettings("America/New_York", ansi=False)
    listed = [*ANSWERED, *RAISING, *LENIENT]
    refused = {each for each in listed if is_refused(each, settings)}
    made = (each for each in generated(random.Random(13), 200) if not is_refused(each, settings))
    with session(spark, settings):
        assert differences(spark_rows, [*(each for each in listed if each not in refused), *made], settings) == []
    assert refused == TEXT_CONDITIONS


def is_refused(text: str, settings: SqlSettings) -> bool:
    try:
        parse_sql(text, SCHEMA, settings=settings)
    except HoodieError:
        return True
    return False


def test_generated_filters_answer_as_spark(spark_rows: Any) -> None:
    """Random combinations of comparisons over all pairs of comparable columns and literals agree as well."""
    assert differences(spark_rows, list(generated(random.Random(11), 300))) == []


@pytest.mark.parametrize("text", RAISING)
def test_what_spark_refuses_to_compute_raises(spark_rows: Any, text: str) -> None:
    """A bad cast, an overflow or a division by zero is an error in both, never a silent null."""
    with pytest.raises(Exception, match=r"CAST|OVERFLOW|ZERO|OUT_OF_RANGE|CONVERSION"):
        spark_rows.where(text).count()
    with pytest.raises(InvalidQueryError):
        evaluate(parse_sql(text, SCHEMA), rows())


#: Without ANSI mode Spark refuses text as a condition.
TEXT_CONDITIONS = {"sb", "not sb", "bo and sb"}

NUMBERS = [
    "i8",
    "i16",
    "i32",
    "i64",
    "n32",
    "f",
    "d",
    "nd",
    "dc",
    "dcs",
    "dc38",
    "si",
    "1",
    "5L",
    "1.5",
    "0.1D",
    "-2.50",
    "null",
    "100Y",
    "'1'",
    "st.x",
]
TIMES = ["dt", "ts", "ntz", "st_", "date'2020-01-01'", "timestamp'2020-01-01 00:00:01'", "'2020-01-01'", "null"]
TEXTS = ["s", "si", "'a'", "'b'", "upper(s)", "lower(s)", "null", "st.b", "cast(n32 as string)", "b"]
TRUTHS = ["bo", "sb", "true", "null", "'no'"]
OPERATORS = ["=", "<=>", "<", "<=", ">", ">=", "<>"]


def generated(pick: random.Random, count: int) -> Iterator[str]:
    """Yield conditions that Spark can compute on every row."""

    def leaf() -> str:
        kind = pick.choice([NUMBERS, NUMBERS, TIMES, TEXTS, TRUTHS])
        shape = pick.random()
        value = pick.choice(kind)
        if shape < 0.6:
            return f"{value} {pick.choice(OPERATORS)} {pick.choice(kind)}"
        if shape < 0.75:
            return f"{value} {pick.choice(['', 'not '])}in ({', '.join(pick.choices(kind, k=pick.randint(1, 4)))})"
        if shape < 0.9:
            return f"{value} {pick.choice(['', 'not '])}between {pick.choice(kind)} and {pick.choice(kind)}"
        return f"{value} is {pick.choice(['', 'not '])}null"

    def tree(levels: int) -> str:
        if levels == 0 or pick.random() < 0.3:
            return leaf()
        if pick.random() < 0.25:
            return f"not ({tree(levels - 1)})"
        return f"({tree(levels - 1)}) {pick.choice(['and', 'or'])} ({tree(levels - 1)})"

    for _ in range(count):
        yield tree(2)
