"""A dry run names exactly what the rollback then removes, and changes nothing."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import InvalidQueryError, UnsupportedFeatureError
from hoodie_py.files import TableFiles
from hoodie_py.writer.lock.heartbeat import Heartbeat
from tests.corpus import corpus_names
from tests.writer.compaction_tables import QUICK, opened, writable
from tests.writer.faulty_files import WRITES, FaultyFiles, Killed, Plan
from tests.writer.rollback.test_rollback import FAILED, VERSIONS, begun, tree

METADATA = [name for name in FAILED if "v9" in name] + ["clustering_pending_mor_v9"]


def contents(base: Path) -> dict[str, bytes]:
    return {path: (base / path).read_bytes() for path in tree(base)}


def removed(before: list[str], base: Path) -> set[str]:
    """What went, but checksums, markers and heartbeats, which a report does not list."""
    gone = set(before) - set(tree(base))
    return {path for path in gone if not path.endswith(".crc") and "/.temp/" not in path and "heartbeat" not in path}


def check_names_what_goes(base: Path, instant: str) -> None:
    before = contents(base)
    report = HoodieTable.open(base).rollback(instant, options=QUICK, dry_run=True)
    assert contents(base) == before
    named = {*(each.path for each in report.files), *report.metadata_files, *report.timeline_files}
    assert {each.path: each.size for each in report.files} == {
        each.path: len(before[each.path]) for each in report.files
    }
    result = HoodieTable.open(base).rollback(instant, options=QUICK)
    assert named == removed(list(before), base)
    assert (report.instant, report.action, report.left) == (result.instant, result.action, result.left)
    assert len(report.files) == result.files_deleted


@pytest.mark.parametrize("name", VERSIONS)
def test_a_compaction_under_way_and_a_requested_one(name: str, tmp_path: Path) -> None:
    base = writable(name, tmp_path)
    instant, _ = begun(base)
    check_names_what_goes(base, instant)
    check_names_what_goes(base, instant)
    assert HoodieTable.open(base).timeline.find(instant) is None


@pytest.mark.parametrize("name", [name for name in dict.fromkeys([*FAILED, *METADATA]) if name in corpus_names()])
def test_a_failed_write(name: str, tmp_path: Path) -> None:
    base = writable(name, tmp_path)
    [pending] = [each.request_time for each in HoodieTable.open(base).timeline.select_pending() if each.is_write]
    check_names_what_goes(base, pending)


def test_the_blocks_of_log_files_are_told(tmp_path: Path) -> None:
    base = writable("inflight_last_mor_v9", tmp_path)
    [pending] = [each.request_time for each in HoodieTable.open(base).timeline.select_pending() if each.is_write]
    report = HoodieTable.open(base).rollback(pending, dry_run=True)
    logs = [each for each in report.files if "/." in f"/{each.path}"]
    assert logs
    assert all(set(each.blocks) <= {"AVRO_DATA", "PARQUET_DATA", "DELETE"} and each.blocks for each in logs)
    assert "log block" in str(report)
    assert report.rollback is None


def test_a_rollback_that_was_cut_short_shows_what_is_left_of_it(tmp_path: Path) -> None:
    base = writable("inflight_last_mor_v9", tmp_path)
    [pending] = [each.request_time for each in HoodieTable.open(base).timeline.select_pending() if each.is_write]
    copy = base.with_name("copy")
    shutil.copytree(base, copy)
    trace = Plan(watched=WRITES)
    opened(FaultyFiles(TableFiles.open(copy), trace)).rollback(pending, options=QUICK)
    for at in range(2, len(trace.trace)):
        shutil.rmtree(copy)
        shutil.copytree(base, copy)
        files = FaultyFiles(TableFiles.open(copy), Plan(at=at, fault="kill before", watched=WRITES))
        with pytest.raises(Killed):
            opened(files).rollback(pending, options=QUICK)
        table = HoodieTable.open(copy)
        waiting = [each.request_time for each in table.timeline.select_pending() if each.action == "rollback"]
        if not waiting:
            continue
        before = contents(copy)
        report = table.rollback(pending, options=QUICK, dry_run=True)
        assert contents(copy) == before
        assert report.rollback == waiting[0]
        assert "finish the rollback" in str(report)
        HoodieTable.open(copy).rollback(pending, options=QUICK)
        named = {*(each.path for each in report.files), *report.metadata_files, *report.timeline_files}
        assert {path for path in removed(list(before), copy) if waiting[0] not in path} <= named


def test_what_cannot_be_rolled_back_is_refused_by_a_dry_run_too(tmp_path: Path) -> None:
    base = writable("compaction_pending_mor_v6", tmp_path)
    table = HoodieTable.open(base)
    [instant] = [each.request_time for each in table.timeline.select_pending_compactions()]
    if table.timeline.find(instant).state == "inflight":  # type: ignore[union-attr]
        table.rollback(instant, options=QUICK)
    with pytest.raises(UnsupportedFeatureError, match="named after it"):
        HoodieTable.open(base).rollback(instant, options=QUICK, dry_run=True)
    with pytest.raises(InvalidQueryError, match="is completed"):
        table.rollback(table.timeline.instants[0].request_time, dry_run=True)


def test_a_writer_at_work_is_told(tmp_path: Path) -> None:
    base = writable("inflight_last_mor_v9", tmp_path)
    table = HoodieTable.open(base)
    [pending] = [each.request_time for each in table.timeline.select_pending() if each.is_write]
    assert not table.rollback(pending, dry_run=True).at_work
    with Heartbeat(table.files, pending):
        report = table.rollback(pending, dry_run=True)
    assert report.at_work
    assert str(report).endswith("it would be refused.")
