"""What is due at tables of every kind, that looking writes nothing and lists once, and that runs do what is due."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from hoodie_py import HoodieTable, InvalidQueryError, ServiceReport, ServiceStep
from hoodie_py.errors import ConflictError, StorageError
from hoodie_py.formats.config.table_config import METADATA_PARTITIONS_INFLIGHT
from hoodie_py.writer.pipeline.local_engine import LocalEngine
from hoodie_py.writer.records import WriteOperation
from hoodie_py.writer.timeline.table_properties import change_properties
from hoodie_py.writer.upkeep.run import SERVICES
from tests.benchmarks.counting_files import open_counted
from tests.watched_requests import failing_requests, writes
from tests.writer.compaction_tables import QUICK, writable
from tests.writer.written_tables import Kind, contents, put, records, row, session

KEEP = {**QUICK, "hoodie.clean.commits.retained": "1", "hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4"}
KINDS = [Kind(9, True), Kind(6, True), Kind(8, False)]


def grown(base: Path, kind: Kind, commits: int = 6) -> HoodieTable:
    """A table with updates of four rows in two partitions."""
    kind.create(base)
    for ts in range(1, commits + 1):
        put(base, records([row(each, ts) for each in range(4)]))
    return HoodieTable.open(base)


def states(report: ServiceReport) -> dict[str, str]:
    return {each.name: each.state for each in report.services}


def files(base: Path) -> dict[str, bytes]:
    return {str(each): each.read_bytes() for each in base.rglob("*") if each.is_file()}


def begin(base: Path, action: str) -> str:
    """Begin an instant that nobody completes."""
    doing = session(base)
    timeline = doing.open_timeline(doing.look())
    requested = timeline.request(doing.clock.take(), action, b"")
    timeline.begin(requested)
    return requested.request_time


def beat(base: Path, instant: str, seconds_ago: float) -> None:
    path = base / ".hoodie/.heartbeat" / instant
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"")
    os.utime(path, (time.time() - seconds_ago,) * 2)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_looking_says_what_is_due_and_writes_nothing(kind: Kind, tmp_path: Path) -> None:
    table = grown(tmp_path, kind)
    before = files(tmp_path)
    report = table.services(options=KEEP)
    assert files(tmp_path) == before
    assert [each.name for each in report.services] == list(SERVICES)
    due = ["compaction" if kind.merge_on_read else "clean", "archival"]
    assert [each.name for each in report.due] == due
    assert str(report) == f"Due at {table.config.name}: {', '.join(due)}."
    assert repr(report).count("\n") == len(SERVICES)
    assert "<table>" in report._repr_html_()


def test_figures_are_told(tmp_path: Path) -> None:
    report = grown(tmp_path, Kind(9, True)).services()
    compaction = next(each for each in report.services if each.name == "compaction")
    assert compaction.figures["delta commits"] == 6
    assert compaction.figures["log files"] == 10
    assert compaction.why.startswith("6 of 5 delta commits and no compaction yet; 10 log files of ")
    folded = next(each for each in report.services if each.name == "log compaction")
    assert (folded.state, folded.why) == ("not due", "the compaction takes all log files")


def test_all_judgements_take_one_listing(tmp_path: Path) -> None:
    grown(tmp_path, Kind(9, True))
    table, counts = open_counted(str(tmp_path))
    counts.verbs.clear()
    table.services()
    assert counts.verbs["list"] + counts.verbs["list_many"] <= 4, counts.verbs  # the root and two partitions, once
    assert counts.calls <= 8, counts.verbs


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_run_does_what_is_due(kind: Kind, tmp_path: Path) -> None:
    table = grown(tmp_path, kind)
    rows = contents(table)
    seen: list[ServiceStep] = []
    report = table.services(run=True, options=KEEP, on_step=seen.append)
    done = [each.service for each in report.steps]
    assert done == ["compaction" if kind.merge_on_read else "clean", "archival"]
    assert all(each.outcome == "done" for each in report.steps)
    assert tuple(seen) == report.steps
    assert contents(table) == contents(tmp_path) == rows
    assert not table.services(options=KEEP).due
    assert str(report) == "\n".join(each.text for each in report.steps)


def test_an_engine_runs_the_tasks(tmp_path: Path) -> None:
    class Engine(LocalEngine):
        ran = 0

        def run(self, tasks: Any, on_rows: Any) -> Any:
            Engine.ran += len(tasks)
            return super().run(tasks, on_rows)

    table = grown(tmp_path, Kind(9, True))
    assert table.services(run=True, engine=Engine(1), options=QUICK).steps[0].service == "compaction"
    assert Engine.ran == 2


def test_small_files_are_put_together_and_a_lone_one_stays(tmp_path: Path) -> None:
    Kind(9, False, partitioned=False).create(tmp_path)
    for number in range(5):
        put(tmp_path, records([row(number)], partitioned=False), WriteOperation.BULK_INSERT)
    table = HoodieTable.open(tmp_path)
    assert [each.name for each in table.services().due] == ["clustering"]
    [step] = table.services(run=True, options=QUICK, only=["clustering"]).steps
    assert step.text.startswith("Clustering ")
    assert len(table.file_slices()) == 1
    for number in range(4):
        table.upsert([row(number, 2)], QUICK)
    assert states(table.services())["clustering"] == "not due"  # alone in its group
    alone = {"hoodie.clustering.plan.strategy.single.group.clustering.enabled": "true"}
    assert states(table.services(options=alone))["clustering"] == "due"


def test_many_log_files_are_joined_if_no_compaction_is_due(tmp_path: Path) -> None:
    table = grown(tmp_path, Kind(9, True))
    rare = {**QUICK, "hoodie.compact.inline.max.delta.commits": "50"}
    assert [each.name for each in table.services(options=rare).due] == ["log compaction"]
    rows = contents(table)
    [step] = table.services(run=True, options=rare).steps
    assert step.text.startswith("Log compaction: ")
    assert contents(table) == rows
    assert not table.services(options=rare).due


# What others left ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("seconds_ago", "state"), [(1000, "due"), (1, "waits")])
def test_writes_of_dead_writers_are_rolled_back_and_others_are_left(
    seconds_ago: float, state: str, tmp_path: Path
) -> None:
    table = grown(tmp_path, Kind(9, True), 2)
    instant = begin(tmp_path, "deltacommit")
    beat(tmp_path, instant, seconds_ago)
    found = next(each for each in table.refresh().services().services if each.name == "failed writes")
    assert (found.state, instant in found.why) == (state, True)
    assert found.instants == ((instant,) if state == "due" else ())
    report = HoodieTable.open(tmp_path).services(run=True, options=QUICK)
    there = HoodieTable.open(tmp_path).timeline.find(instant) is not None
    assert there == (state == "waits")
    assert [each.service for each in report.steps] == (["failed writes"] if state == "due" else [])


def test_the_policy_never_leaves_failed_writes(tmp_path: Path) -> None:
    grown(tmp_path, Kind(9, True), 2)
    beat(tmp_path, begin(tmp_path, "deltacommit"), 1000)
    never = {**QUICK, "hoodie.clean.failed.writes.policy": "NEVER"}
    found = HoodieTable.open(tmp_path).services(options=never)
    assert states(found)["failed writes"] == "not due"


def test_pending_plans_are_finished(tmp_path: Path) -> None:
    table = grown(tmp_path, Kind(9, True))
    rows = contents(table)
    instant = table.schedule_compaction(options=QUICK)
    assert instant is not None
    report = table.services()
    assert {"pending plans"} <= {each.name for each in report.due}
    assert next(each for each in report.services if each.name == "pending plans").instants == (instant,)
    steps = table.services(run=True, options=QUICK).steps
    assert (steps[0].service, steps[0].text.startswith(f"Compaction {instant} ")) == ("pending plans", True)
    assert contents(table) == rows


def test_plans_of_a_writer_at_work_are_left(tmp_path: Path) -> None:
    table = grown(tmp_path, Kind(9, True))
    instant = table.schedule_compaction(options=QUICK)
    assert instant is not None
    beat(tmp_path, instant, 1)
    found = next(each for each in table.services().services if each.name == "pending plans")
    assert (found.state, found.instants) == ("waits", ())
    assert "a writer is at work on it" in found.why
    table.services(run=True, options=QUICK)
    assert len(HoodieTable.open(tmp_path).timeline.select_pending_compactions()) == 1


@pytest.mark.parametrize("name", ["clustering_pending_cow_v9", "compaction_pending_mor_v9"])
def test_plans_of_java_are_finished(name: str, tmp_path: Path) -> None:
    base = writable(name, tmp_path)
    table = HoodieTable.open(base)
    rows = table.scan().count()
    assert "pending plans" in {each.name for each in table.services().due}
    report = table.services(run=True, options=QUICK)
    assert report.steps[0].outcome == "done"
    assert not len(HoodieTable.open(base).timeline.select_pending())
    assert table.scan().count() == rows


def test_builds_of_indexes_are_finished(tmp_path: Path) -> None:
    table = grown(tmp_path, Kind(9, True), 2)
    table.index.build("files", options=QUICK)
    change_properties(table.files, {METADATA_PARTITIONS_INFLIGHT: "column_stats"})
    found = HoodieTable.open(tmp_path)
    assert next(each for each in found.services().services if each.name == "index builds").why == (
        "unfinished: column_stats"
    )
    found.services(run=True, options=QUICK, only=["index-builds"])
    assert set(HoodieTable.open(tmp_path).config.metadata_partitions) == {"files", "column_stats"}
    assert HoodieTable.open(tmp_path).config.metadata_partitions_inflight == ()


def test_the_metadata_table_is_served(tmp_path: Path) -> None:
    table = grown(tmp_path, Kind(9, True), 1)
    table.index.build("files", options=QUICK)
    soon = {**QUICK, "hoodie.metadata.compact.max.delta.commits": "3"}
    for ts in range(2, 5):
        HoodieTable.open(tmp_path).upsert([row(1, ts)], QUICK)
    found = next(each for each in HoodieTable.open(tmp_path).services(options=soon).services if each.is_due)
    assert (found.name, found.why) == ("metadata table", "4 delta commits since its last compaction")
    HoodieTable.open(tmp_path).services(run=True, options=soon)
    assert states(HoodieTable.open(tmp_path).services(options=soon))["metadata table"] == "not due"


# What goes wrong ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "outcome"),
    [(StorageError("gone"), "failed"), (ConflictError("taken"), "conflict"), (ZeroDivisionError("oh"), "failed")],
    ids=["error", "conflict", "engine"],
)
def test_a_step_that_fails_stops_no_other(error: Exception, outcome: str, tmp_path: Path) -> None:
    table = grown(tmp_path, Kind(8, False))
    with failing_requests(writes(rf"^{tmp_path}/\.hoodie/(timeline/)?\d+\.clean\.requested$"), error):
        report = table.services(run=True, options=KEEP)
    assert [(each.service, each.outcome) for each in report.steps] == [("clean", outcome), ("archival", "done")]
    assert len(report.failed) == (outcome == "failed")
    assert str(error) in str(report)


def test_a_plan_that_fails_stops_no_other_plan(tmp_path: Path) -> None:
    base = writable("clustering_pending_cow_v9", tmp_path)
    with failing_requests(writes(rf"^{base}/[^.].*\.parquet$"), StorageError("gone")):
        [step] = HoodieTable.open(base).services(run=True, options=QUICK, only=["pending plans"]).steps
    assert (step.outcome, step.text.partition(" [")[0]) == ("failed", "gone")


def test_what_cannot_be_judged_is_unknown(tmp_path: Path) -> None:
    table = grown(tmp_path, Kind(9, True), 2)
    instant = begin(tmp_path, "clean")
    [requested] = (tmp_path / ".hoodie/timeline").glob(f"{instant}.clean.requested")
    requested.write_bytes(b"no plan")
    found = states(table.refresh().services(options=KEEP))
    assert set(found) == set(SERVICES)
    assert found["compaction"] == "not due"


def test_a_run_ends_between_services(tmp_path: Path) -> None:
    table = grown(tmp_path, Kind(8, False))
    asked = iter([False] * 8 + [True])
    report = table.services(run=True, options=KEEP, should_stop=lambda: next(asked))
    assert [each.service for each in report.steps] == ["clean"]
    assert not report.is_whole


def test_services_are_named(tmp_path: Path) -> None:
    table = grown(tmp_path, Kind(9, True), 2)
    assert [each.name for each in table.services(only=["archival", "failed_writes"]).services] == [
        "failed writes",
        "archival",
    ]
    with pytest.raises(InvalidQueryError, match="no table service 'vacuum'") as caught:
        table.services(only=["vacuum"])
    assert "log-compaction" in str(caught.value)


def test_an_empty_table_needs_nothing(tmp_path: Path) -> None:
    table = HoodieTable.open(Kind(9, True).create(tmp_path))
    assert not table.services().due
    assert table.services(run=True).steps == ()


def test_a_table_that_is_only_read_is_refused_by_service(tmp_path: Path) -> None:
    base = writable("logonly_bucket_mor_v9", tmp_path)
    found = states(HoodieTable.open(base).services())
    assert found["clustering"] == "not handled"
