"""Vectors: Java Hudi goes on with what this package wrote, and this package with what Java wrote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie_py import HoodieTable
from integration.java_hudi.session import JavaSession

_ELEMENTS = {
    "v": ("VECTOR(3)", pa.float32()),
    "w": ("VECTOR(3)", pa.float32()),
    "d": ("VECTOR(2, DOUBLE)", pa.float64()),
    "i": ("VECTOR(4, INT8)", pa.int8()),
}
_TYPES = {name: descriptor for name, (descriptor, _) in _ELEMENTS.items()}
_FOOTER = ",".join(f"{name}:{descriptor}" for name, descriptor in _TYPES.items())
_SCHEMA = pa.schema([
    ("id", pa.string()), *((name, pa.list_(element)) for name, (_, element) in _ELEMENTS.items()), ("ts", pa.int64()),
])  # fmt: skip
_CREATED = pa.schema([
    ("id", pa.string()), ("v", pa.list_(pa.float32(), 3)), ("w", pa.list_(pa.float32(), 3)),
    ("d", pa.list_(pa.float64(), 2)), ("i", pa.list_(pa.int8(), 4)), ("ts", pa.int64()),
])  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Kind:
    version: int
    table_type: str = "MERGE_ON_READ"

    def __str__(self) -> str:
        return f"v{self.version}-{'mor' if self.table_type == 'MERGE_ON_READ' else 'cow'}"

    @property
    def service(self) -> dict[str, str]:
        return {"hoodie.write.table.version": str(self.version), "hoodie.write.auto.upgrade": "false"}

    @property
    def options(self) -> dict[str, str]:
        return {
            **self.service,
            "hoodie.table.name": "made",
            "hoodie.datasource.write.table.type": self.table_type,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "",
            "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
            "hoodie.table.ordering.fields": "ts",
            "hoodie.parquet.small.file.limit": "0",
            "hoodie.compact.inline": "false",
            "hoodie.insert.shuffle.parallelism": "1",
            "hoodie.upsert.shuffle.parallelism": "1",
        }


_KINDS = [_Kind(version, kind) for version in (9, 8, 6) for kind in ("MERGE_ON_READ", "COPY_ON_WRITE")]


def _row(number: int, ts: int) -> dict[str, Any]:
    """A row with nulls here and there; ``ts`` is in every value."""
    v = [number + 0.5, -float(ts), 1e-3 * ts] if number % 4 else None
    w = [float("inf"), 0.1, ts / 3] if number % 3 else None
    i = [number % 128, -128, 127, -ts] if number % 5 else None
    return {"id": f"k{number}", "v": v, "w": w, "d": [number / 3, ts * 1e300], "i": i, "ts": ts}


def _table(numbers: Sequence[int], ts: int) -> pa.Table:
    return pa.Table.from_pylist([_row(number, ts) for number in numbers], _SCHEMA)


def _rows(table: pa.Table) -> list[dict[str, Any]]:
    return sorted(table.select(_SCHEMA.names).to_pylist(), key=lambda row: row["id"])


def _check(java: JavaSession, path: Path, wanted: dict[int, int]) -> None:
    """Compare Java's reads and ours with the rows that must be there: the ts of each number."""
    tables = [_table([number], ts) for number, ts in wanted.items()]
    want = _rows(pa.concat_tables(tables))
    ours = HoodieTable.open(path)
    assert _rows(java.read(path)) == want
    assert _rows(ours.scan().to_arrow()) == want
    with_v = [row for row in want if row["v"] is not None]
    assert _rows(java.read(path, where="v is not null")) == with_v
    assert _rows(ours.scan(filter="v is not null").to_arrow()) == with_v
    for name, (descriptor, element) in _ELEMENTS.items():
        field = ours.scan(columns=[name]).to_arrow().schema.field(name)
        assert field.metadata == {b"hudi_type": descriptor.encode()}
        assert field.type == pa.list_(pa.field("element", element, nullable=False))


def _check_footers(path: Path) -> None:
    for file in path.glob("*.parquet"):
        assert pq.read_metadata(file).metadata[b"hoodie.vector.columns"].decode() == _FOOTER


@pytest.mark.parametrize("kind", _KINDS, ids=str)
def test_java_goes_on_with_vectors_that_we_wrote(kind: _Kind, java: JavaSession, tmp_path: Path) -> None:
    path = tmp_path / "made"
    HoodieTable.create(
        path, _CREATED, record_key="id", ordering="ts", table_type=kind.table_type, table_version=kind.version,
        name="made",
    ).upsert(_table(range(12), 1))  # fmt: skip
    HoodieTable.open(path).upsert(_table([1, 2, 12], 2))
    HoodieTable.open(path).delete(["k5"])
    wanted = {number: 1 for number in range(13) if number != 5} | {1: 2, 2: 2, 12: 2}
    _check(java, path, wanted)
    java.write(path, _table([2, 3, 13], 3), kind.options, types=_TYPES)
    wanted |= {2: 3, 3: 3, 13: 3}
    _check(java, path, wanted)
    if kind.table_type == "MERGE_ON_READ":
        HoodieTable.open(path).compact()
        _check(java, path, wanted)
        java.write(path, _table([3, 4], 4), kind.options, types=_TYPES)
        HoodieTable.open(path).upsert(_table([4, 14], 5))
        assert java.run_compaction(path, kind.service)
        wanted |= {3: 4, 4: 5, 14: 5}
        _check(java, path, wanted)
    java.write(path, _table([6], 6), kind.options, operation="delete", types=_TYPES)
    del wanted[6]
    _check(java, path, wanted)
    _check_footers(path)


@pytest.mark.parametrize("kind", _KINDS, ids=str)
def test_we_go_on_with_vectors_that_java_wrote(kind: _Kind, java: JavaSession, tmp_path: Path) -> None:
    path = tmp_path / "made"
    java.write(path, _table(range(12), 1), kind.options, operation="bulk_insert", mode="overwrite", types=_TYPES)
    java.write(path, _table([1, 2, 12], 2), kind.options, types=_TYPES)
    wanted = dict.fromkeys(range(13), 1) | {1: 2, 2: 2, 12: 2}
    _check(java, path, wanted)
    first = next(iter(HoodieTable.open(path).timeline)).request_time
    before = HoodieTable.open(path).scan(as_of=first).to_arrow()
    assert _rows(before) == _rows(_table(range(12), 1))
    HoodieTable.open(path).upsert(_table([2, 3, 13], 3))
    wanted |= {2: 3, 3: 3, 13: 3}
    _check(java, path, wanted)
    if kind.table_type == "MERGE_ON_READ":
        HoodieTable.open(path).compact()
        _check(java, path, wanted)
    java.write(path, _table([3, 14], 4), kind.options, types=_TYPES)
    wanted |= {3: 4, 14: 4}
    _check(java, path, wanted)
    _check_footers(path)
