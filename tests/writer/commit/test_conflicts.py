"""Which commits of others go together with a write, and which do not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import ConflictError
from hoodie_py.files import TableFiles
from hoodie_py.table.snapshot import Snapshot, open_snapshot
from hoodie_py.writer.commit.conflicts import Claims, check_conflicts
from hoodie_py.writer.records import WriteOperation
from tests.writer.clean_tables import Names, at
from tests.writer.compaction_tables import QUICK
from tests.writer.pipeline.engines import Meanwhile, write_by
from tests.writer.written_tables import Kind, put, records, row


def look(base: Path) -> Snapshot:
    return open_snapshot(TableFiles.open(base))


def start(base: Path, version: int = 9) -> Snapshot:
    Kind(version, True).create(base)
    put(base, records([row(i) for i in range(4)]), WriteOperation.INSERT)
    put(base, records([row(0, 2)]))
    return look(base)


def group(snapshot: Snapshot, partition: str) -> tuple[str, str]:
    [found] = [each for each in snapshot.file_slices() if each.partition_path == partition]
    return found.partition_path, found.file_id


def test_nothing_happened(tmp_path: Path) -> None:
    before = start(tmp_path)
    claims = Claims(frozenset({group(before, "p0"), group(before, "p1")}), {}, frozenset({"p0", "p1"}))
    check_conflicts(claims, before, look(tmp_path))


def test_another_log_file_of_the_group(tmp_path: Path) -> None:
    before = start(tmp_path)
    put(tmp_path, records([row(0, 3)]))
    now = look(tmp_path)
    check_conflicts(Claims(frozenset({group(before, "p1")})), before, now)
    for claims in (
        Claims(frozenset({group(before, "p0")})),
        Claims(replaced={"p0": (group(before, "p0")[1],)}),
    ):
        with pytest.raises(ConflictError, match="changed a file group") as caught:
            check_conflicts(claims, before, now)
        assert caught.value.where["partition"] == "p0"
        assert caught.value.where["file_group"] == group(before, "p0")[1]
        assert caught.value.where["instant"] == now.timeline.list_completed_writes()[-1].request_time


def test_the_group_was_replaced(tmp_path: Path) -> None:
    before = start(tmp_path)
    replaced = {"p0": (group(before, "p0")[1],)}
    put(tmp_path, records([row(6)]), WriteOperation.INSERT_OVERWRITE, replaced=replaced)
    now = look(tmp_path)
    check_conflicts(Claims(frozenset({group(before, "p1")})), before, now)
    with pytest.raises(ConflictError):
        check_conflicts(Claims(frozenset({group(before, "p0")})), before, now)


def test_new_keys_in_the_same_partition(tmp_path: Path) -> None:
    before = start(tmp_path)
    put(tmp_path, records([row(6)]))
    now = look(tmp_path)
    with pytest.raises(ConflictError, match="the same new keys"):
        check_conflicts(Claims(new_keys_in=frozenset({"p0"})), before, now)
    check_conflicts(Claims(new_keys_in=frozenset({"p1"})), before, now)
    check_conflicts(Claims(new_keys_in=frozenset({"p0"}), looked_up=False), before, now)


@pytest.mark.parametrize("version", [9, 8, 6])
def test_a_compaction_is_a_conflict_where_logs_name_the_slice(version: int, tmp_path: Path) -> None:
    before = start(tmp_path, version)
    claims = Claims(frozenset({group(before, "p0")}))
    for step in (HoodieTable.schedule_compaction, HoodieTable.run_compaction):
        step(HoodieTable.open(tmp_path), options=QUICK)
        if version == 6:
            with pytest.raises(ConflictError):
                check_conflicts(claims, before, look(tmp_path))
        else:
            check_conflicts(claims, before, look(tmp_path))


@pytest.mark.parametrize("version", [9, 8, 6])
def test_a_compaction_is_a_conflict_of_a_base_file_that_is_rewritten(version: int, tmp_path: Path) -> None:
    before = start(tmp_path, version)
    filled = frozenset({group(before, "p0")})
    for step in (HoodieTable.schedule_compaction, HoodieTable.run_compaction):
        step(HoodieTable.open(tmp_path), options=QUICK)
        with pytest.raises(ConflictError, match="file group"):
            check_conflicts(Claims(filled, rewritten=filled), before, look(tmp_path))


@pytest.mark.parametrize("merge_on_read", [True, False])
def test_of_two_inserts_into_one_small_file_one_stays(tmp_path: Path, merge_on_read: bool) -> None:
    lock = "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"
    mode = "optimistic_concurrency_control"
    shared = {**QUICK, "hoodie.write.concurrency.mode": mode, "hoodie.write.lock.provider": lock}
    shared["hoodie.parquet.small.file.limit"] = "104857600"
    table = HoodieTable.open(Kind(9, merge_on_read).create(tmp_path))
    table.insert([row(0)], options=shared)
    for limit in ({}, {"hoodie.parquet.small.file.limit": "0"}):

        def insert(more: dict[str, str] = limit) -> None:
            HoodieTable.open(tmp_path).insert([row(2)], options={**shared, **more})

        if limit:
            write_by(Meanwhile(insert), tmp_path, [row(4)], "insert", {**shared, **limit})
        else:
            with pytest.raises(ConflictError, match="changed a file group"):
                write_by(Meanwhile(insert), tmp_path, [row(4)], "insert", shared)
    assert sorted(each["id"] for each in table.refresh().scan(columns=["id"]).to_arrow().to_pylist()) == [
        "k0", "k2", "k2", "k4"
    ]  # fmt: skip


@pytest.mark.parametrize("version", [9, 8, 6])
def test_a_compaction_before_the_write_has_an_instant_is_a_conflict(version: int, tmp_path: Path) -> None:
    """It may have removed a key that the write found in the old base file."""
    before = start(tmp_path, version)
    HoodieTable.open(tmp_path).compact(options=QUICK)
    compacted = group(before, "p0")
    with pytest.raises(ConflictError, match="file group"):
        check_conflicts(Claims(frozenset({compacted})), before, look(tmp_path), beginning=True)
    check_conflicts(Claims(), before, look(tmp_path), beginning=True)


def test_groups_of_a_pending_compaction_are_not_replaced(tmp_path: Path) -> None:
    start(tmp_path)
    table = HoodieTable.open(tmp_path)
    planned = table.schedule_compaction(options=QUICK)
    with pytest.raises(ConflictError, match="about to rewrite") as caught:
        table.insert_overwrite_table([row(1)], options=QUICK)
    assert caught.value.where["instant"] == planned
    table.insert_overwrite([row(1)], options=QUICK)
    assert table.run_compaction(options=QUICK).instant == planned


@pytest.mark.parametrize("version", [9, 6])
def test_groups_of_a_pending_clustering_are_not_changed(version: int, tmp_path: Path) -> None:
    """Whenever it was planned: its new base files lack what the write adds to the old ones."""
    names = Names(tmp_path / "t", version)
    names.done(1)
    before = names.snapshot()
    check_conflicts(Claims(frozenset({("p", "f-0")})), before, names.snapshot())
    names.clustering(2, "e-0", "f-0")
    names.pending(3, "replacecommit", "requested")  # an insert overwrite
    for known in (before, names.snapshot()):
        for claims in (Claims(frozenset({("p", "f-0")})), Claims(replaced={"p": ("f-0",)})):
            with pytest.raises(ConflictError, match="is about to rewrite a file group of this write") as caught:
                check_conflicts(claims, known, names.snapshot())
            where = caught.value.where
            assert (where["instant"], where["partition"], where["file_group"]) == (at(2), "p", "f-0")
        check_conflicts(Claims(frozenset({("p", "g-0"), ("q", "f-0")})), known, names.snapshot())


def test_log_files_for_a_compaction_that_the_write_knew_are_in_its_new_slice(tmp_path: Path) -> None:
    """In version 6: they carry the instant of the plan. A plan that is newer lacks them."""
    names = Names(tmp_path / "t", 6)
    names.done(1)
    before = names.snapshot()
    names.planned(2, "f-0", None, f"p/.f-0_{at(1)}.log.1_0-0-0")
    adds, replaces = Claims(frozenset({("p", "f-0")})), Claims(replaced={"p": ("f-0",)})
    check_conflicts(adds, names.snapshot(), names.snapshot())
    for claims, known in ((adds, before), (replaces, names.snapshot())):
        with pytest.raises(ConflictError, match="is about to rewrite") as caught:
            check_conflicts(claims, known, names.snapshot())
        assert caught.value.where["instant"] == at(2)


@pytest.mark.parametrize(
    ("name", "more", "conflicts"),
    [
        (f"g-0_0-0-0_{at(2)}.parquet", {"prevCommit": "null"}, True),  # a new base file whose writer did not count
        (f".g-0_{at(2)}.log.1_0-0-0", {"prevCommit": "null", "logVersion": 1}, False),
        (f".g-0_{at(2)}.log.1_0-0-0", {"prevCommit": "null", "logVersion": 1, "numInserts": 1}, True),
        (f"g-0_0-0-0_{at(2)}.parquet", {"prevCommit": at(1)}, False),
        (f"g-0_0-0-0_{at(2)}.parquet", {"prevCommit": at(1), "numInserts": 1}, True),
    ],
)
def test_which_files_have_new_keys(name: str, more: dict[str, Any], conflicts: bool, tmp_path: Path) -> None:
    names = Names(tmp_path / "t")
    names.done(1)
    before = names.snapshot()
    stat = {"fileId": "g-0", "partitionPath": "p", "path": f"p/{name}", **more}
    names.done(2, content=json.dumps({"partitionToWriteStats": {"p": [stat]}}).encode())
    claims = Claims(new_keys_in=frozenset({"p"}))
    if conflicts:
        with pytest.raises(ConflictError, match="the same new keys"):
            check_conflicts(claims, before, names.snapshot())
    else:
        check_conflicts(claims, before, names.snapshot())
    check_conflicts(Claims(new_keys_in=frozenset({"q"})), before, names.snapshot())


def test_a_restore_since_the_look_is_a_conflict(tmp_path: Path) -> None:
    """Its savepoint's commit is the last one again, so that no commit is new."""
    start(tmp_path)
    table = HoodieTable.open(tmp_path)
    saved = table.savepoint(options=QUICK).instant
    put(tmp_path, records([row(1, 3)]))
    before = look(tmp_path)
    HoodieTable.open(tmp_path).restore(saved, QUICK)
    with pytest.raises(ConflictError, match="was restored since") as caught:
        check_conflicts(Claims(), before, look(tmp_path))
    assert caught.value.where["instant"] == look(tmp_path).timeline.select_actions("restore").instants[0].request_time
    check_conflicts(Claims(), look(tmp_path), look(tmp_path))


@pytest.mark.parametrize(("new", "conflicts"), [(1, False), (2, True)])
def test_one_commit_cannot_be_archived_alone(new: int, conflicts: bool, tmp_path: Path) -> None:
    """Of the commits that were there only one with a savepoint is left, which archival may have passed."""
    names = Names(tmp_path / "t")
    names.done(1)
    names.saved(1, names.log("f-0", 1))
    names.done(2)
    before = names.snapshot()
    for path in names.timeline.glob(f"{at(2)}*"):
        path.unlink()
    for number in range(3, 3 + new):
        names.done(number, content=b"{}")
    if conflicts:
        with pytest.raises(ConflictError, match="may be archived") as caught:
            check_conflicts(Claims(), before, names.snapshot())
        assert caught.value.where["instant"] == at(2)
    else:
        check_conflicts(Claims(), before, names.snapshot())


def test_commits_since_then_are_all_known_while_one_before_them_is_active(tmp_path: Path) -> None:
    names = Names(tmp_path / "t")
    names.done(1)
    before = names.snapshot()
    for number in range(2, 9):
        names.done(number, content=b"{}")
    check_conflicts(Claims(), before, names.snapshot())
    for path in names.timeline.glob(f"{at(1)}*"):
        path.unlink()
    with pytest.raises(ConflictError, match="may be archived"):
        check_conflicts(Claims(), before, names.snapshot())


def test_commits_since_then_may_be_archived(tmp_path: Path) -> None:
    before = start(tmp_path)
    table = HoodieTable.open(tmp_path)
    for ts in (3, 4, 5):
        table.upsert([row(1, ts)], QUICK)
    keep = {"hoodie.keep.min.commits": 1, "hoodie.keep.max.commits": 1, "hoodie.compact.inline.max.delta.commits": 1}
    table.archive({**QUICK, **keep, "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS"})
    with pytest.raises(ConflictError, match="may be archived"):
        check_conflicts(Claims(frozenset({group(before, "p0")})), before, look(tmp_path))
