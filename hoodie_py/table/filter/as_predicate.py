"""Bind a filter of any kind: SQL text, a ``pyarrow.compute.Expression``, or a filter that is bound already.

An expression becomes filter nodes, so that it prunes files. A part that is not known here, or could mean something else
as a node, is left out; the expression itself then still filters the rows. Arrow's floats follow IEEE: no comparison
with NaN is true except ``!=``.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pat

from hoodie_py.arrow.layouts import make_plain_array, make_plain_schema
from hoodie_py.errors import InvalidQueryError
from hoodie_py.table.filter.arrow_expression import from_expression
from hoodie_py.table.filter.exact import belong, compare, find_exact_column, is_true_or_false, widen
from hoodie_py.table.filter.predicate import And, Column, Comparison, InList, IsNull, Literal, Node, Not, Or, Predicate
from hoodie_py.table.filter.sql_parser import parse_sql
from hoodie_py.table.filter.sql_settings import UTC_SESSION, SqlSettings

_COMPARE = {
    "equal": "=",
    "not_equal": "!=",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
}
_NOT_A_NUMBER = float("nan")
_MATCH_NULL = 0  # SetLookupOptions::MATCH: a null matches if the list contains one
_MOST_ENTRIES = 1_000_000

_Value: TypeAlias = "Node | pa.Array"  # an array of one value is a literal


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
    expression = _make_plain_expression(expression)
    whole = from_expression(expression, schema)
    known = find_parts(expression, schema, nan_is_greatest)
    nodes = known.nodes if known.is_all else (*known.nodes, whole.root)
    return Predicate(nodes[0] if len(nodes) == 1 else And(nodes))


@dataclass(frozen=True, slots=True)
class Parts:
    """The known part of a condition: ``nodes`` are true wherever it is; ``is_all`` if they express all of it."""

    nodes: tuple[Node, ...]
    is_all: bool


def find_parts(expression: pc.Expression, schema: pa.Schema, nan_is_greatest: bool = False) -> Parts:
    """Return the top-level conditions of an expression that mean the same as nodes."""
    entries = _read_entries(expression)
    if entries is None:
        return Parts((), is_all=False)
    try:
        tree = _Tree(*entries, schema, nan_is_greatest)
        return tree.read_conjuncts()
    except (LookupError, ValueError, StopIteration, RecursionError, pa.ArrowException):  # an unknown form
        return Parts((), is_all=False)


def _make_plain_expression(expression: pc.Expression) -> pc.Expression:
    """Return an expression whose literals have plain layouts, as all columns do: Arrow compares only equal layouts."""
    try:
        entries = _read_entries(expression)
        if entries is None:
            return expression
        pairs, values = entries
        schema = make_plain_schema(values.schema)
        if schema is values.schema:
            return expression
        arrays = [make_plain_array(column) for column in values.columns]
        plain = schema.with_metadata(pa.KeyValueMetadata(pairs))
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, plain) as writer:
            writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=plain))
        return expression.__reduce__()[0](sink.getvalue())
    except pa.ArrowException:  # evaluating the expression itself will raise the error
        return expression


class _CSchema(ctypes.Structure):
    _fields_ = [
        ("format", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("metadata", ctypes.c_void_p),
        ("flags", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("children", ctypes.c_void_p),
        ("dictionary", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("private_data", ctypes.c_void_p),
    ]


def _read_entries(expression: pc.Expression) -> tuple[list[tuple[str, str]], pa.RecordBatch] | None:
    """Return the serialized tree as keys and values, and the batch with its literals and options."""
    reduced = expression.__reduce__()
    if len(reduced) != 2 or len(reduced[1]) != 1:
        return None
    reader = pa.ipc.open_file(reduced[1][0])
    if reader.num_record_batches != 1:
        return None
    return list(_read_metadata(reader.schema)), reader.get_batch(0)


def _read_metadata(schema: pa.Schema) -> Iterator[tuple[str, str]]:
    """Yield a schema's metadata with repeated keys, which pyarrow's dict would lose.

    They are read from the C data interface: a count, then the length and the bytes of each text.
    """
    exported = _CSchema()
    schema._export_to_c(ctypes.addressof(exported))  # noqa: SLF001 - pyarrow documents it
    try:
        if exported.metadata is None:
            return
        place = exported.metadata + 4
        texts: list[str] = []
        for _ in range(2 * min(ctypes.c_int32.from_address(exported.metadata).value, _MOST_ENTRIES)):
            size = ctypes.c_int32.from_address(place).value
            texts.append(ctypes.string_at(place + 4, size).decode())
            place += 4 + size
    finally:
        pa.Schema._import_from_c(ctypes.addressof(exported))  # noqa: SLF001 - it releases what was exported
    yield from zip(texts[::2], texts[1::2], strict=True)


class _Tree:
    """Reads a serialized expression from its first entry to its last.

    Arrow reveals an expression's tree only in its serialized form: an Arrow file whose metadata lists calls, fields and
    literals in order, with the values in its columns (``arrow/compute/expression.cc``).
    """

    def __init__(
        self, entries: list[tuple[str, str]], values: pa.RecordBatch, schema: pa.Schema, nan_is_greatest: bool
    ) -> None:
        self._entries = entries
        self._values = values
        self._schema = schema
        self._nan_is_greatest = nan_is_greatest
        self._place = 0

    def read_conjuncts(self) -> Parts:
        """Read a condition; a conjunction returns the nodes of both sides."""
        if self._entries[self._place] not in (("call", "and_kleene"), ("call", "and")):
            node = self._as_condition(self._read())
            return Parts((), is_all=False) if node is None else Parts((node,), is_all=True)
        name = self._take()[1]
        left, right = self.read_conjuncts(), self.read_conjuncts()
        if self._take() != ("end", name):
            raise ValueError(name)
        return Parts((*left.nodes, *right.nodes), left.is_all and right.is_all)

    def _take(self) -> tuple[str, str]:
        entry = self._entries[self._place]
        self._place += 1
        return entry

    def _read(self) -> _Value | None:
        """Read one expression; None if there is no node for it."""
        kind, text = self._take()
        if kind == "literal":
            return self._values.column(int(text))
        if kind == "field_ref":
            return find_exact_column([text], self._schema)
        if kind == "nested_field_ref":
            return self._read_nested(int(text))
        if kind != "call":
            raise ValueError(kind)
        arguments, options = [], None
        while self._entries[self._place] != ("end", text):
            if self._entries[self._place][0] == "options":
                options = self._values.column(int(self._take()[1]))
            else:
                arguments.append(self._read())
        self._take()
        if text in _COMPARE and self._nan_is_greatest and all(each is not None for each in arguments):
            return _compare_plainly(text, arguments)
        make = _CALLS.get(text)
        return None if make is None or any(each is None for each in arguments) else make(text, arguments, options)

    def _read_nested(self, depth: int) -> _Value | None:
        entries = [self._take() for _ in range(depth)]
        return find_exact_column([name for _, name in entries], self._schema)

    def _as_condition(self, value: _Value | None) -> Node | None:
        return value if isinstance(value, Node) and pat.is_boolean(value.type) else None


def _compare_plainly(name: str, arguments: list[_Value]) -> Node | None:
    left, right = arguments
    if isinstance(left, Column) and isinstance(right, pa.Array) and pat.is_float32(left.type):
        left = widen(left, pa.float64()) if pat.is_float64(right.type) else left
    return compare(_COMPARE[name], left, right)


def _make_comparison(name: str, arguments: list[_Value], _: pa.StructArray | None) -> Node | None:
    node = _compare_plainly(name, arguments)
    if node is None:
        return None
    plain = node.child if isinstance(node, Not) else node
    if not isinstance(plain, Comparison) or not pat.is_floating(plain.left.type):
        return node
    literal = plain.right
    if not isinstance(literal, Literal) or literal.value != literal.value:
        return None
    if plain.operator in (">", ">="):  # for Spark, and so for nodes, NaN is the greatest number
        return And((plain, Comparison("<", plain.left, Literal(_NOT_A_NUMBER, literal.type))))
    return node


def _make_junction(name: str, arguments: list[_Value], _: pa.StructArray | None) -> Node | None:
    if not all(isinstance(each, Node) and pat.is_boolean(each.type) for each in arguments):
        return None
    return And(tuple(arguments)) if name == "and_kleene" else Or(tuple(arguments))


def _make_not(_: str, arguments: list[_Value], __: pa.StructArray | None) -> Node | None:
    (child,) = arguments
    return Not(child) if isinstance(child, Node) and pat.is_boolean(child.type) else None


def _make_is_null(name: str, arguments: list[_Value], options: pa.StructArray | None) -> Node | None:
    (child,) = arguments
    if not isinstance(child, Node) or (options is not None and options.field("nan_is_null")[0].as_py()):
        return None
    return Not(IsNull(child)) if name == "is_valid" else IsNull(child)


def _make_is_in(_: str, arguments: list[_Value], options: pa.StructArray | None) -> Node | None:
    (child,) = arguments
    if not isinstance(child, Node) or options is None:
        return None
    if options.field("null_matching_behavior")[0].as_py() != _MATCH_NULL:
        return None
    node = belong(child, options.field("value_set").flatten())
    return None if node is None else is_true_or_false(node)


def _make_if_else(_: str, arguments: list[_Value], __: pa.StructArray | None) -> Node | None:
    """Return the node for ``x in (...)`` as SQL engines write it in Arrow: null where x is null."""
    test, then, otherwise = arguments
    if not isinstance(then, And) or not isinstance(otherwise, pa.Array) or otherwise.null_count != 1:
        return None
    listed = then.operands[-1]
    return listed if isinstance(listed, InList) and test == Not(IsNull(listed.child)) else None


_CALLS: dict[str, Callable[[str, list[_Value], pa.StructArray | None], Node | None]] = {
    **dict.fromkeys(_COMPARE, _make_comparison),
    "and_kleene": _make_junction,
    "or_kleene": _make_junction,
    "invert": _make_not,
    "is_null": _make_is_null,
    "is_valid": _make_is_null,
    "is_in": _make_is_in,
    "if_else": _make_if_else,
}
