"""Find the rows of a merge's source that match rows of the target.

The condition of a merge contains at least one equality between an expression of the target and one of the source. The
source's values of these expressions are numbered once; batches of the target are looked up in these numbers. The rest
of the condition is computed on the remaining pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pat

from hoodie_py.arrow.arrays import to_booleans, to_numbers
from hoodie_py.errors import InvalidQueryError, UnsupportedFeatureError
from hoodie_py.table.filter.binding import find_names_alike, make_comparison
from hoodie_py.table.filter.evaluate import evaluate, evaluate_value
from hoodie_py.table.filter.predicate import And, Comparison, InList, Literal, Node, Predicate
from hoodie_py.table.filter.sql_parser import parse_sql
from hoodie_py.writer.dml.names import SOURCE, TARGET, Names, drop_side, find_on_side, join_sides, list_sides

_LISTED = 10_000  # up to so many values of a key become a list in the filter of the target; more become a range
_MOST_PAIRS = 1 << 24  # for one batch


@dataclass(frozen=True, slots=True)
class JoinCondition:
    """The condition of a merge: equal expressions of both sides, conditions on the target alone, and the rest."""

    target_keys: tuple[Node, ...]
    source_keys: tuple[Node, ...]
    on_target: tuple[Node, ...]
    rest: tuple[Node, ...]

    @property
    def nodes(self) -> list[Node]:
        """All expressions."""
        return [*self.target_keys, *self.source_keys, *self.on_target, *self.rest]


def bind_condition(on: str | Sequence[str], names: Names) -> JoinCondition:
    """Bind the condition of a merge: a column or columns that both sides have, or SQL text.

    Raises:
        InvalidQueryError: an unknown column, or a condition that is not valid.
        UnsupportedFeatureError: the condition contains no equality between target and source.
    """
    assert names.source is not None
    source = names.source
    columns = [on] if isinstance(on, str) else list(on)
    settings = names.settings
    if not isinstance(on, str) or all(find_names_alike(on, side.names, settings) for side in (names.target, source)):
        conjuncts = [
            make_comparison(
                "=",
                find_on_side(TARGET, [name], names.target, settings),
                find_on_side(SOURCE, [name], source, settings),
                settings,
            )
            for name in columns
        ]
    else:
        conjuncts = [each.root for each in parse_sql(on, names.target, names.find, settings).conjuncts]
    found: dict[str, list[Node]] = {"target": [], "source": [], "on": [], "rest": []}
    for each in conjuncts:
        pair = _split_equality(each)
        if pair is not None:
            found["target"].append(pair[0])
            found["source"].append(pair[1])
        else:
            found["on" if list_sides(each) == {TARGET} else "rest"].append(each)
    if not found["target"]:
        raise UnsupportedFeatureError(
            "A merge whose condition has no equality of a target's and a source's column.",
            hint=f"Give on= a column, or a condition such as '{names.target_alias}.id = {names.source_alias}.id'.",
        )
    return JoinCondition(*(tuple(each) for each in found.values()))


def _split_equality(node: Node) -> tuple[Node, Node] | None:
    if not isinstance(node, Comparison) or node.operator != "=":
        return None
    sides = [list_sides(node.left), list_sides(node.right)]
    if sides == [{TARGET}, {SOURCE}]:
        return node.left, node.right
    return (node.right, node.left) if sides == [{SOURCE}, {TARGET}] else None


class SourceRows:
    """The rows of a source, numbered by their keys. It remembers which rows have matched."""

    def __init__(self, rows: pa.Table, condition: JoinCondition) -> None:
        self.rows = rows
        self.matched = np.zeros(rows.num_rows, bool)
        self._condition = condition
        batches = [join_sides(each.num_rows, None, each) for each in rows.to_batches()]
        keys = [
            _normalize(pa.chunked_array([evaluate_value(node, each) for each in batches], node.type).combine_chunks())
            for node in condition.source_keys
        ]
        self._numbers = _KeyNumbers(keys)
        codes = self._numbers.number(keys)
        self._order = np.argsort(codes, kind="stable")
        self._first = np.searchsorted(codes[self._order], np.arange(self._numbers.count + 1))

    def make_filter(self) -> Predicate:
        """Return a condition on the target's own columns that holds for every row with a match."""
        parts: list[Node] = []
        for node, values in zip(self._condition.target_keys, self._numbers.distinct, strict=True):
            parts += _make_bounds(drop_side(node), values)
        parts += [drop_side(each) for each in self._condition.on_target]
        return Predicate(parts[0] if len(parts) == 1 else And(tuple(parts)))

    def find_pairs(self, target: pa.RecordBatch) -> tuple[np.ndarray, np.ndarray]:
        """Return the matching pairs as numbers of target rows and of source rows, ordered by the target rows.

        Raises:
            InvalidQueryError: the keys match too many rows.
        """
        joined = join_sides(target.num_rows, target, None)
        keys = [_normalize(evaluate_value(node, joined)) for node in self._condition.target_keys]
        codes = self._numbers.number(keys)
        starts = self._first[np.maximum(codes, 0)]
        counts = np.where(codes < 0, 0, self._first[np.minimum(codes + 1, self._numbers.count)] - starts)
        if counts.sum() > _MOST_PAIRS:
            raise InvalidQueryError(
                "The condition of the merge matches too many rows of the source with each row of the table.",
                hint="Merge on a key of the source.",
            )
        at = np.repeat(np.arange(len(codes)), counts)
        within = np.arange(len(at)) - np.repeat(np.cumsum(counts) - counts, counts)
        found = self._order[starts[at] + within]
        for node in (*self._condition.on_target, *self._condition.rest):
            if len(at):
                holds = to_booleans(evaluate(Predicate(node), self.pair(target, at, found)).fill_null(False))
                at, found = at[holds], found[holds]
        self.matched[found] = True
        return at, found

    def pair(self, target: pa.RecordBatch, at: np.ndarray, found: np.ndarray) -> pa.RecordBatch:
        """Return pairs of rows in the form that expressions are computed on."""
        return join_sides(len(at), target.take(pa.array(at)), self.take(found))

    def take(self, at: np.ndarray) -> pa.RecordBatch:
        """Return rows of the source."""
        taken = self.rows.take(pa.array(at)).combine_chunks()
        if not taken.num_columns or not taken.num_rows:
            return pa.RecordBatch.from_pylist([], schema=self.rows.schema)
        [batch] = taken.to_batches()
        return batch


def _normalize(values: pa.Array) -> pa.Array:
    """Make equal floats equal in bits: -0.0 becomes 0.0."""
    return pc.add(values, pa.scalar(0.0, values.type)) if pat.is_floating(values.type) else values


class _KeyNumbers:
    """Numbers the values of several keys together, from 0 on."""

    def __init__(self, keys: Sequence[pa.Array]) -> None:
        self.distinct = [pc.unique(each.drop_null()) for each in keys]
        self.count = len(self.distinct[0])
        self._pairs: list[np.ndarray] = []
        codes = self._find(keys[0], 0)
        for number in range(1, len(keys)):
            both = self._join(codes, keys[number], number)
            # Renumbered after each key, so that products of numbers stay small.
            self._pairs.append(np.unique(both[both >= 0]))
            self.count = len(self._pairs[-1])
            codes = _find_place(both, self._pairs[-1])

    def number(self, keys: Sequence[pa.Array]) -> np.ndarray:
        """Return the number of each row's values; -1 if a value is null or not in the source."""
        codes = self._find(keys[0], 0)
        for number, pairs in enumerate(self._pairs, 1):
            codes = _find_place(self._join(codes, keys[number], number), pairs)
        return codes

    def _find(self, values: pa.Array, number: int) -> np.ndarray:
        found = pc.index_in(values, value_set=self.distinct[number]).cast(pa.int64())
        return to_numbers(found, -1)

    def _join(self, codes: np.ndarray, values: pa.Array, number: int) -> np.ndarray:
        own = self._find(values, number)
        return np.where((codes < 0) | (own < 0), -1, codes * len(self.distinct[number]) + own)


def _find_place(codes: np.ndarray, among: np.ndarray) -> np.ndarray:
    if not len(among):
        return np.full(len(codes), -1)
    at = np.minimum(np.searchsorted(among, codes), len(among) - 1)
    return np.where(among[at] == codes, at, -1)


def _make_bounds(node: Node, values: pa.Array) -> list[Node]:
    if pat.is_date32(values.type) or pat.is_timestamp(values.type):
        values = values.view(pa.int32() if pat.is_date32(values.type) else pa.int64())
    if len(values) <= _LISTED:
        return [InList(node, tuple(values.to_pylist()))]
    if pat.is_floating(values.type) or pat.is_boolean(values.type):
        return [Literal(True, pa.bool_())]  # NaN has no place in Arrow's ranges
    ends = pc.min_max(values)
    low, high = (Literal(ends[name].as_py(), node.type) for name in ("min", "max"))
    return [Comparison(">=", node, low), Comparison("<=", node, high)]
