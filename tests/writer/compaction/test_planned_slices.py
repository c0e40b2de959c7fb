"""Plans that do not fit the table: nothing is begun, nothing is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import ConflictError, HoodieError, InvalidTableError
from hoodie_py.formats.timeline.plans import CompactionOperation, CompactionPlan
from hoodie_py.formats.timeline.writers import write_compaction_plan
from tests.reader.mergers import Dearest
from tests.writer.bootstrapped_tables import Bootstrapped
from tests.writer.compaction_tables import QUICK, writable
from tests.writer.written_tables import Kind, row

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
