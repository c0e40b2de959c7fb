"""Vectors, variants and blobs in Spark: read with their types, and written as the metadata of columns say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable
from hoodie_py.formats.logical_types.blob import BLOB_TYPE
from hoodie_py.formats.logical_types.variant import VARIANT_TYPE
from tests.formats.variants import encode_variant

pytest.importorskip("pyspark.sql.datasource", reason="NOT TESTED: pyspark is not installed")
_SCHEMA = pa.schema([
    pa.field("id", pa.int32()), pa.field("v", pa.list_(pa.float32(), 2)), pa.field("i", pa.list_(pa.int8(), 3)),
    pa.field("x", VARIANT_TYPE, metadata={"hudi_type": "VARIANT"}),
    pa.field("b", BLOB_TYPE, metadata={"hudi_type": "BLOB"}), pa.field("ts", pa.int64()),
])  # fmt: skip


def _row(number: int, ts: int) -> dict[str, Any]:
    metadata, value = encode_variant({"n": number, "t": [ts, None]})
    return {
        "id": number, "v": [number, ts] if number != 2 else None, "i": [number, -1, ts],
        "x": {"metadata": metadata, "value": value} if number != 3 else None,
        "b": {"type": "INLINE", "data": bytes([number]), "reference": None} if number != 1 else None, "ts": ts,
    }  # fmt: skip


@pytest.fixture(scope="module", params=["MERGE_ON_READ", "COPY_ON_WRITE"])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with base files, and log files where it may have them."""
    path = tmp_path_factory.mktemp("made") / "t"
    table = HoodieTable.create(path, _SCHEMA, record_key="id", ordering="ts", table_type=request.param)
    table.upsert(pa.Table.from_pylist([_row(number, 1) for number in range(1, 5)], _SCHEMA))
    limit = {"hoodie.parquet.small.file.limit": "0"}  # else the new row and the update fill the base file
    table.refresh().upsert(pa.Table.from_pylist([_row(1, 2), _row(5, 2)], _SCHEMA), limit)
    return path


def test_types_are_sparks_and_values_are_ours(spark: Any, made: Path) -> None:
    frame = spark.read.format("hoodie").load(str(made))
    types = {field.name: field.dataType.simpleString() for field in frame.schema}
    assert (types["v"], types["i"], types["x"]) == ("array<float>", "array<tinyint>", "variant")
    names = {field.name: field.metadata.get("hudi_type") for field in frame.schema}
    assert [names[each] for each in "vixb"] == ["VECTOR(2)", "VECTOR(3, INT8)", "VARIANT", "BLOB"]
    got = {
        row["id"]: row.asDict(recursive=True) for row in frame.selectExpr("id", "v", "i", "b", "to_json(x) x").collect()
    }
    ours = HoodieTable.open(made).scan(columns=["id", "v", "i", "b"]).to_arrow().to_pylist()
    assert {key: {n: row[n] for n in ("id", "v", "i", "b")} for key, row in got.items()} == {r["id"]: r for r in ours}
    assert {key: row["x"] for key, row in got.items()} == {
        1: '{"n":1,"t":[2,null]}', 2: '{"n":2,"t":[1,null]}', 3: None,
        4: '{"n":4,"t":[1,null]}', 5: '{"n":5,"t":[2,null]}'
    }  # fmt: skip
    assert frame.where("v is null").count() == 1
    assert frame.where("x is null").select("id").collect()[0][0] == 3
    assert frame.where("variant_get(x, '$.n', 'int') = 4").count() == 1


def test_the_hybrid_reader_gives_the_same(spark: Any, made: Path) -> None:
    from hoodie_py.spark import read

    plain = spark.read.format("hoodie").load(str(made))
    hybrid = read(spark, str(made))
    assert hybrid.schema == plain.schema
    columns = ("id", "v", "i", "b", "to_json(x)")
    rows = [sorted(map(repr, frame.selectExpr(*columns).collect())) for frame in (plain, hybrid)]
    assert rows[0] == rows[1]


@pytest.mark.parametrize("distributed", [False, True])
def test_what_spark_writes_keeps_its_types(spark: Any, made: Path, distributed: bool, tmp_path: Path) -> None:
    frame = spark.read.format("hoodie").load(str(made)).select(*_SCHEMA.names)
    options = {
        "hoodie.table.name": "copy",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.table.ordering.fields": "ts",
        "hoodie.datasource.write.partitionpath.field": "",
    }
    path = str(tmp_path / "copy")
    if distributed:
        from hoodie_py.spark import write

        write(frame, path, options=options)
    else:
        frame.write.format("hoodie").options(**options).mode("append").save(path)
    copy, original = (HoodieTable.open(each).scan(columns=_SCHEMA.names).to_arrow() for each in (path, made))
    assert copy.schema.equals(original.schema, check_metadata=True)
    assert copy.sort_by("id").to_pylist() == original.sort_by("id").to_pylist()
