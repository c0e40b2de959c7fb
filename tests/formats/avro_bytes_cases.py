"""Random Avro schemas with values in bytes: also the forms that writers seldom choose."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from itertools import count, pairwise
from typing import Any

from hypothesis import strategies as st

from tests.formats.log_writer import raw_data, varint

Tree = Any


@dataclass(frozen=True)
class Value:
    """A value's bytes, what fastavro reads from them without logical types, and what Arrow is to hold."""

    raw: bytes
    plain: Any
    arrow: Any


@dataclass(frozen=True)
class Case:
    """A schema and its values, column by column; rows are drawn from them at random."""

    schema: str
    pools: list[list[Value]]

    def rows(self, number: int, seed: int) -> list[list[Value]]:
        pick = random.Random(seed)
        return [[pick.choice(pool) for pool in self.pools] for _ in range(number)]


def content_of(rows: list[list[Value]]) -> bytes:
    return raw_data([b"".join(value.raw for value in row) for row in rows])


def plain_text(schema: str) -> str:
    """The schema without logical types."""
    return json.dumps(_without_logical(json.loads(schema)))


def _without_logical(tree: Tree) -> Tree:
    if isinstance(tree, list):
        return [_without_logical(item) for item in tree]
    if isinstance(tree, dict):
        return {key: _without_logical(item) for key, item in tree.items() if key != "logicalType"}
    return tree


def _integers(bits: int, arrow: Callable[[int], Any] = int) -> st.SearchStrategy[Value]:
    small = st.integers(-70, 70)
    edges = st.integers(0, bits - 2).map(lambda bit: 1 << bit)
    numbers = small | edges | edges.map(lambda n: -n - 1) | st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return st.builds(lambda n, longer: Value(_varint(n, longer), n, arrow(n)), numbers, st.integers(0, 9))


def _varint(value: int, longer: int) -> bytes:
    """Encode a number, now and then with more bytes than it needs."""
    raw = varint(value)
    if longer or len(raw) > 8:
        return raw
    return raw[:-1] + bytes([raw[-1] | 0x80, 0x80, 0])


def _texts(texts: st.SearchStrategy[str]) -> st.SearchStrategy[Value]:
    return texts.map(lambda text: Value(varint(len(text.encode())) + text.encode(), text, text))


TEXTS = _texts(
    st.text("ab\u00e9\u20ac\U0001f600", max_size=8)
    | st.just("x" * 70)
    | st.text(st.characters(codec="utf-8"), max_size=40)
)
EPOCH = datetime(1970, 1, 1)


def _moment(zone: Any, unit: str) -> Callable[[int], Any]:
    return lambda n: (EPOCH + timedelta(**{unit: n})).replace(tzinfo=zone)


def _bounded(low: int, high: int, arrow: Callable[[int], Any]) -> st.SearchStrategy[Value]:
    return st.integers(low, high).map(lambda n: Value(varint(n), n, arrow(n)))


def _decimal(unscaled: int, scale: int) -> Decimal:
    return Decimal(unscaled).scaleb(-scale, Context(prec=60))


def _enough(unscaled: int) -> int:
    return unscaled.bit_length() // 8 + 1


@st.composite
def _decimals(draw: st.DrawFn) -> tuple[Tree, st.SearchStrategy[Value]]:
    precision = draw(st.integers(1, 38))
    scale = draw(st.integers(0, precision))
    top = 10**precision - 1
    numbers = st.integers(-top, top) | st.sampled_from([0, -1, 1, top, -top])
    more = {"logicalType": "decimal", "precision": precision, "scale": scale}
    if draw(st.booleans()):
        size = draw(st.integers(_enough(top), 20))

        def fixed(n: int) -> Value:
            raw = n.to_bytes(size, "big", signed=True)
            return Value(raw, raw, _decimal(n, scale))

        return {"type": "fixed", "name": "", "size": size, **more}, numbers.map(fixed)

    def short(n: int, longer: int) -> Value:
        raw = n.to_bytes(min(16, _enough(n) + longer), "big", signed=True)
        return Value(varint(len(raw)) + raw, raw, _decimal(n, scale))

    return {"type": "bytes", **more}, st.builds(short, numbers, st.integers(0, 2))


def _sized(values: st.SearchStrategy[Any], layout: str) -> st.SearchStrategy[Value]:
    return values.map(lambda value: Value(struct.pack(layout, value), value, value))


def _logical(kind: str, logical: str) -> Tree:
    return {"type": kind, "logicalType": logical}


LEAVES: list[tuple[Tree, st.SearchStrategy[Value]]] = [
    ("boolean", _sized(st.booleans(), "?")),
    ("int", _integers(32)),
    ("long", _integers(64)),
    ("float", _sized(st.floats(width=32, allow_nan=False), "<f")),
    ("double", _sized(st.floats(allow_nan=False), "<d")),
    ("bytes", st.binary(max_size=20).map(lambda raw: Value(varint(len(raw)) + raw, raw, raw))),
    ("string", TEXTS),
    ("string", _texts(st.text("abc", min_size=5, max_size=5))),
    (_logical("string", "uuid"), TEXTS),
    (_logical("int", "date"), _bounded(-700_000, 2_000_000, lambda n: date(1970, 1, 1) + timedelta(days=n))),
    (_logical("int", "time-millis"), _integers(32)),
    (_logical("long", "time-micros"), _integers(64)),
    (_logical("long", "timestamp-micros"), _bounded(-(10**15), 10**16, _moment(UTC, "microseconds"))),
    (_logical("long", "timestamp-millis"), _bounded(-(10**12), 10**13, _moment(UTC, "milliseconds"))),
    (_logical("long", "local-timestamp-micros"), _bounded(-(10**15), 10**16, _moment(None, "microseconds"))),
    (_logical("long", "local-timestamp-millis"), _bounded(-(10**12), 10**13, _moment(None, "milliseconds"))),
    (_logical("int", "nonsense"), _integers(32)),
    ({"type": "fixed", "name": "", "size": 3}, st.binary(min_size=3, max_size=3).map(lambda raw: Value(raw, raw, raw))),
    (
        {"type": "enum", "name": "", "symbols": ["A", "B", "C"]},
        st.integers(0, 2).map(lambda n: Value(varint(n), "ABC"[n], "ABC"[n])),
    ),
]
_NULL = Value(b"", None, None)


def _blocks(items: list[Value], cuts: list[int], sized: bool) -> bytes:
    """Items in blocks, whose counts are negative and followed by a length if ``sized``."""
    out = b""
    bounds = sorted({0, len(items), *(cut for cut in cuts if cut < len(items))})
    for first, last in pairwise(bounds):
        body = b"".join(item.raw for item in items[first:last])
        out += (varint(first - last) + varint(len(body)) if sized else varint(last - first)) + body
    return out + b"\0"


def _listed(items: st.SearchStrategy[list[Value]], gather: Callable[[list[Any]], Any]) -> st.SearchStrategy[Value]:
    def make(values: list[Value], cuts: list[int], sized: bool) -> Value:
        plain = gather([value.plain for value in values])
        return Value(_blocks(values, cuts, sized), plain, [value.arrow for value in values])

    return st.builds(make, items, st.lists(st.integers(0, 4), max_size=2), st.booleans())


def _entry(key: Value, value: Value) -> Value:
    return Value(key.raw + value.raw, (key.plain, value.plain), (key.arrow, value.arrow))


@st.composite
def typed(draw: st.DrawFn, depth: int = 3) -> tuple[Tree, st.SearchStrategy[Value]]:
    """A type and its values."""
    kinds = ["leaf", "leaf", "decimal", "null", "null", "array", "map", "record", "union"]
    kind = draw(st.sampled_from(kinds if depth else ["leaf", "decimal"]))
    if kind == "leaf":
        return draw(st.sampled_from(LEAVES))
    if kind == "decimal":
        return draw(_decimals())
    if kind == "record":
        return draw(_record(depth))
    if kind == "union":
        return draw(_union(depth))
    tree, values = draw(typed(depth=depth - 1))
    if kind == "null":
        if isinstance(tree, list):
            return tree, values
        place = draw(st.integers(0, 1))
        some = values.map(lambda v: Value(varint(1 - place) + v.raw, v.plain, v.arrow))
        none = st.just(Value(varint(place), None, None))
        return (["null", tree] if place == 0 else [tree, "null"]), none | some
    if kind == "map":
        entries = st.builds(_entry, _texts(st.text("abc\u00e9", max_size=3)), values)
        unique = st.lists(entries, max_size=4, unique_by=lambda entry: entry.plain[0])
        return {"type": "map", "values": tree}, _listed(unique, dict)
    return {"type": "array", "items": tree}, _listed(st.lists(values, max_size=5), list)


@st.composite
def _record(draw: st.DrawFn, depth: int) -> tuple[Tree, st.SearchStrategy[Value]]:
    fields = draw(st.lists(typed(depth=depth - 1), min_size=1, max_size=3))
    names = "abc"[: len(fields)]
    tree = {"type": "record", "name": "", "fields": [{"name": n, "type": t} for n, (t, _) in zip(names, fields)]}  # noqa: B905

    def make(values: tuple[Value, ...]) -> Value:
        plain = {name: value.plain for name, value in zip(names, values, strict=True)}
        arrow = {name: value.arrow for name, value in zip(names, values, strict=True)}
        return Value(b"".join(value.raw for value in values), plain, arrow)

    return tree, st.tuples(*(values for _, values in fields)).map(make)


@st.composite
def _union(draw: st.DrawFn, depth: int) -> tuple[Tree, st.SearchStrategy[Value]]:
    """A union that is more than a nullable type: members of different kinds, each at most once."""
    drawn = draw(st.lists(typed(depth=depth - 1), min_size=1, max_size=3))
    branches: list[tuple[Tree, st.SearchStrategy[Value] | None]] = []
    for tree, values in drawn:
        if not isinstance(tree, list) and _kind(tree) not in [_kind(other) for other, _ in branches]:
            branches.append((tree, values))
    if not branches:
        branches.append(("string", TEXTS))
    members = [_kind(tree) for tree, _ in branches]
    if draw(st.booleans()):
        branches.insert(draw(st.integers(0, len(branches))), ("null", None))
    wide = len(members) == 1 or (set(members) in ({"int", "long"}, {"float", "double"}) and _plain(branches))
    strategies: list[st.SearchStrategy[Value]] = []
    for number, (tree, values) in enumerate(branches):
        raw = varint(number)
        if values is None:
            strategies.append(st.just(Value(raw, None, None)))
            continue
        member = f"member{members.index(_kind(tree))}"
        strategies.append(values.map(_chooser(raw, None if wide else member, len(members))))
    return [tree for tree, _ in branches], st.one_of(strategies)


def _chooser(raw: bytes, member: str | None, members: int) -> Callable[[Value], Value]:
    def choose(value: Value) -> Value:
        if member is None:
            return Value(raw + value.raw, value.plain, value.arrow if members == 1 else value.plain)
        every = {f"member{i}": None for i in range(members)}
        return Value(raw + value.raw, value.plain, {**every, member: value.arrow})

    return choose


def _plain(branches: list[tuple[Tree, Any]]) -> bool:
    return all(isinstance(tree, (str, dict)) for tree, _ in branches)


def _kind(tree: Tree) -> str:
    return str(tree["type"]) if isinstance(tree, dict) else str(tree)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A schema with a few values for each column."""
    columns = draw(st.lists(typed(), min_size=1, max_size=4))
    fields = [{"name": f"f{i}", "type": tree} for i, (tree, _) in enumerate(columns)]
    number = count()
    parts = json.dumps({"type": "record", "name": "r", "fields": fields}).split('"name": ""')
    schema = parts[0] + "".join(f'"name": "n{next(number)}"{part}' for part in parts[1:])
    return Case(schema, [draw(st.lists(values, min_size=1, max_size=6)) for _, values in columns])
