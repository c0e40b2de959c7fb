"""RFC-101, test plan 3: one custom merger, one result, whichever way the versions of a record meet.

The merger orders versions by a column of its own, over updates and deletes alike, whatever the table's ordering column
says. The same changes are written in several ways; the rows must always be those that are worked out here by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hoodie_py import BufferedBatch, BufferedRecord, HoodieTable, MergeError, RecordContext, RecordMerger
from tests.writer.compaction_tables import QUICK
from tests.writer.written_tables import Kind

SCHEMA = pa.schema(
    [
        ("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("level", pa.string()), ("count", pa.int64()),
        ("_hoodie_is_deleted", pa.bool_()),
    ]
)  # fmt: skip
LEVELS = ("low", "mid", "high")
KINDS = [Kind(version, mor) for version in (9, 8, 6) for mor in (True, False)]
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}


class ByLevel(RecordMerger):
    """The higher level wins, the newer one of equals, deletes included; a row that wins counts the other one's too."""

    strategy_id = "51f7b5d3-6f0e-4c0a-8d37-0d2cb3b6a101"

    def merge(
        self,
        older: BufferedRecord[Any],
        newer: BufferedRecord[Any],
        context: RecordContext[Any],
        props: Mapping[str, str],
    ) -> BufferedRecord[Any]:
        newer_wins = _rank(newer, context) >= _rank(older, context)
        win, lose = (newer, older) if newer_wins else (older, newer)
        if win.is_delete or lose.is_delete:
            return win
        return context.replace(win, count=context.get_value(win, "count") + context.get_value(lose, "count"))


def _rank(record: BufferedRecord[Any], context: RecordContext[Any]) -> int:
    return LEVELS.index(context.get_value(record, "level"))


class ByLevelInBatches(ByLevel):
    """The same for many records at once."""

    def merge_batch(
        self, older: BufferedBatch, newer: BufferedBatch, context: RecordContext[Any], props: Mapping[str, str]
    ) -> BufferedBatch:
        ranks = [pc.index_in(each.column("level"), value_set=pa.array(LEVELS)) for each in (older, newer)]
        newer_wins = pc.greater_equal(ranks[1], ranks[0])
        win = newer.where(newer_wins, older)
        both = pc.add(older.column("count"), newer.column("count"))
        live = pc.invert(pc.or_(older.is_delete, newer.is_delete))
        return win.with_columns(count=pc.if_else(live, both, win.column("count")))


def change(key: str, level: str, *, deletes: bool = False, ts: int = 5) -> dict[str, Any]:
    """A version; its ordering value says the contrary of its level."""
    ts = ts - LEVELS.index(level)
    return {
        "id": key,
        "part": f"p{int(key < 'n')}",
        "ts": ts,
        "level": level,
        "count": 1,
        "_hoodie_is_deleted": deletes,
    }


FIRST = [change(key, "mid") for key in ("above", "below", "gone", "kept", "not gone", "same", "twice", "untouched")]
THEN = [
    [change("above", "high"), change("below", "low"), change("same", "mid", ts=1), change("twice", "high")],
    [change("above", "low"), change("kept", "low", deletes=True), change("not gone", "high"), change("twice", "high")],
    [change("gone", "high", deletes=True), change("not gone", "mid", deletes=True), change("fresh", "low")],
    [change("twice", "low", deletes=True), change("fresh", "high"), change("fresh again", "low")],
]
WANT = {
    "above": ("high", 3), "below": ("mid", 2), "fresh": ("high", 2), "fresh again": ("low", 1), "kept": ("mid", 1),
    "not gone": ("high", 2), "same": ("mid", 2), "twice": ("high", 3), "untouched": ("mid", 1),
}  # fmt: skip

Way = Callable[[Path, type[RecordMerger], dict[str, Any]], None]


def rows(changes: Sequence[Mapping[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(list(changes), SCHEMA)


def upsert(base: Path, merger: type[RecordMerger], options: dict[str, Any]) -> None:
    """One upsert after the other: log on log, then the log on the base row; a copy-on-write merge each on COW."""
    for changes in (FIRST, *THEN):
        HoodieTable.open(base).upsert(rows(changes), options, merger)


def one_batch(base: Path, merger: type[RecordMerger], options: dict[str, Any]) -> None:
    """All versions in one write, which merges them before it looks at the table."""
    HoodieTable.open(base).upsert(rows(FIRST), options, merger)
    HoodieTable.open(base).upsert(rows([each for changes in THEN for each in changes]), options, merger)


def all_at_once(base: Path, merger: type[RecordMerger], options: dict[str, Any]) -> None:
    """Even the first versions in that write, so that no version is in the table."""
    HoodieTable.open(base).upsert(rows([each for changes in (FIRST, *THEN) for each in changes]), options, merger)


def upsert_and_compact(base: Path, merger: type[RecordMerger], options: dict[str, Any]) -> None:
    """A compaction after every upsert: each version meets a base row."""
    for changes in (FIRST, *THEN):
        HoodieTable.open(base).upsert(rows(changes), options, merger)
        table = HoodieTable.open(base)
        if any(each.log_files for each in table.file_slices()):
            table.compact(options=options, merger=merger)


def spark_write(base: Path, merger: type[RecordMerger], options: dict[str, Any]) -> None:
    """The steps of a distributed write, by hand."""
    pytest.importorskip("pyspark", reason="NOT TESTED: pyspark is not installed")
    from tests.spark.write_engine import write_by_hand

    named = {name.replace(".", "__"): str(value) for name, value in options.items()}
    for changes in (FIRST, *THEN):
        half = len(changes) // 2
        write_by_hand(base, [rows(changes[:half]), rows(changes[half:])], merger=merger, **named)


WAYS: list[Way] = [upsert, one_batch, all_at_once, upsert_and_compact, spark_write]


@pytest.mark.parametrize("merger", [ByLevel, ByLevelInBatches])
@pytest.mark.parametrize("index", ["SIMPLE", "BUCKET"])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_one_result_everywhere(kind: Kind, way: Way, index: str, merger: type[RecordMerger], tmp_path: Path) -> None:
    options = QUICK | (BUCKETS if index == "BUCKET" else {})
    created(tmp_path, kind, merger)
    way(tmp_path, merger, options)
    assert seen(tmp_path, merger) == WANT
    if not kind.merge_on_read:
        return
    table = HoodieTable.open(tmp_path)
    if any(each.log_files for each in table.file_slices()):
        table.compact(options=options, merger=merger)
    assert seen(tmp_path, merger) == seen(tmp_path, merger, query_type="read_optimized") == WANT


@pytest.mark.spark
@pytest.mark.parametrize(
    "kind", [Kind(9, True), pytest.param(Kind(8, False), marks=pytest.mark.thorough), Kind(6, True)], ids=str
)
def test_the_same_in_spark(spark: Any, kind: Kind, tmp_path: Path) -> None:
    """Written, read and compacted by Spark's workers."""
    from hoodie_py.spark import register, write

    register(spark, mergers=[ByLevel], name="levels")
    created(tmp_path, kind, ByLevel)
    for changes in (FIRST, *THEN):
        write(spark.createDataFrame(rows(changes)), str(tmp_path), "upsert", merger=ByLevel, **QUICK)

    def shown() -> dict[str, tuple[str, int]]:
        found = spark.read.format("levels").load(str(tmp_path)).select("id", "level", "count").collect()
        return {each["id"]: (each["level"], each["count"]) for each in found}

    assert shown() == seen(tmp_path, ByLevel) == WANT
    if kind.merge_on_read:
        HoodieTable.open(tmp_path).compact(spark, options=QUICK, merger=ByLevel)
        assert shown() == seen(tmp_path, ByLevel, query_type="read_optimized") == WANT


def test_nothing_is_written_without_the_merger(tmp_path: Path) -> None:
    created(tmp_path, KINDS[0], ByLevel)
    table = HoodieTable.open(tmp_path)
    for changes in (FIRST, THEN[0]):
        with pytest.raises(MergeError, match=ByLevel.strategy_id):
            table.upsert(rows(changes), QUICK)
    assert len(table.refresh().timeline) == 0


def created(base: Path, kind: Kind, merger: type[RecordMerger]) -> None:
    HoodieTable.create(
        base,
        SCHEMA,
        record_key="id",
        ordering="ts",
        partition_by=["part"],
        table_type="MERGE_ON_READ" if kind.merge_on_read else "COPY_ON_WRITE",
        table_version=kind.version,
        merge_mode="CUSTOM",
        merger=merger,
    )


def seen(base: Path, merger: type[RecordMerger], **scan: Any) -> dict[str, tuple[str, int]]:
    found = HoodieTable.open(base).scan(["id", "level", "count"], merger=merger, **scan).to_arrow().to_pylist()
    by_id = {each["id"]: (each["level"], each["count"]) for each in found}
    assert len(by_id) == len(found), "an id is there twice"
    return by_id
