"""

Plans that do not fit the table: nothing is begun, nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import ConflictError, HoodieError, InvalidQueryError, InvalidTableError, UnsupportedFeatureError
from hoodie_py.formats.avro.container import write_single
from hoodie_py.formats.timeline.plans import CompactionOperation, CompactionPlan
from hoodie_py.formats.timeline.writers import write_compaction_plan
from tests.reader.mergers import Dearest
from tests.writer.bootstrapped_tables import Bootstrapped
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


Change = Callable[[CompactionOperation], CompactionOperation]


def with_plan(base: Path, change: Callable[[CompactionPlan], CompactionPlan]) -> str:
    """Schedule a compaction and change its plan."""
    table = HoodieTable.open(base)
    return with_plan_of(base, str(table.schedule_compaction(options=QUICK)), change)


def with_plan_of(base: Path, instant: str, change: Callable[[CompactionPlan], CompactionPlan]) -> str:
    """Change the plan of a pending compaction."""
    table = HoodieTable.open(base)
    plan = table._snapshot.timeline.find_compaction_plan(instant)
    assert plan is not None
    path = base / table.config.find_timeline_folder() / f"{instant}.compaction.requested"
    path.write_bytes(write_compaction_plan(change(plan)))
    return instant


def first(change: Change) -> Callable[[CompactionPlan], CompactionPlan]:
    return lambda plan: replace(plan, operations=(change(plan.operations[0]), *plan.operations[1:]))


def refused(base: Path, instant: str, error: type[HoodieError], text: str) -> None:
    before = sorted(path for path in base.rglob("*") if path.is_file())
    with pytest.raises(error, match=text) as caught:
        HoodieTable.open(base).run_compaction(instant, options=QUICK)
    assert caught.value.where["instant"] == instant
    assert sorted(path for path in base.rglob("*") if path.is_file()) == before


LOG = ".{id}_20200101000000000.log.1_0-0-0"
BASE = "{id}_0-0-0_20200101000000000.parquet"


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda op: replace(op, delta_files=(*op.delta_files, LOG.format(id=op.file_id))), "not there"),
        (lambda op: replace(op, delta_files=(*op.delta_files, LOG.format(id="other-0"))), "of something else"),
        (lambda op: replace(op, delta_files=(*op.delta_files, "README")), "of something else"),
        (lambda op: replace(op, delta_files=(*op.delta_files, op.delta_files[0])), "log file twice"),
        (lambda op: replace(op, delta_files=op.delta_files[:-1]), "leaves out a log file"),
        (lambda op: replace(op, data_file=BASE.format(id=op.file_id)), "not there"),
        (lambda op: replace(op, data_file=BASE.format(id="other-0")), "of something else"),
        (lambda op: replace(op, data_file=f"{op.file_id}_0-0-0_29990101000000000.parquet"), "of something else"),
        (lambda op: replace(op, data_file=None, delta_files=()), "without files"),
        (lambda op: replace(op, partition_path="elsewhere"), "not there"),
        (lambda op: replace(op, file_id="other-0"), "of something else"),
    ],
)
@pytest.mark.parametrize("name", ["basic_mor_v9_part", "basic_mor_v6_part"])
def test_files_that_are_missing_or_foreign(name: str, change: Change, text: str, tmp_path: Path) -> None:
    base = writable(name, tmp_path)
    refused(base, with_plan(base, first(change)), InvalidTableError, text)


def test_a_group_named_twice(tmp_path: Path) -> None:
    base = writable("basic_mor_v9_part", tmp_path)
    instant = with_plan(base, lambda plan: replace(plan, operations=(*plan.operations, plan.operations[0])))
    refused(base, instant, InvalidTableError, "file group twice")


def test_a_bootstrapped_file(tmp_path: Path) -> None:
    base = writable("basic_mor_v9_part", tmp_path)
    instant = with_plan(base, first(lambda op: replace(op, bootstrap_file="/elsewhere/x.parquet")))
    refused(base, instant, InvalidTableError, "another source file")


@pytest.mark.parametrize("place", ["part=p1/data.parquet", "part=p0/../part=p0/data.parquet", "../x.parquet"])
def test_another_source_than_that_of_the_index(place: str, tmp_path: Path) -> None:
    kind = Bootstrapped()
    base = kind.create(tmp_path)
    HoodieTable.open(base).upsert([kind.row(0, 2)], options=QUICK)
    instant = with_plan(base, first(lambda op: replace(op, bootstrap_file=f"file:{tmp_path}/source/{place}")))
    refused(base, instant, InvalidTableError, "another source file|climbs")


def test_a_plan_names_the_source_as_the_index_spells_it(tmp_path: Path) -> None:
    kind = Bootstrapped()
    base = kind.create(tmp_path)
    table = HoodieTable.open(base)
    table.upsert([kind.row(0, 2)], options=QUICK)
    instant = str(table.schedule_compaction(options=QUICK))
    plan = table.refresh()._snapshot.timeline.find_compaction_plan(instant)
    assert plan is not None
    assert [each.bootstrap_file for each in plan.operations] == [f"file:{tmp_path}/source/part=p0/data.parquet"]
    unnamed = with_plan_of(base, instant, first(lambda op: replace(op, bootstrap_file=None)))
    assert HoodieTable.open(base).run_compaction(unnamed, options=QUICK).instant == instant


def test_leaving_out_the_base_file_is_refused(tmp_path: Path) -> None:
    base = writable("basic_mor_v9_part", tmp_path)
    instant = with_plan(base, first(lambda op: replace(op, data_file=None)))
    refused(base, instant, ConflictError, "another base file")


def test_log_files_of_a_write_that_never_completed(tmp_path: Path) -> None:
    base = writable("basic_mor_v9_part", tmp_path)

    def add(operation: CompactionOperation) -> CompactionOperation:
        name = f".{operation.file_id}_20991231000000000.log.1_0-0-0"
        (base / operation.partition_path / name).write_bytes(b"")
        return replace(operation, delta_files=(*operation.delta_files, name))

    refused(base, with_plan(base, first(add)), InvalidTableError, "has not completed")


def test_a_damaged_plan(tmp_path: Path) -> None:
    base = writable("basic_mor_v9_part", tmp_path)
    instant = with_plan(base, lambda plan: plan)
    (base / f".hoodie/timeline/{instant}.compaction.requested").write_bytes(b"Obj\x01junk")
    with pytest.raises(HoodieError, match=instant):
        HoodieTable.open(base).run_compaction(instant, options=QUICK)


def test_a_log_file_that_a_plan_leaves_out_is_found_without_the_merger_of_the_table(tmp_path: Path) -> None:
    base = tmp_path / "table"
    table = HoodieTable.open(
        Kind(6, merge_on_read=True, partitioned=False).create(base, merge_strategy_id=Dearest.strategy_id)
    )
    table.upsert([row(1)], QUICK, merger=Dearest)
    table.upsert([row(1)], QUICK, merger=Dearest)
    instant = table.schedule_compaction(options=QUICK)
    log = table.file_slices()[0].log_files[0]
    late = base / log.path.replace(".log.1_", ".log.2_")
    late.write_bytes((base / log.path).read_bytes())
    with pytest.raises(InvalidTableError, match="leaves out a log file"):
        HoodieTable.open(base).run_compaction(instant, options=QUICK, merger=Dearest)
