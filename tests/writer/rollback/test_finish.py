"""Rollbacks that were begun and not finished, as Java leaves them: files, then the instant, then the rollback."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import ConflictError, CorruptFileError, InvalidTableError, StorageError, UnsupportedFeatureError
from hoodie_py.files import TableFiles
from hoodie_py.formats.timeline.instants import INFLIGHT, REQUESTED, ROLLBACK, Instant
from hoodie_py.formats.timeline.plans import RollbackMetadata, RollbackPlan, RolledBackInstant
from hoodie_py.formats.timeline.writers import write_rollback_plan
from hoodie_py.writer.rollback.finish import begin_rollback
from hoodie_py.writer.rollback.written_files import find_written_files
from tests.writer.compaction_tables import QUICK, opened
from tests.writer.faulty_files import WRITES, FaultyFiles, Killed, Plan
from tests.writer.written_tables import Kind, contents, data_files, put, records, row, session

KINDS = [Kind(version, mor) for version in (9, 8, 6) for mor in (True, False)]
STATES = ["requested", "completed", "whole", "half", "last"]
BEFORE = {"k1": (2, "b"), "k2": (1, "a")}


def made(base: Path, kind: Kind) -> Instant:
    """A table with rows, whose last commit is returned; what it wrote counts no more once it is rolled back."""
    kind.create(base)
    put(base, records([row(1), row(2)]))
    put(base, records([row(1, 2, "b")]))
    put(base, records([row(1, 3, "lost"), row(2, 3, "lost"), row(3, 3, "lost")]))
    return HoodieTable.open(base).timeline.instants[-1]


def pending(base: Path, last: Instant, state: str) -> Instant:
    """Begin to roll the last commit back, as Java does, and come as far as the state says; return the rollback."""
    doing = session(base)
    snapshot = doing.look()
    files = find_written_files(snapshot, last.request_time)
    rollback = begin_rollback(doing, snapshot, last, files)
    timeline = doing.open_timeline(snapshot)
    if state == "requested":
        timeline.remove(rollback)
        return replace(rollback, state=REQUESTED)
    if state != "completed":
        timeline.remove(last)
    paths = [base / partition / name for partition, names in files.items() for name in names]
    for path in {"half": paths[::2], "last": paths}.get(state, []):
        path.unlink()
    if state == "last":
        for each in (INFLIGHT, REQUESTED):
            timeline.remove(Instant(last.request_time, None, last.action, each))
    return rollback


def check(base: Path, last: Instant, rollback: Instant) -> None:
    """Nothing is left of the commit, and one completed rollback says so."""
    table = HoodieTable.open(base)
    assert table.timeline.find(last.request_time) is None
    assert [each.request_time for each in table.timeline.select_actions(ROLLBACK)] == [rollback.request_time]
    assert not [path for path in base.rglob("*") if last.request_time in path.name]
    recorded = table.timeline.select_actions(ROLLBACK).instants[0]
    assert recorded.is_completed
    path = base / table.config.find_timeline_folder() / recorded.file_name(table.config.timeline_layout)
    metadata = RollbackMetadata.from_bytes(path.read_bytes())
    assert metadata.commits_rolled_back == (last.request_time,)
    assert metadata.total_files_deleted == sum(len(each.deleted_files) for each in metadata.partitions.values())


def upserts(base: Path) -> dict[str, tuple[int, str]]:
    HoodieTable.open(base).upsert([row(4, 9, "new")], options=QUICK)
    return BEFORE | {"k4": (9, "new")}


def deletes_by_filter(base: Path) -> dict[str, tuple[int, str]]:
    HoodieTable.open(base).delete("id = 'k2'", options=QUICK)
    return {"k1": BEFORE["k1"]}


def compacts(base: Path) -> dict[str, tuple[int, str]]:
    if HoodieTable.open(base).config.is_merge_on_read:
        HoodieTable.open(base).compact(options=QUICK)
        return BEFORE
    return upserts(base)


@pytest.mark.parametrize("act", [upserts, deletes_by_filter, compacts])
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_the_next_writer_finishes_it(kind: Kind, state: str, act: Callable[[Path], object], tmp_path: Path) -> None:
    last = made(tmp_path, kind)
    rollback = pending(tmp_path, last, state)
    expected = act(tmp_path)
    assert contents(tmp_path) == expected
    check(tmp_path, last, rollback)


@pytest.mark.parametrize("named", ["rollback", "instant"])
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_rolling_it_back_finishes_it(kind: Kind, state: str, named: str, tmp_path: Path) -> None:
    last = made(tmp_path, kind)
    rollback = pending(tmp_path, last, state)
    by = rollback if named == "rollback" else last
    result = HoodieTable.open(tmp_path).rollback(by.request_time, options=QUICK)
    assert (result.instant, result.left, result.rollback) == (last.request_time, "gone", rollback.request_time)
    check(tmp_path, last, rollback)
    assert contents(tmp_path) == BEFORE
    assert not [path for path in data_files(tmp_path) if last.request_time in path]


@pytest.mark.parametrize(
    ("kind", "state"), [*((KINDS[4], state) for state in STATES), *((kind, "half") for kind in KINDS)], ids=str
)
def test_a_metadata_table_that_was_built_after_the_commit_forgets_its_files(
    kind: Kind, state: str, tmp_path: Path
) -> None:
    last = made(tmp_path, kind)
    table = HoodieTable.open(tmp_path)
    for index in ("files", "column_stats"):
        table.index.build(index, options=QUICK)
    pending(tmp_path, last, state)
    upserts(tmp_path)
    table = HoodieTable.open(tmp_path)
    assert contents(table) == BEFORE | {"k4": (9, "new")}
    assert table.verify().is_right, str(table.verify())
    for number in range(5):
        table.upsert([row(4, 10 + number, "new")], options=QUICK)
    table.clean(retain_commits=1, options=QUICK)
    table.archive(options={**QUICK, "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"})
    assert contents(HoodieTable.open(tmp_path)) == BEFORE | {"k4": (14, "new")}


@pytest.mark.parametrize("kind", [KINDS[0], KINDS[4]], ids=str)
def test_a_plan_that_names_others_files_removes_none_of_them(kind: Kind, tmp_path: Path) -> None:
    last = made(tmp_path, kind)
    rollback = pending(tmp_path, last, "last")
    before = data_files(tmp_path)
    path = (
        tmp_path
        / HoodieTable.open(tmp_path).config.find_timeline_folder()
        / f"{rollback.request_time}.rollback.requested"
    )
    plan = RollbackPlan.from_bytes(path.read_bytes())
    names: dict[str, list[str]] = {}
    for each in before:
        names.setdefault(each.rpartition("/")[0], []).append(each.rpartition("/")[2])
    requests = tuple(
        replace(plan.requests[0], partition_path=partition, files=tuple(files)) for partition, files in names.items()
    )
    path.write_bytes(write_rollback_plan(replace(plan, requests=requests), str(tmp_path)))
    HoodieTable.open(tmp_path).rollback(rollback.request_time, options=QUICK)
    assert data_files(tmp_path) == before
    assert contents(tmp_path) == BEFORE


@pytest.mark.parametrize("kind", [Kind(9, True), Kind(6, False)], ids=str)
@pytest.mark.parametrize("state", ["completed", "last"])
def test_one_that_is_cut_short_again_is_taken_up_again(kind: Kind, state: str, tmp_path: Path) -> None:
    base, copy = tmp_path / "base", tmp_path / "copy"
    last = made(base, kind)
    rollback = pending(base, last, state)
    shutil.copytree(base, copy)
    trace = Plan(watched=WRITES)
    opened(FaultyFiles(TableFiles.open(copy), trace)).rollback(rollback.request_time, options=QUICK)
    for fault, error in (("kill before", Killed), ("kill after", Killed), ("refuse", StorageError)):
        for at in range(len(trace.trace)):
            shutil.rmtree(copy)
            shutil.copytree(base, copy)
            files = FaultyFiles(TableFiles.open(copy), Plan(at=at, fault=fault, watched=WRITES))
            with pytest.raises(error):
                opened(files).rollback(rollback.request_time, options=QUICK)
            assert contents(copy) in (BEFORE, contents(base)), trace.trace[at]
            assert upserts(copy) == contents(copy), trace.trace[at]
            check(copy, last, rollback)


# Completed commits that others rest on --------------------------------------------------------------------------------


def overtaken(base: Path) -> tuple[Instant, Instant]:
    last = made(base, Kind(9, True))
    put(base, records([row(5)]))
    return last, pending(base, last, "completed")


def test_what_later_commits_rest_on_is_not_rolled_back_and_the_rollback_can_be_taken_off(tmp_path: Path) -> None:
    last, rollback = overtaken(tmp_path)
    before = contents(tmp_path)
    for act in (upserts, compacts):
        with pytest.raises(UnsupportedFeatureError, match="came later") as error:
            act(tmp_path)
        assert rollback.request_time in str(error.value)
    with pytest.raises(UnsupportedFeatureError, match="came later"):
        HoodieTable.open(tmp_path).rollback(last.request_time, options=QUICK)
    result = HoodieTable.open(tmp_path).rollback(rollback.request_time, options=QUICK)
    assert (result.instant, result.action, result.left) == (rollback.request_time, "rollback", "gone")
    assert not len(HoodieTable.open(tmp_path).timeline.select_actions(ROLLBACK))
    assert contents(tmp_path) == before
    HoodieTable.open(tmp_path).upsert([row(4, 9, "new")], options=QUICK)
    assert contents(tmp_path) == before | {"k4": (9, "new")}


def test_what_a_savepoint_keeps_is_not_rolled_back(tmp_path: Path) -> None:
    last = made(tmp_path, Kind(9, True))
    pending(tmp_path, last, "completed")
    (tmp_path / f".hoodie/timeline/{last.request_time}_{last.completion_time}.savepoint").write_bytes(b"")
    with pytest.raises(UnsupportedFeatureError, match="savepoint keeps it"):
        upserts(tmp_path)


# Compactions ----------------------------------------------------------------------------------------------------------


def planned(base: Path, version: int, action: str, state: str) -> tuple[str, Instant]:
    """A pending compaction, and a rollback of it that was begun: of a running one, or of one that had completed."""
    Kind(version, True).create(base)
    put(base, records([row(1), row(2)]))
    put(base, records([row(1, 2, "b")]))
    instant = str(HoodieTable.open(base).schedule_compaction(options=QUICK))
    doing = session(base)
    timeline = doing.open_timeline(doing.look())
    if state == INFLIGHT:
        timeline.begin(Instant(instant, None, "compaction", REQUESTED))
    return instant, begin_rollback(doing, doing.look(), Instant(instant, None, action, INFLIGHT), {})


@pytest.mark.parametrize("state", [REQUESTED, INFLIGHT])
@pytest.mark.parametrize("version", [9, 8, 6])
def test_a_compaction_that_was_being_rolled_back_can_be_run(version: int, state: str, tmp_path: Path) -> None:
    instant, rollback = planned(tmp_path, version, "compaction", state)
    HoodieTable.open(tmp_path).upsert([row(4, 9, "new")], options=QUICK)
    assert not HoodieTable.open(tmp_path).timeline.find(rollback.request_time).is_completed  # type: ignore[union-attr]
    result = HoodieTable.open(tmp_path).run_compaction(instant, options=QUICK)
    assert result.instant == instant
    assert contents(tmp_path) == BEFORE | {"k4": (9, "new")}
    assert all(each.is_completed for each in HoodieTable.open(tmp_path).timeline)


@pytest.mark.parametrize("version", [9, 8, 6])
def test_rolling_such_a_compaction_back_leaves_no_rollback_behind(version: int, tmp_path: Path) -> None:
    instant, _ = planned(tmp_path, version, "compaction", INFLIGHT)
    assert HoodieTable.open(tmp_path).rollback(instant, options=QUICK).left == "requested"
    assert HoodieTable.open(tmp_path).rollback(instant, options=QUICK).left == "gone"
    assert all(each.is_completed for each in HoodieTable.open(tmp_path).timeline)
    assert contents(tmp_path) == BEFORE


@pytest.mark.parametrize("act", [upserts, compacts])
@pytest.mark.parametrize("version", [9, 8, 6])
def test_a_completed_compaction_that_was_being_rolled_back_goes(
    version: int, act: Callable[[Path], object], tmp_path: Path
) -> None:
    instant, _ = planned(tmp_path, version, "commit", INFLIGHT)
    assert contents(tmp_path) != act(tmp_path) or act is compacts
    table = HoodieTable.open(tmp_path)
    assert table.timeline.find(instant) is None
    assert all(each.is_completed for each in table.timeline)


def test_a_compaction_that_completed_over_its_rollback_stays(tmp_path: Path) -> None:
    instant, rollback = planned(tmp_path, 9, "compaction", INFLIGHT)
    doing = session(tmp_path)
    doing.open_timeline(doing.look()).remove(rollback)
    plan = (tmp_path / f".hoodie/timeline/{rollback.request_time}.rollback.requested").rename(tmp_path / "kept")
    HoodieTable.open(tmp_path).run_compaction(instant, options=QUICK)
    plan.rename(tmp_path / f".hoodie/timeline/{rollback.request_time}.rollback.requested")
    doing.open_timeline(doing.look()).begin(replace(rollback, state=REQUESTED))
    before = contents(tmp_path)
    HoodieTable.open(tmp_path).upsert([row(4, 9, "new")], options=QUICK)
    assert contents(tmp_path) == before | {"k4": (9, "new")}
    assert HoodieTable.open(tmp_path).timeline.find(instant).is_completed  # type: ignore[union-attr]
    assert HoodieTable.open(tmp_path).rollback(rollback.request_time, options=QUICK).action == "rollback"
    assert HoodieTable.open(tmp_path).timeline.find(instant).is_completed  # type: ignore[union-attr]


# Plans that cannot be read, and too many ------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [b"", b"rubbish"])
def test_a_requested_rollback_without_a_plan_is_discarded(content: bytes, tmp_path: Path) -> None:
    Kind(9, True).create(tmp_path)
    put(tmp_path, records([row(1)]))
    path = tmp_path / ".hoodie/timeline/20261121230000000.rollback.requested"
    path.write_bytes(content)
    put(tmp_path, records([row(2)]))
    assert not path.exists()


def test_an_inflight_rollback_without_a_plan_is_an_error_that_names_it(tmp_path: Path) -> None:
    Kind(9, True).create(tmp_path)
    put(tmp_path, records([row(1)]))
    inflight = tmp_path / ".hoodie/timeline/20261121230000000.rollback.inflight"
    inflight.write_bytes(b"")
    with pytest.raises(InvalidTableError, match="20261121230000000"):
        put(tmp_path, records([row(2)]))
    inflight.with_suffix(".requested").write_bytes(b"rubbish")
    with pytest.raises(CorruptFileError, match="20261121230000000"):
        put(tmp_path, records([row(2)]))


def test_a_plan_for_no_instant_of_the_table_ends(tmp_path: Path) -> None:
    Kind(9, True).create(tmp_path)
    put(tmp_path, records([row(1)]))
    doing = session(tmp_path)
    plan = RollbackPlan(RolledBackInstant("20200101000000000", "deltacommit"))
    timeline = doing.open_timeline(doing.look())
    timeline.begin(timeline.request("20261121230000000", ROLLBACK, write_rollback_plan(plan, str(tmp_path))))
    put(tmp_path, records([row(2)]))
    assert all(each.is_completed for each in HoodieTable.open(tmp_path).timeline)
    assert contents(tmp_path) == {"k1": (1, "a"), "k2": (1, "a")}


def test_forged_pending_writes_by_the_thousand_are_refused_at_once(tmp_path: Path) -> None:
    Kind(9, True).create(tmp_path)
    put(tmp_path, records([row(1)]))
    for number in range(1000):
        (tmp_path / f".hoodie/timeline/2020010100000{number:04d}.deltacommit.requested").write_bytes(b"")
    with pytest.raises(InvalidTableError, match="1000 writes are pending"):
        put(tmp_path, records([row(2)]))


def test_beside_other_writers_a_young_rollback_is_theirs(tmp_path: Path) -> None:
    import os
    import time

    many = {**QUICK, "hoodie.clean.failed.writes.policy": "LAZY"}
    last = made(tmp_path, Kind(9, True))
    rollback = pending(tmp_path, last, "last")
    HoodieTable.open(tmp_path).upsert([row(4, 9, "new")], options=many)
    assert not HoodieTable.open(tmp_path).timeline.find(rollback.request_time).is_completed  # type: ignore[union-attr]
    then = time.time() - 1000
    for path in (tmp_path / ".hoodie/timeline").glob(f"{rollback.request_time}.*"):
        os.utime(path, (then, then))
    HoodieTable.open(tmp_path).upsert([row(4, 9, "new")], options=many)
    check(tmp_path, last, rollback)


def test_a_rollback_that_comes_between_a_look_and_a_write_is_a_conflict(tmp_path: Path) -> None:
    last = made(tmp_path, Kind(9, True))
    from tests.writer.written_tables import Write, WriteOperation, held, placed, schema_of, undo_failed_writes

    doing = session(tmp_path)
    snapshot = undo_failed_writes(doing)
    pending(tmp_path, last, "last")
    write = Write(doing, snapshot, WriteOperation.UPSERT)
    with pytest.raises(ConflictError):
        write.commit(held(placed(snapshot, records([row(7)]))), schema_of(snapshot))
