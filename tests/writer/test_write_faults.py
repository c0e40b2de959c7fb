"""Writes whose store dies, refuses or loses its answer, all over: the write is there whole or not at all."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from hoodie_py import HoodieError, HoodieTable
from hoodie_py.errors import CommitStateUnknownError
from hoodie_py.files import TableFiles
from hoodie_py.writer.records import WriteOperation, WriteRecords
from tests.writer.compaction_tables import copied, leftovers, missing, orphans
from tests.writer.faulty_files import WRITES, FaultyFiles, Killed, Plan
from tests.writer.written_tables import Kind, contents, data_files, put, records, row

pytestmark = [
    pytest.mark.filterwarnings("ignore:The write is committed"),  # its markers were not removed
    pytest.mark.filterwarnings("ignore:A heartbeat was not removed"),
]
FAULTS = ("kill before", "kill after", "refuse", "lose answer")
STRIDE = 3  # every so manyth writing call
KINDS = [
    *(Kind(9, True), Kind(8, False), Kind(6, True), Kind(6, False, False), Kind(9, True, False)),
    *(Kind(9, False, captures=True), Kind(6, False, False, captures=True)),
]


def start(kind: Kind, base: Path) -> Path:
    kind.create(base)
    put(base, records([row(i) for i in range(8)], partitioned=kind.partitioned), WriteOperation.INSERT)
    put(base, records([row(i, 2, "b") for i in range(4)], partitioned=kind.partitioned))
    return base


def change(kind: Kind) -> WriteRecords:
    rows = [row(i, 3, "c") for i in (1, 2, 5, 6, 10, 11)]
    return records(rows, partitioned=kind.partitioned, deletes=[1, 2])


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("operation", [WriteOperation.UPSERT, WriteOperation.INSERT_OVERWRITE_TABLE])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_write_is_there_whole_or_not_at_all(
    kind: Kind, operation: WriteOperation, fault: str, tmp_path: Path
) -> None:
    table = start(kind, tmp_path / "start")
    before, files = contents(table), data_files(table)
    replaced = None
    if operation is WriteOperation.INSERT_OVERWRITE_TABLE:
        replaced = {}
        for each in HoodieTable.open(table).file_slices():
            replaced[each.partition_path] = (*replaced.get(each.partition_path, ()), each.file_id)
    trace = Plan(watched=WRITES)
    traced = copied(table, tmp_path / "traced")
    put(FaultyFiles(TableFiles.open(traced), trace), change(kind), operation, replaced=replaced)
    after = contents(traced)
    assert after != before
    first = (FAULTS.index(fault) + KINDS.index(kind)) % STRIDE
    commit = max(at for at, call in enumerate(trace.trace) if call.startswith("put_if_absent .hoodie/"))
    for at in sorted({*range(first, len(trace.trace), STRIDE), commit}):
        base = copied(table, tmp_path / "case")
        plan = Plan(at=at, fault=fault, watched=WRITES)
        told: HoodieError | None = None
        try:
            put(FaultyFiles(TableFiles.open(base), plan), change(kind), operation, replaced=replaced)
        except HoodieError as error:
            told = error
        except Killed:
            pass
        step = (trace.trace[at], told)
        assert plan.dead is fault.startswith("kill"), step
        now = contents(base)
        assert now in (before, after), step
        if told is not None and not isinstance(told, CommitStateUnknownError):
            assert now == before, step
            if fault == "refuse":
                assert "not all removed" in str(getattr(told, "__notes__", "")) or data_files(base) == files, step
        if plan.dead is False and told is None:
            assert now == after, step
        put(base, records([row(20, 9, "z")], partitioned=kind.partitioned))
        assert contents(base) == {**now, "k20": (9, "z")}, step
        assert (orphans(base), missing(base), leftovers(base)) == ([], [], []), step


@pytest.mark.parametrize("kind", [Kind(9, True), Kind(6, True)], ids=str)
def test_a_refused_read_leaves_the_table_as_it_was(kind: Kind, tmp_path: Path) -> None:
    table = start(kind, tmp_path / "start")
    before, files = contents(table), data_files(table)
    trace = Plan()
    put(FaultyFiles(TableFiles.open(copied(table, tmp_path / "traced")), trace), change(kind))
    after = contents(tmp_path / "traced")
    for at in range(3, len(trace.trace), 3):
        base = copied(table, tmp_path / "case")
        plan = Plan(at=at, fault="refuse")
        with suppress(HoodieError):
            put(FaultyFiles(TableFiles.open(base), plan), change(kind))
        now = contents(base)
        assert now in (before, after), trace.trace[at]
        assert now == after or data_files(base) == files, trace.trace[at]
