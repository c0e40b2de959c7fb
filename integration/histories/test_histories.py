"""Random histories, a sample of ``make histories``; histories that went wrong once; and that wrong ones are noticed.

HOODIE_HISTORY_STEPS says how many steps the sample has, HOODIE_HISTORY_SEED which ones.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from hoodie_py.writer.handles import append as append_task
from hoodie_py.writer.index import key_lookup
from integration.histories.findings import Counts, Difference
from integration.histories.machine import Findings, run
from integration.histories.model import Kind, replayed
from integration.histories.moved import moved
from integration.histories.operations import (
    Change,
    Compact,
    DeleteKeys,
    DeleteRows,
    Event,
    Index,
    Insert,
    Operation,
    Overwrite,
    Plan,
    Run,
    RunPlan,
    Schedule,
    Upsert,
)
from integration.histories.rules import COMMIT_TIME, CUSTOM, EVENT_TIME, Row
from integration.histories.table_under_test import Fault, TableUnderTest

STEPS = int(os.environ.get("HOODIE_HISTORY_STEPS", "250"))
SEED = int(os.environ.get("HOODIE_HISTORY_SEED", "7"))  # always the same histories here, others with `make histories`
AT_ONCE = 10
EVENT = Kind(9, merge_on_read=True, mode=EVENT_TIME)


def put(key: str, ts: int, name: str = "a", *, total: int = 1, deletes: bool = False) -> Change:
    return Change(Row(key, "p0", ts, total, name), deletes)


def upsert(*changes: Change) -> Upsert:
    return Upsert(changes)


def done(base: Path, kind: Kind, operations: Sequence[Operation]) -> TableUnderTest:
    """Do operations to a new table; each is compared with the model."""
    table = TableUnderTest(str(base), kind, Counts())
    for each in operations:
        table.do(each)
    return table


def names(kind: Kind, *events: Event) -> dict[str, str]:
    return {row.id: row.name for row in replayed(kind, events).rows()}


# The sample --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_tables_are_what_their_models_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOODIE_PY_READ_THREADS", "1")
    memory = Path("/dev/shm") / f"hoodie-histories-{os.getpid()}"
    base = memory if memory.parent.is_dir() else tmp_path
    findings, part = Findings(), 0
    try:
        while findings.counts.steps < STEPS:
            run(str(base), findings, histories=AT_ONCE, steps=40, seed_=SEED * 1000 + part, ranges=10)
            part += 1
    finally:
        shutil.rmtree(memory, ignore_errors=True)
    counts = findings.counts
    print(f"seed {SEED}: {counts.steps} steps, {findings.histories_with_other_answers} histories with other answers")
    if STEPS >= 600:
        assert counts.cut_short > STEPS // 50
        assert findings.histories_with_other_answers > 0


# Histories that went wrong once ------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("buckets", [0, 2])
def test_a_key_that_only_a_log_has(tmp_path: Path, version: int, buckets: int) -> None:
    """Deleted before a compaction was planned, written again before it ran: the key is not in the new base file."""
    kind = Kind(version, merge_on_read=True, mode=EVENT_TIME, buckets=buckets)
    first = [upsert(put("k1", 1), put("k2", 1)), DeleteKeys(("k1",)), Schedule(), upsert(put("k1", 2, "b")), RunPlan()]
    done(tmp_path, kind, [*first, upsert(put("k1", 3, "c")), DeleteRows((("k1", "p0", 4),)), upsert(put("k1", 5, "d"))])


def test_an_index_beside_a_compaction_that_was_begun(tmp_path: Path) -> None:
    kind = Kind(9, merge_on_read=True, mode=EVENT_TIME, buckets=2, indexed=True)
    table = TableUnderTest(str(tmp_path / "t"), kind, Counts())
    for each in (upsert(put("k1", 1)), upsert(put("k1", 2)), Schedule()):
        table.do(each)
    table.do(RunPlan(), Fault(40, "kill before"))
    assert [each.state for each in table.opened().timeline.select_pending()] == ["inflight"]
    table.do(Index("bloom_filters"))
    assert table.counts.refusals["Index: ConflictError"] == 1


# What a history notices --------------------------------------------------------------------------------------------


def test_keys_of_logs_that_are_not_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_lookup.KeyLookup, "_may_add_keys", lambda *_: False)
    with pytest.raises(Difference, match="a snapshot read lacks"):
        test_a_key_that_only_a_log_has(tmp_path, 9, 0)


def test_deletes_that_lose_their_ordering_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain: Any = append_task.encode_delete_content
    monkeypatch.setattr(append_task, "encode_delete_content", lambda keys, paths, ordering: plain(keys, paths, []))
    with pytest.raises(Difference, match="a snapshot read lacks"):
        done(tmp_path, EVENT, [upsert(put("k1", 5)), upsert(put("k1", 3, deletes=True))])


# The model ---------------------------------------------------------------------------------------------------------

BARE = DeleteKeys(("k1",))
NEW, LATE = upsert(put("k1", 5, "new")), upsert(put("k1", 3, "late"))
COMPACTION = (Plan("c"), Run("c"))


def test_a_forgotten_delete_depends_on_where_the_compaction_fell() -> None:
    assert names(EVENT, NEW, BARE, LATE) == {"k1": "new"}, "the base row is back"
    assert names(EVENT, NEW, BARE, *COMPACTION, LATE) == {"k1": "late"}
    found = moved(EVENT, [NEW, BARE, *COMPACTION, LATE])
    assert found.compactions == 1
    assert found.forgotten == found.other_answers == found.placements == 2


def test_a_delete_with_an_ordering_value_is_forgotten_by_a_compaction() -> None:
    ordered = upsert(put("k1", 9, deletes=True))
    assert names(EVENT, NEW, ordered, LATE) == {}
    assert names(EVENT, NEW, ordered, *COMPACTION, LATE) == {"k1": "late"}
    found = moved(EVENT, [NEW, ordered, LATE, *COMPACTION])
    assert found.other_answers == 1
    assert found.forgotten == 0


def test_nothing_depends_on_it_by_commit_time() -> None:
    kind = Kind(9, merge_on_read=True, mode=COMMIT_TIME)
    assert names(kind, NEW, BARE, LATE) == names(kind, NEW, BARE, *COMPACTION, LATE) == {"k1": "late"}
    assert moved(kind, [NEW, BARE, *COMPACTION, LATE]).other_answers == 0


def test_an_int_zero_is_no_ordering_value_of_a_delete() -> None:
    zero = upsert(put("k1", 0, deletes=True))
    assert names(EVENT, NEW, zero) == {"k1": "new"}
    assert names(Kind(9, merge_on_read=True, mode=EVENT_TIME, wide=False), NEW, zero) == {}


def test_the_delete_operation_has_no_ordering_value() -> None:
    assert names(EVENT, NEW, DeleteRows((("k1", "p0", 3),))) == {}


def test_a_log_written_while_a_compaction_is_planned_stays() -> None:
    assert names(EVENT, NEW, BARE, Plan("c"), LATE) == {"k1": "new"}
    assert names(EVENT, NEW, BARE, Plan("c"), LATE, Run("c")) == {"k1": "late"}


def test_the_merger_orders_deletes_too() -> None:
    kind = Kind(9, merge_on_read=True, mode=CUSTOM)
    heavy, light = upsert(put("k1", 1, "h", total=3)), upsert(put("k1", 9, "l", total=1))
    assert names(kind, heavy, light) == {"k1": "hl"}
    assert names(kind, heavy, BARE) == {"k1": "h"}
    assert names(kind, light, BARE) == {}


def test_copy_on_write_has_no_logs() -> None:
    kind = Kind(9, merge_on_read=False, mode=EVENT_TIME)
    assert names(kind, NEW, BARE, LATE) == {"k1": "late"}
    model = replayed(kind, [NEW, LATE])
    assert model.rows() == [row for row, _ in model.base_rows()] == [NEW.changes[0].row]


def test_overwrites_and_inserts(tmp_path: Path) -> None:
    other = Change(Row("k9", "p1", 1, 1, "other"))
    events: list[Any] = [NEW, Insert((other,)), Overwrite((put("k2", 1, "only"),)), Overwrite((other,), table=True)]
    assert names(EVENT, *events[:3]) == {"k2": "only", "k9": "other"}
    assert names(EVENT, *events) == {"k9": "other"}
    done(tmp_path, EVENT, [*events, upsert(put("k1", 1)), upsert(put("k1", 2)), Compact()])
