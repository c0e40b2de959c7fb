"""Turn the filters that Spark pushes into a Python data source into bound filters.

Spark's filter objects (``pyspark.sql.datasource``) are told by their class names and read by their attributes, so
pyspark is not imported. Spark has typed them already: a value has the type of its column. Anything else gives None,
and Spark keeps that filter to itself. A pushed filter is an exact test, null and NaN included, so Spark need not
repeat it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyarrow import types as pat

from hoodie_py.errors import InvalidQueryError
from hoodie_py.table import predicate_binding as bind
from hoodie_py.table.datetime_text import MICROS_PER_DAY, MICROS_PER_SECOND
from hoodie_py.table.like_pattern import quote
from hoodie_py.table.predicate import Column, Comparison, InList, IsNull, Like, Literal, Node, Not, Predicate
from hoodie_py.table.predicate_types import INTEGRAL_BOUNDS, is_atomic, is_integral

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_COMPARISONS = {
    "EqualTo": "=",
    "EqualNullSafe": "<=>",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
}
_PATTERNS: dict[str, Callable[[str], str]] = {
    "StringStartsWith": lambda text: f"{quote(text)}%",
    "StringEndsWith": lambda text: f"%{quote(text)}",
    "StringContains": lambda text: f"%{quote(text)}%",
}
_MAX_NOT_DEPTH = 32


def from_spark_filter(spark_filter: Any, schema: pa.Schema) -> Predicate | None:
    """Bind one of Spark's filter objects to a schema; None when it is of an unknown kind or does not fit the schema."""
    node = _bind(spark_filter, schema, _MAX_NOT_DEPTH)
    return None if node is None else Predicate(node)


def _bind(spark_filter: Any, schema: pa.Schema, levels: int) -> Node | None:
    kind = type(spark_filter).__name__
    if kind == "Not":
        child = _bind(spark_filter.child, schema, levels - 1) if levels else None
        return None if child is None else Not(child)
    column = _column(getattr(spark_filter, "attribute", None), schema)
    if column is None:
        return None
    if kind in ("IsNull", "IsNotNull"):
        return IsNull(column) if kind == "IsNull" else Not(IsNull(column))
    if not is_atomic(column.type) or not hasattr(spark_filter, "value"):
        return None
    try:
        return _test(kind, column, spark_filter.value)
    except (TypeError, ValueError):
        return None


def _test(kind: str, column: Column, value: Any) -> Node | None:
    """Build a test of a column against Python values; ValueError or TypeError when a value is not of its type."""
    if kind in _COMPARISONS:
        return Comparison(_COMPARISONS[kind], column, Literal(_plain(value, column.type), column.type))
    if kind == "In":
        return InList(column, tuple(_plain(each, column.type) for each in value))
    if kind in _PATTERNS and pat.is_string(column.type) and isinstance(value, str):
        return Like(column, _PATTERNS[kind](value), "\\")
    return None


def _column(path: Any, schema: pa.Schema) -> Column | None:
    if not isinstance(path, (tuple, list)) or not path or not all(isinstance(name, str) for name in path):
        return None
    try:
        return bind.column(path, schema)
    except InvalidQueryError:
        return None


def _plain(value: Any, type_: pa.DataType) -> Any:
    """Give a Python value as a literal of the type holds it."""
    if value is None:
        return None
    for fits, expected, convert in _PLAIN:
        if fits(type_):
            if not isinstance(value, expected) or (isinstance(value, bool) and bool not in expected):
                break
            return convert(value, type_)
    raise TypeError(f"{value!r} is not a value of {type_}")


def _integer(value: int, type_: pa.DataType) -> int:
    low, high = INTEGRAL_BOUNDS[type_]
    if not low <= value <= high:
        raise ValueError(f"{value} is out of range")
    return value


def _decimal(value: Decimal, type_: pa.DataType) -> Any:
    try:
        return pa.scalar(value, type_).as_py()
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise ValueError(str(error)) from error


def _days(value: date, _: pa.DataType) -> int:
    if isinstance(value, datetime):
        raise TypeError("a timestamp is not a date")
    return value.toordinal() - _EPOCH.toordinal()


def _micros(value: datetime, type_: pa.DataType) -> int:
    if (value.tzinfo is None) == bool(type_.tz):
        raise TypeError("a timestamp with a time zone is not one without")
    passed: timedelta = (value if type_.tz else value.replace(tzinfo=UTC)) - _EPOCH
    return passed.days * MICROS_PER_DAY + passed.seconds * MICROS_PER_SECOND + passed.microseconds


_PLAIN: list[tuple[Callable[[pa.DataType], bool], tuple[type, ...], Callable[[Any, pa.DataType], Any]]] = [
    (pat.is_boolean, (bool,), lambda value, _: value),
    (is_integral, (int,), _integer),
    (pat.is_floating, (float,), lambda value, _: value),
    (pat.is_decimal, (Decimal,), _decimal),
    (pat.is_string, (str,), lambda value, _: value),
    (pat.is_binary, (bytes, bytearray), lambda value, _: bytes(value)),
    (pat.is_date32, (date,), _days),
    (pat.is_timestamp, (datetime,), _micros),
]
