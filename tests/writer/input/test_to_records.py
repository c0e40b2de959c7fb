"""Tests of records made of what a caller hands over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import InvalidQueryError, UnsupportedFeatureError
from hoodie_py.table.snapshot import Snapshot, open_snapshot
from hoodie_py.writer.input.to_records import make_records
from hoodie_py.writer.records import WriteOperation, WriteRecords

_SCHEMA = pa.schema([("id", pa.int32()), ("ts", pa.int64()), ("city", pa.string()), ("op", pa.string())])
_DELETE = WriteOperation.DELETE
_BY_AVRO = {"hoodie.datasource.write.row.writer.enable": "false"}


def _made(folder: Path, schema: pa.Schema = _SCHEMA, **arguments: Any) -> Snapshot:
    chosen = {"record_key": "id", "ordering": "ts", "partition_by": "city"} | arguments
    HoodieTable.create(folder / "t", schema, **chosen)
    return open_snapshot(str(folder / "t"))


def _upserted(data: Any, snapshot: Snapshot, **options: str) -> WriteRecords:
    return make_records(data, snapshot, options, WriteOperation.UPSERT)[0]


def _listed(column: pa.ChunkedArray | None) -> list[Any] | None:
    return None if column is None else list(column.to_pylist())


def test_rows_have_keys_paths_and_ordering(tmp_path: Path) -> None:
    rows = [{"id": 1, "ts": 5, "city": "sf", "op": "x"}, {"id": 2, "ts": None, "city": None}]
    records = _upserted(rows, _made(tmp_path))
    assert records.rows.schema.equals(_SCHEMA)
    assert _listed(records.keys) == ["1", "2"]
    assert _listed(records.partition_paths) == ["sf", "__HIVE_DEFAULT_PARTITION__"]
    assert [_listed(each) for each in records.ordering] == [[5, None]]
    assert records.deletes is None


def test_commit_time_needs_no_ordering(tmp_path: Path) -> None:
    snapshot = _made(tmp_path, merge_mode="COMMIT_TIME_ORDERING")
    assert _upserted([{"id": 1, "ts": 5, "city": "sf", "op": "x"}], snapshot).ordering == ()


def test_marked_rows_are_deletes(tmp_path: Path) -> None:
    flagged = _SCHEMA.append(pa.field("_hoodie_is_deleted", pa.bool_()))
    marks = {"hoodie.record.merge.property.hoodie.payload.delete.field": "op",
             "hoodie.record.merge.property.hoodie.payload.delete.marker": "D"}  # fmt: skip
    snapshot = _made(tmp_path, flagged, properties=marks)
    columns = {"id": [1, 2, 3, 4], "ts": [1] * 4, "city": ["sf"] * 4, "op": ["D", "I", None, "d"]}
    rows = pa.table(columns).set_column(0, "id", pa.array(columns["id"], pa.int32()))
    with_flag = rows.append_column("_hoodie_is_deleted", pa.array([False, True, None, False]))
    assert _listed(_upserted(with_flag, snapshot).deletes) == [True, True, False, False]
    for options, expected in (
        ({}, None),
        (_BY_AVRO, [True, True, False, False]),
    ):
        bulk = make_records(with_flag, snapshot, options, WriteOperation.BULK_INSERT)[0]
        assert _listed(bulk.deletes) == expected
    told = with_flag.append_column("_hoodie_operation", pa.array(["I", "I", "D", "I"]))
    bulk = make_records(told, snapshot, {}, WriteOperation.BULK_INSERT)[0]
    assert _listed(bulk.deletes) == [False, False, True, False]


def test_operations_mark_deletes_and_are_not_stored(tmp_path: Path) -> None:
    rows = pa.table({
        "id": pa.array([1, 2, 3, 4], pa.int32()), "ts": [1] * 4, "city": ["sf"] * 4, "op": ["x"] * 4,
        "_hoodie_operation": ["I", "-U", "U", "D"],
    })  # fmt: skip
    records = _upserted(rows, _made(tmp_path))
    assert _listed(records.deletes) == [False, True, False, True]
    assert records.rows.column_names == _SCHEMA.names


def test_rows_to_delete_bring_their_keys_and_partitions(tmp_path: Path) -> None:
    snapshot = _made(tmp_path)
    bare = make_records([{"id": 1, "other": "x"}], snapshot, {}, _DELETE)[0]
    assert (_listed(bare.keys), bare.partition_paths, bare.ordering) == (["1"], None, ())
    full = make_records([{"city": "sf", "ts": 4, "id": 1}], snapshot, {}, _DELETE)[0]
    assert (_listed(full.partition_paths), full.ordering) == (["sf"], ())
    assert _listed(full.deletes) == [True]


@pytest.mark.parametrize("keys", [[1, 2], (1, 2), pa.array([1, 2]), pa.chunked_array([[1], [2]])])
def test_keys_alone_are_taken(keys: Any, tmp_path: Path) -> None:
    records, _ = make_records(keys, _made(tmp_path), {}, _DELETE)
    assert (_listed(records.keys), records.partition_paths, _listed(records.deletes)) == (
        ["1", "2"],
        None,
        [True, True],
    )


def test_keys_of_several_fields_are_texts(tmp_path: Path) -> None:
    snapshot = _made(tmp_path, record_key=["id", "op"], partition_by=())
    records, _ = make_records(["id:1,op:x"], snapshot, {}, _DELETE)
    assert (_listed(records.keys), _listed(records.partition_paths)) == (["id:1,op:x"], [""])
    with pytest.raises(InvalidQueryError, match="as texts or as rows"):
        make_records([1], snapshot, {}, _DELETE)


def test_no_keys_are_no_records(tmp_path: Path) -> None:
    assert len(make_records([], _made(tmp_path), {}, _DELETE)[0]) == 0


def test_keys_of_another_type_are_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidQueryError, match="cannot be stored as int32") as raised:
        make_records([1, "x"], _made(tmp_path), {}, _DELETE)
    assert raised.value.where["rows"] == [1]


def test_what_a_scan_gave_can_be_deleted_by_its_meta_columns(tmp_path: Path) -> None:
    rows = pa.table({"_hoodie_record_key": ["1"], "_hoodie_partition_path": ["sf"]})
    records, _ = make_records(rows, _made(tmp_path), {}, _DELETE)
    assert (_listed(records.keys), _listed(records.partition_paths)) == (["1"], ["sf"])


def test_keys_of_times_in_milliseconds_are_refused(tmp_path: Path) -> None:
    HoodieTable.create(tmp_path / "t", pa.schema([("at", pa.timestamp("us", "UTC"))]), record_key="at")
    path = tmp_path / "t" / ".hoodie" / "hoodie.properties"
    path.write_text(path.read_text().replace("timestamp-micros", "timestamp-millis"))
    rows = pa.table({"at": pa.array([1000], pa.timestamp("us", "UTC"))})
    for operation in (WriteOperation.UPSERT, _DELETE):
        with pytest.raises(UnsupportedFeatureError, match=r"timestamp\[ms"):
            make_records(rows, open_snapshot(str(tmp_path / "t")), {}, operation)


def test_rows_without_keys_are_refused(tmp_path: Path) -> None:
    snapshot = _made(tmp_path)
    with pytest.raises(InvalidQueryError, match="record key field 'id' is not in the rows"):
        make_records([{"city": "sf"}], snapshot, {}, _DELETE)
    with pytest.raises(InvalidQueryError, match="null or empty"):
        _upserted([{"id": None, "ts": 1, "city": "sf", "op": "x"}], snapshot)
