"""Both engines alter the columns of a table in turn, write between and compact, and read every state alike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable
from integration.corpus_compare import differences
from integration.java_hudi.session import JavaSession

SCHEMA = pa.schema([
    ("id", pa.string()), ("name", pa.string()), ("price", pa.float32()), ("qty", pa.int32()),
    ("st", pa.struct([("a", pa.int32()), ("b", pa.string())])),
    ("arr", pa.list_(pa.struct([("x", pa.int32()), ("y", pa.string())]))),
    ("m", pa.map_(pa.string(), pa.struct([("v", pa.int32()), ("w", pa.string())]))),
    ("dec", pa.decimal128(10, 2)), ("ts", pa.int64()), ("part", pa.string()),
])  # fmt: skip
SETTINGS = {
    "hoodie.schema.on.read.enable": "true",
    "hoodie.write.auto.upgrade": "false",
    "hoodie.compact.inline": "false",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.datasource.write.schema.allow.auto.evolution.column.drop": "true",  # else Java refuses its own alterations
    "spark.sql.parquet.enableVectorizedReader": "false",  # Java cannot read renamed nested columns with it
}
READ = {"hoodie.schema.on.read.enable": "true", "hoodie.metadata.enable": "false"}
OURS = {"hoodie.time.generator.max_expected_clock_skew_ms": "0", "hoodie.parquet.small.file.limit": "0"}


@dataclass(frozen=True, slots=True)
class Case:
    """A kind of table, and whether it has a metadata table with Java's default indexes."""

    version: int
    kind: str
    metadata: bool
    first: str  # who alters first

    def __str__(self) -> str:
        return f"v{self.version}-{self.kind}-{'mdt' if self.metadata else 'nomdt'}-{self.first}-first"

    @property
    def settings(self) -> dict[str, str]:
        """Java's settings for SQL."""
        return {
            **SETTINGS,
            "hoodie.write.table.version": str(self.version),
            "hoodie.metadata.enable": str(self.metadata).lower(),
        }


CASES = [
    pytest.param(case, id=str(case), marks=() if (case.version, case.metadata) == (9, True) else pytest.mark.slow)
    for version in (9, 8, 6)
    for kind in ("mor", "cow")
    for metadata in (True, False)
    for first in ("ours", "java")
    for case in [Case(version, kind, metadata, first)]
]


class Lake:
    """A table that both engines alter and write."""

    def __init__(self, java: JavaSession, path: Path, case: Case) -> None:
        self._java = java
        self._case = case
        self.path = path
        self.options = OURS | ({"hoodie.metadata.enable": "true"} if case.metadata else {})

    def begin(self) -> None:
        """Make the table with a few rows, some of them updated."""
        case = self._case
        rows = [_make_row(number) for number in range(6)]
        options = {
            **case.settings,
            "hoodie.table.name": "altered",
            "hoodie.datasource.write.table.type": "MERGE_ON_READ" if case.kind == "mor" else "COPY_ON_WRITE",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "part",
            "hoodie.table.ordering.fields": "ts",
        }
        self._java.write(self.path, pa.Table.from_pylist(rows, SCHEMA), options, operation="insert", mode="overwrite")
        changed = [row | {"qty": row["qty"] + 100, "ts": 2} for row in rows[1:3]]
        self._java.write(self.path, pa.Table.from_pylist(changed, SCHEMA), options)
        self._java.sql("drop table if exists altered")
        self._java.sql(f"create table altered using hudi location '{self.path}'")

    def run(self, *statements: str) -> None:
        """Have Java run statements; it must see what we did."""
        self._java.sql("refresh table altered")
        for text in statements:
            self._java.sql(text.replace("$T", "altered"))

    def open(self) -> HoodieTable:
        """Our view of the table as it is now."""
        return HoodieTable.open(self.path)

    def upsert(self, *rows: dict[str, Any], **types: pa.DataType) -> None:
        """Have us write rows; columns that they lack keep what the row ``like`` has."""
        schema = pa.schema(list(self.open().schema)[5:])
        for name, type_ in types.items():
            at = schema.get_field_index(name)
            schema = schema.append(pa.field(name, type_)) if at < 0 else schema.set(at, pa.field(name, type_))
        rows_of_all = pa.Table.from_pylist(list(rows), schema)
        self.open().upsert(rows_of_all, options=self.options, allow_loss=bool(types))  # Java asks for no word

    def compact(self, by: str) -> None:
        """Compact what log files there are; rows stay as they are."""
        if self._case.kind == "cow":
            return
        before = self.check()
        if by == "ours":
            self.open().compact(options=self.options)
        else:
            assert self._java.run_compaction(self.path, self._case.settings) is not None
        assert _plain(self.check()) == _plain(before)

    def check(self) -> dict[str, dict[str, Any]]:
        """Compare Java's rows with ours, and the metadata table with the files; return the rows by key."""
        kinds = ("snapshot", "read_optimized") if self._case.kind == "mor" else ("snapshot",)
        asked = [(None, {**READ, "hoodie.datasource.query.type": kind}) for kind in kinds]
        for kind, theirs in zip(kinds, self._java.read_together(self.path, asked), strict=True):
            assert differences(self.open().scan(query_type=kind).to_arrow(), theirs) == [], kind
        if self._case.metadata:
            report = self.open().verify(metadata=True, data=False)
            assert report.is_right, str(report)
        return {row["id"]: row for row in self.open().scan().to_arrow().to_pylist()}


def _make_row(number: int) -> dict[str, Any]:
    return {
        "id": f"k{number}", "name": f"n{number}", "price": number + 0.1, "qty": number,
        "st": {"a": number, "b": f"b{number}"} if number else None,
        "arr": [{"x": number, "y": "y"}], "m": [("k", {"v": number, "w": "w"})],
        "dec": number, "ts": 1, "part": f"p{number % 2}",
    }  # fmt: skip


def _plain(rows: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {key: {name: row[name] for name in row if name != "_hoodie_file_name"} for key, row in rows.items()}


def _alter_by_us(lake: Lake) -> None:
    done = lake.open().alter(
        rename={"qty": "amount", "st.a": "first", "arr.element.x": "xx"},
        cast={"qty": "bigint", "price": "double", "m.value.v": "bigint", "dec": "decimal(12, 2)"},
        drop=["name"],
        add={"name": "int", "st.c": "double", "arr.element.z": "int"},
        reorder={"name": "after id", "st.c": "first"},
        comment={"dec": "money"},
        options=lake.options,
    )
    assert done.instant is not None


def _alter_by_java(lake: Lake) -> None:
    lake.run(
        "alter table $T rename column qty to amount",
        "alter table $T alter column amount type bigint",
        "alter table $T alter column price type double",
        "alter table $T rename column st.a to first",
        "alter table $T rename column arr.element.x to xx",
        "alter table $T alter column m.value.v type bigint",
        "alter table $T alter column dec type decimal(12, 2)",
        "alter table $T drop column name",
        "alter table $T add columns (name int after id, st.c double first, arr.element.z int)",
    )


@pytest.fixture
def lake(java: JavaSession, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Lake]:
    case: Case = request.param
    with java.configured(case.settings):
        yield Lake(java, tmp_path / "table", case)


@pytest.mark.parametrize("lake", CASES, indirect=True)
def test_both_alter_in_turn(lake: Lake) -> None:
    lake.begin()
    (_alter_by_us if lake._case.first == "ours" else _alter_by_java)(lake)
    rows = lake.check()
    assert rows["k1"]["amount"] == 101
    assert {row["name"] for row in rows.values()} == {None}

    ours = {**_data(rows["k1"]), "ts": 10, "amount": 2**40, "name": 7, "st": {"c": 0.5, "first": 9, "b": "o"}}
    lake.upsert(ours, {**ours, "id": "k9"})
    assert lake.check()["k9"]["amount"] == 2**40
    lake.compact("ours")

    lake.run("update $T set amount = 33, name = 3, ts = 20 where id = 'k3'")
    assert lake.check()["k3"]["amount"] == 33
    lake.run(
        "alter table $T rename column amount to total",
        "alter table $T drop column price",
        "alter table $T add columns (price string)",
        "update $T set total = 44, price = 'dear', ts = 21 where id = 'k4'",
    )
    rows = lake.check()
    assert (rows["k4"]["total"], rows["k9"]["total"]) == (44, 2**40)
    lake.compact("java")

    # New and wider columns of rows make a new version too.
    lake.upsert({**_data(rows["k2"]), "ts": 30, "total": 1.5, "more": "m"}, total=pa.float64(), more=pa.string())
    rows = lake.check()
    assert (rows["k2"]["total"], rows["k2"]["more"], rows["k4"]["total"]) == (1.5, "m", 44.0)
    lake.open().alter(rename={"more": "text"}, cast={"name": "string"}, allow_loss=True, options=lake.options)
    lake.run("update $T set text = 'java', name = 'j', ts = 40 where id = 'k0'")
    rows = lake.check()
    assert (rows["k2"]["text"], rows["k0"]["text"], rows["k0"]["name"], rows["k3"]["name"]) == ("m", "java", "j", "3")
    lake.compact("ours")


@pytest.mark.parametrize("lake", CASES, indirect=True)
def test_a_name_that_comes_back_with_rows_has_no_old_values(lake: Lake) -> None:
    """One of the two rows is new. Java rewrites files by names, so old values of their other rows are there again."""
    lake.begin()
    new = {**_data(lake.check()["k1"]), "ts": 10, "qty": 77}
    if lake._case.first == "ours":
        lake.open().alter(drop="qty", options=lake.options)
        lake.options |= {"hoodie.parquet.small.file.limit": str(1 << 20)}
        lake.upsert(new, {**new, "id": "k9"}, qty=pa.int32())
    else:
        lake.run("alter table $T drop column qty")
        rows = pa.Table.from_pylist([new, {**new, "id": "k9"}], SCHEMA)
        lake._java.write(lake.path, rows, {**lake._case.settings, "hoodie.table.name": "altered"})
    found = {key: row["qty"] for key, row in lake.check().items()}
    back = {"k3": 3, "k5": 5} if (lake._case.kind, lake._case.first) == ("cow", "java") else {}
    assert found == dict.fromkeys(f"k{number}" for number in range(6)) | {"k1": 77, "k9": 77} | back
    lake.compact(lake._case.first)


def _data(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if not name.startswith("_hoodie_")}
