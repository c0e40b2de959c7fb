"""Archival as a whole: nothing is lost or doubled, whatever happens on the way."""

from __future__ import annotations

import shutil
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import ConflictError, HoodieError, HoodieWarning, InvalidQueryError
from hoodie_py.files import TableFiles
from hoodie_py.table.snapshot import open_snapshot
from hoodie_py.table.timeline.archive import iterate_archive_files
from hoodie_py.writer.archival.archive import archive, archive_inline
from hoodie_py.writer.timeline.session import WriteSession
from tests.writer.faulty_files import WRITES, FaultyFiles, Killed, Plan
from tests.writer.written_tables import Kind, row

QUICK: dict[str, Any] = {"hoodie.time.generator.max_expected_clock_skew_ms": 0, "hoodie.index.type": "SIMPLE"}
SOON = {
    **QUICK,
    "hoodie.archive.automatic": "true",
    "hoodie.clean.automatic": "false",
    "hoodie.keep.min.commits": 2,
    "hoodie.keep.max.commits": 3,
    "hoodie.clean.commits.retained": 1,
    "hoodie.compact.inline.max.delta.commits": 1,
    "hoodie.timeline.compaction.batch.size": 2,
}
KINDS = [Kind(9, merge_on_read=True, partitioned=False), Kind(6, merge_on_read=False, partitioned=False)]
every_kind = pytest.mark.parametrize("kind", KINDS, ids=str)


def written(kind: Kind, base: Path, commits: int = 6, options: dict[str, Any] = QUICK) -> Path:
    kind.create(base)
    for ts in range(commits):
        HoodieTable.open(base).upsert([row(number, ts) for number in (ts % 3, 5)], options)
    return base


def everything(base: Path) -> dict[tuple[str, str], str]:
    """Completion times of all instants; none may be there twice."""
    rows = HoodieTable.open(base).inspect.timeline(archived=True).to_pylist()
    found = {(each["request_time"], each["action"]): each["completion_time"] for each in rows}
    assert len(found) == len(rows)
    return found


def answers(base: Path) -> list[Any]:
    """What a table says of its present and its past."""
    table = HoodieTable.open(base)
    instants = sorted(everything(base).items())
    past = [table.scan(as_of=time).to_arrow().sort_by("id").to_pylist() for (time, _), _ in instants]
    ranges = [table.incremental(done).to_arrow().sort_by("id").to_pylist() for _, done in instants]
    return [table.scan().to_arrow().sort_by("id").to_pylist(), past, ranges]


@every_kind
@pytest.mark.filterwarnings("ignore:[0-9,]+ commits? of the range .* archived")  # up to version 6
def test_archived_instants_answer_as_before(kind: Kind, tmp_path: Path) -> None:
    base = written(kind, tmp_path / "t")
    known, before = everything(base), answers(base)
    table = HoodieTable.open(base)
    shown = table.archive(SOON, dry_run=True)
    assert str(shown).endswith("can be archived; 2 commits stay.")
    assert everything(base) == known
    result = table.archive(SOON)
    assert (result.instants, result.active) == (shown.instants, 2)
    assert str(result).startswith("Archived 4 instants, ")
    assert len(table.timeline.select_writes()) == 2
    assert everything(base) == known
    assert answers(base) == before
    assert (
        str(table.archive(SOON))
        == "There is nothing to archive of 2 commits: up to 3 commits stay in the active timeline."
    )


@pytest.mark.parametrize("kind", [Kind(9, True), Kind(8, False), Kind(6, False), Kind(6, True)], ids=str)
def test_what_an_archived_clean_removed_is_not_shown_as_if_it_had_never_been(kind: Kind, tmp_path: Path) -> None:
    """Without the clean's file on the timeline, rows whose files it removed would be missing without a word."""
    table = HoodieTable.open(kind.create(tmp_path))
    keep = {**QUICK, "hoodie.keep.min.commits": 2, "hoodie.keep.max.commits": 3, "hoodie.clean.commits.retained": 1}
    times, states = [], []
    for ts in range(8):
        table.upsert([row(number, ts) for number in range(4)], QUICK)
        if kind.merge_on_read:
            table.compact(options=QUICK)
        times.append(str(table.refresh()._snapshot.instant))
        states.append(table.to_arrow(columns=["id", "ts"]).sort_by("id").to_pylist())
        if ts == 4:
            assert table.clean(2, QUICK).files_deleted
            table.archive(options=keep)
    table.archive(options=keep)
    table = HoodieTable.open(tmp_path)
    kept = 4 if kind.merge_on_read else 3  # the clean retained two commits; compactions are some
    for time in times[:kept]:
        with pytest.raises(InvalidQueryError, match="were cleaned"):
            table.scan(["id", "ts"], as_of=time).to_arrow()
    shown = [table.scan(["id", "ts"], as_of=time).to_arrow().sort_by("id").to_pylist() for time in times[kept:]]
    assert shown == states[kept:]


@every_kind
def test_a_write_archives_what_is_due(kind: Kind, tmp_path: Path) -> None:
    base = kind.create(tmp_path / "t")
    done = []
    for ts in range(12):
        result = HoodieTable.open(base).upsert([row(ts % 3, ts)], SOON)
        done.append(result.archive is not None)
        assert len(HoodieTable.open(base).timeline.select_writes()) <= 3
    assert sum(done) >= 4
    assert len(everything(base)) == 12
    files = TableFiles.open(base)
    session = WriteSession.open(open_snapshot(str(base)), options=SOON)
    counted = FaultyFiles(files, plan := Plan())
    assert archive_inline(replace(session, files=counted)) is None
    assert plan.trace == []  # the timeline at hand decides


def test_a_write_archives_nothing_if_it_is_told_so(tmp_path: Path) -> None:
    base = written(KINDS[0], tmp_path / "t", 4)
    for more in ({"hoodie.archive.automatic": "false"}, {"hoodie.table.services.enabled": "false"}):
        assert HoodieTable.open(base).upsert([row(1, 9)], {**SOON, **more}).archive is None
    assert HoodieTable.open(base).upsert([row(1, 9)], {**SOON, "hoodie.archive.async": "true"}).archive is not None


@every_kind
def test_an_archival_that_fails_after_a_commit_is_a_warning(kind: Kind, tmp_path: Path) -> None:
    base = written(kind, tmp_path / "t", 4)
    folder = base / HoodieTable.open(base).config.find_timeline_folder()
    first = min(path for path in folder.iterdir() if path.name.endswith("commit"))
    first.write_bytes(b"{")
    if kind.version == 9:  # there the content is not looked at
        shutil.rmtree(folder / "history", ignore_errors=True)
        (folder / "history").write_bytes(b"a file in the place of a folder")
    with pytest.warns(HoodieWarning, match="The write is committed; a table service after it failed"):
        result = HoodieTable.open(base).upsert([row(1, 9)], SOON)
    assert result.instant is not None
    assert result.archive is None


@every_kind
@pytest.mark.parametrize("fault", ["kill before", "lose answer"])
def test_a_writer_may_die_at_any_call(kind: Kind, fault: str, tmp_path: Path) -> None:
    start = written(kind, tmp_path / "start", 4)
    HoodieTable.open(start).archive(SOON)  # so that the history has files to merge
    for ts in (7, 8):
        HoodieTable.open(start).upsert([row(7, ts)], QUICK)
    known, rows = everything(start), HoodieTable.open(start).scan().to_arrow().sort_by("id").to_pylist()
    at, ended = 0, False
    while not ended:
        base = tmp_path / f"{at}"
        shutil.copytree(start, base)
        plan = Plan(at, fault, WRITES)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", HoodieWarning)
                _archive(base, plan)
            ended = len(plan.trace) <= at
        except (Killed, HoodieError):
            pass
        assert everything(base) == known, plan.trace[-1]
        assert HoodieTable.open(base).scan().to_arrow().sort_by("id").to_pylist() == rows
        HoodieTable.open(base).archive(SOON)
        assert everything(base) == known, plan.trace[-1]
        assert len(HoodieTable.open(base).timeline.select_writes()) <= 3
        entries = _list_entries(base)
        assert len(set(entries)) == len(entries), plan.trace[-1]
        shutil.rmtree(base)
        at += 1
    assert at > 6


def _archive(base: Path, plan: Plan) -> None:
    session = WriteSession.open(open_snapshot(str(base)), options=SOON)
    archive(replace(session, files=FaultyFiles(TableFiles.open(base), plan)))


def _list_entries(base: Path) -> list[tuple[str, str]]:
    """Request time and action of all instants in the archive's files: none may be written twice."""
    table = open_snapshot(str(base))
    found = iterate_archive_files(table.files, table.config, lambda *_: True)
    return [(each.request_time, each.action) for some in found for each in some]


@every_kind
def test_another_writer_keeps_an_archival_out(kind: Kind, tmp_path: Path) -> None:
    base = written(kind, tmp_path / "t", 5)
    session = WriteSession.open(open_snapshot(str(base)), options=SOON)
    with session.hold_lock(), pytest.raises(ConflictError):
        HoodieTable.open(base).archive({**SOON, "hoodie.write.lock.wait_time_ms": 10})
    assert len(HoodieTable.open(base).timeline.select_writes()) == 5


def test_markers_of_archived_instants_go(tmp_path: Path) -> None:
    base = written(KINDS[0], tmp_path / "t", 5)
    first = HoodieTable.open(base).timeline.instants[0].request_time
    left = base / ".hoodie/.temp" / first / "x.marker.CREATE"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"")
    HoodieTable.open(base).archive(SOON)
    assert not left.parent.exists()


def test_many_instants_are_archived_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hoodie_py.writer.archival.archive._AT_ONCE", 2)
    base = written(KINDS[0], tmp_path / "t", 8)
    known = everything(base)
    assert len(HoodieTable.open(base).archive(SOON).files) == 3
    assert everything(base) == known


def test_more_commits_must_stay_at_most_than_at_least(tmp_path: Path) -> None:
    base = written(KINDS[0], tmp_path / "t", 1)
    with pytest.raises(InvalidQueryError, match="is not greater than"):
        HoodieTable.open(base).archive({"hoodie.keep.min.commits": 30})
