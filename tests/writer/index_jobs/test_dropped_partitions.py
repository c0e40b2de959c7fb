"""A compaction of the metadata table that died, and whose plan names an index that was dropped since, is finished."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import HoodieWarning
from hoodie_py.files import TableFiles
from tests.writer.compaction_tables import QUICK, copied
from tests.writer.faulty_files import WRITES, FaultyFiles, Plan
from tests.writer.index_jobs.indexed_tables import open_on
from tests.writer.written_tables import Kind, contents, row

FEW = {**QUICK, "hoodie.metadata.global.record.level.index.min.filegroup.count": "1"}
SOON = {**QUICK, "hoodie.metadata.compact.max.delta.commits": "1"}
INDEXES = ("column_stats", "record_index")


def leave_compaction(base: Path, version: int, into: Path) -> Path:
    """A table whose metadata table has a compaction that a full disk cut short, after its first base file."""
    Kind(version, True).create(base)
    table = HoodieTable.open(base)
    table.upsert([row(i) for i in range(4)], options=QUICK)
    for name in INDEXES:
        table.index.build(name, options=FEW)
    table.upsert([row(i) for i in range(8)], options=QUICK)
    trace = Plan(watched=WRITES)
    open_on(FaultyFiles(TableFiles.open(copied(base, into)), trace)).upsert([row(1, 9)], options=SOON)
    at = next(i for i, each in enumerate(trace.trace) if each.startswith("put_if_absent") and ".hfile" in each)
    plan = Plan(at=at + 1, fault="refuse", watched=WRITES)
    with pytest.warns(HoodieWarning, match="table service of the metadata table failed"):
        open_on(FaultyFiles(TableFiles.open(copied(base, into)), plan)).upsert([row(1, 9)], options=SOON)
    assert len(HoodieTable.open(into / ".hoodie/metadata").timeline.select_pending_compactions()) == 1
    return into


@pytest.mark.parametrize("again", [False, True], ids=["dropped", "built-anew"])
@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_compaction_is_finished_without_the_index_that_was_dropped(version: int, again: bool, tmp_path: Path) -> None:
    base = leave_compaction(tmp_path / "t", version, tmp_path / "case")
    table = HoodieTable.open(base)
    for name in INDEXES:
        table.index.drop(name, options=QUICK)
    if again:
        for name in INDEXES:
            table.index.build(name, options=FEW)
    for ts in (20, 21):
        table.upsert([row(2, ts, "b"), row(30 + ts)], options=QUICK)  # a warning is an error
    metadata = HoodieTable.open(base / ".hoodie/metadata")
    assert len(metadata.timeline.select_pending_compactions()) == 0
    report = table.verify()
    assert report.is_right, str(report)
    assert contents(table)["k2"] == (21, "b")
    assert table.scan(filter="name = 'b'", options={"hoodie.enable.data.skipping": "true"}).count() == 1


@pytest.mark.parametrize("version", [6, 9])
def test_a_file_that_is_lost_is_no_dropped_index(version: int, tmp_path: Path) -> None:
    base = leave_compaction(tmp_path / "t", version, tmp_path / "case")
    for each in (base / ".hoodie/metadata/column_stats").iterdir():
        if each.name.startswith((".col-stats-0000", "col-stats-0000")):
            each.unlink()
    with pytest.warns(HoodieWarning, match="names files that are not there"):
        HoodieTable.open(base).upsert([row(2, 20)], options=QUICK)
