from __future__ import annotations

from datetime import UTC

import pytest

from hoodie_py.files import FileInfo
from hoodie_py.formats.timeline.commit_metadata import CommitMetadata, WriteStat
from hoodie_py.formats.timeline.instants import parse_instant_name
from hoodie_py.formats.timeline.writers import write_commit_metadata
from hoodie_py.writer.upgrade.timeline_move import choose_completion_times, convert_content, rename

_JANUARY = 1767225600000  # 2026-01-01 in milliseconds


def times(*files: tuple[str, int], has_logs: bool = True) -> dict[str, str]:
    """Completion times of files by name; each was written so many seconds after January began."""
    states = []
    for name, seconds in files:
        instant = parse_instant_name(name, 1)
        assert instant is not None
        states.append((FileInfo(f".hoodie/{name}", 1, is_dir=False, modified=_JANUARY + seconds * 1000), instant))
    found = choose_completion_times(states, UTC, has_logs)
    return {name.partition(".")[0][-5:]: time[-5:] for name, time in found.items()}


def test_completion_times_are_those_of_the_files() -> None:
    a, b = ("20260101000001000.deltacommit", 3), ("20260101000004000.deltacommit", 6)
    assert times(a, b, ("20260101000007000.clean.requested", 7)) == {"01000": "03000", "04000": "06000"}


def test_a_store_may_round_times_down() -> None:
    assert times(("20260101000001500.commit", 1), ("20260101000004500.commit", 6)) == {
        "01500": "01500",
        "04500": "06000",
    }


def test_no_delta_commit_completes_after_a_later_compaction_was_planned() -> None:
    files = ("20260101000001000.deltacommit", 9), ("20260101000004000.commit", 6), ("20260101000000000.deltacommit", 1)
    assert times(*files)["01000"] == "01000"
    assert times(*files, has_logs=False)["01000"] == "09000"


def test_a_bootstrap_is_no_sign_of_a_copy() -> None:
    found = times(("00000000000000010.deltacommit", 2), ("20260101000001000.deltacommit", 3))
    assert found == {"00010": "02000", "01000": "03000"}


def test_files_that_were_copied_tell_nothing() -> None:
    copied = [(f"2026010100000{n}000.deltacommit", 50) for n in range(5)]
    assert times(*copied, ("20260101000055000.deltacommit", 58)) == {
        **{f"0{n}000": f"0{n}000" for n in range(5)},
        "55000": "58000",
    }


@pytest.mark.parametrize(
    ("name", "layout", "moved"),
    [
        ("20260101000001000.deltacommit", 2, "20260101000001000_20260101000002000.deltacommit"),
        ("20260101000001000.inflight", 2, "20260101000001000.inflight"),
        ("20260101000001000.compaction.requested", 2, "20260101000001000.compaction.requested"),
        ("20260101000001000.replacecommit.requested", 2, "20260101000001000.clustering.requested"),
        ("20260101000001000.replacecommit", 2, "20260101000001000_20260101000002000.replacecommit"),
        ("20260101000001000_20260101000002000.clean", 1, "20260101000001000.clean"),
        ("20260101000001000.clustering.inflight", 1, "20260101000001000.replacecommit.inflight"),
        ("20260101000001000.deltacommit", 1, "20260101000001000.deltacommit"),
    ],
)
def test_names(name: str, layout: int, moved: str) -> None:
    instant = parse_instant_name(name, 3 - layout)
    assert instant is not None
    assert rename(instant, layout, "20260101000002000").file_name(layout) == moved


def test_commits_keep_what_they_say_of_log_files() -> None:
    stat = WriteStat(
        "f-0", "p/.f-0_1.log.1_0-1-2", partition_path="p", log_version=1, log_offset=7, base_file="b", log_files=("l",)
    )
    commit = CommitMetadata("UPSERT", {"schema": "{}"}, write_stats={"p": (stat,)}, replaced_file_ids={"p": ("g",)})
    for action in ("deltacommit", "replacecommit"):
        instant = parse_instant_name(f"20260101000001000.{action}", 1)
        assert instant is not None
        content = write_commit_metadata(commit, 1, replace=True)
        moved = convert_content(content, instant, 2)
        assert moved.startswith(b"Obj")
        back = convert_content(moved, instant, 1)
        assert back.startswith(b"{")
        assert CommitMetadata.from_bytes(back).write_stats == commit.write_stats
    requested = parse_instant_name("20260101000001000.deltacommit.requested", 1)
    assert requested is not None
    assert convert_content(b"", requested, 2) == b""
