"""What a user's type checker sees of the public names. Never run: ``make types`` checks it with mypy --strict."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any, assert_type

import pyarrow as pa

from hoodie_py import (
    BufferedRecord,
    CleanReport,
    CleanResult,
    CompactionResult,
    FileGroupReader,
    FileSlice,
    FileSystemLock,
    FollowedBatch,
    HoodieError,
    HoodieTable,
    Instant,
    Lock,
    MachineLock,
    NoLock,
    PlanReport,
    Progress,
    ReadInfo,
    ReadOptions,
    ReadStats,
    RecordContext,
    RecordMerger,
    RollbackReport,
    RollbackResult,
    Scan,
    StorageLock,
    TableConfig,
    TableFiles,
    TableFollower,
    TableInspect,
    Task,
    Timeline,
    WriteOperation,
    WriteResult,
    register_merger,
)


@register_merger
class HighestPrice(RecordMerger):
    strategy_id = "3fd5e0a4-0b9f-4e0f-9d40-f9d2f8f0a001"

    def merge(
        self,
        older: BufferedRecord[Any],
        newer: BufferedRecord[Any],
        context: RecordContext[Any],
        props: Mapping[str, str],
    ) -> BufferedRecord[Any]:
        assert_type(newer.record_key, str)
        assert_type(newer.is_delete, bool)
        assert_type(context.replace(newer, price=1.0), BufferedRecord[Any])
        assert_type(context.delete(newer), BufferedRecord[Any])
        return max(older, newer, key=lambda each: context.get_value(each, "price") or 0.0)


class OwnLock:
    """A user's own lock needs no base class."""

    def acquire(self, timeout: float) -> None: ...

    def renew(self) -> None: ...

    def release(self) -> None: ...


def show(progress: Progress) -> None:
    assert_type(progress.rows_per_second, float)
    assert_type(progress.seconds_left, float | None)


def read(uri: str) -> None:
    table = HoodieTable.open(uri, storage_options={"key": "k"}, timezone="UTC")
    assert_type(table, HoodieTable)
    assert_type(table.refresh(), HoodieTable)
    assert_type(table.config, TableConfig)
    assert_type(table.timeline, Timeline)
    assert_type(table.inspect, TableInspect)
    assert_type(table.files, TableFiles)
    assert_type(next(iter(table.timeline)), Instant)
    slices = table.file_slices(as_of="2026-01-01", filter="price > 10")
    assert_type(slices, list[FileSlice])

    scan = table.scan(columns=["id"], filter="price > 10", limit=10, merger=HighestPrice)
    assert_type(scan, Scan)
    assert_type(scan.to_arrow(), pa.Table)
    assert_type(scan.to_batches(), Generator[pa.RecordBatch, None, None])
    assert_type(scan.count(), int)
    assert_type(scan.instant, str | None)
    assert_type(scan.tasks(), list[Task])
    assert_type(scan.tasks()[0].to_batches(), Generator[pa.RecordBatch, None, None])

    assert_type(table.incremental("2026-01-01", end="20260102000000000", filter="price > 10"), Scan)
    assert_type(table.changes("2026-01-01", as_structs=True, filter="op = 'd'"), Scan)
    with table.follow("latest", poll=1.5, changes=True, columns=["after"], max_commits=2) as follower:
        assert_type(follower, TableFollower)
        assert_type(follower.token, str)
        for batch in follower:
            assert_type(batch, FollowedBatch)
            assert_type(batch.rows, pa.RecordBatch)
            assert_type(batch.token, str)
            assert_type(batch.is_last, bool)
            assert_type(batch.commits, tuple[str, ...])

    reader = FileGroupReader(slices[0], table, columns=["id"], merger=HighestPrice(), options=ReadOptions())
    assert_type(reader.to_batches(), Iterator[pa.RecordBatch])
    assert_type(reader.stats, ReadStats)
    assert_type(table.read_info(slices[0]), ReadInfo)
    for record in reader.buffered_records(emit_deletes=True):
        assert_type(record.record_key, str)
    assert_type(list(reader.keys()), list[str])


def write(uri: str, schema: pa.Schema, rows: Sequence[Mapping[str, object]]) -> None:
    table = HoodieTable.create(uri, schema, record_key="id", ordering=["ts"], merger=HighestPrice)
    locks: list[Lock] = [
        NoLock(), OwnLock(), MachineLock(table.files), StorageLock(table.files), FileSystemLock(table.files)
    ]  # fmt: skip
    written = table.upsert(rows, options={"hoodie.parquet.max.file.size": 1 << 20}, lock=locks[0])
    assert_type(written, WriteResult)
    assert_type(written.operation, WriteOperation)
    assert_type(written.compaction, CompactionResult | None)
    assert_type(table.delete("price > 10"), WriteResult)
    assert_type(table.schedule_compaction(), str | None)
    assert_type(table.schedule_compaction(dry_run=True), PlanReport)
    assert_type(table.compact(on_progress=show), CompactionResult)
    assert_type(table.clean(retain_commits=3), CleanResult)
    assert_type(table.clean(dry_run=True), CleanReport)
    assert_type(table.rollback("20260101000000000"), RollbackResult)
    assert_type(table.rollback("20260101000000000", dry_run=True), RollbackReport)


def fail(error: HoodieError) -> None:
    assert_type(error.hint, str | None)
    assert_type(error.where, dict[str, Any])
