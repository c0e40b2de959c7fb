"""Spill directories are private and go away in every ending."""

from __future__ import annotations

import fcntl
import gc
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hoodie_py.errors import StorageError
from hoodie_py.reader.memory.spill_directory import PREFIX, SpillDirectory, remove_abandoned


def test_it_is_private_and_holds_a_locked_file(tmp_path: Path) -> None:
    directory = SpillDirectory(str(tmp_path))
    assert stat.S_IMODE(directory.path.stat().st_mode) == 0o700
    with (directory.path / "lock").open() as lock, pytest.raises(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    directory.close()
    directory.close()
    assert list(tmp_path.iterdir()) == []


def test_it_goes_with_its_object(tmp_path: Path) -> None:
    directory = SpillDirectory(str(tmp_path))
    (directory.path / "1").write_bytes(b"rows")
    del directory
    gc.collect()
    assert list(tmp_path.iterdir()) == []


CHILD = """
import sys, time
from pathlib import Path
from hoodie_py.reader.memory.spill_directory import SpillDirectory
directory = SpillDirectory(sys.argv[1])
(directory.path / "1").write_bytes(b"rows")
print("ready", flush=True)
{ending}
"""


def child(parent: Path, ending: str) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD.format(ending=ending), str(parent)],
        bufsize=0,  # a line read ahead into a buffer would be kept from communicate(), which reads the pipe itself
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


@pytest.mark.parametrize("ending", ["pass", "raise SystemExit(3)", "raise ValueError('no')", "sys.exit('bye')"])
def test_it_goes_when_the_interpreter_ends(tmp_path: Path, ending: str) -> None:
    child(tmp_path, ending).communicate(timeout=60)
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_goes_on_the_next_run(tmp_path: Path) -> None:
    process = child(tmp_path, "time.sleep(600)")
    (theirs,) = tmp_path.iterdir()
    mine = SpillDirectory(str(tmp_path))
    assert theirs.exists()  # its owner is alive
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    assert theirs.exists()
    other = SpillDirectory(str(tmp_path))
    assert set(tmp_path.iterdir()) == {mine.path, other.path}
    mine.close()
    other.close()


def test_a_forked_child_does_not_take_the_directory_along(tmp_path: Path) -> None:
    ending = """
import os
if os.fork() == 0:
    directory.close()
    os._exit(0)
os.wait()
print(directory.path.exists(), flush=True)
"""
    output, errors = child(tmp_path, ending).communicate(timeout=60)
    assert output == b"True\n", errors
    assert list(tmp_path.iterdir()) == []


def test_other_peoples_files_and_links_stay(tmp_path: Path) -> None:
    treasure = tmp_path / "treasure"
    treasure.mkdir()
    (treasure / "gold").write_bytes(b"!")
    spills = tmp_path / "spills"
    spills.mkdir()
    (spills / f"{PREFIX}link").symlink_to(treasure)
    (spills / f"{PREFIX}file").write_bytes(b"")
    fresh = spills / f"{PREFIX}fresh"
    fresh.mkdir()
    linked = spills / f"{PREFIX}linked"
    linked.mkdir()
    (linked / "lock").symlink_to(treasure / "gold")
    remove_abandoned(spills)
    assert len(list(spills.iterdir())) == 4
    assert (treasure / "gold").exists()


def test_one_without_a_lock_file_goes_after_a_while(tmp_path: Path) -> None:
    old = tmp_path / f"{PREFIX}old"
    old.mkdir()
    long_ago = time.time() - 7200
    os.utime(old, (long_ago, long_ago))
    remove_abandoned(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"cannot be spilled .*nowhere.*hoodie\.memory\.spillable\.map\.path"):
        SpillDirectory(str(tmp_path / "nowhere"))
