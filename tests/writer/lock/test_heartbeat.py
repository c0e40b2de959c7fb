from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from hoodie_py.errors import ConflictError
from hoodie_py.files import TableFiles
from hoodie_py.writer.lock.heartbeat import HEARTBEAT_FOLDER, Heartbeat, is_alive, read_life

INSTANT = "20260101000000000"
QUICK = {"hoodie.client.heartbeat.interval_in_ms": "10", "hoodie.client.heartbeat.tolerable.misses": "3000"}


@pytest.fixture
def files(tmp_path: Path) -> TableFiles:
    return TableFiles.open(tmp_path)


def age(files: TableFiles, seconds: float) -> None:
    path = files.local_path(f"{HEARTBEAT_FOLDER}/{INSTANT}")
    assert path is not None
    os.utime(path, (time.time() - seconds,) * 2)


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
    age(files, 119)
    assert is_alive(files, INSTANT)
    with pytest.raises(ConflictError, match="at work on this instant"):
        Heartbeat(files, INSTANT).__enter__()
    age(files, 121)
    assert not is_alive(files, INSTANT)
    with Heartbeat(files, INSTANT) as beat:
        beat.ensure_alive()


def test_a_heartbeat_that_stays(files: TableFiles) -> None:
    with Heartbeat(files, INSTANT) as beat:
        beat.stays = True
    assert is_alive(files, INSTANT)
    age(files, 121)
    with Heartbeat(files, INSTANT):
        pass
    assert files.list(HEARTBEAT_FOLDER) == []


def test_who_has_stopped(files: TableFiles) -> None:
    begun = f".hoodie/timeline/{INSTANT}.commit.inflight"
    files.put(begun, b"")
    place = files.local_path(begun)
    assert place is not None
    assert not read_life(files, INSTANT, begun).is_over
    os.utime(place, (time.time() - 121,) * 2)
    assert read_life(files, INSTANT, begun).is_over
    assert not read_life(files, INSTANT, begun, {"hoodie.client.heartbeat.interval_in_ms": "600000"}).is_over
    files.put(f"{HEARTBEAT_FOLDER}/{INSTANT}", b"")
    assert not read_life(files, INSTANT, begun).is_over
    age(files, 121)
    assert read_life(files, INSTANT, begun).is_over


def test_a_writer_that_was_taken_for_dead(files: TableFiles) -> None:
    clock = time.time()
    with Heartbeat(files, INSTANT, now=lambda: clock) as beat:
        clock += 121
        with pytest.raises(ConflictError, match="rolling this one back"):
            beat.ensure_alive()
        clock -= 121
        beat.ensure_alive()
        files.delete(f"{HEARTBEAT_FOLDER}/{INSTANT}")
        with pytest.raises(ConflictError):
            beat.ensure_alive()
