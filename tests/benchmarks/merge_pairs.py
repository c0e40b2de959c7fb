"""Microseconds a merged pair: the merge alone, on batches in memory, medians of interleaved runs.

``python -m tests.benchmarks.merge_pairs`` prints a table; the answers of the ways that must agree are compared.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py import BufferedBatch, BufferedRecord, RecordContext, RecordMerger
from hoodie_py.reader.merge.custom import CustomStrategy
from hoodie_py.reader.merge.strategies import CommitTimeStrategy, EventTimeStrategy, MergeStrategy
from hoodie_py.reader.record.arrow_context import ArrowRecordContext
from hoodie_py.reader.record.delete_rules import DeleteRules
from hoodie_py.reader.record.record_key import RecordKeys
from hoodie_py.reader.record.row_store import RowStore

PAIRS = 200_000
RUNS = 7
WIDTH = 12  # payload columns beside key and ordering
SCHEMA = pa.schema(
    [("_hoodie_record_key", pa.string()), ("ts", pa.int64()), ("price", pa.float64())]
    + [(f"c{i}", pa.string() if i % 2 else pa.int64()) for i in range(WIDTH)]
)


class HighestPrice(RecordMerger):
    """The higher price wins, row by row."""

    strategy_id = "5c2a4f6e-0000-4000-8000-000000000001"

    def merge(
        self,
        older: BufferedRecord[Any],
        newer: BufferedRecord[Any],
        context: RecordContext[Any],
        props: Mapping[str, str],
    ) -> BufferedRecord[Any]:
        return newer if context.get_value(newer, "price") >= context.get_value(older, "price") else older


class HighestPriceBatch(HighestPrice):
    """The same rule on columns."""

    def merge_batch(
        self, older: BufferedBatch, newer: BufferedBatch, context: RecordContext[Any], props: Mapping[str, str]
    ) -> BufferedBatch:
        return newer.where(pc.greater_equal(newer.column("price"), older.column("price")), older)


class Doubling(RecordMerger):
    """A row form that changes a field of every result."""

    strategy_id = "5c2a4f6e-0000-4000-8000-000000000002"

    def merge(
        self,
        older: BufferedRecord[Any],
        newer: BufferedRecord[Any],
        context: RecordContext[Any],
        props: Mapping[str, str],
    ) -> BufferedRecord[Any]:
        return context.replace(newer, price=context.get_value(older, "price") * 2)


@dataclass(frozen=True)
class Way:
    """One way to merge, and the most microseconds a pair that it may take (None: reported only)."""

    name: str
    strategy: MergeStrategy
    target: float | None


WAYS = (
    Way("commit time, built in", CommitTimeStrategy(), None),
    Way("event time, built in", EventTimeStrategy(), 0.5),
    Way("custom, merge_batch on columns", CustomStrategy(HighestPriceBatch(), {}), 1.0),
    Way("custom, merge row by row", CustomStrategy(HighestPrice(), {}), 10.0),
    Way("custom, merge that changes a field", CustomStrategy(Doubling(), {}), None),
)


def pairs() -> tuple[BufferedBatch, BufferedBatch]:
    """Return aligned batches: half of the newer versions have a lower ordering value, half a lower price."""
    rng = np.random.default_rng(7)
    store = RowStore(SCHEMA)
    context = ArrowRecordContext(store, SCHEMA, RecordKeys.of(True, ()), ("ts",), DeleteRules())
    keys = pa.array([f"key-{i:012d}" for i in range(PAIRS)])

    def side() -> BufferedBatch:
        columns: dict[str, Any] = {
            "_hoodie_record_key": keys,
            "ts": rng.integers(0, 1000, PAIRS),
            "price": rng.random(PAIRS),
        }
        for i in range(WIDTH):
            columns[f"c{i}"] = pa.array(rng.integers(0, 9, PAIRS)).cast(SCHEMA.field(f"c{i}").type)
        batch = pa.RecordBatch.from_pydict(columns, SCHEMA)
        return BufferedBatch.of_rows(context, store.add(batch), batch, None)

    return side(), side()


def measure(call: Callable[[], BufferedBatch], older: BufferedBatch) -> tuple[float, BufferedBatch]:
    """Return CPU seconds of one call, and its result; rows that the call made are released."""
    mark = len(older.context.store)
    began = time.process_time()
    result = call()
    seconds = time.process_time() - began
    older.context.store.release(mark)
    return seconds, result


def main() -> int:
    """Run the ways in turn, print medians, and fail where two disagree."""
    older, newer = pairs()
    seconds: dict[str, list[float]] = {way.name: [] for way in WAYS}
    results: dict[str, BufferedBatch] = {}
    for run in range(RUNS + 1):
        for way in WAYS:
            took, results[way.name] = measure(lambda: way.strategy.final_merge(older, newer), older)  # noqa: B023 - called at once
            if run:
                seconds[way.name].append(took)
    same = np.array_equal(results[WAYS[2].name].rows, results[WAYS[3].name].rows)
    assert same, "the row form and the batch form of one merger disagree"
    missed = 0
    print(f"{PAIRS:,} pairs, {len(SCHEMA)} columns, CPU time, median of {RUNS} interleaved runs\n")
    print(f"| {'way':36} | us a pair |  min |  max | target |\n|{'-' * 38}|{'-' * 11}|{'-' * 6}|{'-' * 6}|{'-' * 8}|")
    for way in WAYS:
        each = [took / PAIRS * 1e6 for took in seconds[way.name]]
        median = statistics.median(each)
        missed += way.target is not None and median > way.target
        target = "" if way.target is None else f"{way.target:g}"
        print(f"| {way.name:36} | {median:9.3f} | {min(each):4.2f} | {max(each):4.2f} | {target:>6} |")
    print(f"\n{missed} of the targets missed" if missed else "\nall targets hold")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
