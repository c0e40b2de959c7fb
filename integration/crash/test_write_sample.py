"""A sample of ``make crash-writes``, and sabotages of the writer that it must notice."""

from __future__ import annotations

import os
import random
from typing import Any

import pytest

from hoodie_py.writer.commit import first_look, write_commit
from hoodie_py.writer.lock.heartbeat import Heartbeat
from hoodie_py.writer.pipeline import local_engine
from hoodie_py.writer.pipeline import write as write_data
from hoodie_py.writer.rollback import rollback
from hoodie_py.writer.transaction import commit_protocol
from integration.crash.faults import HALF_WRITTEN, KILL_AFTER, KILL_BEFORE, LOST, LOST_FOR_GOOD
from integration.crash.operations import LOCKS, QUICK
from integration.crash.stores import Bucket, Folder, Place
from integration.crash.trials import Broken
from integration.crash.write_trials import WriteBench, bench_of

SEED = int(os.environ.get("HOODIE_CRASH_SEED", "0")) or random.SystemRandom().randrange(1, 10**6)
TRIALS = 4


def some(place: Place, name: str, lock: str, operation: str, count: int) -> None:
    bench = bench_of(place, name, operation, {**QUICK, **LOCKS[lock]}, lock)
    found = list(bench.run(bench.some(SEED, count / len(bench.points))))
    wrong = [trial for trial in found if trial.problems or not trial.reached]
    assert wrong == [], f"repeat with HOODIE_CRASH_SEED={SEED}"
    assert len({trial.combination for trial in found}) == len(found) >= count


@pytest.mark.parametrize(
    ("name", "operation"),
    [
        ("made mor 9", "merge"), ("made mor 9", "update"), ("made cow 6", "delete a partition"),
        ("made mor 6", "alter"), ("made cow 9", "empty a partition"), ("made mor 9 keyless", "insert"),
        ("made mor 9", "upsert"), ("made mor 6", "upsert"), ("made cow 8", "upsert"), ("empty mor 9", "upsert"),
        ("made mor 8", "insert"), ("made cow 6", "bulk insert"), ("made mor 6", "delete"),
        ("made cow 9", "delete by filter"), ("made mor 9", "insert overwrite"),
        ("made cow 6", "insert overwrite table"), ("made cow 9 cdc", "upsert"), ("made cow 6 cdc", "delete"),
        ("made mor 9 virtual", "upsert"), ("made mor 6 virtual", "delete"), ("made cow 9 virtual", "delete by filter"),
        ("made cow 9 virtual", "insert overwrite"),
        ("made mor 9", "create"), ("mdt_files_mor_v9", "upsert"), ("old15_metadata_mor", "insert overwrite"),
        ("mdt_all_cow_v9", "delete"), ("mdt_files_mor_v9 as 8", "insert"),
        ("indexed global_sql_mor_v9", "upsert"), ("indexed partitioned_mor_v9", "insert overwrite"),
        ("indexed global_mor_v6", "delete"),
        ("bootstrapped mor 9", "upsert"), ("bootstrapped cow 9", "upsert"), ("bootstrapped cow 9", "delete"),
        ("bootstrapped mor 9", "insert overwrite"),
    ],
)  # fmt: skip
def test_on_a_disk(folder: Folder, name: str, operation: str) -> None:
    some(folder, name, "machine", operation, TRIALS)


@pytest.mark.parametrize(("name", "operation"), [("made mor 9", "upsert"), ("made cow 6", "insert overwrite")])
def test_on_a_disk_beside_other_writers(folder: Folder, name: str, operation: str) -> None:
    some(folder, name, "file", operation, TRIALS)


@pytest.mark.s3
@pytest.mark.parametrize(("name", "operation"), [("made mor 9", "upsert"), ("made cow 8", "insert overwrite")])
def test_on_s3(bucket: Bucket, name: str, operation: str) -> None:
    some(bucket, name, "object", operation, 2)


# Sabotage ----------------------------------------------------------------------------------------------------------


def bench(folder: Folder, name: str = "made mor 9", operation: str = "upsert", lock: str = "machine") -> WriteBench:
    made = bench_of(folder, name, operation, {**QUICK, **LOCKS[lock]}, lock)
    made.undo_first = False
    return made


def found(made: WriteBench, ending: str, fault: str) -> str:
    """Cut the write short at the last creation of a path that ends so, and return what the checks say."""
    number = max(at for at, (verb, path) in enumerate(made.calls) if path.endswith(ending) and verb == "create")
    return " ".join(made.trial(number, fault).problems)


@pytest.mark.parametrize("fault", [KILL_BEFORE, KILL_AFTER, LOST_FOR_GOOD, HALF_WRITTEN])
def test_nothing_is_found_where_nothing_is_wrong(folder: Folder, fault: str) -> None:
    assert found(bench(folder), ".deltacommit", fault) == ""


def test_beside_other_writers_the_next_one_takes_a_failed_write_back(folder: Folder) -> None:
    made = bench(folder, lock="file")
    for ending in (".requested", ".inflight", ".parquet", ".deltacommit"):
        for fault in (KILL_AFTER, LOST, LOST_FOR_GOOD, HALF_WRITTEN):
            assert found(made, ending, fault) == "", (ending, fault)


def test_failed_writes_without_heartbeat(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    never = property(lambda _: False, lambda *_: None)
    monkeypatch.setattr(Heartbeat, "stays", never, raising=False)
    said = found(bench(folder, lock="file"), ".inflight", LOST_FOR_GOOD)
    assert "still pending" in said


def test_failed_writes_that_stay(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_data, "undo_failed_writes", lambda session: session.look())
    monkeypatch.setattr(first_look, "list_pending_writes", lambda *_: [])
    said = found(bench(folder), ".deltacommit", KILL_BEFORE)
    assert "stray" in said
    assert "still pending" in said


def test_a_rollback_that_leaves_files(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollback, "find_written_files", lambda *_, **__: {})
    assert "stray" in found(bench(folder), ".deltacommit", KILL_BEFORE)


def test_a_write_that_takes_back_what_may_have_landed(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    class Never(Exception):
        """Nobody raises this."""

    def abort(begun: Any, error: Any) -> None:
        write_commit._undo(begun, begun.session.look(), error)

    monkeypatch.setattr(commit_protocol, "CommitStateUnknownError", Never)
    monkeypatch.setattr(write_commit, "_abort", abort)
    assert "cleaned up although the state is unknown" in found(bench(folder), ".deltacommit", LOST_FOR_GOOD)


def test_a_write_that_loses_a_row(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    plain: Any = local_engine.combine

    def combine(records: Any, *args: Any) -> Any:
        whole = plain(records, *args)
        return whole.take(range(1, len(whole)))

    monkeypatch.setattr(local_engine, "combine", combine)
    with pytest.raises(Broken, match="rows"):
        bench(folder)
