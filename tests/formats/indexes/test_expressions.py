"""Functions of expression indexes: the kinds of their results, and those that are computed."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from hoodie_py.errors import InvalidQueryError, UnsupportedFeatureError
from hoodie_py.formats.indexes.bounds import ValueKind, ValueType
from hoodie_py.formats.indexes.definitions import COLUMN_STATS, IndexDefinition
from hoodie_py.formats.indexes.expressions import apply_function, check_function, find_result_kind

TEXT = ValueKind(ValueType.STRING)


def define(function: str, **options: str) -> IndexDefinition:
    return IndexDefinition("expr_index_x", COLUMN_STATS, function, ("c",), options, 2)


@pytest.mark.parametrize(
    ("function", "values", "expected"),
    [
        ("identity", pa.array([3, None]), [3, None]),
        ("year", pa.array([-1, None], pa.int32()).view(pa.date32()), [1969, None]),
        ("month", pa.array([40], pa.int32()).view(pa.date32()), [2]),
        ("day", pa.array([40], pa.int32()).view(pa.date32()), [10]),
        ("dayofyear", pa.array([40], pa.int32()).view(pa.date32()), [41]),
        ("length", pa.array(["é😀", None]), [2, None]),
        ("lower", pa.array(["AbC", None]), ["abc", None]),
        ("UPPER", pa.array(["aé"]), None),
        ("upper", pa.array(["ab"]), ["AB"]),
        ("trim", pa.array([" \ta "]), ["\ta"]),
        ("ltrim", pa.array(["  a "]), ["a "]),
        ("rtrim", pa.array(["  a "]), ["  a"]),
        ("hour", pa.array([0], pa.timestamp("us", "UTC")), None),
        ("year", pa.array([0], pa.timestamp("us", "UTC")), None),
        ("from_unixtime", pa.array([0]), None),
        ("length", pa.array([b"a"]), None),
    ],
)
def test_results_are_sparks_or_not_told(function: str, values: pa.Array, expected: list[Any] | None) -> None:
    found = apply_function(define(function), values)
    assert (None if found is None else found.to_pylist()) == expected


@pytest.mark.parametrize(
    ("function", "arguments", "values", "expected"),
    [
        ("trim", {"trimString": "xy"}, ["yx a yx", None], [" a ", None]),
        ("trim", {"trimString": ""}, ["a"], None),
        ("substring", {"pos": "2", "len": "2"}, ["aébc", "a", None], ["éb", "", None]),
        ("substring", {"pos": "0", "len": "1"}, ["abc"], ["a"]),
        ("substring", {"pos": "1", "len": "-1"}, ["abc"], [""]),
        ("substring", {"pos": "-2", "len": "1"}, ["abc", "ab"], ["b", "a"]),
        ("substring", {"pos": "-2", "len": "9"}, ["abc"], ["bc"]),
        ("substring", {"pos": "-2", "len": "1"}, ["abc", "a"], None),
        ("substring", {"pos": "-2", "len": "1"}, ["abc", ""], None),
        ("substring", {"pos": "x", "len": "1"}, ["abc"], None),
        ("regexp_extract", {"pattern": "a", "idx": "0"}, ["abc"], None),
    ],
)
def test_arguments_count(
    function: str, arguments: dict[str, str], values: list[str | None], expected: list[str | None] | None
) -> None:
    found = apply_function(define(function, **arguments), pa.array(values, pa.string()))
    assert (None if found is None else found.to_pylist()) == expected


def test_days_are_added() -> None:
    days = pa.array([0, None, 40], pa.int32()).view(pa.date32())
    added = apply_function(define("date_add", days="3"), days)
    taken = apply_function(define("date_sub", days="3"), days)
    assert added is not None
    assert taken is not None
    assert added.view(pa.int32()).to_pylist() == [3, None, 43]
    assert taken.view(pa.int32()).to_pylist() == [-3, None, 37]
    assert apply_function(define("date_add", days=str((1 << 31) - 1)), days) is None
    assert apply_function(define("to_date"), days) is days
    assert apply_function(define("to_date", format="yyyy"), days) is None


def test_moments_are_themselves() -> None:
    times = pa.array([0], pa.timestamp("us", "UTC"))
    assert apply_function(define("to_timestamp"), times) is times
    assert apply_function(define("to_timestamp"), times.cast(pa.timestamp("us"))) is None


@pytest.mark.parametrize(
    ("function", "arguments", "problem"),
    [
        ("somewhat", {}, "over the function 'somewhat'"),
        ("Year", {}, "over the function 'Year'"),
        ("split", {"pattern": ","}, "lists have no order"),
        ("year", {"format": "x"}, "'format' is no argument of 'year'"),
        ("substring", {"pos": "1"}, "needs the argument 'len'"),
        ("substring", {"pos": "1", "len": "1.5"}, "is no whole number"),
        ("date_add", {"days": "9999999999"}, "is no whole number"),
    ],
)
def test_what_java_would_refuse_is_refused(function: str, arguments: dict[str, str], problem: str) -> None:
    with pytest.raises((InvalidQueryError, UnsupportedFeatureError), match=problem):
        check_function(function, arguments)


def test_what_java_takes_is_taken() -> None:
    check_function("from_unixtime", {"expr": "from_unixtime", "format": "yyyy"})
    check_function("identity", {})


def test_kinds_of_results() -> None:
    assert find_result_kind(define("year"), None) == ValueKind(ValueType.INT)
    assert find_result_kind(define("from_unixtime"), None) == TEXT
    assert find_result_kind(define("identity"), TEXT) == TEXT
    assert find_result_kind(define("to_date"), None) == ValueKind(ValueType.DATE)
    assert find_result_kind(define("somewhat"), TEXT) is None
