"""What a woken writer left after its rollback does not count when the timeline has passed it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import ConflictError
from hoodie_py.formats.timeline.plans import RollbackMetadata
from hoodie_py.formats.timeline.writers import write_rollback_metadata
from hoodie_py.table.snapshot import open_snapshot
from hoodie_py.writer.archival import archive
from tests.watched_requests import meeting_request, writes
from tests.writer.archival.test_archive import QUICK, SOON
from tests.writer.clean_tables import Names, at
from tests.writer.written_tables import Kind, row

KINDS = [Kind(9, False), Kind(9, True), Kind(8, True), Kind(6, False), Kind(6, True)]


def roll_back_a_write(base: Path) -> tuple[str, list[Path]]:
    """Have a writer die after its tasks, copy its files, roll it back, and put the copies where they were."""
    kept = base.parent / "kept"

    def die() -> None:
        for path in base.rglob("*"):
            if path.is_file() and not path.is_relative_to(base / ".hoodie") and not path.name.endswith(".crc"):
                target = kept / path.relative_to(base)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, target)
        raise SystemExit

    before = {path for path in base.rglob("*") if path.is_file()}
    completed = writes(rf"^{base}/\.hoodie/(timeline/)?[\d_]+\.(delta)?commit$")
    with pytest.raises(SystemExit), meeting_request(completed, before=die):
        HoodieTable.open(base).insert([row(number, 50) for number in range(20, 24)], QUICK)
    [pending] = HoodieTable.open(base).timeline.select_pending().instants
    HoodieTable.open(base).rollback(pending.request_time, options=QUICK)
    put_back = []
    for path in kept.rglob("*"):
        target = base / path.relative_to(kept)
        if path.is_file() and target not in before and not path.name.startswith(".hoodie"):
            shutil.copy(path, target)
            put_back.append(target)
    return pending.request_time, put_back


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_files_of_rolled_back_writes_go_before_they_count(kind: Kind, tmp_path: Path) -> None:
    base = kind.create(tmp_path / "table")
    options = {**SOON, "hoodie.compact.inline": str(kind.merge_on_read).lower()}
    HoodieTable.open(base).upsert([row(number, 1) for number in range(4)], QUICK)
    time, late = roll_back_a_write(base)
    assert late
    for ts in range(2, 12):
        HoodieTable.open(base).upsert([row(number, ts) for number in range(4)], options)
    table = HoodieTable.open(base)
    assert table.timeline.is_archived_before(time)
    assert sorted(table.scan(["id"]).to_arrow()["id"].to_pylist()) == ["k0", "k1", "k2", "k3"]
    assert not any(path.exists() for path in late)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_files_of_completed_instants_stay_whatever_rollbacks_say(
    kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compaction may have been rolled back and run again: its rollback names an instant that counts."""
    base = kind.create(tmp_path / "table")
    options = {**SOON, "hoodie.compact.inline": str(kind.merge_on_read).lower()}
    times: list[str] = []
    monkeypatch.setattr(archive, "list_rolled_back", lambda _: sorted(times))
    for ts in range(8):
        HoodieTable.open(base).upsert([row(number, ts) for number in range(4)], options)
        times += [each.request_time for each in HoodieTable.open(base).timeline]
    table = HoodieTable.open(base)
    assert any(table.timeline.is_archived_before(time) for time in times)
    assert [each["ts"] for each in table.scan(["ts"], integrity="strict").to_arrow().to_pylist()] == [7] * 4


@pytest.mark.parametrize("version", [9, 6])
def test_only_files_that_the_archival_makes_count_go(version: int, tmp_path: Path) -> None:
    """Files of older instants count already. Files of later ones do not count after this archival either."""
    names = Names(tmp_path / "t", version)
    for number in (2, 4, 6):
        names.done(number)
    paths = {number: names.base("f-0", number) for number in (1, 3, 5)}
    for number in paths:
        undone = RollbackMetadata(at(number + 6), commits_rolled_back=(at(number),))
        names.done(number + 6, "rollback", write_rollback_metadata(undone, f"file://{names.root}"))
    now = names.snapshot()
    writes = now.timeline.select_writes().instants
    assert archive.remove_late_files(now, (), lambda: None) == []
    assert archive.remove_late_files(now, writes[1:], lambda: None) == []
    assert archive.remove_late_files(now, writes[:1], lambda: None) == [paths[3]]
    assert names.files() == {paths[1], paths[5]}


@pytest.mark.parametrize("kind", KINDS[:2], ids=str)
def test_the_lock_is_looked_at_between_listing_and_removal(
    kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the lock another writer may have run the instant again: its files have the same instant."""
    base = kind.create(tmp_path / "table")
    HoodieTable.open(base).upsert([row(number, 1) for number in range(4)], QUICK)
    _, late = roll_back_a_write(base)
    HoodieTable.open(base).upsert([row(number, 2) for number in range(4)], QUICK)
    now = open_snapshot(str(base))
    leaving = now.timeline.select_writes().instants[:1]

    def lost() -> None:
        raise ConflictError("The table's lock was lost while it was needed.")

    with pytest.raises(ConflictError):
        archive.remove_late_files(now, leaving, lost)
    assert all(path.exists() for path in late)
    removed = archive.remove_late_files(now, leaving, lambda: None)
    assert sorted(removed) == sorted(path.relative_to(base).as_posix() for path in late)
    assert not any(path.exists() for path in late)
