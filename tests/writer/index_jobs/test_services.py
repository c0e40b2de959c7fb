"""Table services of the metadata table: when they are due, and that readers see the same after them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import HoodieWarning, StorageError
from hoodie_py.files import TableFiles
from hoodie_py.formats.hfile.reader import HFile
from hoodie_py.formats.timeline.plans import CleanPlan
from hoodie_py.formats.timeline.writers import write_clean_plan
from hoodie_py.table.indexes.source import open_metadata_view
from hoodie_py.table.snapshot import open_snapshot
from hoodie_py.table.timeline.loader import load_config
from hoodie_py.writer.index_jobs.services import run_metadata_services
from hoodie_py.writer.timeline.session import WriteSession
from hoodie_py.writer.timeline.timeline_writer import TimelineWriter
from tests.watched_requests import failing_requests, writes
from tests.writer.compaction_tables import writable

TABLES = ["mdt_files_mor_v9", "old15_metadata_mor"]
LEAST = "hoodie.metadata.compact.max.delta.commits"
SOON: dict[str, Any] = {
    "hoodie.index.type": "SIMPLE",
    "hoodie.time.generator.max_expected_clock_skew_ms": 0,
    LEAST: 3,
}

BESIDE_OTHERS = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
}


def upsert(base: Path, options: dict[str, Any] = SOON, times: int = 1) -> None:
    for _ in range(times):
        table = HoodieTable.open(base)
        names = [name for name in table.schema.names if not name.startswith("_hoodie_")]
        table.upsert(table.scan(columns=names, limit=2).to_arrow(), options)


def entries(base: Path) -> dict[str, list[tuple[str, Any]]]:
    view = open_metadata_view(open_snapshot(str(base)))
    assert view is not None
    rows = pa.Table.from_batches(list(view.read_all("files"))).to_pylist()
    return {row["key"]: sorted(row["filesystemMetadata"]) for row in rows}


def listed(base: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for path in base.rglob("*"):
        folder = path.parent.relative_to(base).as_posix()
        if ".hoodie" not in path.as_posix().removeprefix(base.as_posix()) and path.is_file():
            found.setdefault(folder, []).append(path.name)
    return {folder: sorted(name for name in names if not name.endswith(".crc")) for folder, names in found.items()}


def compactions(base: Path) -> list[str]:
    timeline = HoodieTable.open(base / ".hoodie/metadata").timeline
    return [each.request_time for each in timeline if each.action == "commit" and each.is_completed]


def hfiles(base: Path) -> set[str]:
    return {path.name for path in (base / ".hoodie/metadata/files").glob("*.hfile")}


@pytest.mark.parametrize("name", TABLES)
def test_the_metadata_table_is_compacted_and_cleaned(name: str, tmp_path: Path) -> None:
    base = writable(name, tmp_path)
    before = len(compactions(base))
    upsert(base, times=9)
    assert len(compactions(base)) >= before + 3
    told = entries(base)
    told.pop("__all_partitions__")
    assert {key: [name for name, _ in files] for key, files in told.items()} == listed(base)
    [last] = [each for each in hfiles(base) if compactions(base)[-1] in each]
    assert HFile.from_bytes((base / ".hoodie/metadata/files" / last).read_bytes()).entries == len(told) + 1
    cleans = [each for each in HoodieTable.open(base / ".hoodie/metadata").timeline if each.action == "clean"]
    assert cleans
    assert all(each.is_completed for each in cleans)
    assert len(hfiles(base)) in (2, 3)  # the last compaction came after the last clean


@pytest.mark.parametrize("name", TABLES)
def test_an_unfinished_savepoint_does_not_hold_the_metadata_table_up(name: str, tmp_path: Path) -> None:
    base = writable(name, tmp_path)
    before = len(compactions(base))
    table = HoodieTable.open(base)
    last = table.timeline.select_writes().instants[-1].request_time
    (base / table.config.find_timeline_folder() / f"{last}.savepoint.inflight").touch()
    upsert(base, times=9)
    assert len(compactions(base)) >= before + 3


def test_a_clean_leaves_what_a_writer_in_flight_knows(tmp_path: Path) -> None:
    """Java's writer finds no file group if the slices are gone that it saw when it began, and fails."""
    base = writable("mdt_files_mor_v9", tmp_path)
    upsert(base)
    known = {name for name in hfiles(base) if compactions(base)[-1] in name}
    assert known
    table = open_snapshot(base)
    writer = TimelineWriter(table.files, table.config)
    session = WriteSession.open(table, options=SOON)
    instant = session.clock.take(table.timeline.newest_time)
    begun = writer.begin(writer.request(instant, "deltacommit", b""))
    (base / ".hoodie/.heartbeat").mkdir(exist_ok=True)
    (base / ".hoodie/.heartbeat" / begun.request_time).touch()
    before = len(compactions(base))
    upsert(base, {**SOON, **BESIDE_OTHERS}, times=12)
    assert len(compactions(base)) > before + 2
    assert known <= hfiles(base)
    writer.remove_pending(begun)
    upsert(base, times=4)
    assert known.isdisjoint(hfiles(base))


def test_nothing_is_due_before_its_time(tmp_path: Path) -> None:
    base = writable("mdt_files_mor_v9", tmp_path)
    before = compactions(base)
    upsert(base, {**SOON, LEAST: 100}, times=3)
    upsert(base, {**SOON, "hoodie.table.services.enabled": False})
    assert compactions(base) == before


@pytest.mark.parametrize("name", TABLES)
def test_entries_of_a_pending_instant_stay_out_of_base_files(name: str, tmp_path: Path) -> None:
    base = writable(name, tmp_path)
    completed = writes(rf"^{base}/\.hoodie/(timeline/)?[\d_]+\.(delta)?commit$")
    with failing_requests(completed, SystemExit), pytest.raises(SystemExit):  # after the metadata table's commit
        upsert(base)
    before = compactions(base)
    table = HoodieTable.open(base)
    assert len(table.timeline.select_pending()) == 1
    now = open_snapshot(str(base))
    run_metadata_services(WriteSession.open(now, options={**SOON, LEAST: 1}), now)
    assert compactions(base) == before
    upsert(base, {**SOON, LEAST: 1}, times=2)  # the first one rolls the lost write back, the next one compacts
    assert len(compactions(base)) == len(before) + 1
    told = entries(base)
    told.pop("__all_partitions__")
    assert {key: [name for name, _ in files] for key, files in told.items()} == listed(base)


@pytest.mark.parametrize("name", TABLES)
def test_a_compaction_that_was_cut_short_is_begun_anew(name: str, tmp_path: Path) -> None:
    base = writable(name, tmp_path)
    before, had = len(compactions(base)), hfiles(base)
    completed = writes(r"/metadata/\.hoodie/(timeline/)?[\d_]+\.commit$")
    with failing_requests(completed, OSError("cut short")), pytest.raises(OSError, match="cut short"):
        upsert(base, {**SOON, LEAST: 1})
    left, told = hfiles(base), entries(base)
    assert left > had
    upsert(base)
    assert len(compactions(base)) == before + 1
    [gone], [new] = left - hfiles(base), hfiles(base) - left
    assert gone.rpartition("_")[2] == new.rpartition("_")[2]
    assert entries(base).keys() == told.keys()


@pytest.mark.parametrize("at", ["begin", "complete"])
@pytest.mark.parametrize("name", TABLES)
def test_a_clean_that_was_cut_short_is_finished_by_the_next_write(name: str, at: str, tmp_path: Path) -> None:
    base = writable(name, tmp_path)
    state = r"\.inflight" if at == "begin" else ""
    written = writes(rf"/metadata/\.hoodie/(timeline/)?[\d_]+\.clean{state}$")
    with failing_requests(written, OSError("cut short")), pytest.raises(OSError, match="cut short"):
        upsert(base, times=9)
    [begun] = HoodieTable.open(base / ".hoodie/metadata").timeline.select_pending()
    had = hfiles(base)
    upsert(base)
    timeline = HoodieTable.open(base / ".hoodie/metadata").timeline
    assert timeline.find(begun.request_time, "clean").is_completed
    assert len(hfiles(base)) < len(had) if at == "begin" else hfiles(base) == had
    upsert(base, times=2)
    assert not len(HoodieTable.open(base / ".hoodie/metadata").timeline.select_pending())
    told = entries(base)
    told.pop("__all_partitions__")
    assert {key: [name for name, _ in files] for key, files in told.items()} == listed(base)


def test_a_saved_plan_that_removes_what_is_needed_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = writable("mdt_files_mor_v9", tmp_path)
    upsert(base, {**SOON, LEAST: 1}, times=2)
    files = TableFiles.open(base / ".hoodie/metadata")
    config = load_config(files)
    newest = max(hfiles(base), key=lambda each: each.rpartition("_")[2])
    plan = CleanPlan(policy="KEEP_LATEST_FILE_VERSIONS", files={"files": (newest,)})
    instant = str(int(HoodieTable.open(base / ".hoodie/metadata").timeline.last.request_time) + 1)
    TimelineWriter(files, config).request(instant, "clean", write_clean_plan(plan, files.java_uri))
    with pytest.warns(HoodieWarning, match="removes a file that is needed"):
        upsert(base)
    assert newest in hfiles(base)


def test_a_service_that_fails_is_a_warning(tmp_path: Path) -> None:
    base = writable("mdt_files_mor_v9", tmp_path)

    planned = writes(r"/metadata/\.hoodie/(timeline/)?\d+\.compaction\.requested$")
    warned = pytest.warns(HoodieWarning, match="table service of the metadata table")
    with failing_requests(planned, StorageError("no")), warned:
        upsert(base, {**SOON, LEAST: 1})
