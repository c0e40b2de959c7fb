"""Updates and merges by this package and by Java's SQL take turns on one table: both give the rows of a model.

Merge-on-read tables from version 8 on get partial log files from both, which the other reads, merges and compacts.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_py import Delete, HoodieTable, Insert, Update
from hoodie_py.formats.log.framing import LogBlock, iterate_blocks
from integration.java_hudi.session import JavaSession
from integration.java_hudi.tables import SCHEMA, Kind, Lake, Row, make_row

KINDS = [
    Kind(version, True, metadata, mor) for version in (9, 8, 6) for mor in (True, False) for metadata in (True, False)
] + [Kind(9, False, True), Kind(8, False, True)]
ROWS = 24
PARTIAL = {"hoodie.spark.sql.merge.into.partial.updates": "true"}  # by event time they are asked for


class SharedLake(Lake):
    """A table that both change by expressions."""

    def alter(self, change: Callable[[Row], Row | None], where: Callable[[Row], bool] = lambda row: True) -> None:
        """Note what a change does to rows; None deletes them."""
        found = {key: change(row) if where(row) else row for key, row in self.rows.items()}
        self.rows = {key: row for key, row in found.items() if row is not None}

    def run_sql(self, *statements: str) -> None:
        """Have Java run statements on the table, which it calls dml."""
        with self.java.configured(self.kind.service_options):
            self.java.sql("drop table if exists dml")
            self.java.sql(f"create table dml using hudi location '{self.path}'")
            try:
                for text in statements:
                    self.java.sql(text)
            finally:
                self.java.sql("drop table dml")

    def merge(self, rows: list[Row], **clauses: object) -> None:
        """Merge rows by this package."""
        result = self.open().merge(pa.Table.from_pylist(rows, SCHEMA), **{"on": "id", "options": PARTIAL, **clauses})  # type: ignore[arg-type]
        assert result.instant is not None

    def count_partial_blocks(self) -> int:
        """How many partial blocks the table's log files have."""
        table = self.open()
        logs = [log.path for each in table.file_slices() for log in each.log_files]
        blocks = (block for path in logs for block in iterate_blocks(table.files.read(path)))
        return sum(isinstance(block, LogBlock) and block.is_partial for block in blocks)


def ours(lake: SharedLake, ts: int) -> None:
    """Update and merge by this package, and note what they must do."""
    sets = {"price": "price + 0.5", "name": "coalesce(name, 'x') || '!'"}
    lake.open().update(sets, where="flag and ts <= 100", options=PARTIAL)
    lake.alter(
        lambda row: {**row, "price": row["price"] + 0.5, "name": f"{row['name'] or 'x'}!"}, lambda row: row["flag"]
    )
    known = sorted(lake.rows)
    number = int(known[-1][1:])
    source = [{**lake.rows[key], "ts": ts, "price": ts * 1.0} for key in known[1::4]]
    new, skipped = make_row(number + 1, ts), make_row(number + 2, ts, flag=None)
    dead, gone = source[0]["id"], known[2]
    lake.merge(
        [*source, new, skipped],
        when_matched=[
            Delete(f"source.id = '{dead}'"),
            Update({"price": "source.price", "ts": "source.ts", "tags": "source.tags"}),
        ],
        when_not_matched=Insert(where="flag is not null"),
        by_source=[Delete(f"target.id = '{gone}'"), Update({"name": None}, where=f"id = '{known[3]}'")],
    )
    for row in source[1:]:
        lake.rows[row["id"]] = row
    lake.alter(lambda row: None, lambda row: row["id"] in (dead, gone))
    lake.alter(lambda row: {**row, "name": None}, lambda row: row["id"] == known[3])
    lake.rows[new["id"]] = new


def javas(lake: SharedLake, ts: int) -> None:
    """UPDATE, MERGE INTO and DELETE by Java's SQL."""
    update = "update dml set price = price * 2 where price < 20"
    lake.alter(lambda row: {**row, "price": row["price"] * 2}, lambda row: row["price"] < 20)
    known = sorted(lake.rows)
    first, second = known[::7][:2]
    part = {key: lake.rows[key]["part"] for key in (first, second)}  # Java looks for a key in the source's partition
    merge = (
        f"merge into dml t using (select '{first}' id, '{part[first]}' part, {ts}.25D price, {ts}L ts union all "
        f"select '{second}' id, '{part[second]}' part, {ts}.75D price, {ts}L ts) s on t.id = s.id "
        "when matched then update set t.id = s.id, t.price = s.price, t.ts = s.ts"  # version 6 wants the key
    )
    for key, price in ((first, ts + 0.25), (second, ts + 0.75)):
        row = lake.rows[key]
        if lake.kind.version < 8:  # without partial updates Java's columns that are not assigned become null
            row = {**dict.fromkeys(row), "id": key, "part": part[key]}
        lake.rows[key] = {**row, "price": price, "ts": ts}
    lake.run_sql(update, merge, f"delete from dml where id = '{known[-1]}'")
    del lake.rows[known[-1]]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_expressions_in_turn(java: JavaSession, kind: Kind, tmp_path: Path) -> None:
    lake = SharedLake(java, tmp_path / "table", kind)
    lake.write([make_row(number) for number in range(ROWS)], mode="overwrite")
    partial = kind.merge_on_read and kind.version >= 8
    ours(lake, 5)
    lake.check()
    assert bool(lake.count_partial_blocks()) == partial
    javas(lake, 6)
    lake.check()
    if kind.merge_on_read:
        lake.run_java()
    ours(lake, 7)
    javas(lake, 8)
    ours(lake, 9)
    if kind.merge_on_read:
        assert lake.open().compact().instant is not None
    lake.check()
    lake.change(10)
    lake.check()
    lake.check_metadata()


@pytest.mark.parametrize("kind", KINDS[::4], ids=str)
def test_java_goes_on_with_our_table(java: JavaSession, kind: Kind, tmp_path: Path) -> None:
    """The table is ours from its first byte; some changes move rows to other partitions."""
    HoodieTable.create(
        tmp_path / "table", SCHEMA, record_key="id", ordering="ts",
        partition_by=["part"] if kind.partitioned else [], table_type=kind.table_type, table_version=kind.version,
        name="round_trips",
    )  # fmt: skip
    lake = SharedLake(java, tmp_path / "table", kind)
    rows = [make_row(number) for number in range(ROWS)]
    lake.open().insert(pa.Table.from_pylist(rows, SCHEMA))
    lake.rows = {row["id"]: row for row in rows}
    ours(lake, 2)
    moving = {"hoodie.index.type": "GLOBAL_SIMPLE"}
    lake.open().update({"part": "'p9'"}, where="flag and price > 10", options=moving)
    lake.alter(lambda row: {**row, "part": "p9"}, lambda row: row["flag"] and row["price"] > 10)
    lake.check()
    javas(lake, 4)
    lake.change(5)
    ours(lake, 6)
    lake.check()
