"""Random pairs of versions for payload classes: live rows, deletes with data and without, all kinds of ordering."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from hoodie_py import BufferedBatch
from hoodie_py.reader.record.arrow_context import ArrowRecordContext
from hoodie_py.reader.record.delete_rules import DeleteRules
from hoodie_py.reader.record.ordering import ForeignValue, OrderingColumn
from hoodie_py.reader.record.record import DEFAULT_ORDERING, DELETE, NO_OPERATION, UPDATE_BEFORE
from hoodie_py.reader.record.record_key import RecordKeys
from hoodie_py.reader.record.row_store import NO_ROW, RowStore

SCHEMA = pa.schema(
    [
        ("_hoodie_commit_time", pa.string()),
        ("_hoodie_record_key", pa.string()),
        ("ts", pa.int64()),
        ("i", pa.int32()),
        ("f", pa.float64()),
        ("a", pa.int64()),
        ("s", pa.string()),
        ("b", pa.binary()),
        ("l", pa.list_(pa.int64())),
        ("m", pa.map_(pa.string(), pa.int64())),
        ("r", pa.struct([("x", pa.int64())])),
        ("_hoodie_is_deleted", pa.bool_()),
        ("Op", pa.string()),
        ("_change_operation_type", pa.string()),
        ("_event_lsn", pa.int64()),
        ("_event_seq", pa.string()),
    ]
)
DEFAULTS = {"a": 7, "s": "", "l": [1, 2], "m": [], "r": {"x": 1}, "b": b"", "_hoodie_is_deleted": False}
PLACEHOLDER = "__debezium_unavailable_value"
ORDERINGS: tuple[tuple[str, ...], ...] = ((), ("ts",), ("i",), ("f",), ("_event_seq",), ("ts", "i"), ("i", "f"))

_small = st.integers(-1, 2)
_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "_hoodie_commit_time": st.none() | st.sampled_from(["1", "2"]),
    "ts": _small,
    "i": _small,
    "f": st.sampled_from([0.0, -0.0, 1.0, float("nan")]),
    "a": st.none() | st.sampled_from([7, 8]),
    "s": st.none() | st.sampled_from(["", "x", PLACEHOLDER]),
    "b": st.none() | st.sampled_from([b"", b"x", PLACEHOLDER.encode()]),
    "l": st.none() | st.sampled_from([[], [1], [1, 2], [1, None]]),
    "m": st.none() | st.sampled_from([[], [("k", 1)]]),
    "r": st.none() | st.sampled_from([{"x": 1}, {"x": None}]),
    "_hoodie_is_deleted": st.sampled_from([None, False, False, False, True]),
    "Op": st.sampled_from([None, "I", "U", "d", "D"]),
    "_change_operation_type": st.sampled_from([None, "c", "u", "d", "D"]),
    "_event_lsn": _small,
    "_event_seq": st.sampled_from(["1.5", "1.20", "02.1", "2.01"]),
}


@dataclass(frozen=True)
class Version:
    """One version: a row or None, an operation code, and the ordering a delete without data carries.

    ``ordering`` is None for a delete that commit time orders, a tuple of parts, or a ForeignValue.
    """

    values: dict[str, Any] | None
    code: int = NO_OPERATION
    ordering: tuple[Any, ...] | ForeignValue | None = None


def versions(nulls: bool) -> st.SearchStrategy[Version]:
    """Single versions; ``nulls`` allows null orderings and log positions, which some payload classes refuse."""

    def maybe(name: str, values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        often_null = name in ("ts", "i", "f", "_event_lsn", "_event_seq")
        return st.none() | values if nulls and often_null else values

    rows = st.fixed_dictionaries({name: maybe(name, values) for name, values in _VALUES.items()})
    codes = st.sampled_from([NO_OPERATION, NO_OPERATION, NO_OPERATION, DELETE, UPDATE_BEFORE])
    parts: st.SearchStrategy[Any] = st.none() | st.tuples(_small, _small)
    if nulls:
        parts = parts | st.just(ForeignValue("decimal", 1))
    return st.one_of(
        st.builds(Version, rows, codes),
        st.builds(Version, rows, codes),
        st.builds(Version, st.none(), st.just(DELETE), parts),
    )


def pairs(nulls: bool = False) -> st.SearchStrategy[list[tuple[Version, Version]]]:
    return st.lists(st.tuples(versions(nulls), versions(nulls)), min_size=1, max_size=12)


def context(ordering: Sequence[str]) -> ArrowRecordContext:
    keys = RecordKeys.of(True, ())
    return ArrowRecordContext(RowStore(SCHEMA), SCHEMA, keys, ordering, DeleteRules(flag=True), DEFAULTS)


def batch(ctx: ArrowRecordContext, given: Sequence[Version], first_key: int = 0) -> BufferedBatch:
    """Turn versions into a batch; the i-th has the key k<i>."""
    keys = [f"k{first_key + i}" for i in range(len(given))]
    at = [i for i, version in enumerate(given) if version.values is not None]
    table = pa.RecordBatch.from_pylist([{**(given[i].values or {}), "_hoodie_record_key": keys[i]} for i in at], SCHEMA)
    rows = np.full(len(given), NO_ROW, np.int64)
    first = ctx.store.add(table)
    rows[at] = np.arange(first, first + len(at))
    order = (
        OrderingColumn.from_values([_ordering(ctx, version) for version in given], ctx.ordering_types)
        if ctx.ordering_types
        else OrderingColumn.from_columns([], len(given))
    )
    return BufferedBatch(ctx, pa.array(keys, pa.string()), rows, order, np.array([v.code for v in given], np.int8))


def both(ctx: ArrowRecordContext, given: Sequence[tuple[Version, Version]]) -> tuple[BufferedBatch, BufferedBatch]:
    return batch(ctx, [older for older, _ in given]), batch(ctx, [newer for _, newer in given])


def _ordering(ctx: ArrowRecordContext, version: Version) -> Any:
    if version.values is not None:
        parts = tuple(DEFAULT_ORDERING if version.values[n] is None else version.values[n] for n in ctx.ordering_fields)
    elif version.ordering is None or isinstance(version.ordering, ForeignValue):
        return version.ordering or DEFAULT_ORDERING
    else:
        parts = tuple(map(_fitting, version.ordering[: len(ctx.ordering_types)], ctx.ordering_types))
    return parts[0] if len(parts) == 1 else parts


def _fitting(number: int, type_: pa.DataType) -> Any:
    if pa.types.is_string(type_):
        return f"{number}.1"
    return float(number) if pa.types.is_floating(type_) else number


def described(result: BufferedBatch, older: BufferedBatch) -> list[tuple[Any, ...]]:
    """What can be said of each record: key, operation, ordering, data, and whether its row is the older version's."""
    data = result.context.store.take(result.rows).to_pylist()
    return [
        (key, code, repr(ordering), repr(row) if handle != NO_ROW else None, handle != NO_ROW and handle == old)
        for key, code, ordering, row, handle, old in zip(
            result.keys.to_pylist(),
            result.codes.tolist(),
            result.order.to_pylist(),
            data,
            result.rows.tolist(),
            older.rows.tolist(),
            strict=True,
        )
    ]
