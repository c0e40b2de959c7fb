"""Distributed writes of tables with buckets, keys that are there several times, keys spelt otherwise: the same as in
one process, step by step without Spark.
"""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="NOT TESTED: pyspark is not installed")

from hoodie_py import HoodieTable, InvalidQueryError, UnsupportedFeatureError
from tests.spark.write_engine import write_by_hand
from tests.writer.compaction_tables import QUICK, writable
from tests.writer.index.test_key_spelling import TEXTS
from tests.writer.written_tables import SCHEMA, Kind

_WRITES = ("upsert", "insert", "bulk_insert", "insert_overwrite", "insert_overwrite_table")


def _rows(numbers: range, ts: int, part: str = "p") -> pa.Table:
    made = [{"id": f"k{each}", "part": f"{part}{each % 2}", "ts": ts, "name": f"n{ts}"} for each in numbers]
    return pa.Table.from_pylist(made, SCHEMA)


def _seen(where: Path, *columns: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in HoodieTable.open(where).scan(list(columns)).to_arrow().to_pylist())


@pytest.mark.parametrize("operation", _WRITES)
@pytest.mark.parametrize("kind", [Kind(9, merge_on_read=True), Kind(6, merge_on_read=False)], ids=str)
def test_a_plain_write_goes_into_the_buckets_that_are_there(tmp_path: Path, kind: Kind, operation: str) -> None:
    buckets = {**QUICK, "hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "5"}
    for name in ("ours", "want"):
        HoodieTable.open(kind.create(tmp_path / name)).upsert(_rows(range(100), 1), buckets)
    data = pa.concat_tables([_rows(range(0, 160, 3), 2), _rows(range(30), 2, "new")])
    getattr(HoodieTable.open(tmp_path / "want"), operation)(data, QUICK)
    write_by_hand(tmp_path / "ours", [data.slice(0, 20), data.slice(20)], operation)
    assert _seen(tmp_path / "ours", *SCHEMA.names) == _seen(tmp_path / "want", *SCHEMA.names)
    groups = [
        sorted((each.partition_path, each.file_id[:8]) for each in HoodieTable.open(tmp_path / name).file_slices())
        for name in ("ours", "want")
    ]
    assert groups[0] == groups[1]
    assert len(set(groups[0])) == len(groups[0])
    with pytest.raises(InvalidQueryError, match=r"num\.buckets says 4"):
        write_by_hand(tmp_path / "ours", [data], operation, hoodie__bucket__index__num__buckets="4")
    with pytest.raises(InvalidQueryError, match="says 'SIMPLE'"):
        write_by_hand(tmp_path / "ours", [data], operation, hoodie__index__type="SIMPLE")


def test_ranges_of_hashes_are_followed(tmp_path: Path) -> None:
    for name in ("ours", "want"):
        writable("flink_mor_bucket_consistent", tmp_path / name)
    ours, want = (tmp_path / name / "flink_mor_bucket_consistent" for name in ("ours", "want"))
    known = HoodieTable.open(want).scan(["id", "name", "v", "ts", "dt"]).to_arrow().to_pylist()
    made = [{**row, "id": f"{row['id']}{more}", "ts": 99, "dt": part} for row in known for more in ("", "x") for part in
            (row["dt"], "new")]  # fmt: skip
    data = pa.Table.from_pylist(made, HoodieTable.open(want).scan(["id", "name", "v", "ts", "dt"]).to_arrow().schema)
    HoodieTable.open(want).upsert(data, {**QUICK, "hoodie.bucket.index.num.buckets": "3"})
    write_by_hand(ours, [data.slice(0, 9), data.slice(9)], hoodie__bucket__index__num__buckets="3")
    names = ("_hoodie_record_key", "_hoodie_partition_path", "ts")
    assert _seen(ours, *names) == _seen(want, *names)
    groups = [{each.file_id for each in HoodieTable.open(base).file_slices()} for base in (ours, want)]
    assert groups[0] == groups[1]
    with pytest.raises(UnsupportedFeatureError, match="consistent hashing"):
        write_by_hand(ours, [data], "insert_overwrite")


@pytest.mark.parametrize("index", ["SIMPLE", "GLOBAL_SIMPLE"])
def test_every_copy_of_a_key_is_met(tmp_path: Path, index: str) -> None:
    table = HoodieTable.open(Kind(9, merge_on_read=True).create(tmp_path))
    for ts in (1, 2, 3):
        table.insert(_rows(range(4), ts), {**QUICK, "hoodie.parquet.small.file.limit": "0"})
    write_by_hand(tmp_path, [_rows(range(2), 9)], hoodie__index__type=index)
    found = [(id_, ts) for id_, ts in _seen(tmp_path, "id", "ts") if id_ in ("k0", "k1")]
    assert found == [("k0", 9)] * 3 + [("k1", 9)] * 3
    write_by_hand(tmp_path, [_rows(range(2), 9)], "delete", hoodie__index__type=index)
    assert {id_ for (id_,) in _seen(tmp_path, "id")} == {"k2", "k3"}


@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert", "delete", "insert_overwrite"])
def test_keys_spelt_otherwise_are_refused(tmp_path: Path, operation: str) -> None:
    schema = pa.schema([("id", pa.string()), ("at", pa.timestamp("us", "UTC")), ("ts", pa.int64())])
    HoodieTable.create(tmp_path / "t", schema, record_key=["id", "at"], ordering="ts")
    rows = pa.Table.from_pylist([{"id": "a", "at": dt.datetime(2020, 1, 2, tzinfo=dt.UTC), "ts": 1}], schema)
    HoodieTable.open(tmp_path / "t").upsert(rows, {**QUICK, TEXTS: "true"})
    with pytest.raises(InvalidQueryError, match=r"2020-01-02 00:00:00\.0.*1577923200000000"):
        write_by_hand(tmp_path / "t", [rows], operation)
    write_by_hand(tmp_path / "t", [rows], **{TEXTS.replace(".", "__"): "true"})
    assert len(_seen(tmp_path / "t", "id")) == 1


def test_a_bulk_insert_stores_rows_that_are_marked_deleted(tmp_path: Path) -> None:
    schema = SCHEMA.append(pa.field("_hoodie_is_deleted", pa.bool_()))
    HoodieTable.create(tmp_path / "t", schema, record_key="id", ordering="ts", partition_by=["part"])
    data = _rows(range(4), 1).append_column(schema.field("_hoodie_is_deleted"), pa.array([True, False, None, True]))
    write_by_hand(tmp_path / "t", [data], "bulk_insert")
    assert len(_seen(tmp_path / "t", "id")) == 4
    write_by_hand(tmp_path / "t", [data], "insert")
    assert len(_seen(tmp_path / "t", "id")) == 6
