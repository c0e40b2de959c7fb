"""Spark's engine gives the same tables as this process, sends mergers and errors, and leaves no other files."""

from __future__ import annotations

import pickle
import time
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="NOT TESTED: pyspark is not installed")

from hoodie_py import HoodieError, HoodieTable, HoodieWarning, MergeError, RecordMerger, StorageError, register_merger
from hoodie_py.reader.merge import registry
from hoodie_py.spark.attempts import count_tries, unpack_outcome
from hoodie_py.spark.distributed import service_job
from hoodie_py.spark.distributed.service_job import JOB_BYTES, JOBS, LARGEST_JOB, ServiceJob, split_tasks
from hoodie_py.spark.engine import SparkEngine
from hoodie_py.writer.handles.data_file import TaskResult
from hoodie_py.writer.pipeline.engine import Engine
from hoodie_py.writer.pipeline.local_engine import LocalEngine
from hoodie_py.writer.services.compaction_report import Progress
from hoodie_py.writer.services.compaction_task import CompactionTask
from hoodie_py.writer.timeline.timeline_writer import TimelineWriter
from integration.corpus_mergers import CORPUS_MERGERS
from integration.spark_custom import STRATEGY, TABLE, make_custom
from tests.spark import troubled_writes
from tests.spark.troubled_tasks import Breaks, FailsOnce, RunsTwice, Troubled
from tests.writer.compaction_tables import QUICK, completed, leftovers, orphans, rows, writable
from tests.writer.pipeline.test_engine import EngineTests
from tests.writer.services.test_compaction_corpus import METADATA_MODE, REFUSED, TABLES, WITHOUT_METADATA
from tests.writer.written_tables import Kind

PLAIN = "basic_mor_v9_part"


class KeepsOlder(RecordMerger):
    """A merger that the driver registers, or that a call is given."""

    strategy_id = STRATEGY

    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        return older


class Nameless(RecordMerger):
    """No table can name it."""

    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        return older


class Angry(KeepsOlder):
    """Takes no record."""

    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        raise ValueError("not with me")


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registered", [])


# Without a session --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, JOB_BYTES // 10, JOB_BYTES])
@pytest.mark.parametrize("count", [1, 2, JOBS, JOBS + 1, 1000, JOBS * LARGEST_JOB + 1])
def test_jobs_keep_the_order_and_are_worth_their_planning(count: int, size: int) -> None:
    tasks: Any = [SimpleNamespace(size=size, number=number) for number in range(count)]
    jobs = split_tasks(tasks)
    assert [task for job in jobs for task in job] == tasks
    assert max(map(len, jobs)) <= LARGEST_JOB
    worth = max(1, count * size // JOB_BYTES)
    assert len(jobs) <= max(min(worth, JOBS), -(-count // LARGEST_JOB))
    if size == JOB_BYTES and count <= JOBS:
        assert len(jobs) == count


@pytest.mark.parametrize(
    ("master", "failures", "attempts"),
    [
        ("local", None, 1),
        ("local[*]", "7", 1),
        ("local[2,3]", None, 3),
        ("local[*, 5]", None, 5),
        ("yarn", None, 4),
        ("k8s://https://local[2,3]", "6", 6),
        (None, None, 4),
    ],
)
def test_how_often_spark_tries(master: str | None, failures: str | None, attempts: int) -> None:
    settings = {"spark.master": master, "spark.task.maxFailures": failures}
    spark: Any = SimpleNamespace(conf=SimpleNamespace(get=lambda name, default: settings[name] or default))
    assert count_tries(spark) == attempts


def run_job(tasks: list[CompactionTask], attempts: int = 1) -> list[dict[str, Any]]:
    """Run a pickled copy of a job, as a worker does."""
    job = pickle.loads(pickle.dumps(ServiceJob.from_tasks(tasks, b"", attempts)))
    assert "packed" not in repr(job)
    numbers = pa.RecordBatch.from_pydict({"id": list(range(len(tasks)))})
    return [row for batch in job(iter([numbers])) for row in batch.to_pylist()]


@pytest.fixture
def tasks(tmp_path: Path) -> list[CompactionTask]:
    """Return the tasks of a compaction that was started and not completed."""
    found: list[CompactionTask] = []

    class Stop(LocalEngine):
        def run(self, tasks: Any, on_rows: Any) -> Any:
            found.extend(tasks)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        HoodieTable.open(writable(PLAIN, tmp_path)).compact(Stop(), options=QUICK)
    facts = found[0].facts
    facts.files.put(TimelineWriter(facts.files, facts.config).locate(facts.inflight), b"")
    return found


def test_a_worker_reports_what_it_did(tasks: list[CompactionTask]) -> None:
    results = [unpack_outcome(row) for row in run_job(tasks)]
    assert [result.group for result in results] == [task.group for task in tasks]
    assert all(isinstance(result, TaskResult) and result.stat.num_writes for result in results)


def test_a_worker_reports_what_no_other_try_would_mend(tasks: list[CompactionTask], tmp_path: Path) -> None:
    for path in tmp_path.rglob(".*.log.*"):
        path.chmod(0o644)
        path.unlink()
    row = run_job(tasks[:1], attempts=4)[0]
    with pytest.raises(HoodieError) as caught:
        unpack_outcome(row)
    assert caught.value.where["file_group"] == tasks[0].group[1]
    assert any("Traceback" in note for note in caught.value.__notes__)


def test_what_another_try_may_mend_is_spark_s_until_the_last(tasks: list[CompactionTask]) -> None:
    task = FailsOnce(tasks[0].file_slice, tasks[0].info, tasks[0].facts, 0)
    with pytest.raises(StorageError, match="went away"):
        run_job([task], attempts=2)
    assert unpack_outcome(run_job([task], attempts=2)[0]).group == task.group
    assert run_job([task], attempts=1)[0]["failed"] is not None
    assert run_job([task], attempts=1)[0]["done"] is not None


# With a session -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in TABLES if not name.startswith(tuple(REFUSED))])
def test_every_reference_table_keeps_its_rows(spark: Any, registered: None, name: str, tmp_path: Path) -> None:
    for merger in CORPUS_MERGERS.values():
        register_merger(merger)
    warnings.simplefilter("ignore", HoodieWarning)
    base = writable(name, tmp_path)
    table = HoodieTable.open(base)
    if not any(each.log_files for each in table.file_slices()):
        assert table.compact(spark, options=QUICK).instant is None
        return
    before, commits = rows(table), completed(table, "commit")
    without = {str(METADATA_MODE): "disable"} if name in WITHOUT_METADATA else {}
    result = table.compact(spark, options={**QUICK, **without})
    now = HoodieTable.open(base)
    assert completed(now, "commit") == sorted([*commits, result.instant])
    assert rows(now) == before
    if not any(each.log_files for each in now.file_slices()):
        assert rows(now, "read_optimized") == before
    assert orphans(base) == []


def test_progress_comes_while_it_runs(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_job, "JOB_BYTES", 1)  # a job for each
    told: list[Progress] = []
    table = HoodieTable.open(writable(PLAIN, tmp_path))
    instant = table.schedule_compaction(options=QUICK)
    result = table.run_compaction(instant, spark, QUICK, on_progress=told.append)
    assert [each.file_groups_done for each in told] == list(range(1, result.file_groups + 1))
    assert told[-1].rows == result.rows_written
    assert told[-1].bytes_done == told[-1].bytes_total


@pytest.mark.parametrize("how", ["given", "registered"])
def test_mergers_reach_workers_that_cannot_import_them(spark: Any, registered: None, how: str, tmp_path: Path) -> None:
    base = make_custom(writable(TABLE, tmp_path))
    before = HoodieTable.open(base).scan(merger=KeepsOlder).to_arrow().drop_columns(["_hoodie_file_name"])
    if how == "registered":
        register_merger(KeepsOlder)
    merger = Nameless() if how == "given" else None
    HoodieTable.open(base).compact(spark, merger=merger, override_merger=merger is not None, options=QUICK)
    after = HoodieTable.open(base).scan(query_type="read_optimized").to_arrow().drop_columns(["_hoodie_file_name"])
    key = "_hoodie_record_key"
    assert after.sort_by(key).to_pylist() == before.sort_by(key).to_pylist()


def test_a_failing_merger_is_the_same_error_as_in_process(spark: Any, tmp_path: Path) -> None:
    found = []
    for engine in (None, spark):
        base = make_custom(writable(TABLE, tmp_path / str(engine is None)))
        instant = HoodieTable.open(base).schedule_compaction(options=QUICK)
        with pytest.raises(MergeError, match="not with me") as caught:
            HoodieTable.open(base).run_compaction(instant, engine, QUICK, merger=Angry)
        found.append((caught.value.message, caught.value.where.keys()))
        again = HoodieTable.open(base)
        assert [each.state for each in again.timeline.select_pending_compactions()] == ["requested"]
        assert list(base.rglob(f"*_{instant}.parquet")) == []
    assert found[0] == found[1]


def test_files_of_other_attempts_are_removed(spark: Any, tmp_path: Path) -> None:
    base = writable(PLAIN, tmp_path)
    before = rows(HoodieTable.open(base))
    result = HoodieTable.open(base).compact(Troubled.by(spark, RunsTwice), options=QUICK)
    assert len(list(base.rglob(f"*_{result.instant}.parquet"))) == result.file_groups
    assert (orphans(base), leftovers(base)) == ([], [])
    assert rows(HoodieTable.open(base), "read_optimized") == before


@pytest.mark.parametrize("job_bytes", [1, JOB_BYTES])
def test_a_task_that_failed_leaves_nothing_and_the_plan_can_be_run_again(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, job_bytes: int
) -> None:
    monkeypatch.setattr(service_job, "JOB_BYTES", job_bytes)
    base = writable(PLAIN, tmp_path)
    before = rows(HoodieTable.open(base))
    with pytest.raises(StorageError, match=r"The machine went away\. \[path="):
        HoodieTable.open(base).compact(Troubled.by(spark, FailsOnce), options=QUICK)
    [pending] = HoodieTable.open(base).timeline.select_pending_compactions()
    assert pending.state == "requested"
    assert list(base.rglob(f"*_{pending.request_time}.parquet")) == []
    assert HoodieTable.open(base).run_compaction(engine=spark, options=QUICK).instant == pending.request_time
    assert rows(HoodieTable.open(base), "read_optimized") == before
    assert (orphans(base), leftovers(base)) == ([], [])


def test_whatever_else_happens_to_a_worker_is_an_error_that_says_so(spark: Any, tmp_path: Path) -> None:
    base = writable(PLAIN, tmp_path)
    with pytest.raises(HoodieError, match=r"Spark did not carry .*ZeroDivisionError: one over nothing") as caught:
        HoodieTable.open(base).compact(Troubled.by(spark, Breaks), options=QUICK)
    assert "troubled_tasks.py" in str(caught.value.__cause__)
    assert [each.state for each in HoodieTable.open(base).timeline.select_pending_compactions()] == ["requested"]


def test_a_clustering_runs_one_task_for_each_group_and_keeps_the_rows(spark: Any, tmp_path: Path) -> None:
    base = writable(PLAIN, tmp_path)
    table = HoodieTable.open(base)
    before, partitions = rows(table), {each.partition_path for each in table.file_slices()}
    options = {**QUICK, "hoodie.clustering.plan.strategy.sort.columns": "price"}
    result = table.cluster(spark, options)
    assert (result.files_written, result.rows_written) == (len(partitions), sum(before.values()))
    assert rows(HoodieTable.open(base), "read_optimized") == before
    assert leftovers(base) == []


class TestSparkEngine(EngineTests):
    """The workers of a session."""

    @pytest.fixture(autouse=True)
    def use_session(self, spark: Any) -> None:
        self.spark = spark

    def engine(self) -> Engine:
        return SparkEngine(self.spark)

    def twice(self) -> Engine:
        return troubled_writes.troubled(self.spark, troubled_writes.RunsTwice)

    def failing(self) -> Engine:
        return troubled_writes.troubled(self.spark, troubled_writes.FailsLast)

    def data(self, table: pa.Table) -> Any:
        return self.spark.createDataFrame(table)

    @pytest.mark.parametrize(("kind", "index"), [(Kind(9, True), "GLOBAL_SIMPLE"), (Kind(6, False), "BUCKET")], ids=str)
    def test_every_operation_gives_the_rows_of_the_model(self, tmp_path: Path, kind: Kind, index: str) -> None:
        super().test_every_operation_gives_the_rows_of_the_model(tmp_path, kind, index)

    def check_files(self, base: Path) -> None:
        """Wait for tasks of a cancelled job, which may run a little longer and then remove their files."""
        deadline = time.monotonic() + 60
        while (orphans(base), leftovers(base)) != ([], []) and time.monotonic() < deadline:
            time.sleep(0.2)
        super().check_files(base)
