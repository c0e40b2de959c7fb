from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import InvalidQueryError, UnsupportedFeatureError
from hoodie_py.formats.avro.container_writer import write_single
from hoodie_py.formats.timeline.plans import CompactionPlan
from tests.writer.compaction_tables import QUICK, writable
from tests.writer.written_tables import Kind, contents, put, records, row

V9 = "basic_mor_v9_part"
TRIGGER = "hoodie.compact.inline.trigger.strategy"
COMMITS = "hoodie.compact.inline.max.delta.commits"
SECONDS = "hoodie.compact.inline.max.delta.seconds"


def plan_of(table: HoodieTable, instant: str | None) -> CompactionPlan:
    plan = table.refresh()._snapshot.timeline.find_compaction_plan(str(instant))
    assert plan is not None
    return plan


def everything(base: Path) -> list[tuple[str, int]]:
    return sorted((path.as_posix(), path.stat().st_mtime_ns) for path in base.rglob("*"))


@pytest.mark.parametrize("name", [V9, "basic_mor_v8_nonpart", "basic_mor_v6_part", "logonly_bucket_mor_v9"])
def test_a_plan_names_the_newest_slices_as_java_does(name: str, tmp_path: Path) -> None:
    table = HoodieTable.open(writable(name, tmp_path))
    slices = {(each.partition_path, each.file_id): each for each in table.file_slices() if each.log_files}
    instant = table.schedule_compaction(options=QUICK)
    plan = plan_of(table, instant)
    assert plan.version == 2
    assert {(each.partition_path, each.file_id) for each in plan.operations} == slices.keys()
    for operation in plan.operations:
        found = slices[operation.partition_path, operation.file_id]
        assert operation.data_file == (found.base_file.name if found.base_file else None)
        assert operation.delta_files == tuple(log.name.name for log in found.log_files)
        assert operation.base_instant_time == found.base_instant
        assert operation.metrics["TOTAL_LOG_FILES_SIZE"] == sum(log.size for log in found.log_files)
        assert set(operation.metrics) == {
            "TOTAL_LOG_FILES", "TOTAL_LOG_FILES_SIZE", "TOTAL_IO_READ_MB", "TOTAL_IO_WRITE_MB", "TOTAL_IO_MB",
        }  # fmt: skip
    sizes = [each.metrics["TOTAL_LOG_FILES_SIZE"] for each in plan.operations]
    assert sizes == sorted(sizes, reverse=True)
    assert plan.missing_partitions == ()
    assert max(each.completion_time or "" for each in table.timeline) < str(instant)


def test_a_group_is_in_one_pending_plan_only(tmp_path: Path) -> None:
    table = HoodieTable.open(writable(V9, tmp_path))
    assert table.schedule_compaction(options=QUICK) is not None
    assert table.refresh().schedule_compaction(options=QUICK) is None
    report = table.refresh().schedule_compaction(dry_run=True)
    assert report.taken == ()
    assert {each.reason.split(" 2")[0] for each in report.slices if each.log_files} == {"compaction"}


def test_left_out_partitions_are_recorded(tmp_path: Path) -> None:
    table = HoodieTable.open(writable(V9, tmp_path))
    options = {**QUICK, "hoodie.compaction.partition.path.regex": "p1"}
    instant = table.schedule_compaction("PartitionRegexBasedCompactionStrategy", options)
    plan = plan_of(table, instant)
    assert {each.partition_path for each in plan.operations} == {"p1"}
    assert plan.missing_partitions == ("p0",)


def test_a_dry_run_says_why_and_writes_nothing(tmp_path: Path) -> None:
    base = writable(V9, tmp_path)
    before = everything(base)
    report = HoodieTable.open(base).schedule_compaction(
        options={"hoodie.compaction.logfile.size.threshold": "1500"}, dry_run=True
    )
    assert everything(base) == before
    assert 0 < len(report.taken) < len(report.slices)
    reasons = {each.reason for each in report.slices if not each.taken}
    assert "its log files have less than 1500 bytes" in reasons | {"it has no log files"}
    assert report.cost_bytes == sum(each.cost_bytes for each in report.taken) > 0
    assert "would merge" in str(report)
    assert "New instants are in UTC" in str(report)
    for each in report.slices:
        assert each.file_id in repr(report)
        assert each.file_id in report._repr_html_()


@pytest.mark.parametrize(
    ("options", "due"),
    [
        ({}, True),
        ({COMMITS: 4}, True),
        ({COMMITS: 5}, False),
        ({TRIGGER: "NUM_COMMITS"}, False),
        ({TRIGGER: "TIME_ELAPSED", SECONDS: 1}, True),
        ({TRIGGER: "TIME_ELAPSED", SECONDS: 10**9}, False),
        ({TRIGGER: "NUM_OR_TIME", SECONDS: 1}, True),
        ({TRIGGER: "NUM_AND_TIME", SECONDS: 1}, False),
        ({TRIGGER: "NUM_COMMITS_AFTER_LAST_REQUEST"}, False),
    ],
)  # fmt: skip
def test_triggers_that_are_asked_for(options: dict[str, object], due: bool, tmp_path: Path) -> None:
    table = HoodieTable.open(writable(V9, tmp_path))
    report = table.schedule_compaction(options=options, dry_run=True)
    assert bool(report.taken) is due
    assert (table.schedule_compaction(options={**options, **QUICK}) is not None) is due
    if not due:
        assert "is not due" in str(report)


def test_delta_commits_count_from_the_last_compaction_or_its_request(tmp_path: Path) -> None:
    table = HoodieTable.open(writable("compaction_pending_mor_v9", tmp_path))
    after_completed = {COMMITS: 4}
    after_request = {**after_completed, TRIGGER: "NUM_COMMITS_AFTER_LAST_REQUEST"}
    assert table.schedule_compaction(options=after_completed, dry_run=True).not_due is None
    assert table.schedule_compaction(options=after_request, dry_run=True).not_due is not None


def test_unknown_strategies_write_nothing(tmp_path: Path) -> None:
    base = writable(V9, tmp_path)
    before = everything(base)
    with pytest.raises(InvalidQueryError, match="Unknown compaction strategy"):
        HoodieTable.open(base).schedule_compaction("Fancy", QUICK)
    assert everything(base) == before


def test_a_timeline_ahead_of_the_clock_is_refused(tmp_path: Path) -> None:
    base = writable(V9, tmp_path)
    (base / ".hoodie/timeline/29990101000000000_29990101000000001.deltacommit").write_bytes(b"")
    before = everything(base)
    with pytest.raises(UnsupportedFeatureError, match="ahead of this machine's clock"):
        HoodieTable.open(base).schedule_compaction(options=QUICK)
    assert everything(base) == before


def test_instants_are_in_the_zone_that_is_given(tmp_path: Path) -> None:
    base = writable(V9, tmp_path)
    ahead = HoodieTable.open(base, timezone="Pacific/Kiritimati").schedule_compaction(options=QUICK)
    assert str(ahead) > "2026"
    with pytest.raises(UnsupportedFeatureError, match="ahead of this machine's clock"):
        HoodieTable.open(base).schedule_compaction(dry_run=True)
    report = HoodieTable.open(base, timezone="Pacific/Kiritimati").schedule_compaction(dry_run=True)
    assert report.instant > str(ahead)
    assert "in Pacific/Kiritimati" in str(report)


# Beside a pending clustering ------------------------------------------------------------------------------------------

_TEXT = ["null", "string"]
_SLICE = {
    "type": "record",
    "name": "HoodieSliceInfo",
    "fields": [
        {"name": "dataFilePath", "type": _TEXT},
        {"name": "deltaFilePaths", "type": {"type": "array", "items": "string"}},
        {"name": "fileId", "type": _TEXT},
        {"name": "partitionPath", "type": _TEXT},
    ],
}
_GROUP = {
    "type": "record",
    "name": "HoodieClusteringGroup",
    "fields": [
        {"name": "slices", "type": {"type": "array", "items": _SLICE}},
        {"name": "numOutputFileGroups", "type": ["null", "int"]},
    ],
}
_PLAN = {
    "type": "record",
    "name": "HoodieClusteringPlan",
    "fields": [{"name": "inputGroups", "type": {"type": "array", "items": _GROUP}}],
}
_REPLACE: dict[str, Any] = {
    "type": "record",
    "name": "HoodieRequestedReplaceMetadata",
    "fields": [{"name": "operationType", "type": _TEXT}, {"name": "clusteringPlan", "type": ["null", _PLAN]}],
}


def clustering_of(base: Path, partition: str, states: tuple[str, ...]) -> str:
    """Leave a clustering of a partition's file groups pending, as it is up to table version 6."""
    slices = [
        {
            "dataFilePath": None if each.base_file is None else each.base_file.name,
            "deltaFilePaths": [log.name.name for log in each.log_files],
            "fileId": each.file_id,
            "partitionPath": partition,
        }
        for each in HoodieTable.open(base).file_slices()
        if each.partition_path == partition
    ]
    plan = {"inputGroups": [{"slices": slices, "numOutputFileGroups": 1}]}
    last = HoodieTable.open(base).timeline.instants[-1].request_time
    instant = f"{int(last) + 1}"
    content = write_single({"operationType": "CLUSTER", "clusteringPlan": plan}, _REPLACE)
    for state in states:
        (base / f".hoodie/{instant}.replacecommit.{state}").write_bytes(content if state == "requested" else b"")
    return instant


@pytest.mark.parametrize("states", [("requested",), ("requested", "inflight")], ids=["planned", "running"])
def test_up_to_version_6_a_pending_clustering_holds_its_own_groups_only(
    states: tuple[str, ...], tmp_path: Path
) -> None:
    Kind(6, True).create(tmp_path)
    put(tmp_path, records([row(1), row(2)]))
    put(tmp_path, records([row(1, 2), row(2, 2)]))
    instant = clustering_of(tmp_path, "p0", states)
    table = HoodieTable.open(tmp_path)
    planned = table.schedule_compaction(options=QUICK)
    assert {each.partition_path for each in plan_of(table, planned).operations} == {"p1"}
    assert table.run_compaction(planned, options=QUICK).instant == planned
    assert contents(tmp_path) == {"k1": (2, "a"), "k2": (2, "a")}
    assert not (tmp_path / ".hoodie/.heartbeat" / instant).exists()
    found = HoodieTable.open(tmp_path).timeline.find(instant)
    assert found is not None
    assert not found.is_completed
