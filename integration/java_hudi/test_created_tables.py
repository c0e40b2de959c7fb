"""Tables that this package makes are tables to Java Hudi: it opens them empty, inserts, upserts and reads."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable
from integration.java_hudi.session import JavaSession

_SCHEMA = pa.schema([
    ("id", pa.string()),
    ("ts", pa.int64()),
    ("city", pa.string()),
    ("fare", pa.decimal128(10, 2)),
    ("at", pa.timestamp("us", "UTC")),
    ("tags", pa.list_(pa.field("element", pa.string()))),
    ("st", pa.struct([("a", pa.int32())])),
])  # fmt: skip
_OF_THE_METADATA_TABLE = {
    "hoodie.table.metadata.partitions", "hoodie.table.metadata.partitions.inflight", "hoodie.table.index.defs.path",
}  # fmt: skip
_STRATEGY = "6b1f0c52-3a5e-4d0b-9d57-0c4f7a1e0003"


@dataclass(frozen=True, slots=True)
class _Shape:
    """Arguments of ``HoodieTable.create`` and what Java must be told beside them."""

    version: int = 9
    table_type: str = "MERGE_ON_READ"
    ordering: str | None = "ts"
    partition_by: tuple[str, ...] = ("city",)
    more: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        kind = "mor" if self.table_type == "MERGE_ON_READ" else "cow"
        parts = "part" if self.partition_by else "flat"
        order = "event" if self.ordering else "commit"
        return f"v{self.version}-{kind}-{parts}-{order}{'-more' if self.more else ''}"

    def made(self, path: Path) -> HoodieTable:
        return HoodieTable.create(
            path, _SCHEMA, record_key="id", ordering=self.ordering, partition_by=self.partition_by,
            table_type=self.table_type, table_version=self.version, name="made", **self.more,
        )  # fmt: skip

    @property
    def options(self) -> dict[str, str]:
        generator = "SimpleKeyGenerator" if self.partition_by else "NonpartitionedKeyGenerator"
        options = {
            "hoodie.write.table.version": str(self.version),
            "hoodie.write.auto.upgrade": "false",
            "hoodie.table.name": "made",
            "hoodie.datasource.write.table.type": self.table_type,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": ",".join(self.partition_by),
            "hoodie.datasource.write.keygenerator.class": f"org.apache.hudi.keygen.{generator}",
            "hoodie.parquet.small.file.limit": "0",
            "hoodie.insert.shuffle.parallelism": "1",
            "hoodie.upsert.shuffle.parallelism": "1",
        }
        options |= {key: str(value).lower() for key, value in self.more.get("properties", {}).items()}
        return options | ({"hoodie.table.ordering.fields": self.ordering} if self.ordering else {})


_HIVE = {"properties": {
    "hoodie.datasource.write.hive_style_partitioning": True, "hoodie.datasource.write.partitionpath.urlencode": True,
}}  # fmt: skip
_SHAPES = [
    _Shape(),
    _Shape(table_type="COPY_ON_WRITE", ordering=None, partition_by=()),
    _Shape(8, more=_HIVE),
    _Shape(8, "COPY_ON_WRITE", partition_by=()),
    _Shape(6),
    _Shape(6, "COPY_ON_WRITE", ordering=None),
]


def _row(number: int, ts: int, fare: str) -> dict[str, Any]:
    return {
        "id": f"k{number}", "ts": ts, "city": f"c{number % 2}", "fare": fare, "at": number, "tags": ["x"] * number,
        "st": {"a": number},
    }  # fmt: skip


def _table(*rows: dict[str, Any]) -> pa.Table:
    columns = {name: [row[name] for row in rows] for name in _SCHEMA.names}
    columns["fare"] = pa.array(columns["fare"]).cast(pa.decimal128(10, 2))
    return pa.table(columns, schema=_SCHEMA)


def _rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return sorted((row["id"], row["ts"], row["city"], str(row["fare"])) for row in table.to_pylist())


@pytest.mark.parametrize("shape", _SHAPES, ids=str)
def test_java_writes_to_what_we_made(shape: _Shape, java: JavaSession, tmp_path: Path) -> None:
    path = tmp_path / "made"
    before = shape.made(path).config
    assert java.read(path).num_rows == 0
    java.write(path, _table(_row(1, 1, "1.50"), _row(2, 5, "2.00")), shape.options, operation="insert")
    java.write(path, _table(_row(1, 2, "9.99"), _row(2, 4, "8.00"), _row(3, 1, "3.00")), shape.options)
    late = ("k2", 5, "c0", "2.00") if shape.ordering else ("k2", 4, "c0", "8.00")
    wanted = [("k1", 2, "c1", "9.99"), late, ("k3", 1, "c1", "3.00")]
    table = HoodieTable.open(path)
    assert _rows(java.read(path)) == wanted
    assert _rows(table.scan().to_arrow()) == wanted
    changed = {key for key, value in table.config.properties.items() if before.properties.get(key) != value}
    assert changed <= _OF_THE_METADATA_TABLE


@pytest.mark.parametrize("version", [9, 8, 6])
def test_we_write_and_java_goes_on(version: int, java: JavaSession, tmp_path: Path) -> None:
    path = tmp_path / "made"
    shape = _Shape(version)
    shape.made(path).upsert(_table(_row(1, 1, "1.50"), _row(2, 5, "2.00")))
    java.write(path, _table(_row(1, 2, "9.99"), _row(2, 4, "8.00"), _row(3, 1, "3.00")), shape.options)
    HoodieTable.open(path).upsert(_table(_row(3, 2, "7.00")))
    wanted = [("k1", 2, "c1", "9.99"), ("k2", 5, "c0", "2.00"), ("k3", 2, "c1", "7.00")]
    assert _rows(java.read(path)) == wanted
    assert _rows(HoodieTable.open(path).scan().to_arrow()) == wanted


def test_java_knows_the_merger_of_what_we_made(java: JavaSession, tmp_path: Path) -> None:
    path = tmp_path / "made"
    shape = _Shape(more={"merge_strategy_id": _STRATEGY})
    shape.made(path)
    assert java.read(path).num_rows == 0
    java.write(path, _table(_row(1, 1, "1.50")), shape.options, operation="insert")
    assert _rows(java.read(path)) == [("k1", 1, "c1", "1.50")]
    assert HoodieTable.open(path).config.merge_strategy_id == _STRATEGY


_KEYS = pa.schema([
    ("id", pa.string()), ("n", pa.int32()), ("day", pa.date32()), ("at", pa.int64()), ("dec", pa.decimal128(10, 3)),
    ("city", pa.string()), ("text", pa.string()), ("fare", pa.float64()),
])  # fmt: skip
_TIMED = {
    "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
    "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd HH",
    "hoodie.keygen.timebased.timezone": "GMT+8:00",
}
_READ_AND_TIMED = {
    "hoodie.keygen.timebased.timestamp.type": "DATE_STRING",
    "hoodie.keygen.timebased.input.dateformat": "yyyy-MM-dd'T'HH:mm:ssZ",
    "hoodie.keygen.timebased.output.dateformat": "yyyy-MM-dd-HH",
    "hoodie.keygen.timebased.output.timezone": "GMT+8:00",
}
_ENCODED = {
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.datasource.write.partitionpath.urlencode": "true",
}


@pytest.mark.parametrize(
    ("record_key", "partition_by", "generator", "properties"),
    [
        ("id,day,dec", "city,n", "Complex", _ENCODED),
        ("n", "at", "TimestampBased", _TIMED),
        ("day,id", "city:SIMPLE,text:TIMESTAMP", "Custom", {**_READ_AND_TIMED, **_ENCODED}),
        ("id,n", "", "Nonpartitioned", {}),
    ],
    ids=["complex", "timestamp", "custom", "flat"],
)
def test_java_finds_our_keys(
    record_key: str, partition_by: str, generator: str, properties: dict[str, str], java: JavaSession, tmp_path: Path
) -> None:
    rows = [
        {
            "id": None if n == 2 else f"k{n}", "n": n, "day": dt.date(2026, 1, 1 + n),
            "at": 1_700_000_000_000 + n * 10**7, "dec": Decimal(n) / 8, "fare": 0.0,
            "text": None if n == 3 else f"2026-01-0{n + 1}T23:00:00+0{n}:00",
            "city": [None, "a/b c:d", ""][n % 3],
        }
        for n in range(6)
    ]  # fmt: skip
    path = tmp_path / "made"
    kind = "TIMESTAMP" if generator == "TimestampBased" else None
    table = HoodieTable.create(
        path, _KEYS, record_key=record_key, partition_by=partition_by, key_generator=kind, properties=properties
    )
    table.insert(pa.Table.from_pylist(rows, _KEYS))
    options = _Shape(ordering=None).options | properties | {
        "hoodie.datasource.write.recordkey.field": record_key,
        "hoodie.datasource.write.partitionpath.field": partition_by,
        "hoodie.datasource.write.keygenerator.class": f"org.apache.hudi.keygen.{generator}KeyGenerator",
    }  # fmt: skip
    changed = pa.Table.from_pylist([{**row, "fare": 1.0} for row in rows], _KEYS)
    java.write(path, changed, options)
    found = HoodieTable.open(path).scan().to_arrow()
    assert found.num_rows == len(rows)
    assert found.column("fare").to_pylist() == [1.0] * len(rows)
    assert java.read(path).num_rows == len(rows)
