"""Variants and blobs: Java Hudi goes on with what this package wrote, and this package with what Java wrote.

Java Hudi on Spark 3.5 reads a table with variants only where the catalog declares them as structs of two byte strings.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable, read_blob, variant_to_json
from hoodie_py.formats.logical_types.blob import BLOB_TYPE
from hoodie_py.formats.logical_types.variant import VARIANT_TYPE
from integration.java_hudi.session import JavaSession
from tests.formats.variants import encode_variant

_SCHEMA = pa.schema([
    pa.field("id", pa.int32()), pa.field("x", VARIANT_TYPE, metadata={"hudi_type": "VARIANT"}),
    pa.field("b", BLOB_TYPE, metadata={"hudi_type": "BLOB"}), pa.field("ts", pa.int64()),
])  # fmt: skip
_TYPES = {"x": "VARIANT", "b": "BLOB"}
_DECLARED = (
    "id int, x struct<value: binary, metadata: binary>, b struct<type: string, data: binary, "
    "reference: struct<external_path: string, offset: bigint, length: bigint, managed: boolean>>, ts bigint"
)


def _row(number: int, ts: int, file: Path) -> dict[str, Any]:
    metadata, value = encode_variant({"n": number, "t": [ts]})
    reference = {"external_path": str(file), "offset": number, "length": ts, "managed": False}
    inline = {"type": "INLINE", "data": bytes([number, ts]), "reference": None}
    blobs = (None, inline, {"type": "OUT_OF_LINE", "data": None, "reference": reference})
    variant = {"metadata": metadata, "value": value} if number % 4 else None
    return {"id": number, "x": variant, "b": blobs[number % 3], "ts": ts}


@pytest.mark.parametrize("version", [9, 6])
@pytest.mark.parametrize("table_type", ["MERGE_ON_READ", "COPY_ON_WRITE"])
def test_java_and_we_take_turns(version: int, table_type: str, java: JavaSession, tmp_path: Path) -> None:
    path, file = tmp_path / "made", tmp_path / "media.bin"
    file.write_bytes(bytes(range(64)))
    options = {
        "hoodie.write.table.version": str(version),
        "hoodie.write.auto.upgrade": "false",
        "hoodie.table.name": "made",
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
        "hoodie.table.ordering.fields": "ts",
        "hoodie.parquet.small.file.limit": "0",
        "hoodie.compact.inline": "false",
    }
    wanted: dict[int, dict[str, Any]] = {}

    def make(numbers: list[int], ts: int) -> pa.Table:
        rows = [_row(number, ts, file) for number in numbers]
        wanted.update({row["id"]: row for row in rows})
        return pa.Table.from_pylist(rows, _SCHEMA)

    HoodieTable.create(
        path, _SCHEMA, record_key="id", ordering="ts", table_type=table_type, table_version=version, name="made"
    ).upsert(make(list(range(8)), 1))
    java.write(path, make([1, 2, 9], 2), options, types=_TYPES)
    HoodieTable.open(path).upsert(make([2, 3, 10], 3))
    if table_type == "MERGE_ON_READ":
        HoodieTable.open(path).compact()
    java.write(path, make([3, 11], 4), options, types=_TYPES)
    found = HoodieTable.open(path).scan(columns=_SCHEMA.names).to_arrow().sort_by("id")
    assert found.to_pylist() == [wanted[key] for key in sorted(wanted)]
    texts = variant_to_json(found["x"]).to_pylist()
    assert texts[9] == '{"n":10,"t":[3]}'
    name = f"declared_{version}_{table_type[:1].lower()}"
    java.sql(f"create table {name} ({_DECLARED}) using hudi location '{path}'")
    rows = java.sql(f"select id, hex(x.value) x, hex(read_blob(b)) b from {name} order by id")
    blobs = read_blob(found["b"], [tmp_path]).to_pylist()
    values = [None if row["x"] is None else row["x"]["value"] for row in found.to_pylist()]
    assert [row.get("x") for row in rows] == [None if value is None else value.hex().upper() for value in values]
    assert [row.get("b") for row in rows] == [None if blob is None else blob.hex().upper() for blob in blobs]
