"""Up to table version 6 a slice shows log files of unfinished writes; those may be gone when it is read."""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path

import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import ConflictError, FileMissingError
from hoodie_py.table.scan.scan import Scan
from tests.watched_requests import asks, meeting_request, writes
from tests.writer.compaction_tables import QUICK, writable
from tests.writer.written_tables import Kind, contents, put, records, row


def unfinished(base: Path, version: int = 6) -> str:
    """A table whose last write is pending and has log files beside those that count; return its instant."""
    Kind(version, True).create(base)
    put(base, records([row(1), row(2), row(3)]))
    put(base, records([row(1, 2, "b")]))
    put(base, records([row(1, 5, "lost"), row(2, 5, "lost")]))
    table = HoodieTable.open(base)
    last = table.timeline.instants[-1]
    (base / table.config.find_timeline_folder() / last.file_name(table.config.timeline_layout)).unlink()
    return last.request_time


def pinned(base: Path, **options: object) -> Scan:
    """A scan that knows its files."""
    scan = HoodieTable.open(base).scan(columns=["id", "ts", "name"], **options)  # type: ignore[arg-type]
    scan.tasks()
    return scan


ROWS = {"k1": (2, "b"), "k2": (1, "a"), "k3": (1, "a")}


def rows(scan: Scan) -> dict[str, tuple[int, str]]:
    return {each["id"]: (each["ts"], each["name"]) for each in scan.to_arrow().to_pylist()}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"integrity": "strict"},
        {"memory_limit": 1},
        {"options": {"hoodie.datasource.merge.type": "skip_merge"}},
    ],
    ids=["default", "strict", "little memory", "unmerged"],
)
@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_pinned_scan_gives_the_same_rows(version: int, options: dict[str, object], tmp_path: Path) -> None:
    instant = unfinished(tmp_path, version)
    before = sorted(map(repr, pinned(tmp_path, **options).to_arrow().to_pylist()))
    scan = pinned(tmp_path, **options)
    HoodieTable.open(tmp_path).rollback(instant, options=QUICK)
    assert sorted(map(repr, scan.to_arrow().to_pylist())) == before
    tasks = pickle.loads(pickle.dumps(pinned(tmp_path, **options).tasks()))
    assert sum(batch.num_rows for task in tasks for batch in task.to_batches()) == len(before)


def test_a_write_that_begins_after_the_pin_and_is_taken_back_is_never_seen(tmp_path: Path) -> None:
    Kind(6, True).create(tmp_path)
    put(tmp_path, records([row(1), row(2), row(3)]))
    put(tmp_path, records([row(1, 2, "b")]))
    table = HoodieTable.open(tmp_path)
    put(tmp_path, records([row(1, 5, "lost")]))
    last = HoodieTable.open(tmp_path).timeline.instants[-1]
    (tmp_path / ".hoodie" / last.file_name(1)).unlink()
    scan = table.scan(columns=["id", "ts", "name"])
    scan.tasks()
    HoodieTable.open(tmp_path).rollback(last.request_time, options=QUICK)
    assert rows(scan) == ROWS


@pytest.mark.parametrize("version", [6, 9])
def test_a_log_file_that_counts_and_is_gone_is_an_error(version: int, tmp_path: Path) -> None:
    unfinished(tmp_path, version)
    scan = pinned(tmp_path)
    logs = [log.path for task in scan.tasks() for log in task.file_slice.log_files]
    counting = [path for path in logs if path.startswith("p1/") and ".log.1_" in path]
    (tmp_path / counting[0]).unlink()
    with pytest.raises(FileMissingError):
        scan.to_arrow()


def test_a_log_file_of_an_archived_commit_that_is_gone_is_an_error(tmp_path: Path) -> None:
    base = writable("archived_timeline_mor_v6", tmp_path)
    first = HoodieTable.open(base).timeline.first_active_time
    assert first is not None
    paths = [log.path for each in HoodieTable.open(base).file_slices() for log in each.log_files]
    assert paths
    for path in paths:
        copy = tmp_path / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(base, copy)
        scan = HoodieTable.open(copy).scan()
        scan.tasks()
        (copy / path).unlink()
        with pytest.raises(FileMissingError):
            scan.to_arrow()


def test_a_log_file_of_a_commit_that_was_rolled_back_is_an_error(tmp_path: Path) -> None:
    """The commit counted for the snapshot, so its rows may not go silently."""
    Kind(6, True).create(tmp_path)
    put(tmp_path, records([row(1), row(2), row(3)]))
    put(tmp_path, records([row(1, 2, "b")]))
    last = HoodieTable.open(tmp_path).timeline.instants[-1]
    scan = pinned(tmp_path)
    (tmp_path / ".hoodie" / last.file_name(1)).unlink()
    HoodieTable.open(tmp_path).rollback(last.request_time, options=QUICK)
    with pytest.raises(FileMissingError):
        scan.to_arrow()


# Plans that are taken back between the look and their reading --------------------------------------------------------


@pytest.mark.parametrize("version", [8, 9])
def test_a_compaction_plan_that_is_taken_back_leaves_a_pinned_scan_alone(version: int, tmp_path: Path) -> None:
    Kind(version, True).create(tmp_path)
    put(tmp_path, records([row(1), row(2), row(3)]))
    put(tmp_path, records([row(1, 2, "b")]))
    planned = str(HoodieTable.open(tmp_path).schedule_compaction(options=QUICK))
    put(tmp_path, records([row(2, 3, "c")]))
    table = HoodieTable.open(tmp_path)
    HoodieTable.open(tmp_path).rollback(planned, options=QUICK)
    assert contents(table) == {**ROWS, "k2": (3, "c")}


@pytest.mark.parametrize("version", [6, 8, 9])
def test_an_overwrite_that_is_taken_back_is_in_nobodys_way(version: int, tmp_path: Path) -> None:
    Kind(version, True).create(tmp_path)
    put(tmp_path, records([row(1), row(2)]))
    path = (
        tmp_path
        / HoodieTable.open(tmp_path).config.find_timeline_folder()
        / "20261121230000000.replacecommit.requested"
    )
    path.write_bytes(b"")
    snapshot = HoodieTable.open(tmp_path)._snapshot
    [instant] = snapshot.timeline.select_pending_replacements()
    path.unlink()
    assert not snapshot.timeline.read_replace_plan(instant).is_clustering


# Writers -------------------------------------------------------------------------------------------------------------


def test_a_planned_log_file_of_a_write_taken_back_is_left_out(tmp_path: Path) -> None:
    instant = unfinished(tmp_path)
    base = tmp_path / ".hoodie"
    hidden = {path: path.read_bytes() for path in base.glob(f"{instant}.deltacommit.*")}
    for path in hidden:
        path.unlink()
    planned = HoodieTable.open(tmp_path).schedule_compaction(options=QUICK)  # as if the write had begun right after
    for path, content in hidden.items():
        path.write_bytes(content)
    HoodieTable.open(tmp_path).rollback(instant, options=QUICK)
    assert HoodieTable.open(tmp_path).run_compaction(planned, options=QUICK).instant == planned
    assert contents(tmp_path) == ROWS


def test_a_write_whose_files_are_cleaned_away_meanwhile_is_a_conflict(tmp_path: Path) -> None:
    Kind(9, False).create(tmp_path)
    put(tmp_path, records([row(1), row(2)]))

    def replace_files() -> None:
        other = HoodieTable.open(tmp_path)
        other.upsert([row(1, 3), row(2, 3)], options=QUICK)
        other.clean(1, options=QUICK)

    table = HoodieTable.open(tmp_path)
    with meeting_request(asks(r"\.parquet$"), before=replace_files), pytest.raises(ConflictError):
        table.upsert([row(1, 9, "late")], options=QUICK)
    table.upsert([row(1, 9, "late")], options=QUICK)
    assert contents(tmp_path) == {"k1": (9, "late"), "k2": (3, "a")}


def test_a_file_that_nobody_took_is_missing_for_a_write_too(tmp_path: Path) -> None:
    Kind(9, False).create(tmp_path)
    put(tmp_path, records([row(1)]))
    (base,) = tmp_path.rglob("*.parquet")
    begun = writes(rf"{tmp_path}/\.hoodie/timeline/\d+\.commit\.requested$")
    with meeting_request(begun, after=base.unlink), pytest.raises(FileMissingError):
        HoodieTable.open(tmp_path).upsert([row(1, 3)], options=QUICK)
