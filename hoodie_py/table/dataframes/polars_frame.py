"""A scan as a polars LazyFrame: columns, conditions and a number of rows are pushed down on collect.

A condition is pushed down as far as a filter node means the same. polars and Spark agree on nulls (three-valued logic),
NaN (equal to itself and above all other numbers), -0.0 (equal to 0.0) and text (ordered by bytes). Unknown parts have
no node, and polars applies the predicate again.
"""

from __future__ import annotations

import inspect
import io
import json
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import types as pat

from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.table.dataframes.source import RowSource, import_extra
from hoodie_py.table.filter.exact import belong, compare, find_exact_column, widen
from hoodie_py.table.filter.predicate import And, IsNull, Like, Node, Not, Or, Predicate

if TYPE_CHECKING:
    import polars

_LEAST = "1.20"

_COMPARE = {
    "Eq": "=",
    "NotEq": "!=",
    "Lt": "<",
    "LtEq": "<=",
    "Gt": ">",
    "GtEq": ">=",
    "EqValidity": "<=>",
}
_WIDE = {"Int16": pa.int16(), "Int32": pa.int32(), "Int64": pa.int64(), "Float64": pa.float64()}
_BOUNDS = {"Both": (">=", "<="), "Left": (">=", "<"), "Right": (">", "<="), "None": (">", "<")}
_ANDS, _ORS = ("And", "LogicalAnd"), ("Or", "LogicalOr")
_FORM_ERRORS = (KeyError, IndexError, TypeError, ValueError, AttributeError, RecursionError, pa.ArrowException)


def make_lazy_frame(source: RowSource) -> polars.LazyFrame:
    """Return a LazyFrame of a scan.

    Raises:
        UnsupportedFeatureError: polars is missing, or too old to take sources from other packages.
    """
    pl = import_extra("polars")
    try:
        from polars.io.plugins import register_io_source
    except ImportError as error:
        raise UnsupportedFeatureError(
            f"Version {pl.__version__} of polars takes no sources from other packages.",
            hint=f"Install polars {_LEAST} or newer.",
        ) from error
    wanted = {
        "schema": pl.from_arrow(source.schema.empty_table()).schema,
        "is_pure": True,  # a scan is pinned
        "explain_name": "HUDI",
        "explain_detail": repr(source),
    }
    known = inspect.signature(register_io_source).parameters
    frame: polars.LazyFrame = register_io_source(
        _Source(source), **{name: value for name, value in wanted.items() if name in known}
    )
    return frame


class _Source:
    """The function that polars calls for the rows of a scan."""

    def __init__(self, source: RowSource) -> None:
        self._source = source

    def __call__(
        self, columns: list[str] | None, predicate: polars.Expr | None, rows: int | None, _: int | None
    ) -> Iterator[polars.DataFrame]:
        """Yield frames with some columns, of the rows that pass the predicate; ``rows`` limits the rows before it."""
        pl = import_extra("polars")
        pushed, is_all = None, predicate is None
        # A limit counts rows before the predicate, so with a limit nothing may be pushed down.
        if predicate is not None and rows is None and self._source.limit is None:
            pushed, is_all = push_down(predicate, self._source.schema)
        scan = self._source.narrow(columns, pushed, rows)
        with closing(_as_generator(scan)) as batches:
            for batch in batches:
                frame: polars.DataFrame = pl.from_arrow(batch)
                yield frame if is_all else frame.filter(predicate)


def _as_generator(source: RowSource) -> Any:
    batches: Iterator[pa.RecordBatch] = source.to_batches()
    return batches


def push_down(expression: polars.Expr, schema: pa.Schema) -> tuple[Predicate | None, bool]:
    """Return the conditions that nodes can express, None for none, and whether they are the whole expression."""
    try:
        tree = json.loads(_serialize(expression))
    except (ValueError, import_extra("polars").exceptions.PolarsError):
        return None, False
    nodes, is_all = _Reader(schema).read_conjuncts(tree)
    if not nodes:
        return None, False
    return Predicate(nodes[0] if len(nodes) == 1 else And(tuple(nodes))), is_all


def _serialize(expression: polars.Expr) -> str:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # polars says that other versions write other JSON: then nothing is pushed down
        text: str = expression.meta.serialize(format="json")
    return text


class _Reader:
    """Reads trees of polars expressions against the columns of a scan.

    polars hands a source the predicate with its types resolved: literals have their columns' types, and casts are
    explicit. Its JSON form is read.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema

    def read_conjuncts(self, tree: Any) -> tuple[list[Node], bool]:
        """Return nodes for the parts joined by AND, and whether all parts have one."""
        found: list[Node] = []
        is_all, pending = True, [tree]
        while pending:
            part = pending.pop()
            binary = part.get("BinaryExpr") if isinstance(part, dict) else None
            if isinstance(binary, dict) and binary.get("op") in _ANDS:
                pending += [binary.get("right"), binary.get("left")]
                continue
            node = self._read_condition(part)
            is_all = is_all and node is not None
            found += [] if node is None else [node]
        return found, is_all

    def _read_condition(self, tree: Any) -> Node | None:
        try:
            value = self._read(tree)
        except _FORM_ERRORS:  # a form that is not known here
            return None
        return value if isinstance(value, Node) and pat.is_boolean(value.type) else None

    def _read(self, tree: Any) -> Node | pa.Array | None:
        """Return a node, or an array for a literal."""
        ((kind, inner),) = tree.items()
        if kind == "Column":
            return find_exact_column([inner], self._schema)
        if kind == "Literal":
            return _read_literal(tree)
        if kind == "Cast":
            child, target = self._read(inner["expr"]), inner["dtype"]["Literal"]
            return widen(child, _WIDE[target]) if isinstance(child, Node) else None
        if kind == "BinaryExpr":
            return self._read_binary(inner["op"], inner["left"], inner["right"])
        if kind == "Function":
            return self._read_function(inner["function"], inner["input"])
        return None

    def _read_binary(self, operator: str, left: Any, right: Any) -> Node | None:
        if operator in _ANDS or operator in _ORS:
            nodes = [self._read_condition(left), self._read_condition(right)]
            known = tuple(node for node in nodes if node is not None)
            if len(known) < len(nodes):
                return None
            return And(known) if operator in _ANDS else Or(known)
        if operator == "NotEqValidity":
            same = self._read_binary("EqValidity", left, right)
            return None if same is None else Not(same)
        if operator not in _COMPARE:
            return None
        first, second = self._read(left), self._read(right)
        return None if first is None or second is None else compare(_COMPARE[operator], first, second)

    def _read_function(self, function: dict[str, Any], arguments: list[Any]) -> Node | None:
        ((family, name),) = function.items()
        if family == "StructExpr" and set(name) == {"FieldByName"}:
            return self._read_field(arguments[0], name["FieldByName"])
        key, settings = next(iter(name.items())) if isinstance(name, dict) else (name, {})
        read = _FUNCTIONS.get((family, key))
        if read is None:
            return None
        values = [self._read(each) for each in arguments]
        return None if any(value is None for value in values) else read(settings, *values)

    def _read_field(self, parent: Any, name: str) -> Node | None:
        path = [name]
        while "Column" not in parent:
            path.insert(0, parent["Function"]["function"]["StructExpr"]["FieldByName"])
            (parent,) = parent["Function"]["input"]
        return find_exact_column([parent["Column"], *path], self._schema)


def _read_literal(tree: Any) -> pa.Array | None:
    """Return the value of a literal, or the members of a list, with the type that polars gave it."""
    polars = import_extra("polars")
    try:
        expression = polars.Expr.deserialize(io.BytesIO(json.dumps(tree).encode()), format="json")
        series = polars.select(expression).to_series()
    except (ValueError, TypeError, polars.exceptions.PolarsError):  # NaN has no JSON
        return None
    values: pa.Array = series.to_arrow()
    if pat.is_list(values.type) or pat.is_large_list(values.type):
        return values.flatten() if len(values) == 1 and not values.null_count else None
    return values


def _is_null(_: Any, child: Any) -> Node | None:
    return IsNull(child) if isinstance(child, Node) else None


def _is_not_null(_: Any, child: Any) -> Node | None:
    return Not(IsNull(child)) if isinstance(child, Node) else None


def _negate(_: Any, child: Any) -> Node | None:
    return Not(child) if isinstance(child, Node) and pat.is_boolean(child.type) else None


def _is_in(_: Any, child: Any, members: Any) -> Node | None:
    return belong(child, members) if isinstance(child, Node) and isinstance(members, pa.Array) else None


def _is_between(settings: Any, child: Any, low: Any, high: Any) -> Node | None:
    if not isinstance(child, Node):
        return None
    above, below = _BOUNDS[settings["closed"]]
    nodes = compare(above, child, low), compare(below, child, high)
    return None if nodes[0] is None or nodes[1] is None else And((nodes[0], nodes[1]))


def _starts_with(_: Any, child: Any, prefix: Any) -> Node | None:
    if not isinstance(child, Node) or not pat.is_string(child.type) or len(prefix) != 1 or prefix.null_count:
        return None
    text = prefix[0].as_py()
    for special in "\\%_":
        text = text.replace(special, f"\\{special}")
    return Like(child, f"{text}%", "\\")


_FUNCTIONS: dict[tuple[str, str], Callable[..., Node | None]] = {
    ("Boolean", "IsNull"): _is_null,
    ("Boolean", "IsNotNull"): _is_not_null,
    ("Boolean", "Not"): _negate,
    ("Boolean", "IsIn"): _is_in,
    ("Boolean", "IsBetween"): _is_between,
    ("StringExpr", "StartsWith"): _starts_with,
}
