"""Upserts and deletes of streams, shard by shard, do what the same rows do in memory."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import InvalidQueryError
from hoodie_py.writer.pipeline import local_engine, sharded_rows
from hoodie_py.writer.pipeline.sharded_rows import ShardedRows
from integration.corpus_mergers import Accumulate, HighestPrice
from tests.writer.compaction_tables import QUICK, leftovers, orphans
from tests.writer.pipeline import test_engine
from tests.writer.written_tables import Kind

SCHEMA = pa.schema([
    ("id", pa.string()), ("part", pa.string()), ("name", pa.string()), ("price", pa.float64()), ("qty", pa.int32()),
    ("ts", pa.int64()),
])  # fmt: skip
MODES: dict[str, dict[str, Any]] = {
    "event time": {"ordering": "ts"},
    "commit time": {},
    "ignore defaults": {"ordering": "ts", "properties": {"hoodie.table.partial.update.mode": "IGNORE_DEFAULTS"}},
    "payload": {
        "ordering": "ts",
        "properties": {
            "hoodie.compaction.payload.class": "org.apache.hudi.common.model.OverwriteNonDefaultsWithLatestAvroPayload"
        },
    },
    "highest price": {"ordering": "ts", "merger": HighestPrice},
    "accumulate": {"ordering": "ts", "merger": Accumulate},
}
INDEXES = ["SIMPLE", "GLOBAL_SIMPLE", "BLOOM", "GLOBAL_BLOOM", "BUCKET", "RECORD_INDEX", "STAYING"]


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_engine, "_PIECE_BYTES", 1 << 10)
    for module in (local_engine, sharded_rows):
        monkeypatch.setattr(module, "SHARD_BYTES", 1 << 11)
    monkeypatch.setattr(sharded_rows, "_SHARDS", 8)
    monkeypatch.setattr(sharded_rows, "PART_BYTES", 1 << 9)


@pytest.fixture
def placed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of portions of each write that was placed by shards."""
    counts: list[int] = []
    plain = ShardedRows.place

    def place(self: ShardedRows, target: Any) -> Any:
        counts.append(len(list(self._list_portions())))
        return plain(self, target)

    monkeypatch.setattr(ShardedRows, "place", place)
    return counts


def stream(rows: pa.Table) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(rows.schema, iter(rows.to_batches(max_chunksize=7)))


def options(index: str) -> dict[str, str]:
    given = {**QUICK, "hoodie.parquet.max.file.size": str(1 << 12)}
    if index == "RECORD_INDEX":
        return {**given, "hoodie.metadata.global.record.level.index.enable": "true", "hoodie.index.type": index}
    if index == "STAYING":
        return {**given, "hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.simple.index.update.partition.path": "false"}
    return {**given, "hoodie.index.type": index, "hoodie.bucket.index.num.buckets": "3"}


def make_rows(lot: random.Random, count: int) -> pa.Table:
    """Rows of few keys, many of them twice, some in another partition, some deletes, some nulls."""
    rows = [
        {
            "id": f"k{lot.randrange(90)}",
            "part": f"p{lot.randrange(3)}",
            "name": lot.choice([None, f"n{lot.randrange(1000)}"]),
            "price": float(lot.randrange(100)),
            "qty": lot.randrange(50),
            "ts": lot.randrange(6),
            "_hoodie_operation": "D" if lot.random() < 0.15 else "U",
        }
        for _ in range(count)
    ]
    return pa.Table.from_pylist(rows, pa.schema([*SCHEMA, ("_hoodie_operation", pa.string())]))


def seen(base: Path, merger: Any) -> list[tuple[Any, ...]]:
    rows = HoodieTable.open(base).scan(SCHEMA.names, merger=merger).to_arrow().to_pylist()
    return sorted((tuple(row.values()) for row in rows), key=repr)


def check_history(base: Path, mode: str, index: str, *, merge_on_read: bool, seed: int) -> None:
    """Write the same rows to two tables, to one in memory, to the other as streams."""
    lot = random.Random(seed)
    made = MODES[mode]
    kind = "MERGE_ON_READ" if merge_on_read else "COPY_ON_WRITE"
    for name in ("held", "streamed"):
        HoodieTable.create(base / name, SCHEMA, record_key="id", partition_by="part", table_type=kind, **made)
    merger = made.get("merger")
    given = options(index)
    if merger is not None:
        given["hoodie.write.record.merge.custom.implementation.classes"] = f"{merger.__module__}.{merger.__qualname__}"
    for step in range(4):
        delete = step == 2
        rows = make_rows(lot, 150)
        if delete:
            rows = rows.select(["id", "part"])
            rows = rows.take(pa.array(lot.sample(range(len(rows)), 80)))
        results = []
        for name, data in (("held", rows), ("streamed", stream(pa.concat_tables([rows] * 4) if delete else rows))):
            table = HoodieTable.open(base / name)
            if delete:
                results.append(table.delete(data, given))
            else:
                results.append(table.upsert(data, given))
        held, streamed = ((each.rows_inserted, each.rows_updated, each.rows_deleted) for each in results)
        assert streamed == held, step
        assert seen(base / "streamed", merger) == seen(base / "held", merger), step
        assert (orphans(base / "streamed"), leftovers(base / "streamed")) == ([], [])
    HoodieTable.open(base / "streamed").verify()


@pytest.mark.parametrize("merge_on_read", [True, False], ids=["mor", "cow"])
@pytest.mark.parametrize("mode", MODES)
def test_streams_merge_as_rows_in_memory(tmp_path: Path, mode: str, merge_on_read: bool, placed: list[int]) -> None:
    check_history(tmp_path, mode, "SIMPLE", merge_on_read=merge_on_read, seed=1)
    assert len(placed) == 4
    assert min(placed) > 1


@pytest.mark.parametrize("mode", ["event time", pytest.param("accumulate", marks=pytest.mark.thorough)])
@pytest.mark.parametrize("index", INDEXES)
def test_streams_find_keys_as_rows_in_memory(tmp_path: Path, index: str, mode: str, placed: list[int]) -> None:
    check_history(tmp_path, mode, index, merge_on_read=index != "BUCKET" or mode == "event time", seed=2)
    assert len(placed) == 4
    kept = HoodieTable.open(tmp_path / "streamed").config.metadata_partitions
    assert ("record_index" in kept) == (index == "RECORD_INDEX")


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(3, 15))
def test_random_streams(tmp_path: Path, seed: int, placed: list[int]) -> None:
    lot = random.Random(seed)
    mode, index = lot.choice(list(MODES)), lot.choice(INDEXES)
    check_history(tmp_path, mode, index, merge_on_read=lot.random() < 0.5, seed=seed)
    assert len(placed) == 4


def test_deletes_of_keys_alone_reach_every_partition(tmp_path: Path, placed: list[int]) -> None:
    for name in ("held", "streamed"):
        table = HoodieTable.create(tmp_path / name, SCHEMA, record_key="id", partition_by="part", ordering="ts")
        table.upsert(make_rows(random.Random(1), 300).select(SCHEMA.names), options("SIMPLE"))
    keys = pa.table({"id": [f"k{number}" for number in range(0, 600, 2)]})
    counts = [
        HoodieTable.open(tmp_path / name).delete(data, options("SIMPLE")).rows_deleted
        for name, data in (("held", keys), ("streamed", stream(keys)))
    ]
    assert counts[0] == counts[1] > 0
    assert seen(tmp_path / "held", None) == seen(tmp_path / "streamed", None)
    assert len(placed) == 1


def test_a_short_stream_stays_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ShardedRows, "read", lambda *_: pytest.fail("spilled"))
    table = HoodieTable.create(tmp_path / "t", SCHEMA, record_key="id", partition_by="part", ordering="ts")
    rows = make_rows(random.Random(1), 10).select(SCHEMA.names)
    assert table.upsert(stream(rows), QUICK).rows_inserted > 0
    assert table.upsert(stream(rows.slice(0, 0)), QUICK).instant is None
    assert table.delete(stream(rows.select(["id", "part"])), QUICK).rows_deleted > 0


def test_a_chunked_array_is_keys(tmp_path: Path) -> None:
    table = HoodieTable.create(tmp_path / "t", SCHEMA, record_key="id", ordering="ts")
    table.upsert(make_rows(random.Random(1), 10).select(SCHEMA.names), QUICK)
    keys = table.refresh().scan(["id"]).to_arrow().column("id")
    assert table.delete(keys, QUICK).rows_deleted == len(keys)


def test_errors_name_the_rows_of_the_stream(tmp_path: Path) -> None:
    rows = make_rows(random.Random(1), 300).select(SCHEMA.names)
    keys = [None if number == 250 else key for number, key in enumerate(rows.column("id").to_pylist())]
    table = HoodieTable.create(tmp_path / "t", SCHEMA, record_key="id", partition_by="part", ordering="ts")
    with pytest.raises(InvalidQueryError) as caught:
        table.upsert(stream(rows.set_column(0, "id", pa.array(keys))), QUICK)
    assert caught.value.where["rows"] == [250]
    assert table.refresh().timeline.last is None


def test_a_stream_that_breaks_leaves_no_trace(tmp_path: Path) -> None:
    def breaks() -> Iterator[pa.RecordBatch]:
        yield from make_rows(random.Random(1), 300).select(SCHEMA.names).to_batches(max_chunksize=7)
        raise RuntimeError("the source broke")

    table = HoodieTable.create(tmp_path / "t", SCHEMA, record_key="id", partition_by="part", ordering="ts")
    with pytest.raises(RuntimeError, match="the source broke"):
        table.upsert(pa.RecordBatchReader.from_batches(SCHEMA, breaks()), QUICK)
    assert table.refresh().timeline.last is None


class TestStreams(test_engine.TestLocalEngine):
    """Threads of this process, which take every write's rows as a stream of many pieces."""

    @pytest.fixture(autouse=True)
    def tiny_pieces(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(local_engine, "_PIECE_BYTES", 1)
        monkeypatch.setattr(sharded_rows, "_SHARDS", 3)
        for module in (local_engine, sharded_rows):
            monkeypatch.setattr(module, "SHARD_BYTES", 1)

    def data(self, table: pa.Table) -> Any:
        return stream(table)


@pytest.mark.parametrize("kind", [Kind(9, True, captures=True), Kind(9, False, captures=True)], ids=str)
def test_changes_are_those_of_rows_in_memory(tmp_path: Path, kind: Kind) -> None:
    for name in ("held", "streamed"):
        kind.create(tmp_path / name)
        for ts in (1, 2):
            rows = test_engine.rows([*range(60), *range(20)], ts, f"n{ts}")
            HoodieTable.open(tmp_path / name).upsert(rows if name == "held" else stream(rows), QUICK)
    held, streamed = (
        sorted(
            (row["op"], *(each and json.loads(each).get("name") for each in (row["before"], row["after"])))
            for row in HoodieTable.open(tmp_path / name).changes().to_arrow().to_pylist()
        )
        for name in ("held", "streamed")
    )
    assert len(held) == 120
    assert streamed == held
