"""The metadata table before a commit: kept right, switched off, or a reason not to write."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path
from typing import Any

import fastavro
import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import HoodieError, UnsupportedFeatureError
from hoodie_py.files import TableFiles
from hoodie_py.formats.config.properties import parse_properties, update_properties
from hoodie_py.formats.hfile.bootstrap_index import read_hfile
from hoodie_py.formats.log.framing import BlockType, LogBlock, iterate_blocks
from hoodie_py.writer.pipeline.local_engine import LocalEngine
from hoodie_py.writer.rollback.finish import begin_rollback
from hoodie_py.writer.rollback.written_files import find_written_files
from hoodie_py.writer.timeline.timeline_writer import TimelineWriter
from tests.writer.compaction_tables import QUICK, opened, rows, writable
from tests.writer.faulty_files import FaultyFiles, Killed, Plan
from tests.writer.written_tables import session

TABLES = ["mdt_files_mor_v9", "mdt_all_mor_v9", "mdt_secondary_index_mor_v9", "mdt_all_mor_v6", "old15_metadata_mor"]
MODE = "hoodie.metadata.mode"


def properties(base: Path) -> dict[str, str]:
    return parse_properties((base / ".hoodie/hoodie.properties").read_bytes())


def partitions(base: Path) -> set[str]:
    return set(filter(None, properties(base)["hoodie.table.metadata.partitions"].split(",")))


def records(base: Path, instant: str) -> dict[str, dict[str, Any]]:
    """What an instant wrote to the files partition, by key."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted((base / ".hoodie/metadata/files").glob(".files-0000-0_*.log.*")):
        for block in iterate_blocks(path.read_bytes()):
            if isinstance(block, LogBlock) and block.instant_time == instant:
                assert block.type is BlockType.HFILE_DATA
                assert block.schema_text is not None
                schema = fastavro.parse_schema(json.loads(block.schema_text))
                for key, value in read_hfile(block.content):
                    record: Any = fastavro.schemaless_reader(io.BytesIO(value), schema, None)
                    found[key.decode()] = record
    return found


@pytest.mark.parametrize("captures", [False, True])
@pytest.mark.parametrize("name", TABLES)
def test_new_files_are_recorded(name: str, captures: bool, tmp_path: Path) -> None:
    base = writable(name, tmp_path)
    path = base / ".hoodie/hoodie.properties"
    path.write_bytes(update_properties(path.read_bytes(), {"hoodie.table.cdc.enabled": str(captures).lower()}))
    before = rows(HoodieTable.open(base))
    result = HoodieTable.open(base).compact(options=QUICK)
    instant = str(result.instant)
    told = records(base, instant)
    every = told.pop("__all_partitions__")
    assert every["type"] == 1
    written: dict[str, dict[str, int]] = {}
    for path in (*base.rglob(f"*_{instant}.parquet"), *base.rglob(f".*_{instant}.*.cdc")):
        partition = path.parent.relative_to(base).as_posix()
        written.setdefault(partition, {})[path.name] = path.stat().st_size
    assert set(every["filesystemMetadata"]) == set(written)
    assert {len(files) for files in written.values()} == {2 if captures else 1}
    assert {
        key: {file: info["size"] for file, info in record["filesystemMetadata"].items()} for key, record in told.items()
    } == written
    assert not any(info["isDeleted"] for record in told.values() for info in record["filesystemMetadata"].values())
    assert {record["type"] for record in told.values()} == {2}
    assert rows(HoodieTable.open(base)) == before


@pytest.mark.parametrize("name", TABLES)
def test_the_metadata_table_has_one_commit_of_the_same_instant(name: str, tmp_path: Path) -> None:
    base = writable(name, tmp_path)
    instant = str(HoodieTable.open(base).compact(options=QUICK).instant)
    metadata = HoodieTable.open(base / ".hoodie/metadata")
    found = metadata.timeline.find(instant)
    assert found is not None
    assert (found.action, found.state) == ("deltacommit", "completed")
    data = HoodieTable.open(base).timeline.find(instant)
    assert data is not None
    if data.completion_time != instant:
        assert (found.completion_time or "") < (data.completion_time or "")
    commit = metadata._snapshot.timeline.read_metadata(found)
    stats = list(commit.iterate_stats())
    assert {stat.partition_path for stat in stats} <= partitions(base)
    assert commit.operation_type == "UPSERT_PREPPED"
    assert "_hoodie_commit_time" not in str(commit.schema)
    for stat in stats:
        assert (base / ".hoodie/metadata" / str(stat.path)).stat().st_size == stat.file_size_in_bytes


def forget_in_metadata(base: Path, instant: str, created: str | None) -> None:
    """Remove the instant's commit from the metadata table, and say that Java created that table later."""
    table = HoodieTable.open(base / ".hoodie/metadata")
    place = table._snapshot.files
    found = table.timeline.find(instant)
    assert found is not None
    for stat in table._snapshot.timeline.read_metadata(found).iterate_stats():
        place.delete(str(stat.path))
    TimelineWriter(place, table.config).remove_pending(found)
    TimelineWriter(place, table.config).remove(found)
    if created and table.config.timeline_layout > 1:
        for path in (base / ".hoodie/metadata/.hoodie/timeline").glob("0000000*_*.deltacommit"):
            path.rename(path.with_name(f"{path.name.split('_')[0]}_{created}.deltacommit"))


@pytest.mark.parametrize("newer", [True, False])
@pytest.mark.parametrize("name", TABLES)
def test_a_metadata_table_that_lists_files_of_a_commit_is_told_of_its_rollback(
    name: str, newer: bool, tmp_path: Path
) -> None:
    base = writable(name, tmp_path)
    before = rows(HoodieTable.open(base))
    instant = str(HoodieTable.open(base).compact(options=QUICK).instant)
    last = HoodieTable.open(base).timeline.find(instant)
    assert last is not None
    written = {path.name for path in base.rglob(f"*_{last.request_time}.parquet")}
    forget_in_metadata(base, last.request_time, last.completion_time if newer else None)
    doing = session(base)
    snapshot = doing.look()
    rollback = begin_rollback(doing, snapshot, last, find_written_files(snapshot, last.request_time))
    doing.open_timeline(snapshot).remove(last)
    assert HoodieTable.open(base).rollback(rollback.request_time, options=QUICK).left == "gone"
    deleted = {
        file
        for record in records(base, rollback.request_time).values()
        for file, info in record["filesystemMetadata"].items()
        if info["isDeleted"]
    }
    listed = newer or HoodieTable.open(base).config.timeline_layout == 1  # layout 1 does not tell
    assert deleted == (written if listed else set())
    assert rows(HoodieTable.open(base)) == before


@pytest.mark.parametrize("name", ["mdt_all_mor_v9", "mdt_all_mor_v6"])
def test_statistics_are_kept(name: str, tmp_path: Path) -> None:
    base = writable(name, tmp_path)
    before = partitions(base)
    HoodieTable.open(base).compact(options=QUICK)
    assert partitions(base) == before
    assert (base / ".hoodie/metadata/column_stats").is_dir()


def test_a_plan_alone_does_not_touch_it(tmp_path: Path) -> None:
    base = writable("mdt_all_mor_v9", tmp_path)
    place = base / ".hoodie/metadata"
    before = sorted(path for path in place.rglob("*"))
    HoodieTable.open(base).schedule_compaction(options=QUICK)
    assert sorted(path for path in place.rglob("*")) == before


def test_disable_switches_it_off(tmp_path: Path) -> None:
    base = writable("mdt_all_mor_v9", tmp_path)
    stale = base / ".hoodie/.hoodie.properties.crc"
    stale.write_bytes(b"stale")
    before = rows(HoodieTable.open(base))
    HoodieTable.open(base).compact(options={**QUICK, MODE: "disable"})
    assert partitions(base) == set()
    assert properties(base)["hoodie.table.metadata.partitions.inflight"] == ""
    assert not (base / ".hoodie/metadata").exists()
    assert not stale.exists()
    assert rows(HoodieTable.open(base)) == before


def test_disable_is_not_safe_up_to_version_6(tmp_path: Path) -> None:
    base = writable("mdt_all_mor_v6", tmp_path)
    with pytest.raises(UnsupportedFeatureError, match="not safe on table version 6"):
        HoodieTable.open(base).compact(options={**QUICK, MODE: "disable"})


def refused(base: Path, text: str, options: dict[str, str] | None = None) -> None:
    table = HoodieTable.open(base)
    instant = table.schedule_compaction(options=QUICK)
    before = sorted(path for path in base.rglob("*"))
    with pytest.raises(UnsupportedFeatureError, match=text):
        table.run_compaction(instant, options={**QUICK, **(options or {})})
    assert sorted(path for path in base.rglob("*")) == before


def test_refuse(tmp_path: Path) -> None:
    refused(writable("mdt_files_mor_v9", tmp_path), "asked to refuse", {MODE: "refuse"})


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"hoodie.table.metadata.partitions": "column_stats"}, "no partition 'files'"),
        ({"hoodie.table.metadata.partitions": "files,fancy_index"}, "'fancy_index' is not known"),
    ],
)
def test_what_cannot_be_kept_right_is_refused(changes: dict[str, str | None], text: str, tmp_path: Path) -> None:
    base = writable("mdt_files_mor_v9", tmp_path)
    path = base / ".hoodie/hoodie.properties"
    path.write_bytes(update_properties(path.read_bytes(), changes))
    refused(base, text)


def test_an_index_under_construction(tmp_path: Path) -> None:
    base = writable("mdt_files_mor_v9", tmp_path)
    timeline = base / ".hoodie/timeline"
    (timeline / "20261121110000000.indexing.requested").write_bytes(b"")
    (timeline / "20261121110000000.indexing.inflight").write_bytes(b"")
    refused(base, "an index is being built")


@pytest.mark.parametrize(("planned", "is_refused"), [(["column_stats"], True), (["files"], False)])
def test_an_indexer_that_has_named_its_parts_as_complete(planned: list[str], is_refused: bool, tmp_path: Path) -> None:
    base = writable("mdt_files_mor_v9", tmp_path)
    info = {"type": "record", "name": "Info", "fields": [{"name": "metadataPartitionPath", "type": "string"}]}
    infos = {"name": "indexPartitionInfos", "type": {"type": "array", "items": info}}
    schema = fastavro.parse_schema({"type": "record", "name": "HoodieIndexPlan", "fields": [infos]})
    plan = io.BytesIO()
    fastavro.writer(plan, schema, [{"indexPartitionInfos": [{"metadataPartitionPath": name} for name in planned]}])
    timeline = base / ".hoodie/timeline"
    (timeline / "20261121110000000.indexing.requested").write_bytes(plan.getvalue())
    (timeline / "20261121110000000.indexing.inflight").write_bytes(b"")
    if is_refused:
        refused(base, "an index is being built")
    else:
        assert records(base, str(HoodieTable.open(base).compact(options=QUICK).instant))


def test_a_part_that_an_indexer_begins(tmp_path: Path) -> None:
    base = writable("mdt_files_mor_v9", tmp_path)
    path = base / ".hoodie/hoodie.properties"
    changes: dict[str, str | None] = {"hoodie.table.metadata.partitions.inflight": "record_index"}
    path.write_bytes(update_properties(path.read_bytes(), changes))
    (base / ".hoodie/timeline/20261121110000000.indexing.requested").write_bytes(b"")
    refused(base, "being built")


def test_what_a_killed_build_left_is_no_reason_to_refuse(tmp_path: Path) -> None:
    base = writable("mdt_files_mor_v9", tmp_path)
    path = base / ".hoodie/hoodie.properties"
    changes: dict[str, str | None] = {"hoodie.table.metadata.partitions.inflight": "record_index"}
    path.write_bytes(update_properties(path.read_bytes(), changes))
    assert records(base, str(HoodieTable.open(base).compact(options=QUICK).instant))
    assert not (base / ".hoodie/metadata/record_index").exists()


def test_a_plan_to_build_an_index_is_no_reason_to_refuse(tmp_path: Path) -> None:
    base = writable("mdt_files_mor_v9", tmp_path)
    (base / ".hoodie/timeline/20261121110000000.indexing.requested").write_bytes(b"")
    assert records(base, str(HoodieTable.open(base).compact(options=QUICK).instant))


@pytest.mark.parametrize("gone", ["files", ".hoodie"])
def test_missing_parts(gone: str, tmp_path: Path) -> None:
    base = writable("mdt_files_mor_v9", tmp_path)
    shutil.rmtree(base / ".hoodie/metadata" / gone)
    refused(base, "its files are not there")


@pytest.mark.parametrize("name", ["mdt_files_mor_v9", "mdt_all_mor_v6"])
def test_a_commit_of_a_run_that_died_is_taken_back(name: str, tmp_path: Path) -> None:
    base = writable(name, tmp_path)
    before = rows(HoodieTable.open(base))
    instant = str(HoodieTable.open(base).schedule_compaction(options=QUICK))
    copy = base.with_name("copy")
    shutil.copytree(base, copy)
    plan = Plan(watched=("put_if_absent",))
    opened(FaultyFiles(TableFiles.open(copy), plan)).run_compaction(instant, LocalEngine(1), QUICK)
    dies = Plan(at=len(plan.trace) - 1, fault="kill before", watched=("put_if_absent",))
    with pytest.raises(Killed):
        opened(FaultyFiles(TableFiles.open(base), dies)).run_compaction(instant, LocalEngine(1), QUICK)
    lost = records(base, instant)
    assert lost
    HoodieTable.open(base).rollback(instant, options=QUICK)
    assert records(base, instant) == {}
    assert HoodieTable.open(base / ".hoodie/metadata").timeline.find(instant) is None
    HoodieTable.open(base).run_compaction(instant, options=QUICK)
    assert records(base, instant).keys() == lost.keys()
    assert records(base, instant) != lost
    assert rows(HoodieTable.open(base), "read_optimized") == before


def test_a_log_file_shared_with_other_commits_is_not_deleted(tmp_path: Path) -> None:
    base = writable("mdt_all_mor_v6", tmp_path)
    table = HoodieTable.open(base)
    instant = str(table.schedule_compaction(options=QUICK))
    folder = base / ".hoodie/metadata"
    logs = sorted((folder / "files").glob(".files*.log.*"))
    shared = logs[-1]
    shared.write_bytes(logs[-2].read_bytes() + shared.read_bytes())
    timeline = folder / ".hoodie"
    newest = max(timeline.glob("2*.deltacommit"))
    shutil.copy(newest, timeline / f"{instant}.deltacommit")
    with pytest.raises(HoodieError, match="shares a log file"):
        HoodieTable.open(base).run_compaction(instant, options=QUICK)
    assert shared.exists()
