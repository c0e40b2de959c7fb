"""Spark's filter objects, told by class name; the real classes where pyspark is installed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from hoodie_py.table.evaluate import evaluate
from hoodie_py.table.spark_filters import from_spark_filter
from hoodie_py.table.sql_filter import parse_sql
from tests.table.filter_rows import SCHEMA, rows


@dataclass(frozen=True)
class _Stub:
    attribute: tuple[str, ...] = ()
    value: Any = None
    child: Any = None


def pushed(kind: str, *path: str, value: Any = None, child: Any = None) -> Any:
    """Make an object that looks like one of Spark's filters."""
    return type(kind, (_Stub,), {})(path, value, child)


TWO = datetime(2020, 1, 1, 0, 0, 1, 500_000)


@pytest.mark.parametrize(
    ("spark_filter", "same_as"),
    [
        (pushed("EqualTo", "n32", value=1), "n32 = 1"),
        (pushed("EqualTo", "bo", value=True), "bo = true"),
        (pushed("EqualNullSafe", "n32", value=None), "n32 <=> null"),
        (pushed("EqualNullSafe", "s", value="a"), "s <=> 'a'"),
        (pushed("GreaterThan", "d", value=1.5), "d > 1.5D"),
        (pushed("GreaterThan", "f", value=float("nan")), "f > cast('nan' as float)"),
        (pushed("GreaterThanOrEqual", "dc", value=Decimal("1.25")), "dc >= 1.25"),
        (pushed("LessThan", "dt", value=date(2020, 1, 1)), "dt < date'2020-01-01'"),
        (
            pushed("LessThanOrEqual", "ts", value=TWO.replace(tzinfo=UTC)),
            "ts <= timestamp'2020-01-01 00:00:01.5'",
        ),
        (
            pushed("EqualTo", "ts", value=(TWO + timedelta(hours=2)).replace(tzinfo=timezone(timedelta(hours=2)))),
            "ts = timestamp'2020-01-01 00:00:01.5'",
        ),
        (pushed("LessThanOrEqual", "ntz", value=TWO), "ntz <= timestamp_ntz'2020-01-01 00:00:01.5'"),
        (pushed("EqualTo", "b", value=bytearray(b"a")), "b = X'61'"),
        (pushed("In", "n32", value=(1, None, 7)), "n32 in (1, null, 7)"),
        (pushed("IsNull", "st", "inner"), "st.inner is null"),
        (pushed("IsNotNull", "arr"), "arr is not null"),
        (pushed("Not", child=pushed("In", "s", value=("a", "b"))), "s not in ('a', 'b')"),
        (pushed("Not", child=pushed("EqualTo", "st", "x", value=1)), "st.x <> 1"),
        (pushed("StringStartsWith", "s", value="a"), "s like 'a%'"),
        (pushed("StringEndsWith", "s", value="_b"), "s like '%\\_b'"),
        (pushed("StringContains", "s", value="%"), "s like '%\\%%'"),
        (pushed("StringContains", "s", value="\\"), r"s like '%\\\\%'"),
    ],
)
def test_filters_mean_their_sql(spark_filter: Any, same_as: str) -> None:
    """Each kind answers as the SQL that Spark made it from."""
    predicate = from_spark_filter(spark_filter, SCHEMA)
    assert predicate is not None
    assert evaluate(predicate, rows()).equals(evaluate(parse_sql(same_as, SCHEMA), rows()))


@pytest.mark.parametrize(
    "spark_filter",
    [
        pushed("EqualTo", "nope", value=1),
        pushed("EqualTo", value=1),
        pushed("EqualTo", "arr", value=[1]),
        pushed("EqualTo", "n32", value="1"),
        pushed("EqualTo", "n32", value=True),
        pushed("EqualTo", "n32", value=2**40),
        pushed("EqualTo", "dc", value=Decimal("1.255")),
        pushed("EqualTo", "dt", value=TWO),
        pushed("EqualTo", "ts", value=TWO),
        pushed("EqualTo", "ntz", value=TWO.replace(tzinfo=UTC)),
        pushed("In", "n32", value=5),
        pushed("StringContains", "n32", value="1"),
        pushed("Between", "n32", value=1),
        pushed("Not", child=pushed("Between", "n32", value=1)),
        object(),
    ],
)
def test_what_does_not_fit_is_left_to_spark(spark_filter: Any) -> None:
    """Unknown kinds, columns and types of values give None, never an error."""
    assert from_spark_filter(spark_filter, SCHEMA) is None


def test_the_real_classes_are_understood() -> None:
    """pyspark's own classes carry the attributes that are read here."""
    datasource = pytest.importorskip("pyspark.sql.datasource")
    if not hasattr(datasource, "EqualTo"):
        pytest.skip("NOT TESTED: this pyspark pushes no filters")
    for kind in ("EqualTo", "EqualNullSafe", "GreaterThan", "GreaterThanOrEqual", "LessThan", "LessThanOrEqual"):
        assert from_spark_filter(getattr(datasource, kind)(("n32",), 1), SCHEMA) is not None
    for kind in ("StringStartsWith", "StringEndsWith", "StringContains"):
        assert from_spark_filter(getattr(datasource, kind)(("s",), "a"), SCHEMA) is not None
    for test in (datasource.IsNull(("s",)), datasource.IsNotNull(("s",)), datasource.In(("s",), ("a",))):
        assert from_spark_filter(datasource.Not(test), SCHEMA) is not None
