"""A few seconds of writers at one table, and the judge judged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hoodie_py import HoodieTable
from integration.together.journal import Attempt
from integration.together.judge import judge
from integration.together.run import Plan, Run
from integration.together.worker import DONE, REFUSED, SCHEMA, UNKNOWN, partition_of

SHORT = Plan(seed=7, seconds=5.0, processes=2, lock="file", skew=0.5)


@pytest.mark.parametrize("non_blocking", [False, True], ids=["checked", "non-blocking"])
def test_nothing_is_lost_and_nothing_doubled(tmp_path: Path, non_blocking: bool) -> None:
    index = "BUCKET" if non_blocking else "SIMPLE"
    plan = replace(SHORT, uri=str(tmp_path / "table"), non_blocking=non_blocking, index=index)
    outcome = Run(plan, tmp_path).do()
    assert not outcome.problems, str(outcome)
    print(outcome)


def write(table: HoodieTable, name: str, keys: tuple[str, ...], end: str = DONE) -> Attempt:
    data = [{"id": key, "ts": 1, "part": partition_of(key), "write": name} for key in keys]
    table.refresh().upsert(data)
    return Attempt(name, "upsert", keys, 1, end)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda found: [replace(found[0], end=REFUSED), found[1]], "which was refused"),
        (lambda found: [found[0], replace(found[1], keys=("b", "c"))], "c has None, not second"),
        (lambda found: [found[0], replace(found[1], keys=("b", "c"), end=UNKNOWN)], "there by half"),
        (lambda found: [found[0]], "never was"),
        (lambda found: [*found, Attempt("third", "delete", ("a",), 2, DONE)], "a has first, not None"),
    ],
)
def test_the_judge_notices(tmp_path: Path, change: Any, said: str) -> None:
    table = HoodieTable.create(tmp_path, SCHEMA, record_key="id", ordering="ts", partition_by="part")
    found = [write(table, "first", ("a",)), write(table, "second", ("b",))]
    assert judge(str(tmp_path), {}, {}, found) == []
    assert said in " ".join(judge(str(tmp_path), {}, {}, change(found)))
