"""Bind calls of SQL functions: each becomes nodes of a filter, by Spark's rules.

Most functions become a CASE, so that an argument is computed only for the rows that need it, as in Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from hoodie_py.errors import InvalidQueryError
from hoodie_py.table.filter.binding import make_case, make_comparison, make_concat, make_date_part, make_function
from hoodie_py.table.filter.date_parts import DATE_PARTS, TIME_PARTS
from hoodie_py.table.filter.predicate import IsNull, Literal, Node, Not
from hoodie_py.table.filter.sql_settings import SqlSettings


def make_call(name: str, arguments: Sequence[Node], settings: SqlSettings) -> Node:
    """Bind a call of a function, named in upper case.

    Raises:
        InvalidQueryError: the number or the types of the arguments are wrong.
    """
    least, most, build = _FUNCTIONS[name]
    if not least <= len(arguments) <= most:
        raise InvalidQueryError(f"The function {name.lower()} does not take {len(arguments)} arguments.")
    return build(name.lower(), arguments, settings)


def is_function(name: str) -> bool:
    """Say whether a function exists; the name is in upper case."""
    return name in _FUNCTIONS


def _make_plain(name: str, arguments: Sequence[Node], settings: SqlSettings) -> Node:
    return make_function(name, arguments[0], settings)


def _make_date_part(name: str, arguments: Sequence[Node], settings: SqlSettings) -> Node:
    return make_date_part(name, arguments[0], settings)


def _make_coalesce(_: str, arguments: Sequence[Node], settings: SqlSettings) -> Node:
    *first, last = arguments
    return make_case([Not(IsNull(each)) for each in first], first, last, settings) if first else last


def _make_nullif(_: str, arguments: Sequence[Node], settings: SqlSettings) -> Node:
    value, other = arguments
    return make_case([make_comparison("=", value, other, settings)], [Literal(None, pa.null())], value, settings)


def _make_if(_: str, arguments: Sequence[Node], settings: SqlSettings) -> Node:
    condition, then, otherwise = arguments
    return make_case([condition], [then], otherwise, settings)


def _make_concat(_: str, arguments: Sequence[Node], settings: SqlSettings) -> Node:
    return make_concat(arguments, settings)


_MANY = 1000
_FUNCTIONS: Mapping[str, tuple[int, int, Callable[[str, Sequence[Node], SqlSettings], Node]]] = {
    **dict.fromkeys(("UPPER", "LOWER", "LENGTH", "TRIM", "LTRIM", "RTRIM"), (1, 1, _make_plain)),
    **dict.fromkeys((each.upper() for each in (*DATE_PARTS, *TIME_PARTS)), (1, 1, _make_date_part)),
    "COALESCE": (1, _MANY, _make_coalesce),
    "IFNULL": (2, 2, _make_coalesce),
    "NVL": (2, 2, _make_coalesce),
    "NULLIF": (2, 2, _make_nullif),
    "IF": (3, 3, _make_if),
    "CONCAT": (1, _MANY, _make_concat),
}
