"""Tables without meta fields: Java Hudi and this package take turns on one table; after every turn all reads agree.

The reads are Java's with the metadata table and without, and ours; they are compared with a model of the rows.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable
from integration.java_hudi.session import JavaSession

OURS, JAVAS = "ours", "java"
TYPES = {
    "text": pa.string(),
    "int": pa.int32(),
    "float": pa.float32(),
    "time": pa.timestamp("us", "UTC"),
    "decimal": pa.decimal128(10, 2),
}


@dataclass(frozen=True, slots=True)
class Kind:
    """What kind of table; ``two`` key fields or one; rows found by position or by key; who makes it."""

    version: int
    merge_on_read: bool
    key: str = "text"
    two: bool = False
    partitioned: bool = True
    positions: bool = True
    hive: bool = False
    first: str = JAVAS

    def __str__(self) -> str:
        parts = [
            f"v{self.version}", "mor" if self.merge_on_read else "cow", self.key, "two" if self.two else "",
            "part" if self.partitioned else "flat", "" if self.positions else "keys", "hive" if self.hive else "",
            self.first,
        ]  # fmt: skip
        return "-".join(filter(None, parts))

    @property
    def schema(self) -> pa.Schema:
        return pa.schema(
            [("k", TYPES[self.key]), ("x", pa.int32()), ("part", pa.string()), ("ts", pa.int64()), ("v", pa.int64())]
        )

    @property
    def services(self) -> dict[str, str]:
        """Java's options for table services."""
        return {
            "hoodie.write.table.version": str(self.version),
            "hoodie.write.auto.upgrade": "false",
            "hoodie.metadata.enable": "true",
            "hoodie.populate.meta.fields": "false",
        }

    @property
    def javas(self) -> dict[str, str]:
        """Java's options for writes."""
        generator = "ComplexKeyGenerator" if self.two else "SimpleKeyGenerator"
        options = {
            **self.services,
            "hoodie.table.name": "virtual",
            "hoodie.datasource.write.table.type": "MERGE_ON_READ" if self.merge_on_read else "COPY_ON_WRITE",
            "hoodie.datasource.write.recordkey.field": "k,x" if self.two else "k",
            "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen."
            + (generator if self.partitioned else "NonpartitionedKeyGenerator"),
            "hoodie.datasource.write.hive_style_partitioning": str(self.hive).lower(),
            "hoodie.table.ordering.fields": "ts",
            "hoodie.compact.inline": "false",
            "hoodie.parquet.small.file.limit": "0",
            "hoodie.write.record.positions": str(self.positions).lower(),
            **{f"hoodie.{each}.shuffle.parallelism": "1" for each in ("insert", "upsert", "delete", "bulkinsert")},
        }
        return {**options, "hoodie.datasource.write.partitionpath.field": "part"} if self.partitioned else options

    @property
    def ours(self) -> dict[str, str]:
        """Our options."""
        return {
            "hoodie.parquet.small.file.limit": "0",
            "hoodie.write.record.positions": str(self.positions).lower(),
            "hoodie.compact.inline.max.delta.commits": "1",
        }

    def make_key(self, number: int) -> Any:
        if self.key == "time":
            return dt.datetime(1969, 12, 31, tzinfo=dt.UTC) + dt.timedelta(days=number, microseconds=number)
        return {"text": f"k:{number}", "int": -number, "float": number * 1.7e5, "decimal": number}[self.key]


class Turns:
    """A table that both write, and what must be in it: ordering value and value by key."""

    def __init__(self, java: JavaSession, base: Path, kind: Kind) -> None:
        self.java, self.base, self.kind = java, base, kind
        self.rows: dict[str, tuple[int, int]] = {}

    def open(self) -> HoodieTable:
        return HoodieTable.open(self.base)

    def create(self) -> None:
        HoodieTable.create(
            self.base,
            self.kind.schema,
            record_key=["k", "x"] if self.kind.two else "k",
            ordering="ts",
            partition_by=["part"] if self.kind.partitioned else (),
            table_type="MERGE_ON_READ" if self.kind.merge_on_read else "COPY_ON_WRITE",
            table_version=self.kind.version,
            name="virtual",
            properties={
                "hoodie.populate.meta.fields": "false",
                "hoodie.datasource.write.hive_style_partitioning": str(self.kind.hive).lower(),
            },
        )

    def put(self, who: str, operation: str, numbers: Sequence[int], ts: int) -> None:
        data = [
            {"k": self.kind.make_key(each), "x": each % 3, "part": f"p{each % 2}", "ts": ts, "v": each * 100 + ts}
            for each in numbers
        ]
        rows = pa.Table.from_pylist(data, self.kind.schema)
        exists = (self.base / ".hoodie").exists()
        if who == JAVAS:
            mode = "append" if exists else "overwrite"
            self.java.write(self.base, rows, self.kind.javas, operation=operation, mode=mode)
        else:
            if not exists:
                self.create()
            getattr(self.open(), operation)(rows, options=self.kind.ours)
        for row in rows.to_pylist():
            key = str(row["k"])
            if operation == "delete":
                self.rows.pop(key, None)
            elif self.rows.get(key, (-1, 0))[0] <= row["ts"]:
                self.rows[key] = row["ts"], row["v"]

    def compact(self, who: str) -> None:
        if not self.kind.merge_on_read:
            return
        if who == OURS:
            assert self.open().compact(options=self.kind.ours).instant is not None
        else:
            assert self.java.run_compaction(self.base, self.kind.services) is not None

    def check(self, query_type: str = "snapshot") -> None:
        found = self.open().scan(query_type=query_type).to_arrow()
        assert found.schema.names == self.kind.schema.names
        chosen = {"hoodie__datasource__query__type": query_type}
        reads = {
            "ours": found,
            "java": self.java.read(self.base, **chosen),
            "java, listing": self.java.read(self.base, metadata=False, **chosen),
        }
        for name, table in reads.items():
            rows = sorted((str(each["k"]), (each["ts"], each["v"])) for each in table.to_pylist())
            assert rows == sorted(self.rows.items()), name


KINDS = [
    Kind(9, True),
    Kind(9, True, "time", positions=False, first=OURS),
    Kind(9, False, "text", two=True, hive=True, first=OURS),
    Kind(8, True, "float", partitioned=False, positions=False, first=OURS),
    Kind(8, False, "int", partitioned=False),
    Kind(6, True, "text", two=True, positions=False),
    Kind(6, True, "decimal", partitioned=False, positions=False, first=OURS),
    Kind(6, False, "text", first=OURS),
]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_java_and_we_take_turns(java: JavaSession, kind: Kind, tmp_path: Path) -> None:
    turns = Turns(java, tmp_path / "table", kind)
    one, two = (JAVAS, OURS) if kind.first == JAVAS else (OURS, JAVAS)
    turns.put(one, "insert", range(12), 2)
    turns.put(two, "upsert", [0, 1, 5, 12], 3)
    turns.put(one, "upsert", [1, 2, 3, 13], 4)
    turns.put(two, "upsert", [2, 6], 1)  # late
    turns.check()
    turns.put(two, "delete", [3, 4], 5)
    turns.put(one, "delete", [5, 6], 5)
    turns.check()
    turns.compact(two)
    turns.check("read_optimized")
    turns.put(two, "upsert", [0, 5, 3, 14], 6)
    turns.put(one, "upsert", [5, 1, 14], 7)
    turns.open().delete("v = 1407", options=kind.ours)
    del turns.rows[str(pa.scalar(kind.make_key(14), TYPES[kind.key]).as_py())]
    turns.check()
    turns.compact(one)
    turns.put(one, "bulk_insert", [20, 21], 8)
    turns.put(two, "bulk_insert", [22, 23], 8)
    turns.put(one, "upsert", [22], 9)
    turns.put(two, "upsert", [20], 9)
    turns.open().clean(retain_commits=1)
    turns.check()
    assert java.wrong_metadata(turns.base) == []
