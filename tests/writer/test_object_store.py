"""Every operation on a store that is not a disk, where much is done by several threads at once: the rows are those that
the same operations leave on a disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from hoodie_py import HoodieTable, Insert, Update
from tests.writer.compaction_tables import QUICK
from tests.writer.written_tables import Kind, row

INDEXES = {
    **QUICK,
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.compact.max.delta.commits": "3",
    "hoodie.compact.inline.max.delta.commits": "1",
    "hoodie.log.compaction.blocks.threshold": "2",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.clean.commits.retained": "1",
}
PLAIN = {**INDEXES, "hoodie.metadata.enable": "false"}
Act = Callable[[HoodieTable, Mapping[str, str]], Any]


def some(ts: int, *numbers: int) -> list[dict[str, Any]]:
    return [{**row(number, ts), "name": f"n{ts}"} for number in numbers]


def merge(table: HoodieTable, options: Mapping[str, str]) -> None:
    table.merge(some(3, 1, 50), on="id", when_matched=Update(), when_not_matched=Insert(), options=options)


def go_back(table: HoodieTable, options: Mapping[str, str]) -> None:
    saved = table.savepoint(options=options).instant
    table.upsert(some(9, 1, 60), options)
    assert table.restore(saved, options).undone
    table.delete_savepoint(saved, options)


def plan_and_take_back(table: HoodieTable, options: Mapping[str, str]) -> None:
    table.upsert(some(4, 1, 3), options)
    plan = table.schedule_compaction(options=options) if table.config.is_merge_on_read else None
    if plan is not None and table.config.version < 8:
        table.run_compaction(plan, options=options)  # later logs are named after it, so it is not taken back
    elif plan is not None:
        table.rollback(plan, options)


def change_version(table: HoodieTable, options: Mapping[str, str]) -> None:
    if table.config.version == 6:
        table.upgrade(9, options=options)
    table.downgrade(6, options=options)


ACTS: tuple[Act, ...] = (
    lambda table, options: table.services(run=True, options=options),  # nothing is due
    lambda table, options: table.upsert([], options),
    lambda table, options: table.upsert(some(1, *range(8)), options),
    lambda table, options: table.upsert(some(2, 0, 1, 2), options),
    lambda table, options: table.delete(["nowhere"], options=options),
    lambda table, options: table.update({"name": "'other'"}, where="id = 'k3'", options=options),
    lambda table, options: table.update({"name": "'other'"}, where="id = 'nowhere'", options=options),
    merge,
    lambda table, options: table.log_compact(options=options) if table.config.is_merge_on_read else None,
    go_back,
    lambda table, options: table.compact(options=options) if table.config.is_merge_on_read else None,
    lambda table, options: table.insert(some(5, 20, 21), options),
    lambda table, options: table.bulk_insert(some(5, 22, 23), options),
    lambda table, options: table.cluster(options=options),
    lambda table, options: table.delete(["k2", "k20"], options=options),
    lambda table, options: table.insert_overwrite(some(6, 30, 32), options),
    plan_and_take_back,
    lambda table, options: table.archive(options=options),
    lambda table, options: table.clean(options=options),
    lambda table, options: table.delete_partition(["p1"], options),
    lambda table, options: table.upsert(some(7, 1, 3), options),
    lambda table, options: table.services(run=True, options=options),
    change_version,
    lambda table, options: table.upsert(some(8, 1, 4), options),
    go_back,
    lambda table, options: table.insert_overwrite_table(some(9, 1, 2, 3), options),
)


def rows(table: HoodieTable) -> list[dict[str, Any]]:
    return sorted(
        table.scan(columns=["id", "part", "ts", "name"]).to_arrow().to_pylist(), key=lambda each: str(each["id"])
    )


@pytest.mark.parametrize(
    ("kind", "options"),
    [(Kind(9, True), INDEXES), (Kind(8, False), INDEXES), (Kind(6, True), INDEXES), (Kind(9, True), PLAIN)],
    ids=["v9-mor", "v8-cow", "v6-mor", "v9-mor-plain"],
)
def test_all_operations_do_what_they_do_on_a_disk(kind: Kind, options: dict[str, str], tmp_path: Path) -> None:
    uri = f"memory://{uuid4().hex}/t"
    here, there = HoodieTable.open(kind.create(tmp_path / "t")), HoodieTable.open(kind.create(uri))
    for act in ACTS:
        act(here, options)
        act(there, options)
        assert rows(there) == rows(here)
    found = HoodieTable.open(uri).verify()
    assert found.is_right, found
