from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import ConflictError, InvalidQueryError, StorageError, UnsupportedFeatureError
from hoodie_py.files import TableFiles
from hoodie_py.formats.timeline.plans import RollbackMetadata, RollbackPlan
from hoodie_py.writer.pipeline.local_engine import LocalEngine
from tests.corpus import corpus_names
from tests.writer.compaction_tables import QUICK, leftovers, opened, rows, writable
from tests.writer.faulty_files import WRITES, FaultyFiles, Killed, Plan

VERSIONS = ["basic_mor_v6_part", "basic_mor_v8_part", "basic_mor_v9_part"]
FAILED = [
    name
    for name in ("inflight_last_mor_v6", "inflight_last_mor_v9", "inflight_last_cow_v9", "inflight_between_mor_v9")
    if name in corpus_names()
]


def tree(base: Path) -> list[str]:
    return sorted(path.relative_to(base).as_posix() for path in base.rglob("*") if path.is_file())


def begun(base: Path) -> tuple[str, list[str]]:
    """Schedule a compaction and let its run die right before the commit; the files there were before the run."""
    instant = str(HoodieTable.open(base).schedule_compaction(options=QUICK))
    before = tree(base)
    copy = base.with_name("copy")
    shutil.copytree(base, copy)
    plan = Plan(watched=("put_if_absent",))
    opened(FaultyFiles(TableFiles.open(copy), plan)).run_compaction(instant, LocalEngine(1), QUICK)
    dies = Plan(at=len(plan.trace) - 1, fault="kill before", watched=("put_if_absent",))
    with pytest.raises(Killed):
        opened(FaultyFiles(TableFiles.open(base), dies)).run_compaction(instant, LocalEngine(1), QUICK)
    return instant, before


# Compactions ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", VERSIONS)
def test_a_compaction_under_way_goes_back_to_requested(name: str, tmp_path: Path) -> None:
    base = writable(name, tmp_path)
    instant, before = begun(base)
    assert tree(base) != before
    result = HoodieTable.open(base).rollback(instant, options=QUICK)
    assert (result.left, result.files_deleted, result.rollback) == ("requested", 2, None)
    assert "back to requested" in str(result)
    assert tree(base) == before


@pytest.mark.parametrize("name", VERSIONS)
def test_a_requested_compaction_is_removed(name: str, tmp_path: Path) -> None:
    base = writable(name, tmp_path)
    before = tree(base)
    instant = str(HoodieTable.open(base).schedule_compaction(options=QUICK))
    result = HoodieTable.open(base).rollback(instant, options=QUICK)
    assert (result.left, result.files_deleted) == ("gone", 0)
    assert tree(base) == before


def test_up_to_version_6_a_plan_stays_that_log_files_are_named_after(tmp_path: Path) -> None:
    base = writable("compaction_pending_mor_v6", tmp_path)
    [instant] = [each.request_time for each in HoodieTable.open(base).timeline.select_pending_compactions()]
    table = HoodieTable.open(base)
    if table.timeline.find(instant).state == "inflight":  # type: ignore[union-attr]
        table.rollback(instant, options=QUICK)
    before = tree(base)
    with pytest.raises(UnsupportedFeatureError, match="named after it"):
        HoodieTable.open(base).rollback(instant, options=QUICK)
    assert tree(base) == before


def test_from_version_8_on_such_a_plan_may_go(tmp_path: Path) -> None:
    base = writable("compaction_pending_mor_v9", tmp_path)
    table = HoodieTable.open(base)
    before = rows(table)
    [instant] = [each.request_time for each in table.timeline.select_pending_compactions()]
    while HoodieTable.open(base).timeline.find(instant) is not None:
        HoodieTable.open(base).rollback(instant, options=QUICK)
    assert rows(HoodieTable.open(base)) == before
    HoodieTable.open(base).compact(options=QUICK)
    assert rows(HoodieTable.open(base), "read_optimized") == before


# Writes --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FAILED)
def test_a_failed_write_loses_its_files_and_the_timeline_says_so(name: str, tmp_path: Path) -> None:
    base = writable(name, tmp_path)
    table = HoodieTable.open(base)
    before = rows(table)
    [pending] = [each for each in table.timeline.select_pending() if each.is_write]
    result = table.rollback(pending.request_time, options=QUICK)
    now = HoodieTable.open(base)
    assert rows(now) == before
    assert now.timeline.find(pending.request_time) is None
    recorded = now.timeline.find(str(result.rollback))
    assert recorded is not None
    assert (recorded.action, recorded.state) == ("rollback", "completed")
    folder = base / now.config.find_timeline_folder()
    metadata = RollbackMetadata.from_bytes((folder / recorded.file_name(now.config.timeline_layout)).read_bytes())
    assert metadata.commits_rolled_back == (pending.request_time,)
    deleted = {
        f"{partition}/{file}" if partition else file
        for partition, each in metadata.partitions.items()
        for file in each.deleted_files
    }
    assert metadata.total_files_deleted == result.files_deleted == len(deleted)
    assert deleted
    assert not [path for path in deleted if (base / path).exists()]
    plan = RollbackPlan.from_bytes((folder / f"{result.rollback}.rollback.requested").read_bytes())
    assert plan.instant is not None
    assert (plan.instant.time, plan.instant.action) == (pending.request_time, pending.action)
    assert {f"{each.partition_path}/{file}" for each in plan.requests for file in each.files} == deleted
    assert not [path for path in tree(base) if pending.request_time in path]
    assert leftovers(base) == []


@pytest.mark.parametrize("name", FAILED[:2])
def test_a_rollback_that_was_cut_short_is_taken_up_again(name: str, tmp_path: Path) -> None:
    base = writable(name, tmp_path)
    table = HoodieTable.open(base)
    before = rows(table)
    [pending] = [each.request_time for each in table.timeline.select_pending() if each.is_write]
    copy = base.with_name("copy")
    shutil.copytree(base, copy)
    trace = Plan(watched=WRITES)
    opened(FaultyFiles(TableFiles.open(copy), trace)).rollback(pending, options=QUICK)
    for fault, error in (("kill before", Killed), ("kill after", Killed), ("refuse", StorageError)):
        for at in range(len(trace.trace)):
            shutil.rmtree(copy)
            shutil.copytree(base, copy)
            files = FaultyFiles(TableFiles.open(copy), Plan(at=at, fault=fault, watched=WRITES))
            with pytest.raises(error):
                opened(files).rollback(pending, options=QUICK)
            assert rows(HoodieTable.open(copy)) == before, trace.trace[at]
            if HoodieTable.open(copy).timeline.find(pending) is not None:
                HoodieTable.open(copy).rollback(pending, options=QUICK)
            now = HoodieTable.open(copy)
            assert rows(now) == before
            assert now.timeline.find(pending) is None
            assert len(now.timeline.select_actions("rollback")) == 1
            assert not [each for each in now.timeline if not each.is_completed]


# What is refused -----------------------------------------------------------------------------------------------------


def test_only_pending_instants_can_be_rolled_back(tmp_path: Path) -> None:
    table = HoodieTable.open(writable("basic_mor_v9_part", tmp_path))
    with pytest.raises(InvalidQueryError, match="There is no instant"):
        table.rollback("20200101000000000")
    with pytest.raises(InvalidQueryError, match="deltacommit is completed"):
        table.rollback(table.timeline.instants[-1].request_time)


@pytest.mark.parametrize("action", ["indexing", "restore", "clean", "savepoint"])
def test_other_actions_are_java_s(action: str, tmp_path: Path) -> None:
    base = writable("basic_mor_v9_part", tmp_path)
    (base / f".hoodie/timeline/20261121230000000.{action}.requested").write_bytes(b"")
    with pytest.raises(UnsupportedFeatureError, match=f"pending {action}"):
        HoodieTable.open(base).rollback("20261121230000000")


def test_a_writer_that_is_alive_is_left_alone(tmp_path: Path) -> None:
    base = writable("inflight_last_mor_v9", tmp_path)
    table = HoodieTable.open(base)
    [pending] = [each.request_time for each in table.timeline.select_pending() if each.is_write]
    (base / ".hoodie/.heartbeat").mkdir(exist_ok=True)
    (base / ".hoodie/.heartbeat" / pending).write_bytes(b"")
    before = tree(base)
    with pytest.raises(ConflictError, match="alive"):
        table.rollback(pending, options=QUICK)
    assert tree(base) == before


def test_a_log_file_with_other_writes_blocks_is_left_to_java(tmp_path: Path) -> None:
    base = writable("inflight_last_mor_v6", tmp_path)
    table = HoodieTable.open(base)
    [pending] = [each.request_time for each in table.timeline.select_pending() if each.is_write]
    logs = [path for path in base.rglob(".*.log.*") if not path.name.endswith(".crc")]
    own = [path for path in logs if pending.encode() in path.read_bytes()]
    other = next(path for path in logs if path not in own)
    assert own
    own[0].write_bytes(other.read_bytes() + own[0].read_bytes())
    before = tree(base)
    with pytest.raises(UnsupportedFeatureError, match="other writes' blocks"):
        HoodieTable.open(base).rollback(pending, options=QUICK)
    assert tree(base) == before


def test_what_a_compaction_left_for_java_is_no_sign_of_life(tmp_path: Path) -> None:
    base = writable("inflight_last_mor_v9", tmp_path)
    table = HoodieTable.open(base)
    [pending] = [each.request_time for each in table.timeline.select_pending() if each.is_write]
    table.compact(options=QUICK)
    assert (base / ".hoodie/.heartbeat" / pending).exists()
    before = rows(HoodieTable.open(base))
    HoodieTable.open(base).rollback(pending, options=QUICK)
    assert not (base / ".hoodie/.heartbeat" / pending).exists()
    assert rows(HoodieTable.open(base)) == before
