"""Java Hudi reads, upserts and compacts after deletes of every operation, whatever orders the table; and finds columns
with names of every script, and earlier states, as this package does.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable
from integration.java_hudi.session import JavaHudiError, JavaSession
from tests.table.timeline.test_time_travel import JAVA_REFUSES, JAVA_TAKES
from tests.writer import test_output_schema
from tests.writer.test_deletes import FIELDS, MOVING, Life

QUICK = {"hoodie.index.bloom.num_entries": "100"}
# Java's copy on write compares dates and decimals of base files with rows of other classes, and fails, on tables of its
# own too.
JAVA_REWRITES_NOT = ("date", "decimal")
ALL = [*((name,) for name in FIELDS), ("long", "string"), ("date", "decimal"), ()]
SOME = [("long",), ("date",), ("long", "string"), ()]
CASES = [(9, "MOR", each) for each in ALL] + [
    (version, kind, each) for version, kind in ((9, "COW"), (8, "MOR"), (6, "MOR"), (6, "COW")) for each in SOME
]


def options(order: tuple[str, ...]) -> dict[str, str]:
    given = {
        "hoodie.table.name": "lives",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part",
    }
    return given | ({"hoodie.datasource.write.precombine.field": ",".join(order)} if order else {})


def plain(table: pa.Table) -> list[tuple[Any, ...]]:
    return sorted((row["id"], row["part"], row["v"]) for row in table.to_pylist())


def deleted(life: Life) -> None:
    """Delete by every operation: base rows 6 to 9, and 0 to 5, of which the log has rows."""
    table = life.table
    table.delete(["0", "6", "nobody"], options=QUICK)
    table.delete(life.rows((1, 7, 1), 1), options=QUICK)
    table.delete("id in ('2', '8')", options=QUICK)
    table.upsert(life.rows((3, 9), None, deleted=True), options=QUICK)
    table.upsert(life.rows((4, 10), 3, deleted=True), options=QUICK)
    table.upsert(life.rows((5, 11), 3, part="b", v="moved"), options=MOVING)
    table.upsert(life.rows((0,), 1, v="again"), options=QUICK)


@pytest.mark.parametrize(("version", "table_type", "order"), CASES, ids=str)
def test_java_goes_on_after_deletes(
    java: JavaSession, version: int, table_type: str, order: tuple[str, ...], tmp_path: Path
) -> None:
    life = Life(tmp_path / "t", order, version, table_type)
    deleted(life)
    mine = plain(life.table.scan().to_arrow())
    assert plain(java.read(tmp_path / "t")) == mine
    if table_type == "COW" and set(order) & set(JAVA_REWRITES_NOT):
        return
    java.write(tmp_path / "t", life.rows((1, 40), 3, v="java"), options(order))
    after = plain(java.read(tmp_path / "t"))
    assert plain(life.table.refresh().scan().to_arrow()) == after
    assert ("40", "a", "java") in after
    if table_type == "MOR":
        java.run_compaction(tmp_path / "t", {})
        compacted = plain(java.read(tmp_path / "t"))
        assert compacted == plain(life.table.refresh().scan().to_arrow()) == after


@pytest.mark.parametrize("version", [9, 6])
@pytest.mark.parametrize("table_type", ["MOR", "COW"])
def test_java_reads_names_of_every_script(java: JavaSession, table_type: str, version: int, tmp_path: Path) -> None:
    table = HoodieTable.create(
        tmp_path / "t", test_output_schema.SCHEMA, record_key="ключ", ordering="größe", partition_by="국가",
        name="names", table_type=table_type, table_version=version,
    )  # fmt: skip
    table.insert([test_output_schema.row(each) for each in range(6)], options=QUICK)
    table.upsert([test_output_schema.row(1, 2, ранг=7)], options=QUICK)
    table.delete(["k2"], options=QUICK)
    names = ["ключ", "größe", "ранг", "struct_é"]

    def rows(found: pa.Table) -> list[dict[str, Any]]:
        return sorted(found.select(names).to_pylist(), key=lambda each: str(each["ключ"]))

    assert rows(java.read(tmp_path / "t")) == rows(table.scan().to_arrow())
    given = {
        "hoodie.table.name": "names",
        "hoodie.datasource.write.recordkey.field": "ключ",
        "hoodie.datasource.write.partitionpath.field": "국가",
        "hoodie.datasource.write.precombine.field": "größe",
    }
    java.write(tmp_path / "t", table.scan(filter="`größe` = 1").to_arrow().slice(0, 1), given)
    if table_type == "MOR":
        java.run_compaction(tmp_path / "t", {})
    assert rows(java.read(tmp_path / "t", where="`größe` > 0")) == rows(table.refresh().scan().to_arrow())


def test_earlier_states_in_every_spelling(java: JavaSession, tmp_path: Path) -> None:
    life = Life(tmp_path / "t", ("long",), 9, "MOR")
    second = [each.request_time for each in life.table.timeline][1]
    life.table.delete(["0"], options=QUICK)
    day, time, rest = f"{second[:4]}-{second[4:6]}-{second[6:8]}", second[8:14], second[14:]
    clock = f"{time[:2]}:{time[2:4]}:{time[4:]}"
    spellings = [second, second[:14], f"{day} {clock}.{rest}", f"{day}T{clock}", f"{day} {clock}", day]
    for text in (*spellings, *JAVA_TAKES):
        here = life.table.scan(as_of=text).count()
        there = java.read(tmp_path / "t", as__of__instant=text).num_rows
        assert here == there, text
    for text in JAVA_REFUSES[::4]:
        with pytest.raises(JavaHudiError):
            java.read(tmp_path / "t", as__of__instant=text)
