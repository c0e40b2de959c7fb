"""What pending instants have planned: file slices, and the files of a rollback."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoodie_py.formats.timeline.plans import RollbackPlan, RollbackRequest, RolledBackInstant
from hoodie_py.formats.timeline.writers import write_rollback_plan
from hoodie_py.writer.transaction.pending import (
    PendingSlice,
    iterate_pending_clusterings,
    iterate_planned_slices,
    list_pending_rollbacks,
)
from tests.writer.clean_tables import Names, at


@pytest.fixture(params=[9, 6])
def names(tmp_path: Path, request: pytest.FixtureRequest) -> Names:
    return Names(tmp_path / "t", request.param)


def test_slices_of_pending_compactions_and_clusterings(names: Names) -> None:
    names.done(1)
    base, log = f"c-0_0-0-0_{at(1)}.parquet", f".c-0_{at(1)}.log.1_0-0-0"
    names.planned(2, "c-0", base, log)
    names.clustering(3, "f-0", "g-0", base=f"p/f-0_0-0-0_{at(1)}.parquet", logs=(f"p/.f-0_{at(1)}.log.1_0-0-0",))
    names.pending(4, "replacecommit", "requested")  # an insert overwrite plans no slices
    names.clustering(5, "h-0")
    compaction, first, second = (names.snapshot().timeline.find(at(number)) for number in (2, 3, 5))
    assert compaction is not None
    assert first is not None
    assert second is not None
    files = (f"f-0_0-0-0_{at(1)}.parquet", f".f-0_{at(1)}.log.1_0-0-0")
    assert list(iterate_planned_slices(names.snapshot())) == [
        PendingSlice(compaction, "p", "c-0", (base, log)),
        PendingSlice(first, "p", "f-0", files),
        PendingSlice(first, "p", "g-0", files),
        PendingSlice(second, "p", "h-0", (None,)),
    ]
    assert list(iterate_pending_clusterings(names.snapshot())) == [
        (first, frozenset({("p", "f-0"), ("p", "g-0")})),
        (second, frozenset({("p", "h-0")})),
    ]


def test_what_a_pending_rollback_undoes_and_removes(names: Names) -> None:
    requests = (
        RollbackRequest("p", ("a.parquet", "b.parquet")),
        RollbackRequest("q"),
        RollbackRequest("p", ("c.parquet",)),
        RollbackRequest("r", ("d.parquet",)),
    )
    plan = RollbackPlan(RolledBackInstant(at(1), "deltacommit"), requests)
    names.pending(2, "rollback", "requested", write_rollback_plan(plan, f"file://{names.root}"))
    names.pending(2, "rollback", "inflight")
    names.pending(3, "rollback", "requested")  # its writer died before it had written the plan
    known, unknown = list_pending_rollbacks(names.snapshot())
    assert (known.target, known.action) == (at(1), "deltacommit")
    assert known.files == {"p": ("a.parquet", "b.parquet", "c.parquet"), "r": ("d.parquet",)}
    assert (unknown.plan, unknown.target, unknown.action, unknown.files) == (None, "", "", {})
