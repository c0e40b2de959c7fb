"""Which instants a restore undoes, on timelines of names alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoodie_py.errors import ConflictError, InvalidQueryError
from hoodie_py.formats.timeline.replace_plan import (
    ClusteringGroup,
    ClusteringSlice,
    RequestedReplace,
    write_clustering_plan,
)
from hoodie_py.formats.timeline.savepoints import RestorePlan
from hoodie_py.writer.savepoint.restore_plan import find_savepoint_of, make_plan
from tests.writer.clean_tables import Names, at
from tests.writer.written_tables import session

MOR = {"hoodie.table.type": "MERGE_ON_READ"}
COW = {"hoodie.table.type": "COPY_ON_WRITE"}
GROUP = ClusteringGroup((ClusteringSlice("f-0", "p", "f-0_0-0-0_1.parquet", ()),), 1)
CLUSTERING = write_clustering_plan(RequestedReplace("CLUSTER", (GROUP,)), "file:///t")


def finish(names: Names, request: int, completion: int, action: str = "deltacommit") -> None:
    """Complete an instant of layout 2 at a time of its own."""
    for state in ("requested", "inflight"):
        names.pending(request, action, state)
    (names.timeline / f"{at(request)}_{at(completion)}.{action}").write_bytes(b"")


def undone(names: Names, saved: int) -> list[int]:
    """Numbers of the instants that a restore undoes, in its order."""
    doing = session(names.root)
    return [int(each.time[8:14]) for each in make_plan(doing, doing.look(), at(saved)).instants]


def test_later_means_completed_later(tmp_path: Path) -> None:
    names = Names(tmp_path / "t", 9, **MOR)
    finish(names, 1, 30)  # requested before the savepoint's commit, completed after it
    finish(names, 2, 20)
    finish(names, 3, 10)  # requested after it, completed before it
    finish(names, 4, 25)
    names.saved(2, names.log("f-0", 2))
    assert undone(names, 2) == [1, 4]


def test_writes_that_complete_at_the_same_time_go_by_request(tmp_path: Path) -> None:
    names = Names(tmp_path / "t", 9, **COW)
    for request in (1, 2, 3):
        finish(names, request, 20, "commit")
    names.saved(2, names.base("f-0", 2))
    assert undone(names, 2) == [3]


def test_a_compaction_counts_by_its_request(tmp_path: Path) -> None:
    names = Names(tmp_path / "t", 9, **MOR)
    finish(names, 1, 9)
    finish(names, 3, 30, "commit")  # planned before the savepoint's commit, whose log file rests on it
    finish(names, 4, 10)
    finish(names, 5, 40, "commit")
    names.saved(4, names.log("f-0", 4))
    assert undone(names, 4) == [5]


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("action", ["compaction", "logcompaction", "clustering"])
def test_plans_from_before_the_savepoint_stay(version: int, action: str, tmp_path: Path) -> None:
    action = "replacecommit" if (action, version) == ("clustering", 6) else action
    names = Names(tmp_path / "t", version, **MOR)
    content = CLUSTERING if action in ("clustering", "replacecommit") else b""
    names.pending(1, action, "requested", content)
    names.done(2)
    names.pending(3, action, "requested", content)
    names.saved(2, names.log("f-0", 2))
    assert undone(names, 2) == [3]


@pytest.mark.parametrize("version", [6, 9])
def test_a_write_that_never_completed_goes_whenever_it_began(version: int, tmp_path: Path) -> None:
    names = Names(tmp_path / "t", version, **MOR)
    names.pending(1, "deltacommit", "requested")
    names.done(2)
    names.saved(2, names.log("f-0", 2))
    assert undone(names, 2) == [1]


def test_pending_writes_go_first_and_the_others_by_completion(tmp_path: Path) -> None:
    names = Names(tmp_path / "t", 9, **MOR)
    finish(names, 1, 1)
    finish(names, 2, 40)
    finish(names, 3, 30)
    names.pending(4, "compaction", "requested")
    names.pending(5, "deltacommit", "requested")
    names.pending(6, "deltacommit", "requested")
    names.saved(1, names.log("f-0", 1))
    assert undone(names, 1) == [6, 5, 2, 3, 4]


def test_a_savepoint_of_an_undone_commit_is_in_the_way_by_completion(tmp_path: Path) -> None:
    names = Names(tmp_path / "t", 9, **MOR)
    finish(names, 1, 30)
    finish(names, 2, 20)
    names.saved(1, names.log("f-0", 1))
    names.saved(2, names.log("f-0", 2))
    with pytest.raises(InvalidQueryError, match=f"The savepoint {at(1)} is later"):
        undone(names, 2)
    assert undone(names, 1) == []


def test_a_writer_at_work_is_not_undone(tmp_path: Path) -> None:
    names = Names(tmp_path / "t", 9, **MOR)
    names.done(1)
    names.pending(2, "deltacommit", "requested")
    names.saved(1, names.log("f-0", 1))
    life = names.root / ".hoodie/.heartbeat" / at(2)
    life.parent.mkdir()
    life.touch()
    with pytest.raises(ConflictError, match="A writer is at work on an instant"):
        undone(names, 1)


def test_a_plan_that_does_not_tell_is_about_the_last_savepoint_before_what_it_undoes(tmp_path: Path) -> None:
    names = Names(tmp_path / "t", 6, **MOR)
    for number in (1, 2, 3, 4):
        names.done(number)
    for number in (1, 3, 4):
        names.saved(number, names.log("f-0", 1))
    names.pending(9, "restore", "requested")
    snapshot = names.snapshot()
    [pending] = snapshot.timeline.select_actions("restore")
    doing = session(names.root)
    assert find_savepoint_of(snapshot, pending, RestorePlan(())) == at(4)
    for path in names.timeline.glob(f"{at(4)}.savepoint*"):
        path.unlink()
    plan = make_plan(doing, doing.look(), at(3))
    assert [each.time for each in plan.instants] == [at(4)]
    assert find_savepoint_of(snapshot, pending, RestorePlan(plan.instants)) == at(3)
