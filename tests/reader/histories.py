"""Random histories of records, and plain-Python folds to compare the columnar ones with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from hoodie_py import BufferedBatch, BufferedRecord, RecordContext, RecordMerger
from hoodie_py.reader.record.arrow_context import ArrowRecordContext
from hoodie_py.reader.record.delete_rules import DeleteRules
from hoodie_py.reader.record.ordering import ForeignValue
from hoodie_py.reader.record.record import DEFAULT_ORDERING, DELETE, NO_OPERATION
from hoodie_py.reader.record.record_key import RecordKeys
from hoodie_py.reader.record.row_store import RowStore

SCHEMA = pa.schema([("_hoodie_record_key", pa.string()), ("ts", pa.int64()), ("v", pa.int64()), ("s", pa.string())])


@dataclass(frozen=True)
class Version:
    """One entry of a log: ``kind`` is row, flagged (a delete with data) or block (an entry of a delete block)."""

    key: str
    kind: str
    ordering: Any
    value: int

    @property
    def is_delete(self) -> bool:
        return self.kind != "row"

    @property
    def unordered_delete(self) -> bool:
        return self.is_delete and self.ordering is DEFAULT_ORDERING


def versions(foreign: bool = False) -> st.SearchStrategy[list[Version]]:
    """Histories over few keys and few ordering values, so that ties and reversals are common."""
    numbers = st.integers(0, 4)
    orderings = {"row": numbers, "flagged": numbers, "block": st.one_of(numbers, st.just(DEFAULT_ORDERING))}
    if foreign:
        orderings["block"] = st.one_of(orderings["block"], st.integers(0, 4).map(lambda n: ForeignValue("int", n)))
    one = st.sampled_from(["row", "row", "flagged", "block"]).flatmap(
        lambda kind: st.builds(Version, st.sampled_from("abcd"), st.just(kind), orderings[kind], st.integers(0, 99))
    )
    return st.lists(one, max_size=40)


def context(store: RowStore) -> ArrowRecordContext:
    return ArrowRecordContext(store, SCHEMA, RecordKeys.of(True, ()), ("ts",), DeleteRules())


def entries(ctx: ArrowRecordContext, history: Sequence[Version]) -> BufferedBatch | None:
    """Turn a history into log entries, a chunk per run of equal kinds, as blocks would give them."""
    runs: list[list[Version]] = []
    for version in history:
        if runs and (runs[-1][0].kind == "block") == (version.kind == "block"):
            runs[-1].append(version)
        else:
            runs.append([version])
    return BufferedBatch.concat([_run(ctx, run) for run in runs]) if runs else None


def _run(ctx: ArrowRecordContext, run: Sequence[Version]) -> BufferedBatch:
    keys = pa.array([v.key for v in run], pa.string())
    if run[0].kind == "block":
        return BufferedBatch.of_deletes(ctx, keys, [v.ordering for v in run])
    rows = pa.RecordBatch.from_pydict(
        {
            "_hoodie_record_key": keys,
            "ts": [v.ordering for v in run],
            "v": [v.value for v in run],
            "s": [v.kind for v in run],
        },
        SCHEMA,
    )
    codes = np.array([DELETE if v.is_delete else NO_OPERATION for v in run], np.int8)
    return BufferedBatch.of_rows(ctx, ctx.store.add(rows), rows, codes)


def event_time(older: Version, newer: Version) -> Version:
    """Hudi's event-time rule for two log entries, one record at a time."""
    if newer.kind == "block":
        if older.unordered_delete:
            return older
        if newer.ordering is DEFAULT_ORDERING or type(older.ordering) is not type(newer.ordering):
            return newer
        above = (
            older.ordering.value > newer.ordering.value
            if isinstance(older.ordering, ForeignValue)
            else older.ordering > newer.ordering
        )
        return older if above else newer
    if older.unordered_delete:
        return newer
    return newer if newer.ordering >= older.ordering else older


def sequential(history: Sequence[Version], merge: Callable[[Version, Version], Version]) -> dict[str, Version]:
    """Fold a history record by record, as a map-based buffer does."""
    state: dict[str, Version] = {}
    for version in history:
        state[version.key] = merge(state[version.key], version) if version.key in state else version
    return state


class Tangled(RecordMerger):
    """Not associative, not commutative, changes data, turns some results into deletes."""

    strategy_id = "00000000-1111-2222-3333-444444444444"

    def merge(
        self,
        older: BufferedRecord[Any],
        newer: BufferedRecord[Any],
        context: RecordContext[Any],
        props: Mapping[str, str],
    ) -> BufferedRecord[Any]:
        a, b = context.get_value(older, "v") or 0, context.get_value(newer, "v") or 0
        total = (2 * a - b) % 101
        if newer.record is None:
            return older if older.record is not None and a % 3 == 0 else newer
        merged = context.replace(newer, v=total, ts=(a + b) % 7)
        return context.delete(merged) if total % 5 == 0 else merged


def tangled(older: Version, newer: Version) -> Version:
    """The same rule on Versions."""
    a = 0 if older.kind == "block" else older.value
    b = 0 if newer.kind == "block" else newer.value
    if newer.kind == "block":
        return older if older.kind != "block" and a % 3 == 0 else newer
    total = (2 * a - b) % 101
    deleted = newer.is_delete or total % 5 == 0
    return Version(newer.key, "flagged" if deleted else "row", (a + b) % 7, total)


def outcome(batch: BufferedBatch) -> dict[str, tuple[bool, Any, Any]]:
    """Return (is delete, ordering, value) by key."""
    values = batch.column("v").to_pylist()
    return {
        k: (bool(d), o, v)
        for k, d, o, v in zip(
            batch.keys.to_pylist(), batch.deletes.tolist(), batch.order.to_pylist(), values, strict=True
        )
    }


def expected(state: Mapping[str, Version]) -> dict[str, tuple[bool, Any, Any]]:
    return {k: (v.is_delete, v.ordering, None if v.kind == "block" else v.value) for k, v in state.items()}
