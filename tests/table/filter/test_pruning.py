"""Skipping is sound: when a partition or file is skipped, no row in it passes. And it does skip."""

from __future__ import annotations

import math
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie_py.errors import InvalidQueryError
from hoodie_py.table.filter.arrow_expression import from_expression
from hoodie_py.table.filter.evaluate import evaluate
from hoodie_py.table.filter.predicate import Column, InList, Predicate
from hoodie_py.table.filter.pruning import ColumnStatistics, lies_outside, may_match_partition, may_match_statistics
from hoodie_py.table.filter.sql_parser import parse_sql
from hoodie_py.table.filter.sql_settings import SqlSettings

SCHEMA = pa.schema(
    [
        ("i", pa.int32()),
        ("l", pa.int64()),
        ("d", pa.float64()),
        ("f", pa.float32()),
        ("c", pa.decimal128(10, 2)),
        ("s", pa.string()),
        ("b", pa.binary()),
        ("o", pa.bool_()),
        ("t", pa.date32()),
        ("z", pa.timestamp("us", "UTC")),
        ("n", pa.timestamp("us")),
    ]
)

REALS = st.sampled_from([-1.5, -0.0, 0.0, 0.1, 1.0, 2.5, math.nan, math.inf, -math.inf])
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "i": st.integers(-3, 3) | st.sampled_from([2**31 - 1, -(2**31)]),
    "l": st.integers(-3, 3) | st.sampled_from([2**63 - 1, -(2**63), 2**53 + 1]),
    "d": REALS,
    "f": REALS.map(lambda value: pa.scalar(value).cast(pa.float32(), safe=False).as_py()),
    "c": st.decimals(-3, 3, places=2),
    "s": st.text("ab\uffffz😀%", max_size=3),
    "b": st.binary(max_size=2),
    "o": st.booleans(),
    "t": st.integers(-2, 2),
    "z": st.integers(-2, 2).map(lambda days: days * 43_200_000_000),
    "n": st.integers(-2, 2).map(lambda days: days * 43_200_000_000),
}
LITERALS = {
    "i": ["0", "1L", "-2", "1.5", "2147483648", "0.1D", "null", "'1'"],
    "l": ["0", "-1", "9007199254740992D", "1.5", "9223372036854775807", "null"],
    "d": ["0", "-0.0D", "0.1D", "cast('nan' as double)", "cast('inf' as double)", "1", "null"],
    "f": ["0", "0.1", "0.1F", "cast('nan' as float)", "1.0D", "null"],
    "c": ["0", "1.25", "-2", "1.005", "0.5D", "null"],
    "s": ["'a'", "'ab'", "''", "'\uffff'", "'😀'", "'b'", "null"],
    "b": ["X'00'", "X''", "X'FF'", "'a'", "null"],
    "o": ["true", "false", "null"],
    "t": ["date'1970-01-01'", "timestamp'1970-01-01 12:00:00'", "'1970-01-02'", "null"],
    "z": ["date'1970-01-01'", "timestamp'1970-01-01 12:00:00'", "'1970-01-02'", "null"],
    "n": ["date'1970-01-01'", "timestamp_ntz'1970-01-01 12:00:00'", "timestamp'1970-01-02'", "null"],
}
COLUMNS = st.sampled_from(list(LITERALS))
OPERATORS = st.sampled_from(["=", "<=>", "<", "<=", ">", ">=", "<>"])


@st.composite
def leaves(draw: st.DrawFn) -> str:
    """A test of one column, sometimes of two."""
    name = draw(COLUMNS)
    literal = st.sampled_from(LITERALS[name])
    shapes = [
        f"{name} {draw(OPERATORS)} {draw(literal)}",
        f"{draw(literal)} {draw(OPERATORS)} {name}",
        f"{name} in ({', '.join(draw(st.lists(literal, min_size=1, max_size=3)))})",
        f"{name} between {draw(literal)} and {draw(literal)}",
        f"{name} is null",
        "o",
        f"s like '{draw(st.text('ab%_', max_size=3))}'",
        f"l {draw(OPERATORS)} i",
        f"i + 1L {draw(OPERATORS)} 0",
    ]
    return draw(st.sampled_from(shapes))


FILTERS = st.recursive(
    leaves(),
    lambda inner: st.one_of(
        inner.map(lambda text: f"not ({text})"),
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(
            lambda parts: f"({parts[0]}) {parts[1]} ({parts[2]})"
        ),
    ),
    max_leaves=4,
)


@st.composite
def batches(draw: st.DrawFn) -> pa.RecordBatch:
    """A few rows; some columns are all null or all one value."""
    count = draw(st.integers(1, 4))
    arrays = [
        pa.array(draw(st.lists(st.none() | VALUES[field.name], min_size=count, max_size=count)), field.type)
        for field in SCHEMA
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def statistics(batch: pa.RecordBatch, cut: int | None, counts: int) -> dict[str, tuple[Any, ...]]:
    """Bounds as a Parquet writer gives them: NaN left out, text perhaps cut short, null counts perhaps missing."""
    known: dict[str, tuple[Any, ...]] = {}
    for field in SCHEMA:
        values = batch[field.name].drop_null()
        plain = values.filter(pc.invert(pc.is_nan(values))) if pa.types.is_floating(field.type) else values
        ordered = sorted(_comparable(value) for value in plain)
        low, high = (ordered[0][1], ordered[-1][1]) if ordered else (None, None)
        if cut is not None and field.name in ("s", "b") and low is not None:
            low, high = ordered[0][1][:cut], ordered[-1][1][:cut]
        known[field.name] = (low, high, batch[field.name].null_count, batch.num_rows)[: 2 + counts] + (None,) * (
            counts == 0
        )
    return known


def _comparable(value: pa.Scalar) -> tuple[Any, Any]:
    plain = value.value if pa.types.is_date(value.type) or pa.types.is_timestamp(value.type) else value.as_py()
    return (plain.encode("utf-16-be") if isinstance(plain, str) else plain), plain


@given(FILTERS, batches(), st.none() | st.integers(0, 2), st.integers(0, 2))
def test_a_file_is_skipped_only_when_no_row_passes(
    text: str, batch: pa.RecordBatch, cut: int | None, counts: int
) -> None:
    """Any filter, any rows, statistics of any quality."""
    predicate = parse_sql(text, SCHEMA)
    try:
        passes = True in evaluate(predicate, batch).to_pylist()
    except InvalidQueryError:
        return
    if passes:
        assert may_match_statistics(predicate, statistics(batch, cut, counts))


@given(FILTERS, batches(), st.sets(COLUMNS))
def test_a_partition_is_skipped_only_when_no_row_passes(text: str, batch: pa.RecordBatch, names: set[str]) -> None:
    """Any filter, any subset of columns known as partition values; with all of them known the answer is exact."""
    predicate = parse_sql(text, SCHEMA)
    row = batch.slice(0, 1)
    try:
        passes = evaluate(predicate, row)[0].as_py() is True
    except InvalidQueryError:
        return
    assert passes <= may_match_partition(predicate, {name: row[name][0] for name in names})
    assert passes == may_match_partition(predicate, {name: row[name][0] for name in SCHEMA.names})


@pytest.mark.parametrize(
    ("text", "known", "skipped"),
    [
        ("i = 5", {"i": (1, 4, 0)}, True),
        ("i = 4", {"i": (1, 4, 0)}, False),
        ("i > 4", {"i": (1, 4, 0)}, True),
        ("4 < i", {"i": (1, 4, 0)}, True),
        ("i >= 4", {"i": (1, 4, 0)}, False),
        ("i < 1.5 and l > 3", {"i": (1, 4, 0), "l": (0, 3, 0)}, True),
        ("i < 0 or l > 3", {"i": (1, 4, 0), "l": (0, 3, 0)}, True),
        ("i < 0 or l > 3", {"i": (1, 4, 0)}, False),
        ("not (i > 0)", {"i": (1, 4, None)}, True),
        ("i <> 3", {"i": (3, 3, 5)}, True),
        ("i in (7, 8, null)", {"i": (1, 4, 0)}, True),
        ("i in (7, 2)", {"i": (1, 4, 0)}, False),
        ("i between 5 and 9", {"i": (1, 4, 0)}, True),
        ("i is null", {"i": (1, 4, 0)}, True),
        ("i is null", {"i": (1, 4, None)}, False),
        ("i is not null", {"i": (None, None, 10, 10)}, True),
        ("i is not null", {"i": (None, None, 10)}, False),
        ("i = 1", {"i": (None, None, 10, 10)}, True),
        ("i <=> null", {"i": (1, 4, 0)}, True),
        ("i = null", {}, True),
        ("i > 3000000000", {"i": (1, 4, 0)}, True),
        ("d > 5", {"d": (0.0, 1.0, 0)}, False),
        ("d < -1", {"d": (0.0, 1.0, 0)}, True),
        ("d = 2", {"d": (0.0, 1.0, 0)}, True),
        ("d = -0.0D", {"d": (0.0, 1.0, 0)}, False),
        ("d = 2", {"d": (0.0, math.nan, 0)}, False),
        ("f = 0.5", {"f": (1.0, 2.0, 0)}, True),
        ("c > 2", {"c": (Decimal("0.50"), Decimal("1.50"), 0)}, True),
        ("s = 'x'", {"s": ("a", "c", 0)}, True),
        ("s = 'cat'", {"s": ("a", "c", 0)}, False),
        ("s > 'c'", {"s": ("a", "c", 0)}, False),
        ("s > 'd'", {"s": ("a", "c", 0)}, True),
        ("s like 'd%'", {"s": ("a", "c", 0)}, True),
        ("s like 'cat%'", {"s": ("a", "c", 0)}, False),
        ("s like '%x'", {"s": ("a", "c", 0)}, False),
        ("s = 'x'", {"s": ("a", "\uffff", 0)}, False),
        ("b > X'05'", {"b": (b"\x00", b"\x04", 0)}, True),
        ("o", {"o": (False, False, 0)}, True),
        ("not o", {"o": (True, True, 3)}, True),
        ("t > date'2020-01-01'", {"t": (date(2019, 1, 1), date(2019, 12, 31), 0)}, True),
        ("z >= date'2020-01-01'", {"z": (0, 1, 0)}, True),
        ("t = timestamp'2020-01-01 01:00:00'", {"t": (date(2019, 1, 1), date(2019, 12, 31), 0)}, True),
        ("i = 5", {"i": (9, 1, 0)}, False),
        ("i = 5", {"i": ("a", "b", 0)}, False),
        ("upper(s) = 'X'", {"s": ("a", "c", 0)}, False),
    ],
)
def test_statistics_skip_what_they_can(text: str, known: dict[str, tuple[Any, ...]], skipped: bool) -> None:
    """Each rule, and each reason not to skip."""
    assert may_match_statistics(parse_sql(text, SCHEMA), known) is not skipped


@pytest.mark.parametrize(
    ("text", "values", "skipped"),
    [
        ("s = 'p1'", {"s": "p2"}, True),
        ("s = 'p1' and i = 1", {"s": "p2"}, True),
        ("s = 'p1' or i = 1", {"s": "p2"}, False),
        ("not (s = 'p1' or i = 1)", {"s": "p1"}, True),
        ("s is null", {"s": "p1"}, True),
        ("s is null", {"s": None}, False),
        ("s > 'a'", {"s": None}, True),
        ("upper(s) = 'P1'", {"s": "p2"}, True),
        ("t >= '2024-01-02'", {"t": date(2024, 1, 1)}, True),
        ("10 / i > 1", {"i": 0}, False),
        ("cast(s as int) = 1", {"s": "x"}, False),
        ("i = 1", {"i": "not a number"}, False),
        ("false", {}, True),
    ],
)
def test_partition_values_skip_what_they_can(text: str, values: dict[str, Any], skipped: bool) -> None:
    """Exact where the values decide; an error of the filter is left to the rows."""
    assert may_match_partition(parse_sql(text, SCHEMA), values) is not skipped


def test_arrow_expressions_prune_by_partition_only() -> None:
    """With all their columns known they are evaluated; statistics say nothing about them."""
    predicate = from_expression(pc.field("s") == "p1", SCHEMA)
    assert not may_match_partition(predicate, {"s": "p2"})
    assert may_match_partition(predicate, {"s": "p1"})
    assert may_match_statistics(predicate, {"s": ColumnStatistics("a", "b", 0)})


_TEXTS = st.text("ab\x7f\u00e9\ue000\U0001f600", max_size=3)
_BOUNDS = _TEXTS | st.integers(-3, 3) | st.booleans() | st.none() | st.floats(width=16) | st.binary(max_size=2)


@given(
    st.sampled_from(["s", "i", "l", "b", "o", "t"]),
    st.lists(_TEXTS | st.integers(-4, 4) | st.booleans() | st.binary(max_size=2), max_size=9),
    _BOUNDS,
    _BOUNDS,
)
def test_lists_of_values_are_outside_of_what_the_statistics_exclude(
    column: str, values: list[Any], low: Any, high: Any
) -> None:
    """The short way never excludes more than the long one, and as much for plain texts and whole numbers."""
    type_ = SCHEMA.field(column).type
    kind = {"s": str, "b": bytes, "o": bool}.get(column, int)
    members = tuple(value for value in values if type(value) is kind)
    predicate = Predicate(InList(Column((column,), type_), members))
    assert predicate.listed_values is not None
    outside = lies_outside(predicate.listed_values, low, high)
    may_match = may_match_statistics(predicate, {column: (low, high, 0)})
    assert not (outside and may_match)
    plain = all(type(each) is kind and (kind is not str or each.isascii()) for each in (*members, low, high))
    if plain and column in "sil" and low <= high:
        assert outside is not may_match


ZONED = [
    "cast(z as date) = date'{day}'",
    "cast(z as date) < date'{day}'",
    "z >= date'{day}'",
    "cast(z as timestamp_ntz) < timestamp_ntz'{day} 00:30:00'",
    "n > timestamp'{day} 00:30:00'",
    "n = timestamp'{day} 02:30:00'",
    "t <= timestamp'{day} 00:30:00'",
    "not z < '{day}'",
    "cast(i as tinyint) = 1",
    "cast(l as int) < 0",
    "not cast(l as int) is null",
    "cast(c as decimal(3,2)) is null",
    "i = '1.5'",
]


@given(
    st.sampled_from(ZONED),
    st.sampled_from(["America/St_Johns", "America/Sao_Paulo", "Pacific/Apia", "Asia/Kolkata"]),
    st.sampled_from(["2006-10-29", "2011-11-06", "2011-12-30", "2018-11-04"]),
    st.lists(st.integers(-40, 40), min_size=1, max_size=4),
    st.booleans(),
)
@settings(max_examples=300)
def test_files_of_a_zone_with_rows_that_pass_are_kept(
    text: str, zone: str, day: str, hours: list[int], ansi: bool
) -> None:
    """Clocks that are put back around midnight give an earlier day later on; without ANSI mode integers are cut."""
    start = (date.fromisoformat(day) - date(1970, 1, 1)).days
    times = [start * 86_400_000_000 + hour * 1_800_000_000 for hour in hours]
    data: dict[str, pa.Array] = {
        "z": pa.array(times, pa.int64()).cast(pa.timestamp("us", "UTC")),
        "n": pa.array(times, pa.int64()).cast(pa.timestamp("us")),
        "t": pa.array([start + hour // 20 for hour in hours], pa.int32()).cast(pa.date32()),
        "i": pa.array([hour + (256 if hour % 2 else 0) for hour in hours], pa.int32()),
        "l": pa.array([hour + 2**31 for hour in hours], pa.int64()),
        "c": pa.array(hours, pa.int32()).cast(pa.decimal128(12, 2)),
    }
    arrays = [data.get(field.name, pa.nulls(len(hours), field.type)) for field in SCHEMA]
    batch = pa.RecordBatch.from_arrays([a.cast(f.type) for a, f in zip(arrays, SCHEMA, strict=True)], schema=SCHEMA)
    session = SqlSettings(zone, ansi=ansi)
    try:
        predicate = parse_sql(text.format(day=day), SCHEMA, settings=session)
        passes = pc.any(evaluate(predicate, batch)).as_py()
    except InvalidQueryError:
        return
    if passes:
        assert may_match_statistics(predicate, statistics(batch, None, 2))
