"""Bind a filter of any kind: SQL text, a ``pyarrow.compute.Expression``, or a filter that is bound already."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.errors import InvalidQueryError
from hoodie_py.table.filter.arrow_expression import from_expression
from hoodie_py.table.filter.predicate import And, Predicate
from hoodie_py.table.filter.sql_parser import parse_sql
from hoodie_py.table.filter.sql_settings import UTC_SESSION, SqlSettings


def as_predicate(
    filter: str | pc.Expression | Predicate | None,  # noqa: A002 - the name of the public argument it serves
    schema: pa.Schema,
    nan_is_greatest: bool = False,
    settings: SqlSettings = UTC_SESSION,
) -> Predicate | None:
    """Bind a filter to the columns of a schema; None stays None.

    ``settings`` belong to the session in whose SQL the text is written. With ``nan_is_greatest`` an expression compares
    floats as SQL text does: NaN is greater than all other numbers.

    Raises:
        InvalidQueryError: the value is not a filter, or does not fit the schema.
        UnsupportedFeatureError: the text depends on a session setting that is not known.
    """
    if filter is None:
        return None
    if isinstance(filter, str):
        return parse_sql(filter, schema, settings=settings)
    if isinstance(filter, pc.Expression):
        return _bind_expression(filter, schema, nan_is_greatest)
    if isinstance(filter, Predicate):
        missing = sorted(filter.columns - set(schema.names))
        if missing:
            raise InvalidQueryError(f"The filter names an unknown column {missing[0]!r}.", column=missing[0])
        return filter
    raise InvalidQueryError(
        f"A filter is SQL text or a pyarrow.compute.Expression, not {type(filter).__name__}.",
    )


def _bind_expression(expression: pc.Expression, schema: pa.Schema, nan_is_greatest: bool) -> Predicate:
    """Return known conditions as nodes, which prune files as SQL's do, and the expression itself if it has others."""
    from hoodie_py.table.filter.arrow_tree import find_parts, make_plain_expression

    expression = make_plain_expression(expression)
    whole = from_expression(expression, schema)
    known = find_parts(expression, schema, nan_is_greatest)
    nodes = known.nodes if known.is_all else (*known.nodes, whole.root)
    return Predicate(nodes[0] if len(nodes) == 1 else And(nodes))
