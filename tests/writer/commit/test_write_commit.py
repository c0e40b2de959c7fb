"""What a commit says of a write, who may come between, and what is left of a write that does not commit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hoodie_py import HoodieTable, HoodieWarning
from hoodie_py.errors import CommitStateUnknownError, ConflictError, StorageError, UnsupportedFeatureError
from hoodie_py.files import TableFiles
from hoodie_py.formats.timeline.commit_metadata import CommitMetadata
from hoodie_py.formats.timeline.instants import INFLIGHT, Instant
from hoodie_py.table.snapshot import Snapshot, open_snapshot
from hoodie_py.writer.commit import write_commit
from hoodie_py.writer.commit.conflicts import Claims
from hoodie_py.writer.commit.first_look import Intent
from hoodie_py.writer.commit.write_commit import open_commit
from hoodie_py.writer.handles.data_file import OutputFile
from hoodie_py.writer.lock.heartbeat import HEARTBEAT_FOLDER, Heartbeat
from hoodie_py.writer.pipeline import tasks as write_jobs
from hoodie_py.writer.pipeline.assign import AssignedRecords
from hoodie_py.writer.pipeline.tasks import Job, Tasks, make_workload
from hoodie_py.writer.records import WriteOperation, WriteRecords
from hoodie_py.writer.timeline.timeline_writer import TimelineWriter
from tests.writer.compaction_tables import QUICK, leftovers
from tests.writer.slow_writes import COW, MOR, pending, slowly, start
from tests.writer.written_tables import KINDS, Kind, contents, data_files, placed, put, records, row, schema_of, session


def last(base: Path) -> tuple[Snapshot, CommitMetadata]:
    snapshot = open_snapshot(TableFiles.open(base))
    return snapshot, snapshot.timeline.read_metadata(snapshot.timeline.list_completed_writes()[-1])


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_rows_are_what_was_written(kind: Kind, tmp_path: Path) -> None:
    start(tmp_path, kind)
    changes = [row(0, 2, "b"), row(1, 0, "late"), row(2, 2), row(3, 0), row(20, 1, "new"), row(21, 1)]
    result = put(tmp_path, records(changes, partitioned=kind.partitioned, deletes=[2, 3, 5]))
    want = {f"k{i}": (1, "a") for i in range(8) if i != 2} | {"k0": (2, "b"), "k20": (1, "new")}
    assert contents(tmp_path) == want
    assert result.rows_inserted == 1
    assert leftovers(tmp_path) == []
    assert pending(tmp_path) == []
    snapshot, metadata = last(tmp_path)
    action = "deltacommit" if kind.merge_on_read else "commit"
    [instant] = [each for each in snapshot.timeline if each.request_time == result.instant]
    assert (instant.action, instant.completion_time) == (
        action, result.completion_time if kind.version > 6 else result.instant,
    )  # fmt: skip
    assert metadata.operation_type == "UPSERT"
    assert metadata.schema == snapshot.config.create_schema
    assert {stat.path for stat in metadata.iterate_stats()} <= data_files(tmp_path)
    assert len(list(metadata.iterate_stats())) == result.file_groups


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_the_inflight_file_has_the_workload(kind: Kind, tmp_path: Path) -> None:
    start(tmp_path, kind)
    put(tmp_path, records([row(0, 2), row(2, 2), row(30, 2)], partitioned=kind.partitioned))
    snapshot = open_snapshot(TableFiles.open(tmp_path))
    instant = snapshot.timeline.list_completed_writes()[-1].request_time
    suffix = "deltacommit.inflight" if kind.merge_on_read else "inflight"
    content = (tmp_path / snapshot.config.find_timeline_folder() / f"{instant}.{suffix}").read_bytes()
    profile = CommitMetadata.from_bytes(content)
    part = "p0" if kind.partitioned else ""
    new, known = profile.write_stats[part]
    assert (new.num_inserts, new.file_id, known.num_update_writes) == (1, "", 2)
    assert known.file_id in {each.file_id for each in snapshot.file_slices()}
    if kind.version == 6:
        assert json.loads(content)["operationType"] == "UPSERT"


@pytest.mark.parametrize("kind", [MOR, COW, Kind(6, True), Kind(6, False)], ids=str)
def test_overwriting_is_a_replace_commit(kind: Kind, tmp_path: Path) -> None:
    start(tmp_path, kind)
    replaced: dict[str, tuple[str, ...]] = {}
    for each in HoodieTable.open(tmp_path).file_slices():
        replaced[each.partition_path] = (*replaced.get(each.partition_path, ()), each.file_id)
    result = put(tmp_path, records([row(50)]), WriteOperation.INSERT_OVERWRITE_TABLE, replaced=replaced)
    assert contents(tmp_path) == {"k50": (1, "a")}
    assert result.groups_replaced == 2
    snapshot, metadata = last(tmp_path)
    assert metadata.replaced_file_ids == replaced
    assert snapshot.timeline.list_completed_writes()[-1].action == "replacecommit"
    put(tmp_path, records([row(50, 2, "b"), row(0, 1)]))
    assert contents(tmp_path) == {"k50": (2, "b"), "k0": (1, "a")}


# Other writers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_another_write_to_the_same_group_is_a_conflict(kind: Kind, tmp_path: Path) -> None:
    start(tmp_path, kind)
    ours = records([row(0, 2, "ours")], partitioned=kind.partitioned)
    theirs = records([row(2, 2, "theirs")], partitioned=kind.partitioned)
    many = {"hoodie.clean.failed.writes.policy": "LAZY"}
    with pytest.raises(ConflictError, match="changed a file group"):
        slowly(tmp_path, ours, lambda: put(tmp_path, theirs, options=many), **many)
    assert contents(tmp_path)["k0"] == (1, "a")
    assert contents(tmp_path)["k2"] == (2, "theirs")
    assert (pending(tmp_path), leftovers(tmp_path)) == ([], [])


def test_writes_to_different_groups_go_together(tmp_path: Path) -> None:
    start(tmp_path)
    many = {"hoodie.clean.failed.writes.policy": "LAZY"}
    theirs = records([row(1, 2, "theirs")])
    slowly(tmp_path, records([row(0, 2, "ours")]), lambda: put(tmp_path, theirs, options=many), **many)
    assert contents(tmp_path)["k0"] == (2, "ours")
    assert contents(tmp_path)["k1"] == (2, "theirs")


def test_a_key_is_not_inserted_twice(tmp_path: Path) -> None:
    start(tmp_path)
    many = {"hoodie.clean.failed.writes.policy": "LAZY"}
    new = records([row(40)])
    with pytest.raises(ConflictError, match="same new keys"):
        slowly(tmp_path, new, lambda: put(tmp_path, new, options=many), **many)
    assert contents(tmp_path)["k40"] == (1, "a")


@pytest.mark.parametrize("version", [9, 8, 6])
def test_a_compaction_meanwhile(version: int, tmp_path: Path) -> None:
    start(tmp_path, Kind(version, True))
    put(tmp_path, records([row(0, 2, "log")]))
    many = {"hoodie.clean.failed.writes.policy": "LAZY", **QUICK}

    def compact() -> None:
        assert HoodieTable.open(tmp_path).compact(options=many).instant is not None

    ours = records([row(0, 3, "ours")])
    if version == 6:  # the plan is refused beside an older write
        with pytest.raises(ConflictError):
            slowly(tmp_path, ours, compact, **many)
        assert contents(tmp_path)["k0"] == (2, "log")
    else:
        slowly(tmp_path, ours, compact, **many)
        assert contents(tmp_path)["k0"] == (3, "ours")
        HoodieTable.open(tmp_path).compact(options=QUICK)
        assert contents(tmp_path)["k0"] == (3, "ours")


@pytest.mark.parametrize("version", [9, 8, 6])
def test_logs_beside_a_pending_compaction(version: int, tmp_path: Path) -> None:
    start(tmp_path, Kind(version, True))
    put(tmp_path, records([row(0, 2, "b")]))
    plan = HoodieTable.open(tmp_path).schedule_compaction(options=QUICK)
    put(tmp_path, records([row(0, 3, "c"), row(2, 3, "c")]))
    put(tmp_path, records([row(2, 4, "d")]))
    want = contents(tmp_path)
    assert (want["k0"], want["k2"]) == ((3, "c"), (4, "d"))
    if version == 6:
        names = [log.name for each in HoodieTable.open(tmp_path).file_slices() for log in each.log_files]
        assert sorted(each.version for each in names if each.instant == plan) == [1, 2]
    HoodieTable.open(tmp_path).run_compaction(plan, options=QUICK)
    assert contents(tmp_path) == want
    HoodieTable.open(tmp_path).compact(options=QUICK)
    assert contents(tmp_path) == want == contents(tmp_path, query_type="read_optimized")


def test_a_write_at_work_keeps_others_out(tmp_path: Path) -> None:
    start(tmp_path)

    def other() -> None:
        with pytest.raises(ConflictError):
            put(tmp_path, records([row(1, 2)]))

    slowly(tmp_path, records([row(0, 2, "ours")]), other)
    assert contents(tmp_path)["k0"] == (2, "ours")


def test_a_write_that_was_rolled_back_does_not_commit(tmp_path: Path) -> None:
    start(tmp_path)
    before = contents(tmp_path)

    def roll_back() -> None:
        table = HoodieTable.open(tmp_path)
        instant = table.timeline.select_pending().instants[0].request_time
        for path in (tmp_path / table.config.find_timeline_folder()).glob(f"{instant}.*"):
            path.unlink()

    with pytest.raises(ConflictError, match="is gone"):
        slowly(tmp_path, records([row(0, 2, "ours")]), roll_back)
    assert contents(tmp_path) == before


# Failures ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_failed_write_is_taken_back(kind: Kind, tmp_path: Path) -> None:
    start(tmp_path, kind)
    before, files = contents(tmp_path), data_files(tmp_path)

    def fail() -> None:
        raise StorageError("no space left on device")

    with pytest.raises(StorageError, match="no space"):
        slowly(tmp_path, records([row(0, 2), row(40)], partitioned=kind.partitioned), fail)
    assert contents(tmp_path) == before
    assert (data_files(tmp_path), pending(tmp_path), leftovers(tmp_path)) == (files, [], [])


def taken_back(base: Path, given: WriteRecords) -> list[Job]:
    """Begin a write that does not commit, and return its tasks, none of which was run."""
    doing = session(base)
    snapshot = doing.look()
    routed = placed(snapshot, given)
    intent = Intent(WriteOperation.UPSERT, snapshot, schema_of(snapshot), Claims())
    with open_commit(doing, intent) as begun:
        return list(Tasks(snapshot, begun.facts, doing.settings).iterate_jobs(routed))


@pytest.mark.parametrize("kind", [MOR, COW, Kind(6, True), Kind(6, False)], ids=str)
def test_a_task_that_begins_when_its_write_is_taken_back_leaves_nothing(
    kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = start(tmp_path, kind)
    before = data_files(base)
    given = records([row(i, 2) for i in range(4, 12)], partitioned=kind.partitioned)
    jobs = taken_back(base, given)
    monkeypatch.setattr(OutputFile, "publish", lambda _: pytest.fail("The file was written."))
    for job in jobs:
        with pytest.raises(ConflictError, match="finished or taken back"):
            job.run()
    assert (data_files(base), leftovers(base)) == (before, [])


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_task_that_runs_while_its_write_is_taken_back_leaves_nothing(
    kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = start(tmp_path, kind)
    before = data_files(base)
    given = records([row(i, 2) for i in range(4, 12)], partitioned=kind.partitioned)
    remove, late, jobs = TimelineWriter.remove, [], Tasks.iterate_jobs

    def kept(tasks: Tasks, routed: AssignedRecords) -> Iterator[Job]:
        late.extend(jobs(tasks, routed))
        yield from late

    def run_before(writer: TimelineWriter, instant: Instant) -> None:
        if instant.state == INFLIGHT:  # the files that markers named are gone by now
            for job in late:
                job.run()
        remove(writer, instant)

    monkeypatch.setattr(Tasks, "iterate_jobs", kept)
    monkeypatch.setattr(TimelineWriter, "remove", run_before)
    taken_back(base, given)
    assert (data_files(base), leftovers(base)) == (before, [])
    assert len(list(HoodieTable.open(base).timeline)) == 1


@pytest.mark.parametrize("kind", [MOR, COW, Kind(6, False)], ids=str)
def test_a_task_whose_write_was_taken_back_without_its_marker_leaves_nothing(
    kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = start(tmp_path, kind)
    before = data_files(base)
    doing = session(base)
    snapshot = doing.look()
    routed = placed(snapshot, records([row(i, 2) for i in range(4, 12)], partitioned=kind.partitioned))
    publish = OutputFile.publish
    with open_commit(doing, Intent(WriteOperation.UPSERT, snapshot, schema_of(snapshot), Claims())) as begun:
        facts = begun.facts

        def taken_back_first(file: OutputFile) -> int:
            TimelineWriter(facts.files, facts.config).remove(facts.inflight)
            return publish(file)

        monkeypatch.setattr(OutputFile, "publish", taken_back_first)
        for job in Tasks(snapshot, facts, doing.settings).iterate_jobs(routed):
            with pytest.raises(ConflictError, match="finished or taken back"):
                job.run()
        left = [path for path in leftovers(base) if not path.startswith(HEARTBEAT_FOLDER)]  # it is at work still
        assert (data_files(base), left) == (before, [])


def test_a_write_of_unknown_state_is_left_to_the_next(tmp_path: Path) -> None:
    start(tmp_path)
    before, files = contents(tmp_path), data_files(tmp_path)

    def fail() -> None:
        raise CommitStateUnknownError("the answer got lost")

    with pytest.raises(CommitStateUnknownError):
        slowly(tmp_path, records([row(0, 2), row(40)]), fail)
    assert pending(tmp_path) == ["deltacommit inflight"]
    assert contents(tmp_path) == before
    assert data_files(tmp_path) > files
    put(tmp_path, records([row(1, 2, "b")]))
    assert pending(tmp_path) == []
    assert contents(tmp_path) == {**before, "k1": (2, "b")}
    assert len(data_files(tmp_path)) == len(files) + 1


def test_a_block_that_does_not_commit_is_taken_back(tmp_path: Path) -> None:
    start(tmp_path)
    doing = session(tmp_path)
    snapshot = doing.look()
    with open_commit(doing, Intent(WriteOperation.UPSERT, snapshot, schema_of(snapshot), Claims())):
        assert pending(tmp_path) == ["deltacommit inflight"]
    assert pending(tmp_path) == []


def test_files_of_lost_attempts_are_removed(tmp_path: Path) -> None:
    for kind in (MOR, COW, Kind(6, True)):
        base = start(tmp_path / str(kind), kind)
        doing = session(base)
        snapshot = doing.look()
        routed = placed(snapshot, records([row(0, 2, "b"), row(40)]))
        claims = Claims(frozenset(each.group for each in routed.assignments))
        with open_commit(doing, Intent(WriteOperation.UPSERT, snapshot, schema_of(snapshot), claims)) as begun:
            jobs = list(Tasks(snapshot, begun.facts, doing.settings).iterate_jobs(routed))
            for job in jobs:
                job.run()
            results = [job.run() for job in jobs]
            begun.commit(results)
        assert {each.path for each in results} < data_files(base)
        assert len(data_files(base)) == 2 + len(results)
        assert contents(base)["k0"] == (2, "b")


def test_a_result_whose_file_is_gone_is_refused(tmp_path: Path) -> None:
    start(tmp_path)
    before = contents(tmp_path)

    def lose() -> None:
        for path in tmp_path.rglob(".*.log.*"):
            path.unlink()

    with pytest.raises(ConflictError, match="removed or changed"):
        slowly(tmp_path, records([row(0, 2)]), lose)
    assert contents(tmp_path) == before
    assert pending(tmp_path) == []


def test_markers_that_stay_are_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start(tmp_path)

    def fail(*_: Any) -> None:
        raise StorageError("not now")

    monkeypatch.setattr(write_commit.Markers, "remove_all", fail)
    with pytest.warns(HoodieWarning, match="The write is committed"):
        put(tmp_path, records([row(0, 2, "b")]))
    assert contents(tmp_path)["k0"] == (2, "b")


def test_nobody_undoes_what_another_process_writes(tmp_path: Path) -> None:
    start(tmp_path)
    with pytest.raises(CommitStateUnknownError):
        slowly(tmp_path, records([row(0, 2)]), lambda: (_ for _ in ()).throw(CommitStateUnknownError("lost")))
    [instant] = HoodieTable.open(tmp_path).timeline.select_pending()
    with Heartbeat(TableFiles.open(tmp_path), instant.request_time) as beats:
        with pytest.raises(ConflictError):
            put(tmp_path, records([row(1, 2)]))
        beats.stays = beats.ends_at_once = True
    assert pending(tmp_path) == ["deltacommit inflight"]
    put(tmp_path, records([row(1, 2)]))
    assert pending(tmp_path) == []


def test_tables_that_are_never_written(tmp_path: Path) -> None:
    MOR.create(tmp_path, properties={"hoodie.table.multiple.base.file.formats.enable": "true"})
    with pytest.raises(UnsupportedFeatureError, match="several base file formats"):
        put(tmp_path, records([row(1)]), WriteOperation.INSERT)
    assert len(HoodieTable.open(tmp_path).timeline) == 0


def test_workload_of_nothing(tmp_path: Path) -> None:
    start(tmp_path)
    snapshot = open_snapshot(TableFiles.open(tmp_path))
    assert make_workload(placed(snapshot, records([row(77)], deletes=[0])).assignments) == {}
    assert write_jobs.NO_COMMIT == "null"
