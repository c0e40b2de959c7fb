"""Comparing answers with what a case expects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from hoodie_py.formats.deletes.decoder import OrderingKind
from hoodie_py.reader.record.ordering import ForeignValue
from hoodie_py.reader.record.record import DEFAULT_ORDERING
from tests.reader.merge_cases.case import column, plain, typed

_KIND_OF_TYPE = {
    pa.int32(): OrderingKind.INT,
    pa.int64(): OrderingKind.LONG,
    pa.float32(): OrderingKind.FLOAT,
    pa.float64(): OrderingKind.DOUBLE,
    pa.string(): OrderingKind.STRING,
    pa.bool_(): OrderingKind.BOOLEAN,
    pa.binary(): OrderingKind.BYTES,
}


def check(expected: Mapping[str, Any], actual: Mapping[str, Any]) -> None:
    """Every key that a case lists must have the listed value."""
    unknown = set(expected) - set(actual)
    assert not unknown, f"nothing here answers {sorted(unknown)}"
    wrong = {key: (value, actual[key]) for key, value in expected.items() if actual[key] != value}
    assert not wrong, "\n".join(f"{key}: expected {want!r}, got {got!r}" for key, (want, got) in wrong.items())


def ordering_of(value: Any, types: tuple[pa.DataType, ...]) -> tuple[OrderingKind, Any]:
    """A record's ordering value as a case's literal would have it, see ``case.typed``."""
    if value is DEFAULT_ORDERING:
        return OrderingKind.NONE, None
    if isinstance(value, ForeignValue):
        return OrderingKind[value.kind.upper()], value.value
    if len(types) > 1:
        return OrderingKind.ARRAY, tuple(ordering_of(part, (one,)) for part, one in zip(value, types, strict=True))
    (type_,) = types
    kind = OrderingKind.DECIMAL if pa.types.is_decimal(type_) else _KIND_OF_TYPE[type_]
    return kind, value


def expected_ordering(literal: Mapping[str, Any] | None) -> tuple[OrderingKind, Any]:
    """The same for what a case expects."""
    return typed(literal)


def through(schema: pa.Schema, data: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """A case's row as reading it back from Arrow gives it (single floats rounded, structs with every field)."""
    if data is None:
        return None
    known = [name for name in data if name in schema.names]
    columns = {name: column([data[name]], schema.field(name).type).to_pylist()[0] for name in known}
    return {**plain(data), **columns}


def multiset(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Rows in an order of their own, for comparing without regard to order."""
    return sorted(repr(sorted(row.items(), key=lambda item: item[0])) for row in rows)
