"""Compactions of tables with change data capture: what the log changed in the old base file is beside the new one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hoodie_py import HoodieTable
from hoodie_py.formats.timeline.writers import write_compaction_plan
from tests.corpus import corpus_names
from tests.writer.change_tables import list_change_files, read_records
from tests.writer.compaction_tables import QUICK, leftovers, orphans, rows, writable
from tests.writer.services.engines import Repeated
from tests.writer.written_tables import Kind, contents, put, records, row

KINDS = [Kind(version, merge_on_read=True, partitioned=False, captures=True) for version in (9, 8, 6)]
of_each_version = pytest.mark.parametrize("kind", KINDS, ids=str)


def start(kind: Kind, base: Path) -> Path:
    """Six rows; k1 updated twice, k2 deleted, a late update of k3, and a delete of a key that never was."""
    kind.create(base)
    put(base, records([row(number, 5) for number in range(6)], partitioned=False))
    put(base, records([row(1, 6, "b"), row(2, 6), row(3, 1)], partitioned=False, deletes=[1]))
    put(base, records([row(1, 7, "c")], partitioned=False))
    return base


def stats(base: Path) -> Iterator[Any]:
    timeline = HoodieTable.open(base)._snapshot.timeline
    for instant in timeline.list_completed_writes():
        yield from timeline.read_metadata(instant).iterate_stats()


@of_each_version
def test_the_log_s_changes(kind: Kind, tmp_path: Path) -> None:
    start(kind, tmp_path)
    assert list_change_files(tmp_path) == [], "a log file is change data of its own"
    before = contents(tmp_path)
    result = HoodieTable.open(tmp_path).compact(options=QUICK)
    [path] = list_change_files(tmp_path)
    found = {(each["before"] or each["after"])["id"]: each for each in read_records(path)}
    assert found == {
        "k1": {"op": "u", "ts_ms": result.instant, "before": row(1, 5), "after": row(1, 7, "c")},
        "k2": {"op": "d", "ts_ms": result.instant, "before": row(2, 5), "after": None},
    }
    assert contents(tmp_path, integrity="strict") == before
    [compacted] = [stat for stat in stats(tmp_path) if stat.total_log_files_compacted]
    assert compacted.cdc_stats == {path.name: path.stat().st_size}
    assert (orphans(tmp_path), leftovers(tmp_path)) == ([], [])


@of_each_version
def test_log_files_name_the_slice_before_them(kind: Kind, tmp_path: Path) -> None:
    start(kind, tmp_path)
    HoodieTable.open(tmp_path).schedule_compaction(options=QUICK)
    put(tmp_path, records([row(4, 8)], partitioned=False))  # its slice is compacted yet
    logs = [stat for stat in stats(tmp_path) if stat.log_version is not None]
    bases = {stat.file_name for stat in stats(tmp_path) if stat.log_version is None}
    assert {stat.base_file for stat in logs} == bases
    names = [stat.file_name for stat in logs]
    assert [stat.log_files for stat in logs] == [tuple(names[: at + 1]) for at in range(3)]
    if kind.version > 6:
        assert len({name.split("_")[1] for name in names}) == 3, "the commits' own instants are in the names"


@of_each_version
def test_one_attempt_s_files_stay(kind: Kind, tmp_path: Path) -> None:
    before = rows(HoodieTable.open(start(kind, tmp_path)))
    instant = str(HoodieTable.open(tmp_path).schedule_compaction(options=QUICK))
    HoodieTable.open(tmp_path).run_compaction(instant, Repeated(), QUICK)
    assert len(list_change_files(tmp_path)) == 1
    assert rows(HoodieTable.open(tmp_path)) == before
    assert (orphans(tmp_path), leftovers(tmp_path)) == ([], [])


@of_each_version
def test_a_clean_takes_change_data_along(kind: Kind, tmp_path: Path) -> None:
    start(kind, tmp_path)
    for ts in (8, 9, 10):
        HoodieTable.open(tmp_path).compact(options=QUICK)
        put(tmp_path, records([row(4, ts)], partitioned=False))
    before = contents(tmp_path)
    [_, _, newest] = list_change_files(tmp_path)
    assert HoodieTable.open(tmp_path).clean(retain_commits=1, options=QUICK).files_deleted
    assert list_change_files(tmp_path) == [newest]
    assert contents(tmp_path, integrity="strict") == before


@pytest.mark.parametrize("name", [name for name in corpus_names() if name.startswith("cdc_") and "_mor_" in name])
def test_java_plans_change_data_with_the_slice(name: str, tmp_path: Path) -> None:
    base = writable(name, tmp_path)
    before = rows(HoodieTable.open(base))
    instant = str(HoodieTable.open(base).schedule_compaction(options=QUICK))
    table = HoodieTable.open(base)
    plan = table._snapshot.timeline.find_compaction_plan(instant)
    assert plan is not None
    operations = []
    for each in plan.operations:
        files = list((base / each.partition_path).glob(f".{each.file_id}_{each.base_instant_time}.*.cdc"))
        operations.append(replace(each, delta_files=(*(path.name for path in files), *each.delta_files)))
    assert any(name.endswith(".cdc") for each in operations for name in each.delta_files)
    path = base / table.config.find_timeline_folder() / f"{instant}.compaction.requested"
    path.write_bytes(write_compaction_plan(replace(plan, operations=tuple(operations))))
    assert HoodieTable.open(base).run_compaction(instant, options=QUICK).instant == instant
    assert rows(HoodieTable.open(base)) == before


@of_each_version
def test_java_plans_slices_that_have_change_data_alone(kind: Kind, tmp_path: Path) -> None:
    start(kind, tmp_path)
    HoodieTable.open(tmp_path).compact(options=QUICK)
    put(tmp_path, records([row(1, 9)], partitioned=False))
    instant = str(HoodieTable.open(tmp_path).schedule_compaction(options=QUICK))
    table = HoodieTable.open(tmp_path)
    plan = table._snapshot.timeline.find_compaction_plan(instant)
    assert plan is not None
    [log] = [path for path in tmp_path.glob(".*.log.*") if path.name in plan.operations[0].delta_files]
    log.unlink()  # as if it had never been written
    folder = tmp_path / table.config.find_timeline_folder()
    newest = table.timeline.select_actions("deltacommit").instants[-1].request_time
    for path in folder.glob(f"{newest}*"):
        path.unlink()
    [captured] = list_change_files(tmp_path)
    alone = replace(plan.operations[0], delta_files=(captured.name,))
    (folder / f"{instant}.compaction.requested").write_bytes(write_compaction_plan(replace(plan, operations=(alone,))))
    before = rows(HoodieTable.open(tmp_path))
    assert HoodieTable.open(tmp_path).run_compaction(instant, options=QUICK).file_groups == 1
    [fresh] = [path for path in list_change_files(tmp_path) if path != captured]
    assert read_records(fresh) == []
    assert rows(HoodieTable.open(tmp_path)) == before


def test_the_spelling_of_modes(tmp_path: Path) -> None:
    mode = {"hoodie.table.cdc.supplemental.logging.mode": "op_key_only"}
    KINDS[0].create(tmp_path, properties=mode)
    put(tmp_path, records([row(0, 5)], partitioned=False))
    put(tmp_path, records([row(0, 6)], partitioned=False))
    HoodieTable.open(tmp_path).compact(options=QUICK)
    [path] = list_change_files(tmp_path)
    assert json.dumps(read_records(path)) == '[{"op": "u", "record_key": "k0"}]'
