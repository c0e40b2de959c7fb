"""Columns with names of every script, from creation to compaction; names that are refused wherever they come from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import InvalidQueryError
from tests.writer.compaction_tables import QUICK

SCHEMA = pa.schema([
    ("ключ", pa.string()), ("größe", pa.int64()), ("价格", pa.float64()), ("국가", pa.string()),
    ("struct_é", pa.struct([("имя", pa.string()), ("ID", pa.int32())])),
])  # fmt: skip
META = ("commit_time", "commit_seqno", "record_key", "partition_path", "file_name")


def row(number: int, size: int = 1, **more: Any) -> dict[str, Any]:
    own = {
        "ключ": f"k{number}",
        "größe": size,
        "价格": number / 2,
        "국가": "대한",
        "struct_é": {"имя": "я", "ID": number},
    }
    return {**own, **more}


@pytest.mark.parametrize("version", [9, 6])
@pytest.mark.parametrize("table_type", ["MOR", "COW"])
def test_a_life(table_type: str, version: int, tmp_path: Path) -> None:
    table = HoodieTable.create(
        tmp_path, SCHEMA, record_key="ключ", ordering="größe", partition_by="국가", table_type=table_type,
        table_version=version, properties={"hoodie.datasource.write.hive_style_partitioning": "true"},
    )  # fmt: skip
    table.insert([row(each) for each in range(6)], options=QUICK)
    table.upsert([row(1, 2, ранг=7), row(9, 1, ранг=8)], options=QUICK)
    table.delete(["k2"], options=QUICK)
    table.delete("`größe` = 1 and `struct_é`.`имя` = 'я' and ключ = 'k3'", options=QUICK)
    if table_type == "MOR":
        table.compact(options=QUICK)
    found = HoodieTable.open(tmp_path).scan(["ключ", "ранг", "struct_é"], filter="`größe` >= 2 or `ранг` is not null")
    rows = sorted(found.to_arrow().to_pylist(), key=lambda each: each["ключ"])
    assert [(each["ключ"], each["ранг"], each["struct_é"]["ID"]) for each in rows] == [("k1", 7, 1), ("k9", 8, 9)]
    assert table.scan(filter="`국가` = '대한'").count() == 5
    assert (tmp_path / "국가=대한").is_dir()


def create(base: Path, schema: pa.Schema) -> HoodieTable:
    return HoodieTable.create(base, schema, record_key="id", ordering="ts")


@pytest.mark.parametrize(
    "bad",
    [
        ("ID", pa.string()), ("a-b", pa.string()), ("_hoodie_commit_time", pa.int64()),
        ("_hoodie_commit_time", pa.string()), ("_hoodie_operation", pa.int32()), ("_HOODIE_record_key", pa.string()),
        ("s", pa.struct([("a", pa.int32()), ("A", pa.int32())])),
        ("s", pa.list_(pa.struct([("x", pa.struct([("b", pa.int32()), ("B", pa.int32())]))]))),
        ("s", pa.map_(pa.string(), pa.struct([("a b", pa.int32())]))),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("added", [False, True])
def test_bad_names_at_creation_and_later(bad: tuple[str, pa.DataType], added: bool, tmp_path: Path) -> None:
    good = pa.schema([("id", pa.string()), ("ts", pa.int64())])
    both = good.append(pa.field(*bad))
    if not added:
        with pytest.raises(InvalidQueryError) as refused:
            create(tmp_path / "t", both)
        assert not (tmp_path / "t" / ".hoodie").exists()
    else:
        table = create(tmp_path / "t", good)
        table.upsert([{"id": "a", "ts": 1}], options=QUICK)
        with pytest.raises(InvalidQueryError) as refused:
            table.upsert(pa.Table.from_pylist([{"id": "b", "ts": 2}], both), options=QUICK)
        assert table.refresh().scan().count() == 1
    assert "column" in str(refused.value)


def test_fields_added_to_a_struct(tmp_path: Path) -> None:
    old = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("s", pa.struct([("a", pa.int32())]))])
    table = create(tmp_path, old)
    table.upsert([{"id": "a", "ts": 1, "s": {"a": 1}}], options=QUICK)
    for name in ("A", "a b"):
        with pytest.raises(InvalidQueryError):
            table.upsert([{"id": "a", "ts": 1, "s": {"a": 1, name: 2}}], options=QUICK)
    table.upsert([{"id": "a", "ts": 1, "s": {"a": 1, "_hoodie_commit_time": "mine", "ключ": 3}}], options=QUICK)
    assert table.scan(["s"]).to_arrow().to_pylist() == [{"s": {"a": 1, "_hoodie_commit_time": "mine", "ключ": 3}}]


def test_rows_of_a_scan_may_be_written_again(tmp_path: Path) -> None:
    table = create(tmp_path / "a", pa.schema([("id", pa.string()), ("ts", pa.int64())]))
    table.upsert([{"id": "a", "ts": 1}, {"id": "b", "ts": 1}], options=QUICK)
    rows = table.scan().to_arrow()
    assert {f"_hoodie_{each}" for each in META} < set(rows.column_names)
    table.upsert(rows, options=QUICK)
    copy = create(tmp_path / "b", rows.schema)
    copy.insert(rows, options=QUICK)
    assert copy.schema.names == table.schema.names
    assert copy.scan(["id"]).to_arrow().num_rows == 2
    assert table.delete(table.scan(["_hoodie_record_key"]).to_arrow(), options=QUICK).rows_deleted == 2
