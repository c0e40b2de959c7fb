"""Functions of expression indexes: the kinds of their results, and those that are computed."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from hoodie_py.formats.metadata_table.expressions import apply_function, find_result_kind
from hoodie_py.formats.metadata_table.index_definitions import COLUMN_STATS, IndexDefinition
from hoodie_py.formats.metadata_table.value_kinds import ValueKind, ValueType

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


def test_other_characters_to_trim_are_not_told() -> None:
    assert apply_function(define("trim", trimString="x"), pa.array(["xa"])) is None


def test_kinds_of_results() -> None:
    assert find_result_kind(define("year"), None) == ValueKind(ValueType.INT)
    assert find_result_kind(define("from_unixtime"), None) == TEXT
    assert find_result_kind(define("identity"), TEXT) == TEXT
    assert find_result_kind(define("to_date"), None) == ValueKind(ValueType.DATE)
    assert find_result_kind(define("somewhat"), TEXT) is None
