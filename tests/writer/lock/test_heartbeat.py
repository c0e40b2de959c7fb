from __future__ import annotations

import os
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from hoodie_py.errors import ConflictError, HoodieWarning, StorageError
from hoodie_py.files import TableFiles
from hoodie_py.formats.timeline.instants import Instant
from hoodie_py.formats.timeline.timeline import Timeline
from hoodie_py.writer.lock.heartbeat import (
    ENDED,
    HEARTBEAT_FOLDER,
    Heartbeat,
    ProcessIdentity,
    is_alive,
    leave_heartbeats,
    read_life,
    remove_finished,
)
from tests.watched_requests import asks, failing_requests

INSTANT = "20260101000000000"
NOW = 1_800_000_000.0  # a clock of their own, as a busy machine may stop a test for longer than an age differs
QUICK = {"hoodie.client.heartbeat.interval_in_ms": "10", "hoodie.client.heartbeat.tolerable.misses": "3000"}


@pytest.fixture
def files(tmp_path: Path) -> TableFiles:
    return TableFiles.open(tmp_path)


def now() -> float:
    return NOW


def age(files: TableFiles, seconds: float, path: str = f"{HEARTBEAT_FOLDER}/{INSTANT}") -> None:
    place = files.local_path(path)
    assert place is not None
    os.utime(place, (NOW - seconds,) * 2)


def modified(files: TableFiles) -> int:
    found = files.stat(f"{HEARTBEAT_FOLDER}/{INSTANT}").modified
    assert found is not None
    return found


def test_beats_until_the_end(files: TableFiles) -> None:
    assert not is_alive(files, INSTANT)
    with Heartbeat(files, INSTANT, QUICK) as beat:
        first = modified(files)
        deadline = time.monotonic() + 30
        while modified(files) == first and time.monotonic() < deadline:
            time.sleep(0.005)
        assert modified(files) > first
        assert is_alive(files, INSTANT)
        beat.ensure_alive()
    assert files.list(HEARTBEAT_FOLDER) == []


def test_old_beats_are_none(files: TableFiles) -> None:
    files.put(f"{HEARTBEAT_FOLDER}/{INSTANT}", b"")
    age(files, 120)
    assert is_alive(files, INSTANT, now=now)
    with pytest.raises(ConflictError, match="at work on this instant"):
        Heartbeat(files, INSTANT, now=now).__enter__()
    age(files, 120.1)
    assert not is_alive(files, INSTANT, now=now)
    with Heartbeat(files, INSTANT, now=now) as beat:
        beat.ensure_alive()


def test_a_heartbeat_that_stays(files: TableFiles) -> None:
    with Heartbeat(files, INSTANT, now=now) as beat:
        beat.stays = True
    age(files, 0)
    assert is_alive(files, INSTANT, now=now)
    age(files, 121)
    with Heartbeat(files, INSTANT, now=now):
        pass
    assert files.list(HEARTBEAT_FOLDER) == []


def test_who_has_stopped(files: TableFiles) -> None:
    begun = f".hoodie/timeline/{INSTANT}.commit.inflight"
    files.put(begun, b"")
    age(files, 120, begun)
    assert not read_life(files, INSTANT, begun, now=now).is_over
    age(files, 121, begun)
    assert read_life(files, INSTANT, begun, now=now).is_over
    assert not read_life(files, INSTANT, begun, {"hoodie.client.heartbeat.interval_in_ms": "600000"}, now).is_over
    files.put(f"{HEARTBEAT_FOLDER}/{INSTANT}", b"")
    age(files, 120)
    found = read_life(files, INSTANT, begun, now=now)
    assert (found.is_alive, found.is_over, found.until) == (True, False, NOW)
    age(files, 121)
    assert read_life(files, INSTANT, begun, now=now).is_over


def test_a_store_whose_clock_is_ahead_has_fresh_files(files: TableFiles) -> None:
    begun = f".hoodie/timeline/{INSTANT}.commit.inflight"
    files.put(begun, b"")
    age(files, -60, begun)
    assert read_life(files, INSTANT, begun, now=now).may_live
    files.put(f"{HEARTBEAT_FOLDER}/{INSTANT}", b"")
    age(files, -60)
    assert read_life(files, INSTANT, begun, now=now).is_alive


def test_a_writer_without_any_file_is_dead(files: TableFiles) -> None:
    """Another writer has rolled the instant back since the listing."""
    found = read_life(files, INSTANT, f".hoodie/timeline/{INSTANT}.commit.inflight", now=now)
    assert (found.is_over, found.until) == (True, 120)


def test_a_file_of_this_process_that_no_heartbeat_keeps_is_no_sign_of_life(files: TableFiles) -> None:
    own = ProcessIdentity.read_own()
    for writer, alive in ((own, False), (replace(own, host="another machine"), True)):
        files.put(f"{HEARTBEAT_FOLDER}/{INSTANT}", writer.to_bytes("earlier"))
        age(files, 0)
        assert is_alive(files, INSTANT, now=now) == alive
        assert read_life(files, INSTANT, "none", now=now).is_alive == alive


@pytest.mark.parametrize(("stays", "ends_at_once"), [(False, False), (False, True), (True, True), (True, False)])
def test_a_file_that_the_store_left_counts_as_ended_unless_it_has_to_grow_old(
    files: TableFiles, stays: bool, ends_at_once: bool
) -> None:
    with ExitStack() as beating:
        beat = beating.enter_context(Heartbeat(files, INSTANT, now=now))
        beat.stays, beat.ends_at_once = stays, ends_at_once
        refused = failing_requests(asks(rf"/{INSTANT}$"), StorageError("not now"))
        with refused, pytest.warns(HoodieWarning, match="not removed"):
            beating.close()
    age(files, 0)
    assert is_alive(files, INSTANT, now=now) == (stays and not ends_at_once)


def test_which_files_finished_writers_left(files: TableFiles) -> None:
    """A writer beats before its instant is on the timeline, so only an old file without an instant goes."""
    instants = [f"2026010100000{number}000" for number in range(5)]
    completed, pending, fresh, old, aged = instants
    for instant in (*instants, "notes"):
        files.put(f"{HEARTBEAT_FOLDER}/{instant}", b"")
    for instant in (pending, old, "notes"):
        place = files.local_path(f"{HEARTBEAT_FOLDER}/{instant}")
        assert place is not None
        os.utime(place, (0, 0))
    timeline = Timeline(
        [
            Instant(completed, completed, "commit", "completed"),
            Instant(pending, None, "commit", "inflight"),
            Instant(aged, None, "deltacommit", "requested"),
        ]
    )
    remove_finished(files, timeline, files.list(HEARTBEAT_FOLDER))
    assert {info.name for info in files.list(HEARTBEAT_FOLDER)} == {pending, fresh, aged, "notes"}


def test_a_writer_that_was_taken_for_dead(files: TableFiles) -> None:
    clock = NOW
    with Heartbeat(files, INSTANT, now=lambda: clock) as beat:
        clock += 120
        beat.ensure_alive()
        clock += 1
        with pytest.raises(ConflictError, match="rolling this one back"):
            beat.ensure_alive()
        clock -= 121
        beat.ensure_alive()
        files.delete(f"{HEARTBEAT_FOLDER}/{INSTANT}")
        with pytest.raises(ConflictError):
            beat.ensure_alive()


def test_a_file_for_java_is_no_sign_of_life(files: TableFiles) -> None:
    begun = f".hoodie/timeline/{INSTANT}.commit.inflight"
    files.put(begun, b"")
    age(files, 121, begun)
    leave_heartbeats(files, [Instant(INSTANT, None, "commit", "inflight")])
    age(files, 0)
    assert not is_alive(files, INSTANT, now=now)
    assert read_life(files, INSTANT, begun, now=now).is_over
    files.put(f"{HEARTBEAT_FOLDER}/{INSTANT}", ENDED)
    age(files, 0)
    assert not is_alive(files, INSTANT, now=now)
    assert read_life(files, INSTANT, begun, now=now).is_over
