"""What is not taken back keeps its sign of life, which grows old: then the next writer knows that it failed."""

from __future__ import annotations

import os
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import CommitStateUnknownError, ConflictError, HoodieError, StorageError
from hoodie_py.formats.timeline.instants import INFLIGHT, REQUESTED, Instant
from hoodie_py.writer.commit import write_commit
from hoodie_py.writer.timeline.session import WriteSession
from hoodie_py.writer.timeline.timeline_writer import TimelineWriter
from tests.writer.slow_writes import pending, slowly, start
from tests.writer.written_tables import contents, data_files, put, records, row

MANY = {"hoodie.clean.failed.writes.policy": "LAZY"}


def heartbeats(base: Path) -> list[Path]:
    return list((base / ".hoodie/.heartbeat").glob("*"))


def check_the_next_writer_takes_it_back(base: Path, before: dict[str, tuple[int, str]], files: set[str]) -> None:
    [heartbeat] = heartbeats(base)
    [instant] = HoodieTable.open(base).timeline.select_pending()
    assert heartbeat.name == instant.request_time
    put(base, records([row(1, 2, "b")]), options=MANY)
    assert len(pending(base)) == 1, "it may be at work still"
    then = time.time() - 1000
    os.utime(heartbeat, (then, then))
    put(base, records([row(1, 3, "c")]), options=MANY)
    assert (pending(base), heartbeats(base)) == ([], [])
    assert contents(base) == {**before, "k1": (3, "c")}
    assert len(data_files(base)) == len(files) + 2


@pytest.mark.parametrize("error", [CommitStateUnknownError("the answer got lost"), SystemExit()], ids=repr)
def test_a_write_that_is_not_taken_back_keeps_its_heartbeat(error: BaseException, tmp_path: Path) -> None:
    start(tmp_path)
    before, files = contents(tmp_path), data_files(tmp_path)

    def fail() -> None:
        raise error

    with pytest.raises(type(error)):
        slowly(tmp_path, records([row(0, 2), row(40)]), fail, **MANY)
    assert data_files(tmp_path) > files
    check_the_next_writer_takes_it_back(tmp_path, before, files)


@pytest.mark.parametrize("what", ["look", "remove_all"])
def test_a_write_that_cannot_be_taken_back_keeps_its_heartbeat(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(tmp_path)
    before, files = contents(tmp_path), data_files(tmp_path)

    def refuse(*_: Any) -> None:
        raise StorageError("not now")

    with monkeypatch.context() as patched:

        def fail() -> None:
            patched.setattr(WriteSession if what == "look" else write_commit.Markers, what, refuse)
            refuse()

        with pytest.raises(StorageError, match="not now"):
            slowly(tmp_path, records([row(0, 2), row(40)]), fail, **MANY)
    check_the_next_writer_takes_it_back(tmp_path, before, files)


@pytest.mark.parametrize("state", [REQUESTED, INFLIGHT])
@pytest.mark.parametrize("error", [CommitStateUnknownError, ConflictError], ids=lambda each: each.__name__)
def test_a_beginning_whose_answer_is_lost_keeps_its_heartbeat(
    error: type[HoodieError], state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(tmp_path)
    before, files = contents(tmp_path), data_files(tmp_path)
    create = TimelineWriter._create

    def loses(writer: TimelineWriter, instant: Instant, content: bytes) -> Instant:
        create(writer, instant, content)
        if instant.state == state:
            raise error("the answer got lost")
        return instant

    with monkeypatch.context() as patched:
        patched.setattr(TimelineWriter, "_create", loses)
        with pytest.raises(error, match="answer"):
            slowly(tmp_path, records([row(0, 2)]), lambda: None, **MANY)
    if (error, state) == (ConflictError, INFLIGHT):  # its own requested file is there, so this is taken back
        assert (pending(tmp_path), heartbeats(tmp_path)) == ([], [])
    else:
        check_the_next_writer_takes_it_back(tmp_path, before, files)


def test_a_beginning_that_is_refused_leaves_no_heartbeat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start(tmp_path)

    def refuse(*_: Any) -> None:
        raise StorageError("not now")

    monkeypatch.setattr(TimelineWriter, "_create", refuse)
    with pytest.raises(StorageError, match="not now"):
        slowly(tmp_path, records([row(0, 2)]), lambda: None, **MANY)
    assert (pending(tmp_path), heartbeats(tmp_path)) == ([], [])


@pytest.mark.parametrize("fails", [True, False])
def test_a_write_that_ended_leaves_no_heartbeat(fails: bool, tmp_path: Path) -> None:
    start(tmp_path)

    def perhaps_fail() -> None:
        assert len(heartbeats(tmp_path)) == 1
        if fails:
            raise StorageError("no space left on device")

    with pytest.raises(StorageError) if fails else nullcontext():
        slowly(tmp_path, records([row(0, 2)]), perhaps_fail, **MANY)
    assert (pending(tmp_path), heartbeats(tmp_path)) == ([], [])
