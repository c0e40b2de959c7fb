"""Bind clauses to the columns of a table and a source: expressions become typed nodes with Spark's casts.

A value is cast to its column as Spark stores values (``spark.sql.storeAssignmentPolicy`` ANSI): numbers to numbers with
a check of their range, all simple values to text, dates and times to each other. Every other cast must be written
explicitly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyarrow import types as pat

from hoodie_py.arrow.layouts import make_plain_scalar
from hoodie_py.errors import HoodieError, InvalidQueryError
from hoodie_py.formats.names import META_FIELDS
from hoodie_py.table.filter.binding import find_names_alike, make_cast
from hoodie_py.table.filter.evaluate import evaluate_constant
from hoodie_py.table.filter.predicate import Literal, Node, Predicate
from hoodie_py.table.filter.sql_parser import parse_sql, parse_value
from hoodie_py.table.filter.sql_settings import SqlSettings
from hoodie_py.table.filter.sql_text import format_type
from hoodie_py.table.filter.types import is_atomic, is_datetime, is_numeric, to_spark_type
from hoodie_py.writer.dml.clauses import Clause, Clauses, Delete, Insert, Update
from hoodie_py.writer.dml.names import SOURCE, Names, find_on_side

_BY_NAME: Mapping[str, type[Clause]] = {"update": Update, "delete": Delete, "insert": Insert}


@dataclass(frozen=True, slots=True)
class BoundClause:
    """One clause. ``values``: the expressions of the columns that it sets; empty for a delete."""

    condition: Predicate | None
    values: Mapping[str, Node]
    deletes: bool = False

    @property
    def nodes(self) -> list[Node]:
        """All expressions."""
        return [*self.values.values(), *([] if self.condition is None else [self.condition.root])]


def bind_clauses(
    given: Clauses, argument: str, allowed: tuple[type[Clause], ...], names: Names, columns: pa.Schema
) -> tuple[BoundClause, ...]:
    """Bind the clauses of one argument of a merge. ``columns`` are the table's, without meta columns.

    Raises:
        InvalidQueryError: the argument does not accept a clause, a column is unknown, or an expression does not fit.
    """
    listed = [given] if isinstance(given, str | Update | Delete | Insert) else list(given or ())
    clauses = [_make_clause(each, argument) for each in listed]
    for number, each in enumerate(clauses):
        if not isinstance(each, allowed):
            raise InvalidQueryError(
                f"{argument} does not take {type(each).__name__}.",
                hint=f"It takes {' and '.join(kind.__name__ for kind in allowed)}.",
            )
        if each.where is None and number < len(clauses) - 1:
            raise InvalidQueryError(
                f"A clause of {argument} has no condition, so those after it never count.", hint="Put it last."
            )
    return tuple(_bind(each, names, columns) for each in clauses)


def _make_clause(given: Any, argument: str) -> Clause:
    if isinstance(given, str):
        made = _BY_NAME.get(given.lower())
        if made is not None:
            return made()
    if isinstance(given, Update | Delete | Insert):
        return given
    raise InvalidQueryError(
        f"{argument} takes clauses, not {given!r:.100}.", hint="Give Update(...), Delete(...) or Insert(...)."
    )


def _bind(clause: Clause, names: Names, columns: pa.Schema) -> BoundClause:
    condition = None if clause.where is None else parse_sql(clause.where, columns, names.find, names.settings)
    if isinstance(clause, Delete):
        return BoundClause(condition, {}, deletes=True)
    given = clause.set if isinstance(clause, Update) else clause.values
    if given is None:
        return BoundClause(condition, _take_all(names, columns))
    return BoundClause(condition, bind_values(given, names, columns))


def _take_all(names: Names, columns: pa.Schema) -> dict[str, Node]:
    if names.source is None:
        raise InvalidQueryError("An update of rows without a source says which columns it sets.", hint="Give set=.")
    has = names.source.names
    missing = [name for name in columns.names if not find_names_alike(name, has, names.settings)]
    if missing:
        raise InvalidQueryError(
            f"The source lacks the table's column {missing[0]!r}.",
            hint="Say which columns to set: Update(set={...}), Insert(values={...}).",
            column=missing[0],
        )
    found = {field.name: find_on_side(SOURCE, [field.name], names.source, names.settings) for field in columns}
    return {field.name: _assign(found[field.name], field, names.settings) for field in columns}


def bind_values(given: Mapping[str, Any], names: Names, columns: pa.Schema) -> dict[str, Node]:
    """Bind an expression for each column of a mapping; errors as for ``bind_clauses``."""
    if not isinstance(given, Mapping) or not given:
        raise InvalidQueryError("There is no column to set.", hint="Give a mapping of columns to expressions.")
    values: dict[str, Node] = {}
    for key, value in given.items():
        name = _find_set_column(str(key), names, columns)
        if name in META_FIELDS or columns.get_field_index(name) < 0:
            raise InvalidQueryError(
                f"{name[:100]!r} is no column of the table that can be set.",
                hint=f"The columns are {', '.join(columns.names[:20])}.",
                column=name[:100],
            )
        if name in values:
            raise InvalidQueryError(f"The column {name!r} is set twice.", column=name)
        try:
            values[name] = _assign(_parse(value, names), columns.field(name), names.settings)
        except HoodieError as error:
            raise error.locate(column=name) from None
    return values


def _find_set_column(key: str, names: Names, columns: pa.Schema) -> str:
    """Return the table's name for a column that is set; the name as written if the table has none or several."""
    alias, dot, rest = key.partition(".")
    name = rest if dot and find_names_alike(alias, [names.target_alias], names.settings) else key
    alike = find_names_alike(name, columns.names, names.settings)
    return alike[0] if len(alike) == 1 else name


def _parse(value: Any, names: Names) -> Node:
    if isinstance(value, str):
        return parse_value(value, names.find, names.settings)
    scalar = make_plain_scalar(value) if isinstance(value, pa.Scalar) else _make_scalar(value)
    type_ = to_spark_type(scalar.type)
    if not is_atomic(type_):
        raise InvalidQueryError(f"A value of type {scalar.type} cannot be set.", hint="Merge it from a source.")
    number = scalar.cast(type_)
    if is_datetime(type_) and number.is_valid:
        return Literal(number.cast(pa.int32() if pat.is_date32(type_) else pa.int64()).as_py(), type_)
    return Literal(number.as_py(), type_)


def _make_scalar(value: Any) -> pa.Scalar:
    try:
        return pa.scalar(value)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise InvalidQueryError(f"{value!r:.100} cannot be set.", hint="Give an SQL expression.") from error


def _assign(node: Node, field: pa.Field, settings: SqlSettings) -> Node:
    """Cast a value to its column. Nested values, and values of the column's type, are left to ``fit_column``."""
    target = to_spark_type(field.type)
    if node.type == target or not is_atomic(target) or pat.is_nested(node.type):
        return node
    if not _can_store(node.type, target):
        raise InvalidQueryError(
            f"A value of type {format_type(node.type)} cannot be stored in a column of type {format_type(target)}: "
            f"{node}",
            hint="Cast it.",
        )
    cast = make_cast(node, target, replace(settings, ansi=True))  # whatever mode the session has
    return evaluate_constant(cast) if isinstance(node, Literal) else cast


def _can_store(source: pa.DataType, target: pa.DataType) -> bool:
    if pat.is_null(source) or pat.is_string(target):
        return is_atomic(source) and not pat.is_binary(source)
    return (is_numeric(source) and is_numeric(target)) or (is_datetime(source) and is_datetime(target))


def list_assigned(clauses: Sequence[BoundClause]) -> set[str]:
    """Return the columns that clauses set."""
    return {name for each in clauses for name in each.values}
