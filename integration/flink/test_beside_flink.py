"""A streaming job of Flink keeps one instant pending, also while no rows come. We read, write and serve its table."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hoodie_py.errors import ConflictError
from integration.flink.jobs import FlinkJobs
from integration.flink.streams import Row, Stream

QUICK = {"hoodie.client.heartbeat.interval_in_ms": "100", "hoodie.client.heartbeat.tolerable.misses": "5"}
OLD = 1.0  # seconds after which a pending write without a sign of life counts as dead with these options
LOCK = "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"
SHARED = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.write.lock.provider": LOCK,
}
KINDS = {
    "mor": {"table.type": "MERGE_ON_READ"},
    "mor-buckets": {"table.type": "MERGE_ON_READ", "index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"},
    "mor-mdt": {"table.type": "MERGE_ON_READ", "metadata.enabled": "true"},
    "cow": {"table.type": "COPY_ON_WRITE"},
}
kinds = pytest.mark.parametrize("kind", KINDS)


def rows(numbers: range, ts: int, part: str = "flink", name: str = "a") -> list[Row]:
    return [(f"{number:03}", part, ts, name) for number in numbers]


@contextmanager
def streaming(flink: FlinkJobs, folder: Path, options: dict[str, str]) -> Iterator[Stream]:
    """Run a job that has written some rows, and idles."""
    stream = Stream(flink, folder, options)
    stream.start()
    try:
        stream.feed(rows(range(20), 1))
        time.sleep(OLD)
        yield stream
    finally:
        stream.stop()


@kinds
def test_a_lone_writer_leaves_the_instant_of_a_job_alone(flink: FlinkJobs, tmp_path: Path, kind: str) -> None:
    with streaming(flink, tmp_path, KINDS[kind]) as stream:
        before = stream.list_files()
        given = [{"id": "001", "part": "ours", "ts": 2, "name": "b"}]
        with pytest.raises(ConflictError, match=r"A Flink job writes to the instant.*ckp_meta"):
            stream.table.upsert(given, QUICK)
        with pytest.raises(ConflictError, match="A Flink job writes to the instant"):
            stream.table.delete([("001", "flink")], QUICK)
        assert stream.list_files() == before
        failed = next(each for each in stream.table.services(QUICK).services if each.name == "failed writes")
        assert failed.state == "waits"
        stream.feed(rows(range(10, 30), 2))
        stream.check()


@kinds
def test_declared_writers_share_a_table_with_a_job(flink: FlinkJobs, tmp_path: Path, kind: str) -> None:
    with streaming(flink, tmp_path, {**KINDS[kind], **SHARED}) as stream:
        for turn in range(2, 5):
            ours = rows(range(turn, 12), turn, "ours", f"turn {turn}")
            stream.table.upsert(
                [dict(zip(("id", "part", "ts", "name"), row, strict=True)) for row in ours], {**QUICK, **SHARED}
            )
            stream.merge(ours)
            stream.feed(rows(range(turn, 30), turn))
            stream.check()
            time.sleep(OLD)


@pytest.mark.parametrize("kind", ["mor", "mor-buckets", "mor-mdt"])
def test_we_run_the_compactions_that_a_job_plans(flink: FlinkJobs, tmp_path: Path, kind: str) -> None:
    plans = {**KINDS[kind], "compaction.schedule.enabled": "true", "compaction.delta_commits": "2"}
    with streaming(flink, tmp_path, plans) as stream:
        ran = 0
        for turn in range(2, 9):
            stream.feed([*rows(range(turn, 30), turn), *rows(range(100, 100 + turn), turn, "other")])
            planned = [each.request_time for each in stream.table.timeline.select_pending_compactions()]
            if turn == 4:  # the job goes on beside plans that wait
                for instant in planned:
                    stream.table.run_compaction(instant, options=QUICK)
            elif turn in (6, 8):
                done = stream.table.services(run=True, options=QUICK)
                assert [each for each in done.steps if each.outcome != "done"] == []
            if turn in (4, 6, 8):
                assert planned
                assert list(stream.table.timeline.select_pending_compactions()) == []
                ran += len(planned)
            stream.check()
            time.sleep(OLD)
            stream.table.clean(options={**QUICK, "hoodie.cleaner.commits.retained": "2"})
            stream.check()
        assert ran > 1
        report = stream.table.verify()
        assert report.is_right, str(report)
        assert list(stream.base.glob(".hoodie/.heartbeat/*")) == []  # Java would take the job's instant for a dead one
        assert any(each.base_file for each in stream.table.file_slices())


def test_we_make_no_plan_beside_a_job(flink: FlinkJobs, tmp_path: Path) -> None:
    with streaming(flink, tmp_path, KINDS["mor"]) as stream:
        before = stream.list_files()
        for schedule in (stream.table.schedule_compaction, stream.table.compact):
            with pytest.raises(ConflictError, match="let the job plan"):
                schedule(options=QUICK)
        assert stream.list_files() == before
        stream.feed(rows(range(10, 30), 2))
        stream.check()


@kinds
def test_a_job_that_has_ended_is_rolled_back_by_name_and_starts_again(
    flink: FlinkJobs, tmp_path: Path, kind: str
) -> None:
    with streaming(flink, tmp_path, KINDS[kind]) as stream:
        stream.stop()
        report = stream.table.rollback(stream.pending, dry_run=True)
        assert "A Flink job writes to it, or did" in str(report)
        stream.table.rollback(stream.pending, options=QUICK)
        ours = rows(range(15), 3, name="ours")
        stream.table.upsert([dict(zip(("id", "part", "ts", "name"), row, strict=True)) for row in ours], QUICK)
        stream.merge(ours)
        stream.check()
        stream.start()
        stream.feed(rows(range(10, 30), 4))
        stream.check()
