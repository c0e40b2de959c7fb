"""Java alters columns of tables with schema-on-read. Both go on writing and compacting, and read every state alike."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable
from integration.corpus_compare import differences
from integration.java_hudi.session import JavaSession

COLUMNS = "id string, name string, price double, qty int, st struct<a: int, b: string>, ts bigint, part string"
KINDS = [(9, "mor"), (8, "mor"), (6, "mor"), (9, "cow"), (8, "cow"), (6, "cow")]
SETTINGS = {
    "hoodie.schema.on.read.enable": "true",
    "hoodie.write.auto.upgrade": "false",
    "hoodie.metadata.enable": "false",
    "hoodie.compact.inline": "false",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.datasource.write.schema.allow.auto.evolution.column.drop": "true",
    "spark.sql.parquet.enableVectorizedReader": "false",  # Java cannot read renamed nested columns with it
}
READ = {"hoodie__schema__on__read__enable": "true", "hoodie__metadata__enable": "false"}
OURS = {"hoodie.time.generator.max_expected_clock_skew_ms": "0", "hoodie.parquet.small.file.limit": "0"}


@pytest.fixture
def spark_settings(java: JavaSession) -> Iterator[None]:
    java._ask("configure", settings=SETTINGS)
    yield
    java._ask("configure", settings=dict.fromkeys([*SETTINGS, "hoodie.write.table.version"]))


class Altered:
    """A table of Java's whose columns were altered before and between writes."""

    def __init__(self, java: JavaSession, path: Path, version: int, kind: str) -> None:
        self._java = java
        self.path = path
        self.is_merge_on_read = kind == "mor"
        self.name = f"altered_{kind}_{version}"
        java._ask("configure", settings={"hoodie.write.table.version": str(version)})
        properties = f"type='{kind}', primaryKey='id', preCombineField='ts', 'hoodie.write.table.version'='{version}'"
        java.sql(f"drop table if exists {self.name}")
        java.sql(
            f"create table {self.name} ({COLUMNS}) using hudi tblproperties ({properties}) partitioned by (part) "
            f"location '{path}'"
        )

    def run(self, *statements: str) -> None:
        for text in statements:
            self._java.sql(text.replace("$T", self.name))

    def alter(self) -> None:
        """Insert, update, then rename, widen, drop and add columns; one update is newer than all changes."""
        rows = [
            f"select 'k{n}' id, 'n{n}' name, {n}.5D price, {n} qty, named_struct('a', {n}, 'b', 'b{n}') st, 1L ts, "
            f"'p{n % 2}' part"
            for n in range(6)
        ]
        self.run(
            f"insert into $T {' union all '.join(rows)}",
            "update $T set qty = 11, ts = 2 where id = 'k1'",
            "alter table $T rename column qty to amount",
            "alter table $T alter column amount type bigint",
            "alter table $T rename column st.a to first",
            "alter table $T drop column price",
            "alter table $T add columns (price string after name)",
            "update $T set amount = 22, price = 'dear', ts = 3 where id = 'k2'",
            "alter table $T rename column name to title",
        )

    def open(self) -> HoodieTable:
        return HoodieTable.open(self.path)

    def check(self) -> dict[str, dict[str, Any]]:
        """Compare Java's rows with ours, and return them by key."""
        self._java.sql(f"refresh table {self.name}")
        kinds = ("snapshot", "read_optimized") if self.is_merge_on_read else ("snapshot",)
        for kind in kinds:
            theirs = self._java.read(self.path, **READ, hoodie__datasource__query__type=kind)
            assert differences(self.open().scan(query_type=kind).to_arrow(), theirs) == [], kind
        return {row["id"]: row for row in self.open().scan().to_arrow().to_pylist()}


def plain(rows: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {key: {name: row[name] for name in row if name != "_hoodie_file_name"} for key, row in rows.items()}


@pytest.mark.usefixtures("spark_settings")
@pytest.mark.parametrize(("version", "kind"), KINDS, ids=[f"v{version}-{kind}" for version, kind in KINDS])
def test_java_goes_on_after_our_writes(java: JavaSession, version: int, kind: str, tmp_path: Path) -> None:
    table = Altered(java, tmp_path / "table", version, kind)
    table.alter()
    rows = table.check()
    assert rows["k1"]["amount"] == 11
    assert rows["k2"]["price"] == "dear"
    first = table.open().scan(columns=list(table.open().schema.names[5:])).to_arrow()

    ours = [row | {"ts": 10, "amount": row["amount"] + 100, "title": "ours"} for row in first.to_pylist()[:3]]
    new = ours[0] | {"id": "k9", "price": "new", "st": {"first": 9, "b": None}}
    table.open().upsert(pa.Table.from_pylist([*ours, new], first.schema), options=OURS)
    table.open().delete(["k5"], options=OURS)
    rows = table.check()
    assert rows["k9"]["st"] == {"first": 9, "b": None}
    assert "k5" not in rows
    if kind == "mor":
        table.open().compact(options=OURS)
        assert plain(table.check()) == plain(rows)

    table.run(
        "update $T set amount = 33, ts = 20 where id = 'k3'",
        "alter table $T rename column amount to total",
        "update $T set total = 44, ts = 21 where id = 'k4'",
        "insert into $T (id, title, price, total, st, ts, part) "
        "values ('k7', 'java', 'p', 7L, named_struct('first', 7, 'b', 'x'), 5L, 'p0')",
    )
    rows = table.check()
    assert (rows["k3"]["total"], rows["k4"]["total"], rows["k9"]["title"]) == (33, 44, "ours")
    if kind == "mor":
        done = java.run_compaction(table.path, {**SETTINGS, "hoodie.write.table.version": str(version)})
        assert done is not None
        assert plain(table.check()) == plain(rows)
    data = pa.schema(list(table.open().schema)[5:])
    table.open().upsert(pa.Table.from_pylist([rows["k7"] | {"ts": 30, "total": 77}], data), options=OURS)
    assert table.check()["k7"]["total"] == 77


@pytest.mark.usefixtures("spark_settings")
@pytest.mark.parametrize("version", [9, 6])
def test_a_compaction_that_was_planned_before_columns_were_altered(
    java: JavaSession, version: int, tmp_path: Path
) -> None:
    table = Altered(java, tmp_path / "table", version, "mor")
    table.alter()
    instant = table.open().schedule_compaction(options=OURS)
    table.run("alter table $T rename column amount to total", "alter table $T drop column price")
    table.run("alter table $T add columns (price int)", "update $T set price = 5, ts = 9 where id = 'k0'")
    rows = table.check()
    table.open().run_compaction(instant, options=OURS)
    assert plain(table.check()) == plain(rows)
    assert {key: row["price"] for key, row in rows.items() if row["price"] is not None} == {"k0": 5}
