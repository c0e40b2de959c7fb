"""A filter as a small tree of typed, frozen, picklable nodes.

The tree is *bound*: every column is in the table's schema, every node has an Arrow type, and every implicit cast of
Spark is a ``Cast`` node. So ``evaluate`` and ``pruning`` need no schema and no coercion rules.

Literals are plain Python values: int, float, bool, str, bytes, ``decimal.Decimal``. As in Spark, a date is a number of
days since 1970-01-01, and a timestamp a number of microseconds since 1970-01-01T00:00:00, because Python's own types
end at year 9999.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import pyarrow as pa

from hoodie_py.table.filter.sql_text import format_literal, format_name, format_string, format_type
from hoodie_py.table.filter.time_zones import UTC_ZONE

_BOOLEAN = pa.bool_()


class Node:
    """One node of a filter; ``type`` is the Arrow type of its value."""

    __slots__ = ()

    type: pa.DataType

    @property
    def children(self) -> tuple[Node, ...]:
        """The nodes directly below, left to right."""
        names: tuple[str, ...] = self.__slots__
        values = [getattr(self, name) for name in names]
        return tuple(value for value in values if isinstance(value, Node))


class _BooleanNode(Node):
    """A node whose value is true, false or null."""

    __slots__ = ()

    @property
    def type(self) -> pa.DataType:
        """Always boolean."""
        return _BOOLEAN


@dataclass(frozen=True, slots=True)
class Literal(Node):
    """A constant; ``value`` None is SQL null."""

    value: Any
    type: pa.DataType

    def __str__(self) -> str:
        return format_literal(self.value, self.type)


@dataclass(frozen=True, slots=True)
class Column(Node):
    """A column, or a field inside struct columns: ``path`` is never empty."""

    path: tuple[str, ...]
    type: pa.DataType

    def __str__(self) -> str:
        return ".".join(format_name(name) for name in self.path)


@dataclass(frozen=True, slots=True)
class Cast(Node):
    """A conversion by Spark's rules: a value that does not fit is an error in ANSI mode.

    ``zone`` is the zone assumed for times without one; UTC if the types do not depend on it.
    """

    child: Node
    type: pa.DataType
    ansi: bool = True
    zone: str = UTC_ZONE

    def __str__(self) -> str:
        return f"cast({self.child} as {format_type(self.type)})"


@dataclass(frozen=True, slots=True)
class Arithmetic(Node):
    """``left op right`` with op one of + - * / %; the operands have the types on which the operation works."""

    operator: str
    left: Node
    right: Node
    type: pa.DataType
    ansi: bool = True

    def __str__(self) -> str:
        return f"({self.left} {self.operator} {self.right})"


@dataclass(frozen=True, slots=True)
class Negate(Node):
    """Unary minus of a number."""

    child: Node
    type: pa.DataType
    ansi: bool = True

    def __str__(self) -> str:
        return f"(- {self.child})"


@dataclass(frozen=True, slots=True)
class Function(Node):
    """``upper``, ``lower``, ``length``, ``trim``, ``ltrim`` or ``rtrim`` of a text, or a part of a date or time."""

    name: str
    child: Node
    type: pa.DataType

    def __str__(self) -> str:
        return f"{self.name}({self.child})"


@dataclass(frozen=True, slots=True)
class Concat(Node):
    """Concatenation of texts; null if one of them is null."""

    operands: tuple[Node, ...]

    @property
    def type(self) -> pa.DataType:
        """Always string."""
        return pa.string()

    @property
    def children(self) -> tuple[Node, ...]:
        """The texts."""
        return self.operands

    def __str__(self) -> str:
        return f"concat({', '.join(map(str, self.operands))})"


@dataclass(frozen=True, slots=True)
class Case(Node):
    """The value of the first condition that is true, else ``otherwise``; each value belongs to one condition."""

    conditions: tuple[Node, ...]
    values: tuple[Node, ...]
    otherwise: Node
    type: pa.DataType

    @property
    def children(self) -> tuple[Node, ...]:
        """Conditions, values, and the value if no condition is true."""
        return (*self.conditions, *self.values, self.otherwise)

    def __str__(self) -> str:
        pairs = zip(self.conditions, self.values, strict=True)
        return f"case {' '.join(f'when {when} then {then}' for when, then in pairs)} else {self.otherwise} end"


@dataclass(frozen=True, slots=True)
class Comparison(_BooleanNode):
    """``left op right`` with op one of = <=> < <= > >=; both sides have the same type."""

    operator: str
    left: Node
    right: Node

    def __str__(self) -> str:
        return f"({self.left} {self.operator} {self.right})"


@dataclass(frozen=True, slots=True)
class InList(_BooleanNode):
    """Whether the child is one of ``values``, which have the child's type; None in them is SQL null."""

    child: Node
    values: tuple[Any, ...]

    def __str__(self) -> str:
        return f"({self.child} in ({', '.join(format_literal(value, self.child.type) for value in self.values)}))"


@dataclass(frozen=True, slots=True)
class Like(_BooleanNode):
    """Whether the whole string matches ``pattern`` (% any run, _ one character, ``escape`` before either or itself)."""

    child: Node
    pattern: str
    escape: str

    def __str__(self) -> str:
        escape = "" if self.escape == "\\" else f" escape {format_string(self.escape)}"
        return f"({self.child} like {format_string(self.pattern)}{escape})"


@dataclass(frozen=True, slots=True)
class IsNull(_BooleanNode):
    """Whether the child is null; never null itself."""

    child: Node

    def __str__(self) -> str:
        return f"({self.child} is null)"


@dataclass(frozen=True, slots=True)
class Not(_BooleanNode):
    """Three-valued negation."""

    child: Node

    def __str__(self) -> str:
        return f"(not {self.child})"


@dataclass(frozen=True, slots=True)
class _Junction(_BooleanNode):
    """Two or more conditions, joined by the word in the class's name."""

    operands: tuple[Node, ...]

    @property
    def children(self) -> tuple[Node, ...]:
        """The operands."""
        return self.operands

    def __str__(self) -> str:
        return f"({f' {type(self).__name__.lower()} '.join(map(str, self.operands))})"


class And(_Junction):
    """Three-valued conjunction of two or more nodes; later ones are not computed where an earlier one is false."""

    __slots__ = ()


class Or(_Junction):
    """Three-valued disjunction of two or more nodes; later ones are not computed where an earlier one is true."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class ArrowFilter(_BooleanNode):
    """A boolean ``pyarrow.compute.Expression`` with Arrow's semantics; ``columns`` are at least the ones it reads."""

    expression: Any = field(compare=False)
    text: str
    columns: tuple[str, ...]

    def __str__(self) -> str:
        return self.text


class ListedValues(NamedTuple):
    """A top-level column, its type, and a list of non-null values."""

    column: str
    type: pa.DataType
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Predicate:
    """A bound filter: a row is kept if ``root`` is true, and dropped if it is false or null."""

    root: Node

    @cached_property  # every task of a scan needs it
    def columns(self) -> frozenset[str]:
        """Names of the top-level columns that the filter reads."""
        names: set[str] = set()
        for node in iterate_nodes(self.root):
            if isinstance(node, Column):
                names.add(node.path[0])
            elif isinstance(node, ArrowFilter):
                names.update(node.columns)
        return frozenset(names)

    @property
    def conjuncts(self) -> tuple[Predicate, ...]:
        """The parts between the top-level ANDs; a row passes if every part is true."""
        return self._parts if isinstance(self.root, And) else (self,)

    @cached_property
    def _parts(self) -> tuple[Predicate, ...]:
        parts: list[Predicate] = []
        pending = [self.root]
        while pending:
            node = pending.pop()
            if isinstance(node, And):
                pending.extend(reversed(node.operands))
            else:
                parts.append(Predicate(node))
        return tuple(parts)

    @cached_property
    def listed_values(self) -> ListedValues | None:
        """A column and its only allowed values, if the filter lists them; otherwise None."""
        node = self.root
        if isinstance(node, InList):
            child, values = node.child, [value for value in node.values if value is not None]
        elif isinstance(node, Comparison) and node.operator in ("=", "<=>"):
            child, literal = (node.right, node.left) if isinstance(node.left, Literal) else (node.left, node.right)
            if not isinstance(literal, Literal) or literal.value is None:
                return None
            values = [literal.value]
        else:
            return None
        if not isinstance(child, Column) or len(child.path) != 1:
            return None
        return ListedValues(child.path[0], child.type, tuple(values))

    def __str__(self) -> str:
        text = str(self.root)
        return text[1:-1] if isinstance(self.root, (And, Or, Not, Comparison, InList, Like, IsNull)) else text


def join_filters(*filters: Predicate | None) -> Predicate | None:
    """Return the conjunction of the filters; None if there are none."""
    roots: list[Node] = [each.root for each in filters if each is not None]
    return None if not roots else Predicate(roots[0] if len(roots) == 1 else And(tuple(roots)))


def iterate_nodes(node: Node) -> Iterator[Node]:
    """Yield the node and all nodes below it, without recursion."""
    pending = [node]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(node.children)


def count_levels(node: Node) -> int:
    """Count the levels of the tree, without recursion."""
    levels, level = 0, [node]
    while level:
        levels += 1
        level = [child for each in level for child in each.children]
    return levels
