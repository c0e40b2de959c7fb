"""Who is rolled back before a write, and who is left alone."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import ConflictError
from hoodie_py.formats.timeline.instants import Instant
from hoodie_py.writer.lock.heartbeat import LEFT_FOR_JAVA
from hoodie_py.writer.records import WriteOperation
from hoodie_py.writer.rollback import recovery
from hoodie_py.writer.rollback.finish import begin_rollback
from hoodie_py.writer.rollback.recovery import undo_failed_writes
from hoodie_py.writer.rollback.rollback import RollbackResult, rollback
from hoodie_py.writer.timeline.session import WriteSession
from hoodie_py.writer.transaction.pending import list_pending_writes
from tests.writer.compaction_tables import QUICK, writable
from tests.writer.written_tables import Kind, contents, put, records, row, session

OLD = "20200101000000001"
MANY = {"hoodie.clean.failed.writes.policy": "LAZY"}


def left(base: Path, action: str = "deltacommit") -> Path:
    """A table where a write was begun and came no further."""
    Kind(9, True).create(base)
    put(base, records([row(1)]), WriteOperation.INSERT)
    timeline = session(base).open_timeline(session(base).look())
    requested = timeline.request(session(base).clock.take(), action, b"")
    timeline.begin(requested)
    return base


def pending(base: Path) -> list[Instant]:
    return list(HoodieTable.open(base).timeline.select_pending())


def beat(base: Path, seconds_ago: float) -> None:
    path = base / ".hoodie/.heartbeat" / pending(base)[0].request_time
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"")
    then = time.time() - seconds_ago
    os.utime(path, (then, then))


def test_a_lone_writer_waits_until_it_can_tell_that_a_write_failed(tmp_path: Path) -> None:
    left(tmp_path)
    with pytest.raises(ConflictError, match="began so short a time ago") as caught:
        undo_failed_writes(session(tmp_path))
    assert "roll the instant back" in str(caught.value)
    assert len(pending(tmp_path)) == 1
    HoodieTable.open(tmp_path).rollback(pending(tmp_path)[0].request_time, options=QUICK)
    assert pending(tmp_path) == []


def test_a_lone_writer_rolls_back_whatever_is_pending(tmp_path: Path) -> None:
    left(tmp_path)
    grown_old(tmp_path, 121)
    snapshot = undo_failed_writes(session(tmp_path))
    assert list_pending_writes(snapshot) == []
    assert pending(tmp_path) == []
    assert [each.action for each in HoodieTable.open(tmp_path).timeline][-1] == "rollback"


def test_one_that_shows_life_is_not_rolled_back(tmp_path: Path) -> None:
    left(tmp_path)
    beat(tmp_path, 1)
    with pytest.raises(ConflictError, match="keeps the instant alive"):
        undo_failed_writes(session(tmp_path))
    assert len(pending(tmp_path)) == 1


@pytest.mark.parametrize("beats", [False, True])
def test_the_instant_of_a_flink_job_is_left_alone(beats: bool, tmp_path: Path) -> None:
    left(tmp_path)
    checkpoint = tmp_path / f".hoodie/.aux/ckp_meta/{pending(tmp_path)[0].request_time}.INFLIGHT"
    checkpoint.parent.mkdir(parents=True)
    checkpoint.touch()
    grown_old(tmp_path, 1000)
    if beats:
        beat(tmp_path, 121)
    with pytest.raises(ConflictError, match=r"A Flink job writes to the instant.*ckp_meta.*roll the instant back"):
        undo_failed_writes(session(tmp_path))
    undo_failed_writes(session(tmp_path), spare_others=True)
    undo_failed_writes(session(tmp_path, MANY))
    assert len(pending(tmp_path)) == 1
    [service] = [each for each in HoodieTable.open(tmp_path).services().services if each.name == "failed writes"]
    assert service.state == "waits"
    report = HoodieTable.open(tmp_path).rollback(pending(tmp_path)[0].request_time, dry_run=True)
    assert "a job that runs would fail" in str(report)
    assert not report.at_work
    HoodieTable.open(tmp_path).rollback(pending(tmp_path)[0].request_time)
    assert pending(tmp_path) == []


@pytest.mark.parametrize("content", [LEFT_FOR_JAVA, b"", b"{}", b"[1]", b"\xff" * 3000])
def test_what_was_left_for_java_says_nothing_of_a_writer(content: bytes, tmp_path: Path) -> None:
    left(tmp_path)
    grown_old(tmp_path, 121)
    beat(tmp_path, 1)
    path = tmp_path / ".hoodie/.heartbeat" / pending(tmp_path)[0].request_time
    path.write_bytes(content)
    if content == LEFT_FOR_JAVA:
        assert list_pending_writes(undo_failed_writes(session(tmp_path))) == []
        return
    with pytest.raises(ConflictError, match="keeps the instant alive"):
        undo_failed_writes(session(tmp_path))


def test_beside_other_writers_only_the_dead_are_rolled_back(tmp_path: Path) -> None:
    left(tmp_path)
    undo_failed_writes(session(tmp_path, MANY))
    assert len(pending(tmp_path)) == 1, "it may just have begun"
    beat(tmp_path, 1)
    undo_failed_writes(session(tmp_path, MANY))
    assert len(pending(tmp_path)) == 1
    beat(tmp_path, 1000)
    undo_failed_writes(session(tmp_path, MANY))
    assert pending(tmp_path) == []


def test_beside_other_writers_a_dead_write_is_left_to_whoever_rolls_it_back(tmp_path: Path) -> None:
    """Java's rollback fails where another has deleted its files, and the commit before it seems lost."""
    left(tmp_path)
    grown_old(tmp_path, 1000)
    theirs = session(tmp_path)
    [dead] = pending(tmp_path)
    begun = begin_rollback(theirs, theirs.look(), dead, {})
    undo_failed_writes(session(tmp_path, MANY))
    assert {each.request_time for each in pending(tmp_path)} == {dead.request_time, begun.request_time}
    for path in (tmp_path / ".hoodie/timeline").glob(f"{begun.request_time}.*"):
        os.utime(path, (1.0e9, 1.0e9))
    undo_failed_writes(session(tmp_path, MANY))
    assert pending(tmp_path) == []


def test_with_the_policy_never_all_stay(tmp_path: Path) -> None:
    left(tmp_path)
    beat(tmp_path, 1000)
    before = pending(tmp_path)
    never = {"hoodie.clean.failed.writes.policy": "NEVER"}
    rows = [{"id": "k2", "part": "p0", "ts": 2, "name": "b"}]
    HoodieTable.open(tmp_path).upsert(rows, options={**QUICK, **never})
    assert pending(tmp_path) == before
    assert HoodieTable.open(tmp_path).scan().count() == 2


def grown_old(base: Path, seconds_ago: float) -> None:
    """Let the files of the pending instant be of long ago."""
    then = time.time() - seconds_ago
    for path in (base / ".hoodie/timeline").glob(f"{pending(base)[0].request_time}.*"):
        os.utime(path, (then, then))


def test_a_write_without_heartbeat_has_begun_long_ago(tmp_path: Path) -> None:
    left(tmp_path)
    grown_old(tmp_path, 60)
    undo_failed_writes(session(tmp_path, MANY))
    assert len(pending(tmp_path)) == 1
    grown_old(tmp_path, 1000)
    undo_failed_writes(session(tmp_path, MANY))
    assert pending(tmp_path) == []


def test_a_long_write_that_shows_life_is_spared(tmp_path: Path) -> None:
    left(tmp_path)
    grown_old(tmp_path, 1000)
    beat(tmp_path, 1)
    undo_failed_writes(session(tmp_path, MANY))
    assert len(pending(tmp_path)) == 1


@pytest.mark.parametrize("how", ["commits", "is undone"])
def test_a_write_that_ends_while_it_is_taken_for_dead(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left(tmp_path)
    grown_old(tmp_path, 1000)
    [instant] = pending(tmp_path)
    other = session(tmp_path)
    timeline = other.open_timeline(other.look())

    def ends_first(doing: WriteSession, time: str, *rest: Any) -> RollbackResult:
        if how == "commits":
            timeline.complete(instant, other.clock.take(), b"")
        else:
            rollback(other, time)
        return rollback(doing, time, *rest)

    monkeypatch.setattr(recovery, "rollback", ends_first)
    assert list_pending_writes(undo_failed_writes(session(tmp_path, MANY))) == []
    assert pending(tmp_path) == []


def test_compactions_stay(tmp_path: Path) -> None:
    Kind(9, True).create(tmp_path)
    put(tmp_path, records([row(1)]), WriteOperation.INSERT)
    put(tmp_path, records([row(1, 2)]))
    planned = HoodieTable.open(tmp_path).schedule_compaction(options=QUICK)
    put(tmp_path, records([row(1, 3)]))
    assert [each.request_time for each in pending(tmp_path)] == [planned]
    assert contents(tmp_path) == {"k1": (3, "a")}


def test_clusterings_stay_and_their_groups_are_not_written_to(tmp_path: Path) -> None:
    base = writable("clustering_pending_cow_v9", tmp_path)
    before = pending(base)
    assert [each.action for each in before] == ["clustering"]
    snapshot = undo_failed_writes(session(base))
    assert list_pending_writes(snapshot) == []
    assert pending(base) == before
    table = HoodieTable.open(base)
    names = [name for name in table.schema.names if not name.startswith("_hoodie")]
    rows = table.scan(columns=names).to_arrow()
    with pytest.raises(ConflictError):
        table.upsert(rows, options=QUICK)
    assert pending(base) == before
