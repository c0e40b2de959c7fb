"""Deletes of every operation, whatever the ordering fields are: what goes, and what Java Hudi finds in delete blocks.

Java asks for the int 0 where a delete has no ordering value: a null in its place stops its reads and compactions.
"""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable
from hoodie_py.formats.avro.binary import read_count, read_span
from hoodie_py.formats.deletes.ordering_value import OrderingKind, read_ordering
from hoodie_py.formats.log.framing import BlockType, LogBlock, iterate_blocks
from tests.writer.compaction_tables import QUICK

MOVING = {**QUICK, "hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.simple.index.update.partition.path": "true"}
DAY, NOON = datetime.date(2020, 1, 2), datetime.datetime(2020, 1, 2, 12)
# Ordering values by name: lower, that of the table's rows, higher.
FIELDS: dict[str, tuple[pa.DataType, Any, Any, Any]] = {
    "int": (pa.int32(), 5, 6, 7),
    "long": (pa.int64(), 5, 6, 7),
    "float": (pa.float32(), 0.5, 1.5, 2.5),
    "double": (pa.float64(), 0.5, 1.5, 2.5),
    "string": (pa.string(), "5", "6", "7"),
    "bool": (pa.bool_(), False, False, True),
    "date": (pa.date32(), DAY, DAY.replace(day=3), DAY.replace(day=4)),
    "moment": (pa.timestamp("us", "UTC"), NOON, NOON.replace(day=3), NOON.replace(day=4)),
    "local": (pa.timestamp("us"), NOON, NOON.replace(day=3), NOON.replace(day=4)),
    "decimal": (pa.decimal128(10, 2), Decimal("0.5"), Decimal("1.5"), Decimal("2.5")),
}
ORDERS = [(name,) for name in FIELDS] + [("long", "string"), ("date", "decimal"), ()]


class Life:
    """A table and the numbers of its rows, each with an ordering value in the middle."""

    def __init__(self, base: Path, order: tuple[str, ...], version: int, table_type: str) -> None:
        fields = [(name, FIELDS[name][0]) for name in order]
        self.order = order
        self.schema = pa.schema([
            ("id", pa.string()), ("part", pa.string()), ("v", pa.string()), ("_hoodie_is_deleted", pa.bool_()), *fields
        ])  # fmt: skip
        self.table = HoodieTable.create(
            base, self.schema, record_key="id", partition_by=["part"], ordering=order, table_type=table_type,
            table_version=version, name="lives",
        )  # fmt: skip
        self.table.insert(self.rows(range(12), 2), options=QUICK)
        self.table.upsert(self.rows(range(6), 2, v="log"), options=QUICK)

    def rows(
        self, ids: Any, level: int | None, *, v: str = "base", part: str = "a", deleted: bool | None = None
    ) -> pa.Table:
        """Rows with lower (1), the same (2), higher (3) or no (None) ordering values."""
        values = {name: None if level is None else FIELDS[name][level] for name in self.order}
        made = [{"id": str(i), "part": part, "v": v, "_hoodie_is_deleted": deleted, **values} for i in ids]
        return pa.Table.from_pylist(made, self.schema)

    def ids(self) -> set[int]:
        return {int(each) for each in self.table.scan(["id"]).to_arrow()["id"].to_pylist()}


def orderings(base: Path) -> list[tuple[OrderingKind, Any]]:
    """The ordering values of all delete blocks, as they are stored."""
    found = []
    for block in (each for path in sorted(base.glob("*/.*.log.*")) for each in iterate_blocks(path.read_bytes())):
        if isinstance(block, LogBlock) and block.type is BlockType.DELETE:
            payload = bytes(block.content[8:])
            count, pos = read_count(payload, 0, len(payload), 1)
            for _ in range(count):
                for _ in ("key", "partition"):
                    pos = read_span(payload, pos + 1, len(payload))[1]
                kind, value, pos = read_ordering(payload, pos)
                found.append((kind, value))
    return found


@pytest.mark.parametrize("version", [9, 6])
@pytest.mark.parametrize("table_type", ["MOR", "COW"])
@pytest.mark.parametrize("order", ORDERS, ids="-".join)
def test_the_delete_operation_deletes_always(
    order: tuple[str, ...], table_type: str, version: int, tmp_path: Path
) -> None:
    life = Life(tmp_path, order, version, table_type)
    counts = [
        life.table.delete(["0", "6", "none"], options=QUICK).rows_deleted,
        life.table.delete(life.rows((1, 7, 1), 1), options=QUICK).rows_deleted,
        life.table.delete("id in ('2', '8')", options=QUICK).rows_deleted,
    ]
    assert counts == [2, 2, 2]
    left = {3, 4, 5, 9, 10, 11}
    assert life.ids() == left
    assert {*orderings(tmp_path)} <= {(OrderingKind.INT, 0)}
    if table_type == "MOR":
        life.table.compact(options=QUICK)
        assert life.ids() == left


@pytest.mark.parametrize("order", ORDERS, ids="-".join)
def test_no_delete_has_null_for_its_ordering_value(order: tuple[str, ...], tmp_path: Path) -> None:
    life = Life(tmp_path, order, 9, "MOR")
    life.table.upsert(life.rows((0, 6), None, deleted=True), options=QUICK)
    life.table.upsert(life.rows((1, 7), 3, part="b"), options=MOVING)
    life.table.upsert(life.rows((2, 8), 3, deleted=True), options=QUICK)
    if order and order != ("bool",):
        life.table.upsert(life.rows((3, 9), 1, deleted=True), options=QUICK)
    assert life.ids() == {1, 3, 4, 5, 7, 9, 10, 11}
    stored = orderings(tmp_path)
    assert stored[:4].count((OrderingKind.INT, 0)) >= 2
    assert all(kind not in (OrderingKind.NONE, OrderingKind.DATE) for kind, _ in stored)
    for kind, value in stored:
        if kind is OrderingKind.ARRAY:
            assert all(part not in (OrderingKind.NONE, OrderingKind.DATE) for part, _ in value)
    life.table.compact(options=QUICK)
    assert life.ids() == {1, 3, 4, 5, 7, 9, 10, 11}


def test_deletes_that_are_there_already(tmp_path: Path) -> None:
    """Commit metadata counts them, as Java's; the sentence says that reading decides."""
    life = Life(tmp_path, ("long",), 9, "MOR")
    life.table.delete(["0"], options=QUICK)
    again = life.table.delete(["0"], options=QUICK)
    assert (again.rows_deleted, again.rows_in_logs) == (1, 1)
    assert "1 of these are in log files, which reading merges" in str(again)
    inserted = life.table.insert(life.rows([50], 2), options=QUICK)
    assert inserted.rows_in_logs == 0
    assert "log files" not in str(inserted)
