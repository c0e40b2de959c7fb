"""Random conditions in Spark SQL over the columns of a random table, with values that its rows have."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

_DEEPEST = 2
_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "<=>")


def make_filter(schema: pa.Schema, rows: Sequence[Mapping[str, Any]], lot: random.Random, depth: int = 0) -> str:
    """Return a condition; about half of them combine others."""
    draw = lot.random()
    if depth < _DEEPEST and draw < 0.4:
        parts = [make_filter(schema, rows, lot, depth + 1) for _ in range(2)]
        return f"({parts[0]} {lot.choice(('and', 'or'))} {parts[1]})"
    if depth < _DEEPEST and draw < 0.5:
        return f"not ({make_filter(schema, rows, lot, depth + 1)})"
    # No binary column: Java's statistics of partitions order bytes as signed, and leave out wanted rows.
    field = lot.choice(
        [each for each in schema if not (pa.types.is_nested(each.type) or pa.types.is_binary(each.type))]
    )
    values = [row[field.name] for row in rows if row.get(field.name) is not None]
    if not values or draw < 0.6:
        return f"{field.name} is {lot.choice(('', 'not '))}null"
    chosen = [format_literal(lot.choice(values)) for _ in range(3)]
    if draw < 0.7:
        return f"{field.name} in ({', '.join(chosen)})"
    if draw < 0.75 and not pa.types.is_boolean(field.type):
        return f"{field.name} between {chosen[0]} and {chosen[1]}"
    return f"{field.name} {lot.choice(_COMPARISONS)} {chosen[0]}"


def format_literal(value: Any) -> str:
    """Return a value as a literal of Spark SQL."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, dt.datetime):
        return f"timestamp'{value:%Y-%m-%d %H:%M:%S.%f}'"
    if isinstance(value, dt.date):
        return f"date'{value:%Y-%m-%d}'"
    if isinstance(value, float):
        return f"{value!r}D"
    if isinstance(value, Decimal):
        return f"{value:f}BD"
    return f"{value}L" if abs(value) > 2**31 - 1 else str(value)
