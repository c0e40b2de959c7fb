"""Statistics of a table whose columns grew: they are right, and filters by them lose no row."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable
from tests.writer.compaction_tables import QUICK

INDEXED = {
    **QUICK,
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.partition.stats.enable": "true",
}
SKIPPING = {"hoodie.enable.data.skipping": "true"}
NARROW = {"dec": pa.decimal128(10, 2), "f": pa.float32(), "i": pa.int32()}
WIDE = {"dec": pa.decimal128(12, 4), "f": pa.float64(), "i": pa.int64(), "z": pa.string()}


def make_rows(numbers: list[int], ts: int, types: dict[str, pa.DataType]) -> pa.Table:
    keys = {"id": [str(n) for n in numbers], "part": [f"p{n % 2}" for n in numbers], "ts": [ts] * len(numbers)}
    make = {"dec": Decimal, "f": float, "i": int, "z": str}
    return pa.table(
        {**keys, **{name: pa.array([make[name](n) for n in numbers], type_) for name, type_ in types.items()}}
    )


@pytest.mark.parametrize(("table_type", "version"), [("MERGE_ON_READ", 9), ("COPY_ON_WRITE", 8)])
def test_grown_columns(table_type: str, version: int, tmp_path: Path) -> None:
    first = make_rows(list(range(8)), 1, NARROW)
    table = HoodieTable.create(
        tmp_path / "t", first.schema, record_key="id", ordering="ts", partition_by="part", table_type=table_type,
        table_version=version,
    )  # fmt: skip
    table.insert(first, INDEXED)
    table.upsert(make_rows([1, 9], 2, WIDE), INDEXED)
    table.upsert(make_rows([3], 3, WIDE), INDEXED)
    report = table.verify(metadata=True, data=False)
    assert report.is_right, str(report)
    for text in ("dec = 1", "dec > 3.5", "f < 2", "f = 9", "i >= 6", "i = 3", "z = '9'"):
        rows = table.scan(["id"], text, options={"hoodie.metadata.enable": "false"}).count()
        assert table.scan(["id"], text, options=SKIPPING).count() == rows > 0
    found = table.scan(["id"], "dec > 100", options=SKIPPING).explain()
    assert "partition_stats left out 0 of" in str(found)  # Java's may mix two scales
    assert "partition_stats left out 0 of" not in str(table.scan(["id"], "i > 100", options=SKIPPING).explain())
