"""Build typed filter nodes: find columns, insert Spark's implicit casts, and refuse types that do not fit.

Each function takes bound nodes and returns one. The rules are Spark's in the mode of the ``SqlSettings``
(``AnsiTypeCoercion``, ``TypeCoercion``). An InvalidQueryError names the operands that do not fit, an
UnsupportedFeatureError the part that depends on an unknown session setting.

``fold`` computes the parts of a filter without columns when it is parsed, as Spark's ``ConstantFolding`` does. So a bad
literal (``day = 'soon'``) is an error before any file is opened, and ``pruning`` can compare statistics with plain
literals.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import pyarrow as pa
from pyarrow import types as pat

from hoodie_py.arrow.fields import find_similar_names
from hoodie_py.errors import InvalidQueryError, UnsupportedFeatureError
from hoodie_py.table.filter import predicate
from hoodie_py.table.filter import types as sql_types
from hoodie_py.table.filter.ansi_casts import can_cast, cannot_fail
from hoodie_py.table.filter.arithmetic import can_fail
from hoodie_py.table.filter.date_parts import DATE_PARTS
from hoodie_py.table.filter.datetime_text import names_moment, split_timestamp
from hoodie_py.table.filter.evaluate import evaluate_constant
from hoodie_py.table.filter.predicate import Column, Literal, Node
from hoodie_py.table.filter.sql_settings import UTC_SESSION, SqlSettings
from hoodie_py.table.filter.sql_text import format_type
from hoodie_py.table.filter.time_zones import UTC_ZONE
from hoodie_py.table.filter.zoned_casts import depends_on_zone

_Found = TypeVar("_Found")


def find_column(path: Sequence[str], schema: pa.Schema, settings: SqlSettings = UTC_SESSION) -> Column:
    """Find a column, or a field in struct columns, by its names: exact ones unless the settings say otherwise.

    Raises:
        InvalidQueryError: no column or several have the name, or the path leads through an array or map.
    """
    type_: pa.DataType = pa.struct(schema)
    found: list[str] = []
    for depth, name in enumerate(path):
        shown = ".".join(path[: depth + 1])
        if not pat.is_struct(type_):
            raise InvalidQueryError(
                f"{'.'.join(path[:depth])} is of type {format_type(type_)} and has no field {name!r} for a filter.",
                column=".".join(path),
            )
        names = [type_.field(i).name for i in range(type_.num_fields)]
        alike = find_names_alike(name, names, settings)
        if len(alike) != 1:
            raise _make_column_error(shown, name, names, is_ambiguous=bool(alike))
        found += alike
        type_ = sql_types.to_spark_type(type_.field(names.index(alike[0])).type)
    return Column(tuple(found), type_)


def find_names_alike(name: str, names: Sequence[str], settings: SqlSettings) -> list[str]:
    """Return the names that a name matches by the session's rule; if that is unknown, none without an exact match."""
    exact = [each for each in names if each == name]
    if settings.case_sensitive:
        return exact
    alike = [each for each in names if each.lower() == name.lower()]
    return alike if settings.case_sensitive is False or exact else []


def _make_column_error(shown: str, name: str, names: list[str], *, is_ambiguous: bool) -> InvalidQueryError:
    if is_ambiguous:
        return InvalidQueryError(
            f"The filter's column {shown!r} is ambiguous: several columns have that name.", column=shown
        )
    close = find_similar_names(name, names)
    hint = f"Did you mean {' or '.join(map(repr, close))}? Names are case-sensitive." if close else None
    return InvalidQueryError(f"The filter names an unknown column {shown!r}.", hint=hint, column=shown)


def make_cast(child: Node, target: pa.DataType, settings: SqlSettings) -> Node:
    """Convert a node to a type; a node of that type is returned unchanged."""
    if child.type == target:
        return child
    if isinstance(child, Literal) and child.value is None:
        return Literal(None, target)
    if not can_cast(child.type, target):
        raise InvalidQueryError(f"Cannot cast {format_type(child.type)} to {format_type(target)}: {child}")
    what = f"cast({child} as {format_type(target)})"
    zone = UTC_ZONE
    if depends_on_zone(child.type, target) and not _names_zone(child):
        zone = settings.get_zone(what)
    return predicate.Cast(child, target, _choose_cast_mode(child, target, settings, what), zone)


def _names_zone(child: Node) -> bool:
    """Say whether a node is a text that names its own time zone."""
    if not isinstance(child, Literal) or not isinstance(child.value, str):
        return False
    found = split_timestamp(child.value)
    return found is not None and found.offset is not None


def _choose_cast_mode(child: Node, target: pa.DataType, settings: SqlSettings, what: str) -> bool:
    """Return whether to cast in ANSI mode. A constant that has a value in it has the same one in the other mode."""
    is_text_of_decimal = pat.is_decimal(child.type) and pat.is_string(target)
    if cannot_fail(child.type, target) and not is_text_of_decimal:
        return True
    if settings.ansi is None and isinstance(child, Literal) and not is_text_of_decimal:
        return True
    ansi = settings.is_ansi(what)
    if not ansi and isinstance(child, Literal) and isinstance(child.value, str) and names_moment(child.value):
        raise UnsupportedFeatureError(f"The text {child.value[:60]!r} as a day or time.", hint="Write the day.")
    return ansi


def make_condition(child: Node, settings: SqlSettings) -> Node:
    """Use a node as a condition; Spark casts only null to boolean, and text in ANSI mode."""
    if pat.is_boolean(child.type):
        return child
    if pat.is_null(child.type) or (pat.is_string(child.type) and settings.is_ansi(f"{child} as a condition")):
        return make_cast(child, pa.bool_(), settings)
    raise InvalidQueryError(f"A condition must be boolean, but {child} is of type {format_type(child.type)}.")


def make_comparison(operator: str, left: Node, right: Node, settings: SqlSettings) -> Node:
    """Compare two nodes in their common type; ``!=`` is the negation of ``=``."""
    if operator == "!=":
        return predicate.Not(make_comparison("=", left, right, settings))
    left, right = _narrow_beside_decimal(left, right, settings), _narrow_beside_decimal(right, left, settings)
    type_ = _choose_type(lambda ansi: sql_types.find_common_type(left.type, right.type, ansi), settings, left, right)
    if type_ is None or not sql_types.is_atomic(type_):
        raise InvalidQueryError(
            f"Cannot compare {format_type(left.type)} with {format_type(right.type)}: {left} {operator} {right}"
        )
    type_ = pa.bool_() if pat.is_null(type_) else type_
    return predicate.Comparison(operator, make_cast(left, type_, settings), make_cast(right, type_, settings))


def _choose_type(find: Callable[[bool], _Found], settings: SqlSettings, *nodes: Node) -> _Found:
    """Return the result of ``find`` in the session's mode; the mode need not be known if both give the same."""
    ansi = find(True)
    if settings.ansi or ansi == (other := find(False)):
        return ansi
    return ansi if settings.is_ansi(" beside ".join(map(str, nodes))) else other


def make_in_list(child: Node, options: Sequence[Node], settings: SqlSettings) -> Node:
    """Test membership; all members and the child get one common type (``find_wider_type``)."""
    types = [each.type for each in (child, *options)]
    type_ = _choose_type(lambda ansi: sql_types.find_wider_type(types, ansi), settings, child, *options)
    if type_ is None or not sql_types.is_atomic(type_):
        names = ", ".join(dict.fromkeys(format_type(node.type) for node in (child, *options)))
        raise InvalidQueryError(f"The values of an IN list must have one common type, not {names}: {child} in (...).")
    type_ = pa.bool_() if pat.is_null(type_) else type_
    child = make_cast(child, type_, settings)
    options = [fold(make_cast(option, type_, settings)) for option in options]
    if all(isinstance(option, Literal) for option in options):
        return predicate.InList(child, tuple(option.value for option in options if isinstance(option, Literal)))
    equal: list[Node] = [predicate.Comparison("=", child, option) for option in options]
    return equal[0] if len(equal) == 1 else predicate.Or(tuple(equal))


def make_like(child: Node, pattern: Node, escape: str, settings: SqlSettings) -> Node:
    """Match a pattern, which must be a constant; the child becomes text.

    Raises:
        InvalidQueryError: the pattern is not constant or misuses the escape character.
    """
    if len(escape) != 1:
        raise InvalidQueryError(f"The escape of LIKE must be one character, not {escape!r}.")
    text = make_cast(child, pa.string(), settings)
    if not isinstance(pattern, Literal) or not (pat.is_string(pattern.type) or pat.is_null(pattern.type)):
        raise InvalidQueryError(f"The pattern of LIKE must be a string literal, not {pattern}.")
    if pattern.value is None:
        return predicate.Comparison("=", text, Literal(None, pa.string()))
    position = 0
    while (position := pattern.value.find(escape, position)) >= 0:
        if pattern.value[position + 1 : position + 2] not in {"%", "_", escape}:
            raise InvalidQueryError(f"In the LIKE pattern {pattern} the escape {escape!r} must precede %, _ or itself.")
        position += 2
    return predicate.Like(text, pattern.value, escape)


def make_arithmetic(operator: str, left: Node, right: Node, settings: SqlSettings) -> Node:
    """Compute + - * / % on two numbers; text beside a number is cast to a number."""
    left, right = _narrow_beside_decimal(left, right, settings), _narrow_beside_decimal(right, left, settings)
    if pat.is_decimal(left.type) and sql_types.is_integral(right.type):
        right = make_cast(right, sql_types.to_decimal_type(right.type), settings)
    elif pat.is_decimal(right.type) and sql_types.is_integral(left.type):
        left = make_cast(left, sql_types.to_decimal_type(left.type), settings)
    types = _choose_type(
        lambda ansi: sql_types.find_arithmetic_types(operator, left.type, right.type, ansi), settings, left, right
    )
    if types is None:
        raise InvalidQueryError(
            f"The operator {operator} needs numbers, not {format_type(left.type)} and {format_type(right.type)}: "
            f"{left} {operator} {right}"
        )
    operands, result = types
    if not pat.is_null(operands):
        if operator == "/" and pat.is_string(left.type) != pat.is_string(right.type):
            left, right = _cast_text_to_number(left, right, settings)
        left, right = make_cast(left, operands, settings), make_cast(right, operands, settings)
    are_constant = isinstance(left, Literal) and isinstance(right, Literal)
    mode = _choose_mode(settings, f"{left} {operator} {right}", can_fail(operator, result) and not are_constant)
    return predicate.Arithmetic(operator, left, right, result, mode)


def _choose_mode(settings: SqlSettings, what: str, may_differ: bool) -> bool:
    return settings.is_ansi(what) if may_differ or settings.ansi is not None else True


def _cast_text_to_number(left: Node, right: Node, settings: SqlSettings) -> tuple[Node, Node]:
    """Cast text to the other side's type, as Spark does before a division: so ``'1.5' / 2`` is an error. Without ANSI
    mode text is a double.
    """
    if not settings.is_ansi(f"{left} / {right}"):
        return left, right
    number = sql_types.find_common_type(left.type, right.type)
    return (
        (make_cast(left, number, settings), make_cast(right, number, settings)) if number is not None else (left, right)
    )


def make_negate(child: Node, settings: SqlSettings) -> Node:
    """Change the sign of a number; text is cast to double."""
    if pat.is_string(child.type) or pat.is_null(child.type):
        child = make_cast(child, pa.float64(), settings)
    if not sql_types.is_numeric(child.type):
        raise InvalidQueryError(f"The operator - needs a number, not {format_type(child.type)}: - {child}")
    may_differ = sql_types.is_integral(child.type) and not isinstance(child, Literal)
    return predicate.Negate(child, child.type, _choose_mode(settings, f"- {child}", may_differ))


def make_plus(child: Node, settings: SqlSettings) -> Node:
    """Apply a unary plus: it leaves numbers unchanged, and casts text to double."""
    if pat.is_string(child.type) or pat.is_null(child.type):
        child = make_cast(child, pa.float64(), settings)
    if not sql_types.is_numeric(child.type):
        raise InvalidQueryError(f"The operator + needs a number, not {format_type(child.type)}: + {child}")
    return child


def find_value_type(nodes: Sequence[Node], what: str, settings: SqlSettings) -> pa.DataType:
    """Return the common type of several values (``find_wider_type``).

    Raises:
        InvalidQueryError: they have none; the message names ``what``.
    """
    types = [each.type for each in nodes]
    type_ = _choose_type(lambda ansi: sql_types.find_wider_type(types, ansi), settings, *nodes)
    if type_ is None:
        names = ", ".join(dict.fromkeys(format_type(node.type) for node in nodes))
        raise InvalidQueryError(f"The values of {what} must have one common type, not {names}.")
    return type_


def make_case(conditions: Sequence[Node], values: Sequence[Node], otherwise: Node, settings: SqlSettings) -> Node:
    """Choose the value of the first condition that is true."""
    type_ = find_value_type([*values, otherwise], "CASE", settings)
    wanted = tuple(make_condition(each, settings) for each in conditions)
    cast = tuple(make_cast(each, type_, settings) for each in values)
    return predicate.Case(wanted, cast, make_cast(otherwise, type_, settings), type_)


def make_concat(operands: Sequence[Node], settings: SqlSettings) -> Node:
    """Join texts; other values become text."""
    return predicate.Concat(tuple(make_cast(each, pa.string(), settings) for each in operands))


def make_function(name: str, argument: Node, settings: SqlSettings) -> Node:
    """Apply ``length`` (characters of text, bytes of binary), or ``upper``, ``lower`` or a trim function to text."""
    if name == "length":
        child = argument if pat.is_binary(argument.type) else make_cast(argument, pa.string(), settings)
        return predicate.Function(name, child, pa.int32())
    return predicate.Function(name, make_cast(argument, pa.string(), settings), pa.string())


def make_date_part(name: str, argument: Node, settings: SqlSettings) -> Node:
    """Take a part of a date or time; timestamps are first converted to the session's time zone."""
    if not (sql_types.is_datetime(argument.type) or pat.is_string(argument.type) or pat.is_null(argument.type)):
        raise InvalidQueryError(f"The function {name} needs a date or time, not {format_type(argument.type)}.")
    if name in DATE_PARTS:
        return predicate.Function(name, make_cast(argument, pa.date32(), settings), pa.int32())
    moment = argument if pat.is_timestamp(argument.type) else make_cast(argument, sql_types.TIMESTAMP, settings)
    return predicate.Function(name, make_cast(moment, sql_types.TIMESTAMP_NTZ, settings), pa.int32())


def _narrow_beside_decimal(node: Node, other: Node, settings: SqlSettings) -> Node:
    """Narrow an integer literal beside a decimal, except a tinyint (Spark's literalPickMinimumPrecision)."""
    if not pat.is_decimal(other.type) or not isinstance(node, Literal) or node.value is None:
        return node
    if not sql_types.is_integral(node.type) or node.type == pa.int8():
        return node
    return make_cast(node, sql_types.find_narrowest_decimal(node.value), settings)


def map_children(node: Node, change: Callable[[Node], Node]) -> Node:
    """Return a copy of a node with each child changed by a function."""
    changed: dict[str, Any] = {}
    for field in dataclasses.fields(node):  # type: ignore[arg-type]
        value = getattr(node, field.name)
        if isinstance(value, Node):
            changed[field.name] = change(value)
        elif isinstance(value, tuple) and value and isinstance(value[0], Node):
            changed[field.name] = tuple(change(each) for each in value)
    return dataclasses.replace(node, **changed) if changed else node  # type: ignore[type-var]


def _fold_quietly(node: Node) -> Node:
    """Fold a part of CASE; a constant without a value stays, as no row may need it."""
    try:
        return fold(node)
    except InvalidQueryError:
        return node


def fold(node: Node) -> Node:
    """Replace each subtree without columns by its value.

    Raises:
        InvalidQueryError: a constant subtree has no value, such as ``1 / 0``.
    """
    if isinstance(node, (Literal, Column, predicate.ArrowFilter)):
        return node
    node = map_children(node, fold if not isinstance(node, predicate.Case) else _fold_quietly)
    return evaluate_constant(node) if all(isinstance(child, Literal) for child in node.children) else node
