"""What holds of every service that saves plans; each makes a table where it is due."""

from __future__ import annotations

import pickle
import random
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

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
from hoodie_py.formats.timeline.instants import ROLLBACK, Instant
from hoodie_py.formats.timeline.plans import RollbackMetadata, RollbackPlan, RolledBackInstant
from hoodie_py.formats.timeline.writers import write_rollback_metadata, write_rollback_plan
from hoodie_py.writer.clustering.cluster import Clustering
from hoodie_py.writer.lock.lock import Lock
from hoodie_py.writer.pipeline.local_engine import LocalEngine
from hoodie_py.writer.services.clean import Clean
from hoodie_py.writer.services.compaction import Compaction
from hoodie_py.writer.services.log_compaction import LogCompaction
from hoodie_py.writer.services.planned_service import AnyService
from hoodie_py.writer.timeline.session import WriteSession
from tests.writer.compaction_tables import QUICK, copied, leftovers, missing, opened, orphans, rows
from tests.writer.faulty_files import WRITES, FaultyFiles, Killed, Plan
from tests.writer.services.engines import Forgetful, Late, Losable, Repeated
from tests.writer.written_tables import Kind, row

FAULTS = ("kill before", "kill after", "refuse", "lose answer")
STRIDE = 6  # every so manyth writing call of a run is cut short, others with each fault and version
VERSIONS = (6, 8, 9)
SMALL_TASK = 64 * 1024
KEYS = range(8)
STRATEGY = "hoodie.clustering.plan.strategy"
NEW_FILES = {**QUICK, "hoodie.parquet.small.file.limit": "0"}


@pytest.mark.filterwarnings("ignore:The [a-z ]+ is complete, its markers", "ignore:A heartbeat was not removed")
class PlannedServiceTests(ABC):
    """The tests. Each has a table with some rows at which the service is due; no row may change."""

    service: ClassVar[AnyService]
    options: ClassVar[Mapping[str, str]]

    @abstractmethod
    def make(self, base: Path, version: int) -> HoodieTable:
        """Make a table at which the service has something to do."""

    def rows(self, base: Path) -> Any:
        """Return the rows of a table, with what of them a run does not change."""
        return rows(HoodieTable.open(base))

    # What the tests use

    @pytest.fixture(params=VERSIONS, ids=lambda version: f"v{version}")
    def base(self, request: pytest.FixtureRequest, tmp_path: Path) -> Path:
        base = tmp_path / "t"
        self.make(base, request.param)
        return base

    def open_session(self, base: Path, plan: Plan | None = None, lock: Lock | None = None) -> WriteSession:
        files = TableFiles.open(base)
        table = opened(files if plan is None else FaultyFiles(files, plan))
        return table._open_session(dict(self.options), lock)

    def schedule(self, base: Path) -> str:
        instant = self.service.schedule(self.open_session(base))
        assert instant is not None
        return instant

    def run(self, base: Path, instant: str | None = None, **how: Any) -> Any:
        return self.service.run(self.open_session(base), instant, **how)

    def list_pending(self, base: Path) -> list[Instant]:
        return list(self.service.list_pending(HoodieTable.open(base)._snapshot))

    def meddling(self, act: Callable[[], object], step: str = "run_tasks") -> AnyService:
        """Return the service, in whose runs something happens right after a step: when all tasks are done."""
        kind = type(self.service)
        plain = getattr(kind, step)

        def changed(service: AnyService, *args: Any) -> Any:
            answer = plain(service, *args)
            act()
            return answer

        meddled: AnyService = type("Meddling", (kind,), {step: changed})()
        return meddled

    def check_whole(self, base: Path, before: Any) -> None:
        """Check that the rows are those before, and that nothing is left over."""
        assert self.rows(base) == before
        self.check_files(base)
        assert leftovers(base) == []

    def check_files(self, base: Path) -> None:
        """Check that each file has its commit, and each commit its files, unless they were to be removed."""
        assert orphans(base) == []
        if self.service.writes_files:
            assert missing(base) == []

    def interfere(self, base: Path, act: Callable[[str], object]) -> str:
        """Run a plan while somebody does something, and return what the conflict says."""
        before, instant = self.rows(base), self.schedule(base)
        with pytest.raises(ConflictError) as caught:
            self.meddling(lambda: act(instant)).run(self.open_session(base), instant)
        assert self.rows(base) == before
        assert orphans(base) == []
        return str(caught.value)

    def data_files(self, base: Path) -> set[Path]:
        return {path for path in base.rglob("*") if path.is_file() and ".hoodie" not in path.parts}

    def timeline_files(self, base: Path, instant: str) -> list[Path]:
        config = HoodieTable.open(base).config
        return sorted((base / config.find_timeline_folder()).glob(f"{instant}*"))

    # A run

    def test_a_plan_is_saved_and_carried_out(self, base: Path) -> None:
        before, instant = self.rows(base), self.schedule(base)
        assert [(each.request_time, each.state) for each in self.list_pending(base)] == [(instant, "requested")]
        assert self.run(base).instant == instant
        done = HoodieTable.open(base).timeline.find(instant)
        assert done is not None
        assert done.is_completed
        self.check_whole(base, before)
        assert self.service.schedule(self.open_session(base)) is None
        assert self.run(base).instant is None

    def test_a_plan_of_others_is_finished(self, base: Path) -> None:
        before, instant = self.rows(base), self.schedule(base)
        assert self.service.finish(self.open_session(base), instant).instant == instant
        with pytest.raises(ConflictError, match="finished the"):
            self.service.finish(self.open_session(base), instant)
        self.check_whole(base, before)

    def test_an_instant_that_is_no_pending_plan(self, base: Path) -> None:
        first = HoodieTable.open(base).timeline.instants[0]
        with pytest.raises(InvalidQueryError, match=f"There is no {self.service.name}"):
            self.run(base, "20990101000000000")
        with pytest.raises(InvalidQueryError, match=f"A {first.action} is completed, no pending plan"):
            self.run(base, first.request_time)

    def test_an_engine_that_is_none(self, base: Path) -> None:
        instant = self.schedule(base)
        with pytest.raises(UnsupportedFeatureError, match="engine of type object"):
            self.run(base, instant, runner=object())

    # The engine

    def needs_tasks(self) -> None:
        if not self.service.writes_files:
            pytest.skip("It has no tasks.")

    def test_only_one_attempt_of_each_task_is_committed(self, base: Path) -> None:
        self.needs_tasks()
        before = self.rows(base)
        instant = self.schedule(base)
        assert self.run(base, instant, runner=Repeated()).instant == instant
        self.check_whole(base, before)

    def test_a_task_that_the_engine_did_not_run(self, base: Path) -> None:
        self.needs_tasks()
        instant = self.schedule(base)
        with pytest.raises(ConflictError, match="did not run every task"):
            self.run(base, instant, runner=Forgetful())
        assert [each.state for each in self.list_pending(base)] == ["requested"]

    def test_tasks_are_small_and_late_attempts_leave_nothing(self, base: Path) -> None:
        self.needs_tasks()
        before, late, instant = self.rows(base), Late(), self.schedule(base)
        self.run(base, instant, runner=late)
        assert 0 < max(len(pickle.dumps(task)) for task in late.tasks) < SMALL_TASK
        assert len({task.key for task in late.tasks}) == len(late.tasks)
        for task in late.tasks:
            with pytest.raises(ConflictError, match="finished or taken back"):
                task.run()
        self.check_whole(base, before)

    # Others

    def test_a_second_run_and_a_rollback_are_turned_away(self, base: Path) -> None:
        before, instant = self.rows(base), self.schedule(base)
        seen: list[str] = []

        def second() -> None:
            acts: list[Callable[[], object]] = [lambda: self.run(base, instant)]
            if self.service.writes_files:
                acts.append(lambda: HoodieTable.open(base).rollback(instant, dict(self.options)))
            for act in acts:
                with pytest.raises(ConflictError) as caught:
                    act()
                seen.append(str(caught.value))

        assert self.meddling(second).run(self.open_session(base), instant).instant == instant
        assert seen
        self.check_whole(base, before)

    def test_somebody_takes_it_back(self, base: Path) -> None:
        def remove(instant: str) -> None:
            for path in self.timeline_files(base, instant):
                if not path.name.endswith(".requested"):
                    path.unlink()

        said = self.interfere(base, remove)
        assert "it is requested" in said or "took the clean back" in said
        assert self.run(base).instant is not None

    def test_somebody_removes_the_plan(self, base: Path) -> None:
        def remove(instant: str) -> None:
            for path in self.timeline_files(base, instant):
                path.unlink()

        said = self.interfere(base, remove)
        assert "it is gone" in said or "took it back" in said

    def test_somebody_completes_it(self, base: Path, tmp_path: Path) -> None:
        before, instant = self.rows(base), self.schedule(base)
        other = copied(base, tmp_path / "other")
        self.run(other, instant)
        act = self.meddling(lambda: shutil.copytree(other, base, dirs_exist_ok=True))
        with pytest.raises(ConflictError, match=r"it is completed|finished the clean"):
            act.run(self.open_session(base), instant)
        assert self.rows(base) == before
        self.check_files(base)

    def test_somebody_rolls_it_back_and_begins_anew(self, base: Path) -> None:
        self.needs_tasks()  # a clean is never rolled back

        def roll_back(instant: str) -> None:
            session = self.open_session(base)
            now = session.look()
            timeline, uri = session.open_timeline(now), session.files.java_uri
            time = session.clock.take(now.timeline.newest_time)
            plan = write_rollback_plan(RollbackPlan(RolledBackInstant("commit", instant)), uri)
            inflight = timeline.begin(timeline.request(time, ROLLBACK, plan))
            done = RollbackMetadata(start_rollback_time=time, commits_rolled_back=(instant,))
            timeline.complete(inflight, session.clock.take(time), write_rollback_metadata(done, uri))

        assert f"rolled the {self.service.name} back" in self.interfere(base, roll_back)

    def test_somebody_changes_the_plan(self, base: Path, tmp_path: Path) -> None:
        self.needs_tasks()  # a clean goes on with what it has begun
        other = copied(base, tmp_path / "other")
        [elsewhere] = self.timeline_files(other, self.schedule(other))  # the same, but for the id of the plan

        def change(instant: str) -> None:
            [path] = [each for each in self.timeline_files(base, instant) if each.name.endswith(".requested")]
            path.write_bytes(elsewhere.read_bytes())

        assert f"changed the {self.service.name}'s plan" in self.interfere(base, change)

    def test_somebody_removes_a_new_file(self, base: Path) -> None:
        self.needs_tasks()
        known = self.data_files(base)

        def remove(instant: str) -> None:
            min(self.data_files(base) - known).unlink()

        assert "removed or changed" in self.interfere(base, remove)

    def test_a_file_that_an_earlier_run_s_engine_writes_late_goes(self, base: Path) -> None:
        self.needs_tasks()
        before, instant, late = self.rows(base), self.schedule(base), Late()
        written: list[str] = []

        def die() -> None:
            raise Killed

        def write() -> None:
            _, results = self.service.split(late.tasks[0].run())
            written.extend(each.path for each in results)
            assert all((base / path).exists() for path in written)

        with pytest.raises(Killed):
            self.meddling(die).run(self.open_session(base), instant, runner=late)
        assert self.meddling(write).run(self.open_session(base), instant).instant == instant
        assert written
        assert not any((base / path).exists() for path in written)
        self.check_whole(base, before)

    def test_an_attempt_that_publishes_while_the_commit_is_made_leaves_nothing(self, base: Path) -> None:
        self.needs_tasks()
        before, instant, late = self.rows(base), self.schedule(base), Late()
        written: list[str] = []

        def write() -> None:
            _, results = self.service.split(late.tasks[0].run())
            written.extend(each.path for each in results)

        self.meddling(write, "settle").run(self.open_session(base), instant, runner=late)
        assert written
        assert not any((base / path).exists() for path in written)
        self.check_whole(base, before)

    # Lock and heartbeat

    def test_a_lost_lock_saves_no_plan(self, base: Path) -> None:
        lock = Losable()
        lock.lost = True
        with pytest.raises(ConflictError, match="lock was lost"):
            self.service.schedule(self.open_session(base, lock=lock))
        assert self.list_pending(base) == []

    def test_a_lost_lock_completes_nothing(self, base: Path) -> None:
        before, lock, instant = self.rows(base), Losable(), self.schedule(base)

        def lose() -> None:
            lock.lost = True

        with pytest.raises(ConflictError, match="lock was lost"):
            self.meddling(lose).run(self.open_session(base, lock=lock), instant)
        assert [each.request_time for each in self.list_pending(base)] == [instant]
        assert self.rows(base) == before
        assert self.run(base).instant == instant

    def test_a_heartbeat_is_kept(self, base: Path) -> None:
        instant = self.schedule(base)
        beats, seen = base / ".hoodie/.heartbeat" / instant, []
        self.meddling(lambda: seen.append(beats.exists())).run(self.open_session(base), instant)
        assert (seen, beats.exists()) == ([True], False)

    def test_a_stopped_heartbeat_completes_nothing(self, base: Path) -> None:
        before, instant = self.rows(base), self.schedule(base)
        beats = base / ".hoodie/.heartbeat" / instant
        with pytest.raises(ConflictError, match="heartbeat stopped"):
            self.meddling(beats.unlink).run(self.open_session(base, lock=Losable()), instant)
        assert [each.request_time for each in self.list_pending(base)] == [instant]
        assert self.rows(base) == before

    # Failures

    def test_a_failed_run_is_put_back_and_the_next_one_works(self, base: Path) -> None:
        before, instant = self.rows(base), self.schedule(base)
        files = {path for path in base.rglob("*") if path.is_file()}

        def fail() -> None:
            raise RuntimeError("stopped")

        with pytest.raises(RuntimeError, match="stopped"):
            self.meddling(fail).run(self.open_session(base), instant)
        [pending] = self.list_pending(base)
        if self.service.writes_files:
            assert pending.state == "requested"
            assert {path for path in base.rglob("*") if path.is_file()} - files == set(self.heartbeats(base))
        else:
            assert pending.state == "inflight"
        assert self.rows(base) == before
        assert self.run(base).instant == instant
        self.check_whole(base, before)

    def heartbeats(self, base: Path) -> list[Path]:
        return [path for path in base.glob(".hoodie/.heartbeat/*") if path.is_file()]

    def trace(self, base: Path, instant: str, into: Path, watched: tuple[str, ...]) -> list[str]:
        plan = Plan(watched=watched)
        self.service.run(self.open_session(copied(base, into), plan), instant, runner=LocalEngine(1))
        return plan.trace

    @pytest.mark.parametrize("fault", FAULTS)
    def test_cut_short_at_a_step(self, base: Path, fault: str, tmp_path: Path) -> None:
        before, instant = self.rows(base), self.schedule(base)
        calls = self.trace(base, instant, tmp_path / "traced", WRITES)
        chosen = {*range(random.randrange(STRIDE), len(calls), STRIDE), len(calls) - 1}
        for at in sorted(chosen):
            copy = copied(base, tmp_path / "case")
            plan = Plan(at=at, fault=fault, watched=WRITES)
            with suppress(Killed, HoodieError):
                self.service.run(self.open_session(copy, plan), instant, runner=LocalEngine(1))
            assert plan.dead is fault.startswith("kill"), calls[at]
            assert self.rows(copy) == before, calls[at]
            found = HoodieTable.open(copy).timeline.find(instant)
            assert found is not None, calls[at]
            if not found.is_completed:
                assert self.run(copy).instant == instant, calls[at]
            assert self.rows(copy) == before, calls[at]
            assert self.service.schedule(self.open_session(copy)) is None  # it also forgets what the dead have left
            self.check_files(copy)

    def test_a_full_disk_takes_everything_back(self, base: Path, tmp_path: Path) -> None:
        self.needs_tasks()
        instant = self.schedule(base)
        calls = self.trace(base, instant, tmp_path / "traced", ("put_if_absent",))
        files = {path.relative_to(base) for path in base.rglob("*") if path.is_file()}
        for at in range(len(calls)):
            copy = copied(base, tmp_path / "case")
            plan = Plan(at=at, fault="refuse", watched=("put_if_absent",))
            with pytest.raises(StorageError, match="no space left"):
                self.service.run(self.open_session(copy, plan), instant, runner=LocalEngine(1))
            now = {path.relative_to(copy) for path in copy.rglob("*") if path.is_file()}
            assert now == files, calls[at]

    def test_a_run_after_a_killed_one_writes_other_files(self, base: Path, tmp_path: Path) -> None:
        self.needs_tasks()
        before, instant = self.rows(base), self.schedule(base)
        known = self.data_files(base)
        at = len(self.trace(base, instant, tmp_path / "traced", ("put_if_absent",))) - 1
        plan = Plan(at=at, fault="kill before", watched=("put_if_absent",))
        with pytest.raises(Killed):
            self.service.run(self.open_session(base, plan), instant, runner=LocalEngine(1))
        lost = self.data_files(base) - known
        assert lost
        assert self.rows(base) == before
        assert self.run(base).instant == instant
        assert lost.isdisjoint(self.data_files(base))
        self.check_whole(base, before)

    def test_an_unknown_outcome_takes_nothing_back(self, base: Path, tmp_path: Path) -> None:
        before, instant = self.rows(base), self.schedule(base)
        calls = self.trace(base, instant, tmp_path / "traced", ("put_if_absent",))
        plan = Plan(at=len(calls) - 1, fault="lose answer", watched=("put_if_absent",))
        with pytest.raises(CommitStateUnknownError):
            self.service.run(self.open_session(base, plan), instant, runner=LocalEngine(1))
        done = HoodieTable.open(base).timeline.find(instant)
        assert done is not None
        assert done.is_completed
        assert self.rows(base) == before
        self.check_files(base)


# The members ---------------------------------------------------------------------------------------------------------


class TestCompaction(PlannedServiceTests):
    service: ClassVar[AnyService] = Compaction()
    options: ClassVar[Mapping[str, str]] = QUICK

    def make(self, base: Path, version: int) -> HoodieTable:
        table = HoodieTable.open(Kind(version, merge_on_read=True).create(base))
        table.insert([row(number) for number in KEYS], QUICK)
        table.upsert([row(number, 2, "b") for number in range(0, 8, 3)], QUICK)
        table.delete([row(1)["id"]], QUICK)
        return table


class TestLogCompaction(PlannedServiceTests):
    service: ClassVar[AnyService] = LogCompaction()
    options: ClassVar[Mapping[str, str]] = {**NEW_FILES, "hoodie.log.compaction.blocks.threshold": "3"}

    def make(self, base: Path, version: int) -> HoodieTable:
        table = HoodieTable.open(Kind(version, merge_on_read=True).create(base))
        table.insert([row(number) for number in KEYS], NEW_FILES)
        for turn in range(3):
            table.upsert([row(number, turn + 2, f"t{turn}") for number in range(turn, 8)], NEW_FILES)
        return table

    def rows(self, base: Path) -> Any:
        """Rows get the time of the log compaction, of which their new block is."""
        found = HoodieTable.open(base).scan(["id", "part", "ts", "name"]).to_arrow()
        return found.sort_by("id").to_pylist()


class TestClustering(PlannedServiceTests):
    service: ClassVar[AnyService] = Clustering()
    options: ClassVar[Mapping[str, str]] = {
        **QUICK,
        f"{STRATEGY}.single.group.clustering.enabled": "false",
    }

    def make(self, base: Path, version: int) -> HoodieTable:
        table = HoodieTable.open(Kind(version, merge_on_read=True).create(base))
        for start in range(0, 20, 10):
            table.insert([row(start + number) for number in KEYS], NEW_FILES)
        table.upsert([row(number, 2, "b") for number in range(0, 8, 3)], NEW_FILES)
        return table


class TestClean(PlannedServiceTests):
    service: ClassVar[AnyService] = Clean()
    options: ClassVar[Mapping[str, str]] = {**QUICK, "hoodie.clean.commits.retained": "1"}

    def make(self, base: Path, version: int) -> HoodieTable:
        table = HoodieTable.open(Kind(version, merge_on_read=False).create(base))
        table.insert([row(number) for number in KEYS], QUICK)
        for turn in range(3):
            table.upsert([row(number, turn + 2, f"t{turn}") for number in KEYS], QUICK)
        return table
