"""Steps of a range: which files tell what a commit changed, and tasks that stay small."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hoodie_py import HoodieTable, Instant
from hoodie_py.errors import InvalidQueryError
from hoodie_py.table.changes import plan
from hoodie_py.table.changes.plan import ChangesPlan
from hoodie_py.table.changes.steps import ChangeLog, ComparedSlices, MergedLog, Step, WholeSlice
from hoodie_py.table.incremental.commit_range import resolve_range
from tests.table.archives import add_to_archive
from tests.table.changes.change_lakes import changes, make, row, times
from tests.watched_requests import failing_requests
from tests.writer.clean_tables import Names, at


def list_steps(table: HoodieTable, *span: str) -> list[Step]:
    found = ChangesPlan(table._snapshot, resolve_range(table._snapshot.timeline, *span))
    return [step for _, steps in found.make_steps() for step in steps]


def list_named_steps(names: Names, *span: str, options: Mapping[str, str] | None = None) -> list[Step]:
    snapshot = names.snapshot()
    found = ChangesPlan(snapshot, resolve_range(snapshot.timeline, *span, options=options))
    return [step for _, steps in found.make_steps() for step in steps]


def describe(names: Names, number: int, operation: str = "UPSERT", **more: Any) -> bytes:
    """The metadata of a commit that writes the first base file of a group."""
    stat = {"fileId": f"g{number}-0", "partitionPath": "p", "prevCommit": "null"}
    stat["path"] = names.base(stat["fileId"], number)
    return json.dumps({"operationType": operation, "partitionToWriteStats": {"p": [stat]}, **more}).encode()


def test_copy_on_write(tmp_path: Path) -> None:
    table = make(tmp_path / "t", ("COPY_ON_WRITE", 9), "OP_KEY_ONLY")
    table.upsert([row("a"), row("b")])
    table.upsert([row("a", 2)])
    first, second = list_steps(table)
    assert isinstance(first, WholeSlice)
    assert first.is_insert
    assert isinstance(second, ChangeLog)
    assert second.before is not None
    assert second.after is not None
    assert second.before.file_slice.base_file == first.state.file_slice.base_file
    assert [len(list_steps(table, time)) for time in times(table)] == [1, 0]


def test_a_log_with_images_needs_no_other_file(tmp_path: Path) -> None:
    table = make(tmp_path / "t", ("COPY_ON_WRITE", 9))
    table.upsert([row("a")])
    table.upsert([row("a", 2)])
    (step,) = list_steps(table, times(table)[0])
    assert isinstance(step, ChangeLog)
    assert (step.before, step.after) == (None, None)


def test_commits_of_one_log_are_one_step(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    for number in range(1, 5):
        table.upsert([row("a", number)])
    times_of = [each.request_time for each in table.timeline.select_writes()]
    (step,) = list_steps(table, times(table)[0], times(table)[2])
    assert isinstance(step, MergedLog)
    assert step.instants == tuple(times_of[1:3])
    assert [log.name.instant for log in step.state.file_slice.log_files] == times_of[1:3]


def test_a_base_file_without_a_log_is_compared(tmp_path: Path) -> None:
    table = HoodieTable.create(
        tmp_path / "t", make(tmp_path / "other").schema, record_key="id", table_type="COPY_ON_WRITE"
    )
    table.upsert([row("a"), row("b")])
    table.upsert([row("a", 2)])
    first, second = list_steps(table)
    assert isinstance(first, WholeSlice)
    assert isinstance(second, ComparedSlices)


def test_many_steps_come_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(tmp_path / "t", ("COPY_ON_WRITE", 9))
    for number in range(1, 8):
        table.upsert([row("a", number)])
    whole = changes(table)
    monkeypatch.setattr(plan, "_MANY_STEPS", 1)
    monkeypatch.setattr(plan, "_MOST_BYTES", 1000)
    tasks = table.changes().tasks()
    assert len(tasks) > 1
    assert len(pickle.dumps(tasks[0])) < len(pickle.dumps(table.changes().tasks()))
    assert changes(table) == whole


def test_an_older_slice_that_a_savepoint_kept_is_not_what_a_replaced_group_had(tmp_path: Path) -> None:
    table = make(tmp_path / "t", ("COPY_ON_WRITE", 9))
    table.upsert([row("a"), row("b", part="q")])
    table.savepoint()
    table.upsert([row("a", 2)])
    before = times(table)[-1]
    table.delete_partition("p")
    assert [(op, old and old["ts"]) for op, old, _ in changes(table, before)] == [("d", 2)]
    for ts in (2, 3):
        table.upsert([row("b", ts, part="q")])
    assert table.clean(1).files_deleted
    assert len(list((tmp_path / "t/p").glob("*.parquet"))) == 1
    with pytest.raises(InvalidQueryError, match="are gone"):
        changes(table, before, times(table)[2])


@pytest.mark.parametrize(("operation", "changes_rows"), [("BUCKET_RESCALE", False), ("INSERT_OVERWRITE", True)])
def test_a_change_of_the_number_of_buckets_only_moves_rows(tmp_path: Path, operation: str, changes_rows: bool) -> None:
    names = Names(tmp_path / "t", **{"hoodie.table.cdc.enabled": "true"})
    names.base("old-0", 1)
    names.done(1)
    stat = {"fileId": "new-0", "partitionPath": "p", "path": names.base("new-0", 2), "prevCommit": "null"}
    metadata = {
        "operationType": operation,
        "partitionToReplaceFileIds": {"p": ["old-0"]},
        "partitionToWriteStats": {"p": [stat]},
    }
    names.done(2, "replacecommit", json.dumps(metadata).encode())
    snapshot = names.snapshot()
    steps = [
        step for _, some in ChangesPlan(snapshot, resolve_range(snapshot.timeline, at(2))).make_steps() for step in some
    ]
    assert [type(each) for each in steps] == ([WholeSlice, WholeSlice] if changes_rows else [])


@pytest.mark.parametrize(
    ("table_type", "action", "operation", "changes_rows"),
    [
        ("MERGE_ON_READ", "commit", "UNKNOWN", False),  # a compaction of Java
        ("MERGE_ON_READ", "deltacommit", "UNKNOWN", True),
        ("MERGE_ON_READ", "deltacommit", "UPSERT", True),
        ("COPY_ON_WRITE", "commit", "UNKNOWN", True),
        ("COPY_ON_WRITE", "commit", "UPSERT", True),
    ],
)
def test_a_commit_whose_operation_is_unknown_is_a_compaction_only_on_merge_on_read(
    tmp_path: Path, table_type: str, action: str, operation: str, changes_rows: bool
) -> None:
    names = Names(tmp_path / "t", **{"hoodie.table.cdc.enabled": "true", "hoodie.table.type": table_type})
    names.done(1, action, describe(names, 1, operation))
    assert len(list_named_steps(names)) == changes_rows


def test_changes_end_before_a_hole(tmp_path: Path) -> None:
    names = Names(tmp_path / "t", 6, **{"hoodie.table.cdc.enabled": "true"})
    names.done(1, content=describe(names, 1))
    names.pending(2)
    names.done(3, content=describe(names, 3))
    blocked = {"hoodie.read.timeline.holes.resolution.policy": "BLOCK"}
    found = list_named_steps(names, "000", options=blocked)
    assert [each.instant for each in found if isinstance(each, WholeSlice)] == [at(1)]
    assert len(found) == 1


@pytest.mark.parametrize(
    ("start", "end", "last"),
    [(0, None, 2), (1, None, 2), (0, 1, 1), (2, None, None), (3, None, None), (2, 3, None), (4, 6, None)],
)
def test_changes_of_request_times_are_archived_if_a_commit_of_the_range_is(
    tmp_path: Path, start: int, end: int | None, last: int | None
) -> None:
    """Commits 5 and 6 were archived after the timeline was listed, so their files are known."""
    names = Names(tmp_path / "t", 6, **{"hoodie.table.cdc.enabled": "true"})
    for number in (5, 6):
        names.done(number, content=describe(names, number))
    archived = [Instant(at(number), at(number), "deltacommit", "completed") for number in (1, 2, 5, 6)]
    add_to_archive(tmp_path / "t", names.snapshot().config, archived)
    span = (at(start),) if end is None else (at(start), at(end))
    if last is None:
        assert len(list_named_steps(names, *span)) == (2 if end != 3 else 0)
    else:
        with pytest.raises(InvalidQueryError, match=f"archived, up to {at(last)}"):
            list_named_steps(names, *span)


@pytest.mark.parametrize(("partition", "path"), [("p", "p/old-0"), ("", "old-0")])
def test_a_replaced_group_without_files_is_named(tmp_path: Path, partition: str, path: str) -> None:
    names = Names(tmp_path / "t", **{"hoodie.table.cdc.enabled": "true"})
    names.done(1)
    names.done(2, "replacecommit", describe(names, 2, partitionToReplaceFileIds={partition: ["old-0"]}))
    with pytest.raises(InvalidQueryError, match="are gone") as caught:
        list_named_steps(names, at(1))
    assert caught.value.where["path"] == path


def test_rows_of_a_log_that_a_clean_is_removing_are_not_taken_for_inserts(
    tmp_path: Path,
) -> None:
    """The clean has begun and removed the older of two log files: the range needs both."""
    table = make(tmp_path / "t")
    for number in (1, 2, 3):
        table.upsert([row("a", number)])
    span = times(table)[1:]
    (change,) = changes(table, *span)
    assert change[:2] == ("u", {**row("a", 2)})
    table.compact()
    table.upsert([row("a", 4)])

    oldest = min((tmp_path / "t/p").glob(".*.log.*"))
    with (
        failing_requests(lambda asked: asked.verb == "delete" and asked.path != str(oldest), SystemExit),
        pytest.raises(SystemExit),
    ):
        table.clean(1)
    assert len(list((tmp_path / "t/p").glob(".*.log.*"))) == 3
    with pytest.raises(InvalidQueryError, match="are gone"):
        changes(HoodieTable.open(tmp_path / "t"), *span)
