"""Truth values per row: the rules that need no Spark to check, and errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py.errors import InvalidQueryError
from hoodie_py.table.filter.binding import find_column
from hoodie_py.table.filter.evaluate import evaluate, evaluate_value
from hoodie_py.table.filter.sql_parser import parse_sql, parse_value
from tests.table.filter_examples import ANSWERED, RAISING
from tests.table.filter_rows import SCHEMA, rows

T, F, N = True, False, None


def answers(text: str, **columns: Sequence[object]) -> list[Any]:
    """Evaluate a filter on columns of inferred types."""
    batch = pa.RecordBatch.from_pydict(columns)
    answer: list[Any] = evaluate(parse_sql(text, batch.schema), batch).to_pylist()
    return answer


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a and b", [T, F, N, F, F, F, N, F, N]),
        ("a or b", [T, T, T, T, F, N, T, N, N]),
        ("not a", [F, F, F, T, T, T, N, N, N]),
        ("a = b", [T, F, N, F, T, N, N, N, N]),
        ("a <=> b", [T, F, F, F, T, F, F, F, T]),
        ("a <> b", [F, T, N, T, F, N, N, N, N]),
        ("a in (b, null)", [T, N, N, N, T, N, N, N, N]),
        ("a is null", [F, F, F, F, F, F, T, T, T]),
    ],
)
def test_three_valued_logic(text: str, expected: list[bool | None]) -> None:
    """Every pair of true, false and null."""
    values = [T, F, N]
    a, b = [x for x in values for _ in values], values * 3
    assert answers(text, a=a, b=b) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("d = d", [T, T, T, T, N]),
        ("d > 1e308", [F, F, T, T, N]),
        ("d = cast('nan' as double)", [F, F, F, T, N]),
        ("d >= cast('nan' as double)", [F, F, F, T, N]),
        ("d < cast('nan' as double)", [T, T, T, F, N]),
        ("d = 0", [T, T, F, F, N]),
        ("d < 0", [F, F, F, F, N]),
        ("d in (0, 1)", [T, T, F, F, N]),
        ("d in (cast('nan' as double), null)", [N, N, N, T, N]),
    ],
)
def test_floats_compare_as_in_spark(text: str, expected: list[bool | None]) -> None:
    """NaN equals itself and is above infinity; zeros are equal."""
    assert answers(text, d=[0.0, -0.0, math.inf, math.nan, None]) == expected


def test_later_conditions_are_computed_only_where_they_count() -> None:
    """A guard in front protects a division; without it the error names the problem."""
    assert answers("z <> 0 and 10 / z > 2", z=[0, 2, None]) == [F, T, N]
    assert answers("z = 0 or 10 / z > 20", z=[0, 2, None]) == [T, F, N]
    with pytest.raises(InvalidQueryError, match="Division by zero"):
        answers("10 / z > 2 and z <> 0", z=[0, 2])


def test_a_null_operand_keeps_the_other_side_from_failing() -> None:
    """Where one side is null the other is not computed, so its bad cast does not matter."""
    assert answers("a = cast(s as int)", a=[None, 1], s=["x", "1"]) == [N, T]
    assert answers("a / z = 1", a=[None, 4.0], z=[0.0, 4.0]) == [N, T]


@pytest.mark.parametrize("text", RAISING)
def test_failing_computations_raise(text: str) -> None:
    """Overflow, division by zero and bad casts are errors, as in Spark's ANSI mode."""
    with pytest.raises(InvalidQueryError):
        evaluate(parse_sql(text, SCHEMA), rows())


@pytest.mark.parametrize("text", ANSWERED)
def test_slices_and_empty_batches_answer_alike(text: str) -> None:
    """A batch that is a slice (with an offset) gives the same answers, and the readable form means the same filter."""
    batch = rows()
    predicate = parse_sql(text, SCHEMA)
    whole = evaluate(predicate, batch)
    assert whole.type == pa.bool_()
    assert evaluate(predicate, batch.slice(13, 101)).equals(whole.slice(13, 101))
    assert evaluate(predicate, batch.slice(0, 0)).to_pylist() == []
    assert evaluate(parse_sql(str(predicate), SCHEMA), batch).equals(whole)


def test_only_the_named_columns_are_needed() -> None:
    """``columns`` is enough; without them the error names the missing one."""
    batch = rows()
    predicate = parse_sql("st.inner.y > 1 and s like 'a%'", SCHEMA)
    assert predicate.columns == {"st", "s"}
    assert evaluate(predicate, batch.select(["s", "st"])).equals(evaluate(predicate, batch))
    with pytest.raises(InvalidQueryError, match="'st'"):
        evaluate(predicate, batch.select(["s"]))


def test_other_encodings_of_a_column_are_cast() -> None:
    """Dictionaries, large strings and millisecond timestamps mean what plain columns mean."""
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array(["a", "b"]).dictionary_encode(),
            pa.array(["a", "b"], pa.large_string()),
            pa.array([1, 2], pa.timestamp("ms")),
        ],
        ["s", "l", "t"],
    )
    predicate = parse_sql("s = l and t < timestamp_ntz'1970-01-01 00:00:00.002'", batch.schema)
    assert evaluate(predicate, batch).to_pylist() == [True, False]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("case when a > 1 then 10 / a when a = 0 then 0 else -1 end", [-1.0, 5.0, 0.0, -1.0]),
        ("case a when 1 then 'one' when 2 then 'two' end", ["one", "two", None, None]),
        ("coalesce(a, b, 7)", [1, 2, 0, 9]),
        ("nvl(a, 0) + 1", [2, 3, 1, 1]),
        ("nullif(a, 2)", [1, None, 0, None]),
        ("if(a = 0, 'zero', s)", [" x ", "y", "zero", None]),
        ("a || '-' || s", ["1- x ", "2-y", None, None]),
        ("concat(s, s)", [" x  x ", "yy", None, None]),
        ("trim(s) || ltrim(s) || rtrim(s)", ["xx  x", "yyy", None, None]),
        ("case when a = 1 then 1 else 1.5 end", [Decimal("1.0"), Decimal("1.5"), Decimal("1.5"), Decimal("1.5")]),
        ("case when false then 1 / 0 else a end", [1.0, 2.0, 0.0, None]),
    ],
)
def test_values_of_expressions(text: str, expected: list[Any]) -> None:
    """CASE computes each value for the rows that take it alone."""
    batch = pa.RecordBatch.from_pydict(
        {
            "a": pa.array([1, 2, 0, None], pa.int32()),
            "b": pa.array([5, 5, 5, 9], pa.int32()),
            "s": [" x ", "y", None, None],
        }
    )
    node = parse_value(text, partial(find_column, schema=batch.schema))
    values = evaluate_value(node, batch)
    assert values.type == node.type
    assert values.to_pylist() == expected


@pytest.mark.parametrize(
    "text", ["case when 1 then 2 end", "case end", "if(a, 1)", "coalesce('x', 1.5, true)", "nope(a)"]
)
def test_expressions_that_are_not_valid(text: str) -> None:
    with pytest.raises(InvalidQueryError):
        parse_value(text, partial(find_column, schema=pa.schema([("a", pa.int32())])))
