"""A writer whose lock is lost before it changes the timeline changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import ConflictError
from hoodie_py.writer.lock.lock import NoLock
from tests.writer.compaction_tables import QUICK
from tests.writer.written_tables import Kind, row

SMALL = {
    **QUICK,
    "hoodie.log.compaction.blocks.threshold": "2",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.clean.commits.retained": "1",
    "hoodie.parquet.small.file.limit": "0",
}


class Lost(NoLock):
    """A lock that another writer has taken over by the time it is needed."""

    def renew(self) -> None:
        raise ConflictError("Another writer took the lock over.")


CALLS: dict[str, Callable[[HoodieTable, str], object]] = {
    "upsert": lambda table, _: table.upsert([row(1, 9)], SMALL, lock=Lost()),
    "delete": lambda table, _: table.delete(["k1"], SMALL, lock=Lost()),
    "insert overwrite": lambda table, _: table.insert_overwrite([row(1, 9)], SMALL, lock=Lost()),
    "plan of a compaction": lambda table, _: table.schedule_compaction(options=SMALL, lock=Lost()),
    "log compaction": lambda table, _: table.log_compact(options=SMALL, lock=Lost()),
    "plan of a clustering": lambda table, _: table.schedule_clustering(SMALL, lock=Lost()),
    "clean": lambda table, _: table.clean(1, SMALL, lock=Lost()),
    "archival": lambda table, _: table.archive(SMALL, lock=Lost()),
    "savepoint": lambda table, _: table.savepoint(options=SMALL, lock=Lost()),
    "removal of a savepoint": lambda table, saved: table.delete_savepoint(saved, SMALL, lock=Lost()),
    "restore": lambda table, saved: table.restore(saved, SMALL, lock=Lost()),
}


@pytest.mark.parametrize("what", CALLS)
def test_nothing_is_on_the_timeline(what: str, tmp_path: Path) -> None:
    base = Kind(9, True).create(tmp_path / "t")
    table = HoodieTable.open(base)
    for ts in range(4):
        table.upsert([row(number, ts) for number in range(4)], QUICK)
    table.compact(options=QUICK)
    for ts in range(4, 7):
        table.upsert([row(number, ts) for number in range(4)], QUICK)
    first = table.timeline.select_writes().instants[-3].request_time
    saved = table.savepoint(first, options=QUICK).instant if what in ("removal of a savepoint", "restore") else ""
    if what == "clean":
        table.compact(options=QUICK)
    before = sorted(path for path in base.rglob("*") if path.is_file())
    with pytest.raises(ConflictError, match="lock"):
        CALLS[what](HoodieTable.open(base), saved)
    left = sorted(path for path in base.rglob("*") if path.is_file())
    added = [path for path in left if path not in before]
    if what == "archival":  # a file of the history counts once a manifest names it
        added = [path for path in added if path.suffix != ".parquet"]
    assert added == []
    assert [path for path in before if path not in left] == []
