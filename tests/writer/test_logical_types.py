"""Tables with vectors, blobs and variants: made, changed, compacted and read again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import InvalidQueryError, UnsupportedFeatureError

_VECTORS = pa.schema([
    ("id", pa.int32()), ("v", pa.list_(pa.float32(), 2)), ("w", pa.list_(pa.float32(), 2)),
    ("d", pa.list_(pa.float64(), 1)), ("i", pa.list_(pa.int8(), 4)), ("ts", pa.int64()),
])  # fmt: skip
_KINDS = [(version, kind) for version in (9, 8, 6) for kind in ("MERGE_ON_READ", "COPY_ON_WRITE")]


def _make(path: Path, schema: pa.Schema, version: int = 9, kind: str = "MERGE_ON_READ") -> HoodieTable:
    return HoodieTable.create(
        path, schema, record_key="id", ordering="ts", table_type=kind, table_version=version, name="made"
    )


def _row(number: int, ts: int, v: Any, i: Any = (1, -2, 3, 127)) -> dict[str, Any]:
    return {"id": number, "v": v, "w": [0.5, -0.5], "d": [float(ts)], "i": i and list(i), "ts": ts}


def _read(path: Path, **what: Any) -> list[dict[str, Any]]:
    rows = HoodieTable.open(path).scan(**what).to_arrow().to_pylist()
    plain = [{name: value for name, value in row.items() if not name.startswith("_hoodie_")} for row in rows]
    return sorted(plain, key=lambda row: row["id"])


@pytest.mark.parametrize(("version", "kind"), _KINDS)
def test_vectors_are_kept_by_all_writes(version: int, kind: str, tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = _make(path, _VECTORS, version, kind)
    first = [_row(1, 1, [1.0, 2.0]), _row(2, 1, None, None), _row(3, 1, [3.0, 4.0])]
    table.upsert(pa.Table.from_pylist(first, _VECTORS))
    HoodieTable.open(path).upsert(pa.Table.from_pylist([_row(1, 2, [9.0, 9.5]), _row(4, 2, None)], _VECTORS))
    HoodieTable.open(path).delete([3])
    wanted = [_row(1, 2, [9.0, 9.5]), first[1], _row(4, 2, None)]
    assert _read(path) == wanted
    assert _read(path, batch_rows=1) == wanted
    assert _read(path, columns=["id", "v"], filter="v is null") == [{"id": 2, "v": None}, {"id": 4, "v": None}]
    assert [row["id"] for row in _read(path, filter="i is not null")] == [1, 4]
    if kind == "MERGE_ON_READ":
        HoodieTable.open(path).compact()
        assert _read(path) == wanted
        assert _read(path, query_type="read_optimized") == wanted
    names = "v:VECTOR(2),w:VECTOR(2),d:VECTOR(1, DOUBLE),i:VECTOR(4, INT8)"
    for file in path.glob("*.parquet"):
        footer = pq.read_metadata(file)
        assert footer.metadata[b"hoodie.vector.columns"].decode() == names
        assert footer.schema.column(6).physical_type == "FIXED_LEN_BYTE_ARRAY"
    field = HoodieTable.open(path).scan().to_arrow().schema.field("i")
    assert field.metadata == {b"hudi_type": b"VECTOR(4, INT8)"}
    assert field.type == pa.list_(pa.field("element", pa.int8(), nullable=False))


def test_the_schema_is_javas(tmp_path: Path) -> None:
    stored = json.loads(_make(tmp_path / "t", _VECTORS).config.create_schema or "")
    vector = {
        "type": "fixed", "name": "vector_float_2", "namespace": "", "size": 8, "logicalType": "vector", "dimension": 2,
        "elementType": "FLOAT", "storageBacking": "FIXED_BYTES",
    }  # fmt: skip
    types = {field["name"]: field["type"] for field in stored["fields"]}
    assert types["v"] == ["null", vector]
    assert types["w"] == ["null", "vector_float_2"]
    assert types["i"][1]["name"] == "vector_int8_4"


@pytest.mark.parametrize(
    ("v", "problem"), [([1.0], "length is not 2"), ([1.0, 2.0, 3.0], "length is not 2"), ([1.0, None], "a null in")]
)
def test_other_vectors_are_refused(v: list[float | None], problem: str, tmp_path: Path) -> None:
    table = _make(tmp_path / "t", _VECTORS)
    schema = _VECTORS.set(1, pa.field("v", pa.list_(pa.float32())))
    with pytest.raises(InvalidQueryError, match=problem) as raised:
        table.upsert(pa.Table.from_pylist([_row(1, 1, [1.0, 2.0]), _row(2, 1, v)], schema))
    assert raised.value.where["column"] == "v"
    assert raised.value.where["rows"] == [1]


def test_a_column_of_vectors_is_added(tmp_path: Path) -> None:
    path = tmp_path / "t"
    _make(path, _VECTORS).upsert(pa.Table.from_pylist([_row(1, 1, [1.0, 2.0])], _VECTORS))
    wider = _VECTORS.append(pa.field("x", pa.list_(pa.float32(), 2)))
    HoodieTable.open(path).upsert(pa.Table.from_pylist([{**_row(2, 1, [1.0, 2.0]), "x": [7.0, 8.0]}], wider))
    assert [row["x"] for row in _read(path)] == [None, [7.0, 8.0]]


def test_vectors_inside_other_types_are_refused_by_name(tmp_path: Path) -> None:
    inner = pa.field("v", pa.list_(pa.float32()), metadata={"hudi_type": "VECTOR(2)"})
    schema = pa.schema([("id", pa.int32()), ("s", pa.struct([inner])), ("ts", pa.int64())])
    with pytest.raises(UnsupportedFeatureError, match="Vectors inside other types") as raised:
        _make(tmp_path / "t", schema)
    assert raised.value.where["column"] == "s.v"
