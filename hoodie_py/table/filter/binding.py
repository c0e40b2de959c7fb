"""Build typed filter nodes: find columns, insert Spark's implicit casts, and refuse types that do not fit.

Each function takes bound nodes and returns one. The rules are those of Spark in ANSI mode (``AnsiTypeCoercion``). An
InvalidQueryError names the operands that do not fit.

Compute the parts of a filter that name no column, once, when the filter is parsed.

This makes a bad literal (``day = 'soon'``) an error before any file is opened, and lets ``pruning`` compare statistics
with plain literals. It does the work of Spark's ``ConstantFolding``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
from pyarrow import types as pat

from hoodie_py.arrow.fields import find_similar_names
from hoodie_py.errors import InvalidQueryError
from hoodie_py.table.filter.ansi_casts import can_cast
from hoodie_py.table.filter.evaluate import evaluate_constant
from hoodie_py.table.filter.predicate import (
    Arithmetic,
    ArrowFilter,
    Case,
    Cast,
    Column,
    Comparison,
    Concat,
    Function,
    InList,
    Like,
    Literal,
    Negate,
    Node,
    Not,
    Or,
)
from hoodie_py.table.filter.sql_text import format_type
from hoodie_py.table.filter.types import (
    find_arithmetic_types,
    find_common_type,
    find_narrowest_decimal,
    is_atomic,
    is_integral,
    is_numeric,
    to_decimal_type,
    to_spark_type,
)


def find_column(path: Sequence[str], schema: pa.Schema) -> Column:
    """Find a column, or a field in struct columns, by its exact names.

    Raises:
        InvalidQueryError: no column has that name, two have it, or the path leads through an array or map.
    """
    type_: pa.DataType = pa.struct(schema)
    for depth, name in enumerate(path):
        shown = ".".join(path[: depth + 1])
        if not pat.is_struct(type_):
            raise InvalidQueryError(
                f"{'.'.join(path[:depth])} is of type {format_type(type_)} and has no field {name!r} for a filter.",
                column=".".join(path),
            )
        names = [type_.field(i).name for i in range(type_.num_fields)]
        if names.count(name) != 1:
            raise _make_column_error(shown, name, names)
        type_ = to_spark_type(type_.field(names.index(name)).type)
    return Column(tuple(path), type_)


def _make_column_error(shown: str, name: str, names: list[str]) -> InvalidQueryError:
    if name in names:
        return InvalidQueryError(
            f"The filter's column {shown!r} is ambiguous: several columns have that name.", column=shown
        )
    close = find_similar_names(name, names)
    hint = f"Did you mean {' or '.join(map(repr, close))}? Names are case-sensitive." if close else None
    return InvalidQueryError(f"The filter names an unknown column {shown!r}.", hint=hint, column=shown)


def make_cast(child: Node, target: pa.DataType) -> Node:
    """Convert a node; one of the target type is returned unchanged."""
    if child.type == target:
        return child
    if isinstance(child, Literal) and child.value is None:
        return Literal(None, target)
    if not can_cast(child.type, target):
        raise InvalidQueryError(f"Cannot cast {format_type(child.type)} to {format_type(target)}: {child}")
    return Cast(child, target)


def make_condition(child: Node) -> Node:
    """Use a node as a condition; Spark casts only text and null to boolean."""
    if pat.is_boolean(child.type):
        return child
    if pat.is_string(child.type) or pat.is_null(child.type):
        return make_cast(child, pa.bool_())
    raise InvalidQueryError(f"A condition must be boolean, but {child} is of type {format_type(child.type)}.")


def make_comparison(operator: str, left: Node, right: Node) -> Node:
    """Compare two nodes in their common type; ``!=`` is the negation of ``=``."""
    if operator == "!=":
        return Not(make_comparison("=", left, right))
    left, right = _narrow_beside_decimal(left, right), _narrow_beside_decimal(right, left)
    type_ = find_common_type(left.type, right.type)
    if type_ is None or not is_atomic(type_):
        raise InvalidQueryError(
            f"Cannot compare {format_type(left.type)} with {format_type(right.type)}: {left} {operator} {right}"
        )
    type_ = pa.bool_() if pat.is_null(type_) else type_
    return Comparison(operator, make_cast(left, type_), make_cast(right, type_))


def make_in_list(child: Node, options: Sequence[Node]) -> Node:
    """Test membership; all members and the child get one common type, found from left to right as Spark does."""
    type_: pa.DataType | None = child.type
    for option in options:
        type_ = None if type_ is None else find_common_type(type_, option.type)
    if type_ is None or not is_atomic(type_):
        names = ", ".join(dict.fromkeys(format_type(node.type) for node in (child, *options)))
        raise InvalidQueryError(f"The values of an IN list must have one common type, not {names}: {child} in (...).")
    type_ = pa.bool_() if pat.is_null(type_) else type_
    child, options = make_cast(child, type_), [fold(make_cast(option, type_)) for option in options]
    if all(isinstance(option, Literal) for option in options):
        return InList(child, tuple(option.value for option in options if isinstance(option, Literal)))
    equal: list[Node] = [Comparison("=", child, option) for option in options]
    return equal[0] if len(equal) == 1 else Or(tuple(equal))


def make_like(child: Node, pattern: Node, escape: str) -> Node:
    """Match a pattern, which must be a constant; the child becomes text.

    Raises:
        InvalidQueryError: the pattern is not constant or misuses the escape character.
    """
    if len(escape) != 1:
        raise InvalidQueryError(f"The escape of LIKE must be one character, not {escape!r}.")
    text = make_cast(child, pa.string())
    if not isinstance(pattern, Literal) or not (pat.is_string(pattern.type) or pat.is_null(pattern.type)):
        raise InvalidQueryError(f"The pattern of LIKE must be a string literal, not {pattern}.")
    if pattern.value is None:
        return Comparison("=", text, Literal(None, pa.string()))
    position = 0
    while (position := pattern.value.find(escape, position)) >= 0:
        if pattern.value[position + 1 : position + 2] not in {"%", "_", escape}:
            raise InvalidQueryError(f"In the LIKE pattern {pattern} the escape {escape!r} must precede %, _ or itself.")
        position += 2
    return Like(text, pattern.value, escape)


def make_arithmetic(operator: str, left: Node, right: Node) -> Node:
    """Compute + - * / % on two numbers; text beside a number is cast to a number."""
    left, right = _narrow_beside_decimal(left, right), _narrow_beside_decimal(right, left)
    if pat.is_decimal(left.type) and is_integral(right.type):
        right = make_cast(right, to_decimal_type(right.type))
    elif pat.is_decimal(right.type) and is_integral(left.type):
        left = make_cast(left, to_decimal_type(left.type))
    types = find_arithmetic_types(operator, left.type, right.type)
    if types is None:
        raise InvalidQueryError(
            f"The operator {operator} needs numbers, not {format_type(left.type)} and {format_type(right.type)}: "
            f"{left} {operator} {right}"
        )
    operands, result = types
    if not pat.is_null(operands):
        if operator == "/" and pat.is_string(to_spark_type(left.type)) != pat.is_string(to_spark_type(right.type)):
            left, right = _cast_text_to_number(left, right)
        left, right = make_cast(left, operands), make_cast(right, operands)
    return Arithmetic(operator, left, right, result)


def _cast_text_to_number(left: Node, right: Node) -> tuple[Node, Node]:
    """Cast text to the other side's type, as Spark does before a division: so ``'1.5' / 2`` is an error."""
    number = find_common_type(left.type, right.type)
    return (make_cast(left, number), make_cast(right, number)) if number is not None else (left, right)


def make_negate(child: Node) -> Node:
    """Change the sign of a number; text is cast to double."""
    if pat.is_string(child.type) or pat.is_null(child.type):
        child = make_cast(child, pa.float64())
    if not is_numeric(child.type):
        raise InvalidQueryError(f"The operator - needs a number, not {format_type(child.type)}: - {child}")
    return Negate(child, child.type)


def make_plus(child: Node) -> Node:
    """Apply a unary plus: it changes no number, and casts text to double."""
    node = make_negate(child)
    return node.child if isinstance(node, Negate) else node


def find_value_type(nodes: Sequence[Node], what: str) -> pa.DataType:
    """Return the type that several values have in common, found from left to right as Spark does.

    Raises:
        InvalidQueryError: they have none; names ``what``.
    """
    type_: pa.DataType | None = pa.null()
    for node in nodes:
        type_ = None if type_ is None else find_common_type(type_, node.type)
    if type_ is None:
        names = ", ".join(dict.fromkeys(format_type(node.type) for node in nodes))
        raise InvalidQueryError(f"The values of {what} must have one common type, not {names}.")
    return type_


def make_case(conditions: Sequence[Node], values: Sequence[Node], otherwise: Node) -> Node:
    """Choose the value of the first condition that is true."""
    type_ = find_value_type([*values, otherwise], "CASE")
    wanted = tuple(make_condition(each) for each in conditions)
    return Case(wanted, tuple(make_cast(each, type_) for each in values), make_cast(otherwise, type_), type_)


def make_concat(operands: Sequence[Node]) -> Node:
    """Join texts; other values become text."""
    return Concat(tuple(make_cast(each, pa.string()) for each in operands))


def make_function(name: str, argument: Node) -> Node:
    """Apply ``length`` (characters of text, bytes of binary), or ``upper``, ``lower`` or a trim of text."""
    if name == "length":
        child = argument if pat.is_binary(argument.type) else make_cast(argument, pa.string())
        return Function(name, child, pa.int32())
    return Function(name, make_cast(argument, pa.string()), pa.string())


def _narrow_beside_decimal(node: Node, other: Node) -> Node:
    """Narrow an integer literal beside a decimal, except a tinyint (Spark's literalPickMinimumPrecision)."""
    if not pat.is_decimal(other.type) or not isinstance(node, Literal) or node.value is None:
        return node
    if not is_integral(node.type) or node.type == pa.int8():
        return node
    return make_cast(node, find_narrowest_decimal(node.value))


def map_children(node: Node, change: Callable[[Node], Node]) -> Node:
    """Return a node with other nodes below it."""
    changed: dict[str, Any] = {}
    for field in dataclasses.fields(node):  # type: ignore[arg-type]
        value = getattr(node, field.name)
        if isinstance(value, Node):
            changed[field.name] = change(value)
        elif isinstance(value, tuple) and value and isinstance(value[0], Node):
            changed[field.name] = tuple(change(each) for each in value)
    return dataclasses.replace(node, **changed) if changed else node  # type: ignore[type-var]


def _fold_quietly(node: Node) -> Node:
    """Fold a part of CASE, which may fail for no row: so a constant that has no value stays as it is."""
    try:
        return fold(node)
    except InvalidQueryError:
        return node


def fold(node: Node) -> Node:
    """Replace each subtree without columns by its value.

    Raises:
        InvalidQueryError: a constant subtree has no value, such as ``1 / 0``.
    """
    if isinstance(node, (Literal, Column, ArrowFilter)):
        return node
    node = map_children(node, fold if not isinstance(node, Case) else _fold_quietly)
    return evaluate_constant(node) if all(isinstance(child, Literal) for child in node.children) else node
