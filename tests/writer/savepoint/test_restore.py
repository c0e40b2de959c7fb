from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import CommitStateUnknownError, ConflictError, HoodieError, InvalidQueryError, InvalidTableError
from hoodie_py.files import TableFiles
from hoodie_py.formats.timeline.savepoints import RestoreMetadata, RestorePlan
from hoodie_py.writer.savepoint.restore import RestoreResult
from tests.writer.compaction_tables import QUICK, copied, opened, orphans, rows
from tests.writer.faulty_files import WRITES, FaultyFiles, Killed, Plan
from tests.writer.transaction.test_second_look import before_the_completed_file
from tests.writer.written_tables import Kind, row, session

INDEXES = {
    **QUICK,
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.compact.max.delta.commits": "3",  # restores go back past compactions of the metadata table
}


def changed(kind: Kind, base: Path, options: dict[str, str]) -> tuple[HoodieTable, Any, str]:
    """A table with a savepoint and writes of all kinds after it; its rows at the savepoint, and the savepoint."""
    table = HoodieTable.open(kind.create(base))
    for ts in (1, 2):
        table.upsert([row(number, ts) for number in range(8)], options)
    saved = table.savepoint(options=options).instant
    before = rows(table)
    table.upsert([row(number, 3) for number in range(4, 12)], options)
    if kind.merge_on_read:
        table.compact(options=options)
        table.upsert([row(number, 4) for number in range(4)], options)
    table.delete(["k1"], options)
    table.insert_overwrite([row(number, 5) for number in range(20, 24)], options)
    table.upsert([{**row(30, 6), "part": "new"}] if kind.partitioned else [row(30, 6)], options)
    table.clean(1, options)
    table.upsert([row(number, 7) for number in range(20, 24)], options)
    if kind.merge_on_read:
        table.schedule_compaction(options=options)
        table.upsert([row(number, 8) for number in range(20, 24)], options)
    return table, before, saved


def check(base: Path, before: Any, saved: str) -> HoodieTable:
    """The table is as it was, and goes on."""
    table = HoodieTable.open(base)
    assert rows(table) == before
    assert [each for each in table.timeline.select_pending() if each.is_write] == []
    last = table.timeline.select_writes().last
    assert last is not None
    assert last.request_time == saved
    assert orphans(base) == []
    assert not list(table.timeline.select_actions("rollback").select_after(saved))
    check_whole(table)
    return table


PLAIN = [Kind(8, True, False), Kind(6, True), Kind(6, False, False)]
INDEXED = [Kind(9, True), Kind(8, False), Kind(6, True)]


@pytest.mark.parametrize(
    ("kind", "options"),
    [*((kind, QUICK) for kind in PLAIN), *((kind, INDEXES) for kind in INDEXED)],
    ids=[*map(str, PLAIN), *(f"{kind}-indexes" for kind in INDEXED)],
)
def test_the_table_is_as_it_was(kind: Kind, options: dict[str, str], tmp_path: Path) -> None:
    table, before, saved = changed(kind, tmp_path / "t", options)
    later = [each for each in table.timeline if each.is_write and each.request_time > saved]
    result = table.restore(saved, options)
    assert rows(table) == before
    assert sorted(result.undone) == sorted(each.request_time for each in later)
    assert str(result).startswith(f"The table is as it was at {saved}: {len(later)} later instants")
    assert bool(result.metadata_partitions) == (options is INDEXES)
    again = check(tmp_path / "t", before, saved)
    restores = again.timeline.select_actions("restore")
    done = again._snapshot.timeline.read_instant_file(restores.instants[0], RestoreMetadata.from_bytes)
    assert done.instants_rolled_back == result.undone
    again.upsert([row(number, 7) for number in range(3)], options)
    assert [each["ts"] for each in again.scan(filter="id = 'k1'").to_arrow().to_pylist()] == [7]
    check_whole(again)
    assert again.restore(saved, options).undone


def check_whole(table: HoodieTable) -> None:
    found = table.verify()
    assert all(not each.wrong for each in found.parts), found


@pytest.mark.parametrize("version", [9, 8, 6])
def test_in_an_object_store(version: int) -> None:
    """The metadata table gets a commit without a record, as it was taken back itself."""
    uri = f"memory://{uuid4().hex}/t"
    table = HoodieTable.open(Kind(version, True).create(uri))
    table.upsert([row(1)], INDEXES)
    before, saved = rows(table), table.savepoint(options=INDEXES).instant
    table.upsert([row(1, 2), row(2)], INDEXES)
    assert table.restore(saved, INDEXES).undone
    assert rows(table) == before
    check_whole(HoodieTable.open(uri))


def test_nothing_came_after(tmp_path: Path) -> None:
    table = HoodieTable.open(Kind(9, True).create(tmp_path / "t"))
    table.upsert([row(1)], QUICK)
    saved = table.savepoint(options=QUICK).instant
    result = table.restore(saved, QUICK)
    assert result.instant is None
    assert "Nothing came after" in str(result)
    assert not len(table.timeline.select_actions("restore"))


def test_what_a_result_says() -> None:
    done = RestoreResult("20260101", "20260103", ("20260102",), 1234, seconds=0.26)
    removed = "The table is as it was at 20260101: 1 later instants and 1,234 files were removed"
    assert str(done) == f"{removed}, in 0.3 s."
    built = replace(done, metadata_partitions=("files", "column_stats"))
    assert str(built) == f"{removed}, and the metadata table was built anew (files, column_stats), in 0.3 s."


def test_what_cannot_be_restored_is_refused(tmp_path: Path) -> None:
    table, _, saved = changed(Kind(9, True), tmp_path / "t", QUICK)
    before = rows(table)
    other = table.savepoint(options=QUICK).instant
    with pytest.raises(InvalidQueryError, match=f"The savepoint {other} is later"):
        table.restore(saved, QUICK)
    with pytest.raises(InvalidQueryError, match="There is no savepoint at"):
        table.restore("20200101000000000", QUICK)
    table.delete_savepoint(other, QUICK)
    gone = table.file_slices(as_of=saved)[0].base_file
    assert gone is not None
    kept = (tmp_path / "t" / gone.path).read_bytes()
    (tmp_path / "t" / gone.path).unlink()
    with pytest.raises(InvalidTableError, match="A file of the savepoint is gone"):
        HoodieTable.open(tmp_path / "t").restore(saved, QUICK)
    (tmp_path / "t" / gone.path).write_bytes(kept)
    assert rows(HoodieTable.open(tmp_path / "t")) == before
    assert not len(HoodieTable.open(tmp_path / "t").timeline.select_actions("restore"))


def test_a_write_of_a_flink_job_is_rolled_back_first(tmp_path: Path) -> None:
    table, _, saved = changed(Kind(9, True), tmp_path, {})
    timeline = session(tmp_path).open_timeline(session(tmp_path).look())
    pending = timeline.begin(timeline.request(session(tmp_path).clock.take(), "deltacommit", b"")).request_time
    checkpoint = tmp_path / f".hoodie/.aux/ckp_meta/{pending}.INFLIGHT"
    checkpoint.parent.mkdir(parents=True)
    checkpoint.touch()
    with pytest.raises(ConflictError, match="A Flink job writes to the instant"):
        table.restore(saved)
    with pytest.raises(ConflictError, match="A Flink job writes to an instant that the restore would undo"):
        table.restore(saved, options={"hoodie.clean.failed.writes.policy": "LAZY"})
    table.rollback(pending)
    table.restore(saved)


def test_a_pending_restore_keeps_all_others_out(tmp_path: Path) -> None:
    table, before, saved = changed(Kind(8, True), tmp_path / "t", QUICK)
    plan = Plan(watched=("delete",), at=3)
    with pytest.raises(Killed):
        opened(FaultyFiles(TableFiles.open(table.uri), plan)).restore(saved, QUICK)
    stuck = HoodieTable.open(table.uri)
    [pending] = stuck.timeline.select_pending().select_actions("restore")
    for change in (
        lambda: stuck.upsert([row(1)], QUICK),
        lambda: stuck.delete_savepoint(saved, QUICK),
        lambda: stuck.savepoint(options=QUICK),
        lambda: stuck.clean(1, QUICK),
        lambda: stuck.rollback(pending.request_time, QUICK),
    ):
        with pytest.raises(HoodieError, match="restore") as caught:
            change()
        assert "restore" in str(caught.value)
    with pytest.raises(InvalidQueryError, match=f"A restore to {saved} is pending"):
        stuck.restore("20200101000000000", QUICK)
    requested = tmp_path / "t/.hoodie/timeline" / f"{pending.request_time}.restore.requested"
    assert RestorePlan.from_bytes(requested.read_bytes()).savepoint == saved
    stuck.restore(saved, QUICK)
    check(tmp_path / "t", before, saved)


@pytest.mark.parametrize(
    ("kind", "options", "fault"),
    [
        (Kind(9, True), INDEXES, "kill before"),
        (Kind(9, False), INDEXES, "refuse"),
        (Kind(6, True), QUICK, "kill after"),
    ],
    ids=["9", "9-cow", "6"],
)
def test_a_restore_that_is_cut_short_goes_on(kind: Kind, options: dict[str, str], fault: str, tmp_path: Path) -> None:
    table, before, saved = changed(kind, tmp_path / "t", options)
    base = Path(table.uri.removeprefix("file://"))
    assert cut_short(base, before, saved, options, fault, tmp_path, 41)


def cut_short(
    base: Path, before: Any, saved: str, options: dict[str, str], fault: str, tmp_path: Path, step: int
) -> Counter[str]:
    """Cut a restore short at each ``step``-th change of the store, and go on."""
    trace = Plan(watched=WRITES)
    opened(FaultyFiles(TableFiles.open(copied(base, tmp_path / "c")), trace)).restore(saved, options)
    seen: Counter[str] = Counter()
    for at in range(0, len(trace.trace), step):
        copy = copied(base, tmp_path / "c")
        try:
            opened(FaultyFiles(TableFiles.open(copy), Plan(at=at, fault=fault, watched=WRITES))).restore(saved, options)
        except (Killed, HoodieError, CommitStateUnknownError) as error:
            seen[type(error).__name__] += 1
        HoodieTable.open(copy).restore(saved, options)
        check(copy, before, saved)
        check_whole(HoodieTable.open(copy))
    return seen


@pytest.mark.parametrize("kind", [Kind(9, True), Kind(6, False)], ids=str)
def test_a_commit_beside_a_restore_is_a_conflict(kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its writer took no lock and did not see the restore: what it read may be gone."""
    base = kind.create(tmp_path / "t")
    table = HoodieTable.open(base)
    table.upsert([row(1), row(2)], QUICK)
    saved = table.savepoint(options=QUICK).instant
    table.upsert([row(1, 2)], QUICK)
    other = copied(base, tmp_path / "other")
    HoodieTable.open(other).upsert([row(2, 3)], QUICK)

    def commit_beside(_: Any) -> None:
        for path in other.rglob("*"):
            target = base / path.relative_to(other)
            if path.is_file() and not target.exists() and not path.is_relative_to(other / ".hoodie/metadata"):
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(path.read_bytes())

    before_the_completed_file(monkeypatch, "restore", commit_beside)
    with pytest.raises(ConflictError, match="Another writer committed beside the restore"):
        table.restore(saved, QUICK)
