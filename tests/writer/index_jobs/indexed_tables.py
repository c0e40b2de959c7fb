"""Small tables to build indexes on, and what their metadata tables hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from hoodie_py import HoodieTable
from hoodie_py.files import TableFiles
from hoodie_py.table.indexes.source import open_metadata_view
from hoodie_py.table.snapshot import open_snapshot
from tests.writer.compaction_tables import QUICK
from tests.writer.written_tables import Kind, row

ROWS = 12


def make_table(kind: Kind, base: Path, **more: Any) -> HoodieTable:
    """A table with an update, a delete and a later insert."""
    kind.create(base, **more)
    table = HoodieTable.open(base)
    table.upsert([row(i) for i in range(ROWS)], options=QUICK)
    table.upsert([row(i, 2, "b") for i in range(4)], options=QUICK)
    table.delete(["k1"], options=QUICK)
    return table


def open_on(files: TableFiles) -> HoodieTable:
    """A table through files that may fail."""
    return HoodieTable(open_snapshot(files))


def read_index(base: Path, partition: str) -> pa.Table:
    """The records of one partition of the metadata table, sorted by key; none if the table does not have it."""
    view = open_metadata_view(open_snapshot(str(base)))
    if view is None or not view.has(partition):
        return pa.table({"key": pa.array([], pa.string())})
    return pa.Table.from_batches(list(view.read_all(partition))).sort_by("key")
