"""Running a compaction: what it writes, and who wins when others interfere."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import (
    CommitStateUnknownError,
    ConflictError,
    HoodieError,
    InvalidQueryError,
    StorageError,
    UnsupportedFeatureError,
)
from hoodie_py.files import TableFiles
from hoodie_py.formats.names import make_marker_folder, parse_base_file_name
from hoodie_py.writer.handles.data_file import TaskResult
from hoodie_py.writer.rollback.attempt import remove_files
from hoodie_py.writer.services import planned_service
from hoodie_py.writer.services.compaction_report import CompactionResult, Progress
from hoodie_py.writer.services.compaction_task import CompactionTask, OnRows
from hoodie_py.writer.services.runner import LocalRunner
from tests.writer.compaction_tables import QUICK, completed, leftovers, opened, orphans, rows, writable
from tests.writer.faulty_files import FaultyFiles, Killed, Plan

V9 = "basic_mor_v9_part"
VERSIONS = ["basic_mor_v6_part", "basic_mor_v8_part", V9]


class Interrupted:
    """A runner that does something to the table when all tasks are done."""

    def __init__(self, act: Callable[[list[TaskResult]], None]) -> None:
        self._act = act

    def run(self, tasks: Sequence[CompactionTask], on_rows: OnRows) -> Iterator[TaskResult]:
        results = [task.run(on_rows) for task in tasks]
        self._act(results)
        yield from results


class Repeated:
    """A runner whose engine tries tasks again: failed once, done twice, and one still at work when all is over."""

    def run(self, tasks: Sequence[CompactionTask], on_rows: OnRows) -> Iterator[TaskResult]:
        for task in pickle.loads(pickle.dumps(list(tasks))):
            lost = task.run()
            again = task.run()
            assert lost.path != again.path
            yield pickle.loads(pickle.dumps(again))
            yield task.run()


@pytest.mark.parametrize("name", VERSIONS)
def test_what_a_compaction_writes(name: str, tmp_path: Path) -> None:
    base = writable(name, tmp_path)
    table = HoodieTable.open(base)
    slices = [each for each in table.file_slices() if each.log_files]
    told: list[Progress] = []
    result = table.compact(options=QUICK, on_progress=told.append)
    now = HoodieTable.open(base)
    instant = now.timeline.find(str(result.instant))
    assert instant is not None
    assert (instant.action, instant.state) == ("commit", "completed")
    names = {path.name for path in (base / now.config.find_timeline_folder()).glob(f"{result.instant}*")}
    completion = "" if now.config.timeline_layout == 1 else f"_{result.completion_time}"
    assert names == {
        f"{result.instant}.compaction.requested", f"{result.instant}.compaction.inflight",
        f"{result.instant}{completion}.commit",
    }  # fmt: skip
    assert (base / now.config.find_timeline_folder() / f"{result.instant}.compaction.inflight").read_bytes() == b""
    assert result.file_groups == len(slices)
    assert result.bytes_read == sum(
        (each.base_file.size if each.base_file else 0) + sum(log.size for log in each.log_files) for each in slices
    )
    metadata = now._snapshot.timeline.read_metadata(instant)
    assert metadata.operation_type == "COMPACT"
    assert metadata.compacted
    assert result.bytes_written == sum((base / (stat.path or "")).stat().st_size for stat in metadata.iterate_stats())
    assert result.rows_written == sum(
        pq.ParquetFile(base / (stat.path or "")).metadata.num_rows for stat in metadata.iterate_stats()
    )
    assert f"{result.rows_updated:,} updated" in str(result)
    assert told[-1].file_groups_done == told[-1].file_groups == len(slices)
    assert told[-1].rows == result.rows_written
    assert told[-1].seconds_left == 0
    assert leftovers(base) == []


def test_file_name_is_rewritten_and_other_meta_columns_stay(tmp_path: Path) -> None:
    base = writable(V9, tmp_path)
    columns = ["_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key", "_hoodie_partition_path"]
    before = HoodieTable.open(base).scan(columns=columns).to_arrow().sort_by("_hoodie_record_key").to_pylist()
    result = HoodieTable.open(base).compact(options=QUICK)
    now = HoodieTable.open(base)
    assert now.scan(columns=columns).to_arrow().sort_by("_hoodie_record_key").to_pylist() == before
    for path in base.rglob(f"*_{result.instant}.parquet"):
        assert set(pq.ParquetFile(path).read(["_hoodie_file_name"]).column(0).to_pylist()) == {path.name}


def test_a_formatted_partition_column_keeps_its_own_values(tmp_path: Path) -> None:
    base = writable("ts_keygen_scalar_mor_v6", tmp_path)
    column = HoodieTable.open(base).config.partition_fields[0]
    old = [pq.ParquetFile(path).schema_arrow.field(column).type for path in base.rglob("*.parquet")]
    result = HoodieTable.open(base).compact(options=QUICK)
    new = [pq.ParquetFile(path).schema_arrow.field(column).type for path in base.rglob(f"*_{result.instant}.parquet")]
    assert set(new) == set(old)


def test_nothing_to_compact(tmp_path: Path) -> None:
    base = writable("empty_mor_v9", tmp_path)
    assert HoodieTable.open(base).schedule_compaction(options=QUICK) is None
    result = HoodieTable.open(base).compact(options=QUICK)
    assert result == CompactionResult()
    assert str(result) == "There was nothing to compact."


def test_a_plan_of_java_s_is_carried_out(tmp_path: Path) -> None:
    base = writable("compaction_pending_mor_v9", tmp_path)
    table = HoodieTable.open(base)
    before = rows(table)
    [pending] = [each.request_time for each in table.timeline.select_pending_compactions()]
    assert table.run_compaction(options=QUICK).instant == pending
    assert rows(HoodieTable.open(base)) == before
    assert HoodieTable.open(base).compact(options=QUICK).instant != pending
    assert rows(HoodieTable.open(base), "read_optimized") == before


@pytest.mark.parametrize("instant", ["20990101000000000", "nonsense"])
def test_an_instant_that_is_no_pending_compaction(instant: str, tmp_path: Path) -> None:
    table = HoodieTable.open(writable(V9, tmp_path))
    with pytest.raises(InvalidQueryError, match="There is no compaction"):
        table.run_compaction(instant)
    with pytest.raises(InvalidQueryError, match="deltacommit is completed"):
        table.run_compaction(table.timeline.instants[0].request_time)


def test_only_one_attempt_of_each_task_is_committed(tmp_path: Path) -> None:
    base = writable(V9, tmp_path)
    before = rows(HoodieTable.open(base))
    result = HoodieTable.open(base).compact(Repeated(), options=QUICK)
    assert result.file_groups == len(list(base.rglob(f"*_{result.instant}.parquet")))
    assert (orphans(base), leftovers(base)) == ([], [])
    assert rows(HoodieTable.open(base), "read_optimized") == before


def test_an_engine_that_is_none(tmp_path: Path) -> None:
    table = HoodieTable.open(writable(V9, tmp_path))
    with pytest.raises(UnsupportedFeatureError, match="engine of type object"):
        table.run_compaction(engine=object())  # type: ignore[arg-type]


def test_tasks_are_small(tmp_path: Path) -> None:
    base = writable(V9, tmp_path)
    sizes = []

    class Measure(LocalRunner):
        def run(self, tasks: Sequence[CompactionTask], on_rows: OnRows) -> Iterator[TaskResult]:
            sizes.extend(len(pickle.dumps(task)) for task in tasks)
            return super().run(tasks, on_rows)

    HoodieTable.open(base).compact(Measure(), options=QUICK)
    assert 0 < max(sizes) < 64 * 1024


class Late(LocalRunner):
    """Keeps its tasks, for attempts after its run."""

    def __init__(self) -> None:
        super().__init__()
        self.tasks: list[CompactionTask] = []

    def run(self, tasks: Sequence[CompactionTask], on_rows: OnRows) -> Iterator[TaskResult]:
        self.tasks.extend(tasks)
        return super().run(tasks, on_rows)


def test_an_attempt_that_outlives_its_run_leaves_nothing(tmp_path: Path) -> None:
    base = writable(V9, tmp_path)
    late = Late()
    result = HoodieTable.open(base).compact(late, options=QUICK)
    files = TableFiles.open(base)

    def remove_markers(rows: int) -> None:
        shutil.rmtree(base / make_marker_folder(str(result.instant)), ignore_errors=True)

    with pytest.raises(ConflictError, match="finished or taken back"):
        late.tasks[0].run(remove_markers)
    assert orphans(base) == []
    assert files.exists("p0")


@pytest.mark.parametrize("name", VERSIONS)
def test_an_attempt_that_begins_after_the_commit_leaves_nothing(name: str, tmp_path: Path) -> None:
    base = writable(name, tmp_path)
    late = Late()
    HoodieTable.open(base).compact(late, options=QUICK)
    for task in late.tasks:
        with pytest.raises(ConflictError, match="finished or taken back"):
            task.run()
    assert (orphans(base), leftovers(base)) == ([], [])


def test_an_attempt_that_publishes_while_the_commit_is_made_leaves_nothing(tmp_path: Path) -> None:
    base = writable(V9, tmp_path)
    late = Late()

    def another(files: object, instant: str, groups: object, keep: object = (), check: object = None) -> int:
        count = remove_files(files, instant, groups, keep, check)  # type: ignore[arg-type]
        if keep:
            late.tasks[0].run()
        return count

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(planned_service, "remove_files", another)
        HoodieTable.open(base).compact(late, options=QUICK)
    assert len(late.tasks) > 0
    assert (orphans(base), leftovers(base)) == ([], [])


# Others -------------------------------------------------------------------------------------------------------------


def interfere(base: Path, act: Callable[[str, list[TaskResult]], None]) -> ConflictError:
    """Run a compaction while somebody does something to the table; return the conflict it ends in."""
    before = rows(HoodieTable.open(base))
    instant = str(HoodieTable.open(base).schedule_compaction(options=QUICK))
    with pytest.raises(ConflictError) as caught:
        HoodieTable.open(base).run_compaction(instant, Interrupted(lambda results: act(instant, results)), QUICK)
    assert rows(HoodieTable.open(base)) == before
    assert orphans(base) == []
    return caught.value


@pytest.mark.parametrize("name", VERSIONS)
def test_somebody_takes_it_back(name: str, tmp_path: Path) -> None:
    base = writable(name, tmp_path)
    folder = base / HoodieTable.open(base).config.find_timeline_folder()
    conflict = interfere(base, lambda instant, _: (folder / f"{instant}.compaction.inflight").unlink())
    assert "it is requested" in str(conflict)
    assert HoodieTable.open(base).run_compaction(options=QUICK).instant is not None


def test_somebody_removes_the_plan(tmp_path: Path) -> None:
    base = writable(V9, tmp_path)

    def remove(instant: str, _: list[TaskResult]) -> None:
        for path in (base / ".hoodie/timeline").glob(f"{instant}.*"):
            path.unlink()

    assert "it is gone" in str(interfere(base, remove))
    assert not list(base.rglob("*_0-*2026*.parquet.tmp"))


def test_somebody_completes_it(tmp_path: Path) -> None:
    base = writable("basic_mor_v6_part", tmp_path)
    instant = str(HoodieTable.open(base).schedule_compaction(options=QUICK))
    other = base.with_name("other")
    shutil.copytree(base, other)
    HoodieTable.open(other).run_compaction(instant, options=QUICK)

    def complete(_: list[TaskResult]) -> None:
        shutil.copytree(other, base, dirs_exist_ok=True)

    before = rows(HoodieTable.open(base))
    with pytest.raises(ConflictError, match="it is completed"):
        HoodieTable.open(base).run_compaction(instant, Interrupted(complete), QUICK)
    assert rows(HoodieTable.open(base), "read_optimized") == before
    assert orphans(base) == []


def test_somebody_removes_a_file(tmp_path: Path) -> None:
    base = writable(V9, tmp_path)
    conflict = interfere(base, lambda _, results: (base / results[0].path).unlink())
    assert "removed or changed" in str(conflict)


def test_a_second_run_is_turned_away(tmp_path: Path) -> None:
    base = writable(V9, tmp_path)
    instant = str(HoodieTable.open(base).schedule_compaction(options=QUICK))
    errors: list[HoodieError] = []

    def second(_: list[TaskResult]) -> None:
        for act in (
            lambda: HoodieTable.open(base).run_compaction(instant, options=QUICK),
            lambda: HoodieTable.open(base).rollback(instant, options=QUICK),
        ):
            with pytest.raises(ConflictError) as caught:
                act()
            errors.append(caught.value)

    result = HoodieTable.open(base).run_compaction(instant, Interrupted(second), QUICK)
    assert result.instant == instant
    assert len(errors) == 2


class Lockable:
    """A user's own lock, which gets lost when told."""

    renew_every = None

    def __init__(self) -> None:
        self.lost = False

    def acquire(self, timeout: float) -> None:
        """Take it."""

    def renew(self) -> None:
        """Confirm it."""
        if self.lost:
            raise ConflictError("lost")

    def release(self) -> None:
        """Give it back."""


def test_a_lost_lock_commits_nothing(tmp_path: Path) -> None:
    base = writable(V9, tmp_path)
    before = rows(HoodieTable.open(base))
    lock = Lockable()
    instant = str(HoodieTable.open(base).schedule_compaction(options=QUICK, lock=lock))

    def lose(_: list[TaskResult]) -> None:
        lock.lost = True

    with pytest.raises(ConflictError, match="lock was lost"):
        HoodieTable.open(base).run_compaction(instant, Interrupted(lose), QUICK, lock=lock)
    assert completed(HoodieTable.open(base), "commit") == []
    assert rows(HoodieTable.open(base)) == before
    assert HoodieTable.open(base).run_compaction(instant, options=QUICK).instant == instant


def test_a_lost_lock_saves_no_plan(tmp_path: Path) -> None:
    base = writable(V9, tmp_path)
    lock = Lockable()
    lock.lost = True
    with pytest.raises(ConflictError, match="lock was lost"):
        HoodieTable.open(base).schedule_compaction(options=QUICK, lock=lock)
    assert len(HoodieTable.open(base).timeline.select_pending_compactions()) == 0


def test_beside_other_writers_a_heartbeat_is_kept(tmp_path: Path) -> None:
    base = writable(V9, tmp_path)
    instant = str(HoodieTable.open(base).schedule_compaction(options=QUICK))
    seen: list[bool] = []
    heartbeat = base / ".hoodie/.heartbeat" / instant
    runner = Interrupted(lambda _: seen.append(heartbeat.exists()))
    HoodieTable.open(base).run_compaction(instant, runner, QUICK, lock=Lockable())
    assert seen == [True]
    assert not heartbeat.exists()


def test_a_stopped_heartbeat_commits_nothing(tmp_path: Path) -> None:
    base = writable(V9, tmp_path)
    instant = str(HoodieTable.open(base).schedule_compaction(options=QUICK))
    runner = Interrupted(lambda _: (base / ".hoodie/.heartbeat" / instant).unlink())
    with pytest.raises(ConflictError, match="heartbeat stopped"):
        HoodieTable.open(base).run_compaction(instant, runner, QUICK, lock=Lockable())
    assert completed(HoodieTable.open(base), "commit") == []


# The store ----------------------------------------------------------------------------------------------------------


def traced(base: Path, instant: str) -> list[str]:
    plan = Plan(watched=("put_if_absent",))
    copy = base.with_name("traced")
    shutil.copytree(base, copy)
    opened(FaultyFiles(TableFiles.open(copy), plan)).run_compaction(instant, LocalRunner(1), QUICK)
    return plan.trace


@pytest.mark.parametrize("name", VERSIONS)
def test_an_unknown_outcome_cleans_nothing_up(name: str, tmp_path: Path) -> None:
    base = writable(name, tmp_path)
    before = rows(HoodieTable.open(base))
    instant = str(HoodieTable.open(base).schedule_compaction(options=QUICK))
    at = len(traced(base, instant)) - 1
    plan = Plan(at=at, fault="lose answer", watched=("put_if_absent",))
    with pytest.raises(CommitStateUnknownError):
        opened(FaultyFiles(TableFiles.open(base), plan)).run_compaction(instant, LocalRunner(1), QUICK)
    now = HoodieTable.open(base)
    assert completed(now, "commit") == [instant]
    assert rows(now) == rows(now, "read_optimized") == before


def test_a_full_disk_takes_everything_back(tmp_path: Path) -> None:
    base = writable(V9, tmp_path)
    instant = str(HoodieTable.open(base).schedule_compaction(options=QUICK))
    files = sorted(path for path in base.rglob("*") if path.is_file())
    for at, call in enumerate(traced(base, instant)):
        plan = Plan(at=at, fault="refuse", watched=("put_if_absent",))
        with pytest.raises(StorageError, match="no space left"):
            opened(FaultyFiles(TableFiles.open(base), plan)).run_compaction(instant, LocalRunner(1), QUICK)
        assert sorted(path for path in base.rglob("*") if path.is_file()) == files, call


def test_a_killed_run_is_run_again(tmp_path: Path) -> None:
    base = writable(V9, tmp_path)
    before = rows(HoodieTable.open(base))
    instant = str(HoodieTable.open(base).schedule_compaction(options=QUICK))
    at = len(traced(base, instant)) - 1
    plan = Plan(at=at, fault="kill before", watched=("put_if_absent",))
    with pytest.raises(Killed):
        opened(FaultyFiles(TableFiles.open(base), plan)).run_compaction(instant, LocalRunner(1), QUICK)
    assert rows(HoodieTable.open(base)) == before
    lost = {path.name for path in base.rglob(f"*_{instant}.parquet")}
    assert lost
    assert HoodieTable.open(base).run_compaction(instant, options=QUICK).instant == instant
    kept = {path.name for path in base.rglob(f"*_{instant}.parquet")}
    assert not lost & kept
    assert all(parse_base_file_name(name) for name in kept)
    assert rows(HoodieTable.open(base), "read_optimized") == before
    assert (orphans(base), leftovers(base)) == ([], [])
