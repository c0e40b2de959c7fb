from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from hoodie_py.errors import ConflictError
from hoodie_py.files import TableFiles
from hoodie_py.formats.timeline.instants import Instant
from hoodie_py.writer.lock.heartbeat import (
    ENDED,
    HEARTBEAT_FOLDER,
    Heartbeat,
    is_alive,
    leave_heartbeats,
    read_life,
)

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
