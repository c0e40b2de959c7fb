from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import (
    CommitStateUnknownError,
    ConflictError,
    CorruptFileError,
    HoodieError,
    InvalidQueryError,
    InvalidTableError,
)
from hoodie_py.files import TableFiles
from hoodie_py.formats.timeline.plans import CleanMetadata, CleanPlan
from hoodie_py.formats.timeline.writers import write_clean_plan
from hoodie_py.table.snapshot import open_snapshot
from hoodie_py.table.timeline.time_travel import check_travel
from hoodie_py.writer.lock.lock import NoLock
from hoodie_py.writer.services.clean import CleanResult, clean
from hoodie_py.writer.timeline.session import WriteSession
from hoodie_storage import Store
from hoodie_storage.retry import RetryPolicy
from tests.writer.clean_tables import Names, at

QUICK = {"hoodie.time.generator.max_expected_clock_skew_ms": "1"}


@pytest.fixture(params=[9, 6])
def names(tmp_path: Path, request: pytest.FixtureRequest) -> Names:
    """Two groups in two partitions, each with three slices; cleaning with one commit retained removes four slices."""
    made = Names(tmp_path / "t", request.param)
    for number in (1, 3, 5):
        for partition in ("p", "p1"):
            made.base(f"{partition}-0", number, partition)
            made.log(f"{partition}-0", number + 1 if request.param == 9 else number, partition)
        made.done(number, "commit")
        made.done(number + 1)
    return made


def newest(names: Names) -> set[str]:
    number = 6 if names.version == 9 else 5
    return {
        path
        for group in ("p", "p1")
        for path in (f"{group}/{group}-0_0-0-0_{at(5)}.parquet", f"{group}/.{group}-0_{at(number)}.log.1_0-0-0")
    }


def last_clean(names: Names) -> CleanMetadata:
    done = names.snapshot().timeline.select_completed().select_actions("clean").last
    assert done is not None
    layout = 2 if names.version == 9 else 1
    return CleanMetadata.from_bytes((names.timeline / done.file_name(layout)).read_bytes())


def run(names: Names, retain_commits: int | None = 1, **options: str) -> CleanResult:
    return HoodieTable.open(names.root).clean(retain_commits, {**QUICK, **options})


def test_old_slices_go(names: Names) -> None:
    (names.root / "p" / f".p-0_0-0-0_{at(1)}.parquet.crc").write_bytes(b"of Hadoop")
    result = run(names)
    assert (result.files_deleted, result.partitions, result.earliest) == (8, 2, at(6))
    assert names.files() == newest(names)
    assert names.instants() == [("clean", "completed")]
    metadata = last_clean(names)
    assert metadata.start_clean_time == result.instant
    assert metadata.earliest_commit_to_retain == at(6)
    assert metadata.last_completed_commit_timestamp == at(6)
    assert metadata.total_files_deleted == 8
    assert {partition: each.policy for partition, each in metadata.partitions.items()} == {
        "p": "KEEP_LATEST_COMMITS", "p1": "KEEP_LATEST_COMMITS",
    }  # fmt: skip
    assert "removed 8 files from 2 partitions" in str(result)
    requested = CleanPlan.from_bytes((names.timeline / f"{result.instant}.clean.requested").read_bytes())
    assert {partition: set(each.deleted_files) for partition, each in metadata.partitions.items()} == {
        partition: set(files) for partition, files in requested.files.items()
    }
    again = run(names)
    assert (again.instant, str(again)) == (None, "There was nothing to clean.")
    assert names.instants() == [("clean", "completed")]


def test_the_plan_names_files_as_java_opens_them(names: Names) -> None:
    from hoodie_py.formats.avro.container import read_single

    result = run(names)
    record: Any = read_single((names.timeline / f"{result.instant}.clean.requested").read_bytes(), "HoodieCleanerPlan")
    paths = [each["filePath"] for each in record["filePathsToBeDeletedPerPartition"]["p"]]
    assert all(path.startswith(f"file:{os.path.realpath(names.root)}/p/") for path in paths)


def test_a_dry_run_writes_nothing(names: Names) -> None:
    before = sorted(names.root.rglob("*"))
    report = HoodieTable.open(names.root).clean(1, dry_run=True)
    assert len(report.removed) == 4
    assert sorted(names.root.rglob("*")) == before


def test_options_say_how(names: Names) -> None:
    result = run(
        names, None, **{"hoodie.clean.policy": "keep_latest_file_versions", "hoodie.clean.fileversions.retained": "2"}
    )
    assert (result.files_deleted, result.earliest) == (4, None)
    assert run(names, None).instant is None


def pend(names: Names, plan: CleanPlan | None, state: str) -> None:
    content = b"" if plan is None else write_clean_plan(plan, f"file:{names.root}")
    names.pending(7, "clean", "requested", content)
    if state == "inflight":
        names.pending(7, "clean", "inflight")


def test_what_a_clean_under_way_removes_cannot_be_asked_for(names: Names) -> None:
    keeps = CleanPlan(at(5), "KEEP_LATEST_COMMITS", {"p": (f"p-0_0-0-0_{at(1)}.parquet",)}, earliest_action="commit")
    pend(names, keeps, "requested")
    check_travel(names.snapshot().timeline, at(3))
    names.pending(7, "clean", "inflight")
    with pytest.raises(InvalidQueryError, match=f"kept from {at(5)} on"):
        check_travel(names.snapshot().timeline, at(3))
    check_travel(names.snapshot().timeline, at(5))


@pytest.mark.parametrize("state", ["requested", "inflight"])
def test_a_pending_clean_is_finished_first(names: Names, state: str) -> None:
    gone = f"p-0_0-0-0_{at(1)}.parquet"
    plan = CleanPlan(
        at(2), "KEEP_LATEST_COMMITS", {"p": (gone, "already_0-0-0_gone.parquet")}, (), "deltacommit", at(6)
    )
    pend(names, plan, state)
    result = run(names, 10)
    assert result.instants == (at(7),)
    assert not (names.root / "p" / gone).exists()
    assert names.files() >= newest(names)
    assert last_clean(names).earliest_commit_to_retain == at(2)
    assert run(names, 1).files_deleted == 7
    assert names.instants() == [("clean", "completed")] * 2


@pytest.mark.parametrize("state", ["requested", "inflight"])
def test_a_pending_clean_without_a_plan_is_discarded(names: Names, state: str) -> None:
    pend(names, None, state)
    assert run(names, 10).instants == ()
    assert names.instants() == []


def test_a_pending_clean_that_removes_what_is_needed_is_refused(names: Names) -> None:
    before = names.files()
    for name in (Path(path).name for path in newest(names) if path.startswith("p/")):
        plan = CleanPlan(at(6), "KEEP_LATEST_COMMITS", {"p": (name,)}, (), "deltacommit", at(6))
        pend(names, plan, "requested")
        with pytest.raises(InvalidTableError, match="needed"):
            run(names)
    assert names.files() == before
    names.pending(7, "clean", "requested", b"rubbish")
    with pytest.raises(CorruptFileError):
        run(names)
    assert names.files() == before


@pytest.mark.parametrize(
    ("partition", "name"),
    [
        (".hoodie", "hoodie.properties"),
        (".hoodie/timeline", f"{at(1)}.commit"),
        ("p/.Hoodie", f"p-0_0-0-0_{at(1)}.parquet"),
        (".hoodie\\metadata", f"p-0_0-0-0_{at(1)}.parquet"),
        ("p", ".hoodie_partition_metadata"),
        ("p", ".hoodie_partition_metadata.parquet"),
        ("p", ".hoodie"),
    ],
)
def test_a_pending_clean_removes_data_files_only(names: Names, partition: str, name: str) -> None:
    def everything() -> set[str]:
        return {str(path) for path in names.root.rglob("*") if path.is_file()}

    pend(names, CleanPlan(at(6), "KEEP_LATEST_COMMITS", {partition: (name,)}, (), "deltacommit", at(6)), "requested")
    before = everything()
    with pytest.raises(InvalidTableError, match=r"Hudi's own files|no data file"):
        run(names)
    assert everything() == before


# Cut short ------------------------------------------------------------------------------------------------------------


class Cut(OSError):
    """What the store says when it fails."""


class CutBackend:
    """Fails at one call, before it is made or after; counts calls."""

    def __init__(self, inner: Any, number: int, moment: str) -> None:
        self._inner = inner
        self._number = number
        self._moment = moment
        self._guard = threading.Lock()
        self.parallel = 1
        self.calls = 0

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        call = getattr(self._inner, verb)
        if verb == "inside":
            return call  # type: ignore[no-any-return]

        def counted(*args: Any) -> Any:
            with self._guard:
                self.calls += 1
                number = self.calls
            if number == self._number and self._moment == "before":
                raise Cut("cut short")
            answer = call(*args)
            if number == self._number:
                raise Cut("cut short") if self._moment == "after" else TimeoutError("no answer")
            return answer

        return counted


def cut_files(root: Path, number: int, moment: str) -> tuple[TableFiles, CutBackend]:
    store = TableFiles.open(root)._store
    backend, place = store._open_backend()
    cut = CutBackend(backend, number, moment)
    copy = Store(store._location, store._options, "", RetryPolicy(attempts=1))
    copy._opened = (os.getpid(), cut, place)  # type: ignore[assignment]
    return TableFiles(copy), cut


def run_cut(root: Path, number: int, moment: str) -> tuple[HoodieError | None, int]:
    files, backend = cut_files(root, number, moment)
    try:
        clean(WriteSession.open(open_snapshot(files), options=QUICK, lock=NoLock()), 1)
    except HoodieError as error:
        return error, backend.calls
    return None, backend.calls


@pytest.mark.filterwarnings("ignore:A heartbeat was not removed")
@pytest.mark.parametrize("moment", ["before", "after", "lost"])
def test_cut_short_at_every_call(names: Names, tmp_path: Path, moment: str) -> None:
    number, failed = 0, 0
    while True:
        number += 1
        root = tmp_path / "copy"
        shutil.copytree(names.root, root)
        error, calls = run_cut(root, number, moment)
        if number > calls:
            assert error is None
            break
        failed += error is not None
        copy = Names.__new__(Names)
        copy.root, copy.version = root, names.version
        copy.timeline = root / names.timeline.relative_to(names.root)
        assert copy.files() >= newest(names)
        result = run(copy)
        assert copy.files() == newest(names), number
        assert copy.instants() == [("clean", "completed")], number
        assert len(result.instants) <= 1
        shutil.rmtree(root)
    assert failed > 10


def test_nothing_is_taken_back_when_the_answer_is_lost(names: Names, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(self: TableFiles, path: str, data: bytes, *, unique: bool = False) -> None:
        if path.endswith(".clean"):
            raise CommitStateUnknownError("no answer")
        original(self, path, data, unique=unique)

    original = TableFiles.put_if_absent
    monkeypatch.setattr(TableFiles, "put_if_absent", lost)
    with pytest.raises(CommitStateUnknownError):
        run(names)
    assert names.instants() == [("clean", "inflight")]
    monkeypatch.undo()
    assert len(run(names).instants) == 1
    assert names.instants() == [("clean", "completed")]


def test_two_cleaners(names: Names) -> None:
    def one(_: int) -> int:
        try:
            return run(names).files_deleted
        except ConflictError:
            return 0

    with ThreadPoolExecutor(4) as pool:
        removed = list(pool.map(one, range(4)))
    assert sum(removed) >= 8
    assert names.files() == newest(names)
    assert set(names.instants()) == {
        ("clean", "completed")
    }  # one that looked in between may have planned the rest anew


def test_a_cleaner_beside_a_compactor(corpus_copy: Callable[[str], Path]) -> None:
    root = corpus_copy("compaction_pending_mor_v9")
    before = HoodieTable.open(root).scan().to_arrow().drop_columns(["_hoodie_file_name"]).sort_by("_hoodie_record_key")
    by_versions = {
        **QUICK,
        "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS",
        "hoodie.clean.fileversions.retained": "1",
    }

    def at_once(step: Callable[[HoodieTable], object]) -> bool:
        try:
            step(HoodieTable.open(root))
        except ConflictError:
            return False
        return True

    steps = [
        lambda table: table.run_compaction(options=QUICK),
        lambda table: table.clean(options=by_versions),
        lambda table: table.clean(options=by_versions),
    ]
    with ThreadPoolExecutor(3) as pool:
        assert any(pool.map(at_once, steps))
    for step in (lambda table: table.compact(options=QUICK), lambda table: table.clean(options=by_versions)):
        step(HoodieTable.open(root))
        after = HoodieTable.open(root).scan().to_arrow().drop_columns(["_hoodie_file_name"])
        assert after.sort_by("_hoodie_record_key").equals(before)
    assert all(len(each.log_files) == 0 for each in HoodieTable.open(root).file_slices())
