"""Batches of a file under the names and types of a read."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hoodie_py.errors import InvalidTableError, UnsupportedFeatureError
from hoodie_py.reader.schema_evolution.by_id import BlockMapper, ColumnMapper, map_array
from hoodie_py.reader.schema_evolution.file_mappings import ELEMENT, VALUE, FileMappings, Source

INNER_OLD = pa.struct([("x", pa.int32()), ("gone", pa.string()), ("again", pa.int32())])
INNER_NEW = pa.struct([("added", pa.int32()), ("y", pa.int64()), ("again", pa.string())])
INNER = {"y": Source("x"), "again": Source(None)}
OLD = [{"x": 1, "gone": "g", "again": 5}, None, {"x": None, "gone": None, "again": None}]
NEW = [{"added": None, "y": 1, "again": None}, None, {"added": None, "y": None, "again": None}]


def test_structs_lists_and_maps() -> None:
    assert map_array(pa.array(OLD, INNER_OLD), INNER_NEW, INNER).to_pylist() == NEW
    lists = pa.array([OLD, None, [], OLD[1:]], pa.list_(INNER_OLD))
    mapped = map_array(lists, pa.list_(INNER_NEW), {ELEMENT: Source(ELEMENT, INNER)})
    assert mapped.to_pylist() == [NEW, None, [], NEW[1:]]
    maps = pa.array([[("k", OLD[0]), ("l", None)], None, []], pa.map_(pa.string(), INNER_OLD))
    target = pa.map_(pa.string(), INNER_NEW)
    mapped = map_array(maps, target, {VALUE: Source(VALUE, INNER)})
    assert mapped.type == target
    assert mapped.to_pylist() == [[("k", NEW[0]), ("l", None)], None, []]
    for start in range(3):
        assert map_array(lists.slice(start), pa.list_(INNER_NEW), {ELEMENT: Source(ELEMENT, INNER)}).to_pylist() == [
            NEW, None, [], NEW[1:],
        ][start:]  # fmt: skip
        found = map_array(maps.slice(start), target, {VALUE: Source(VALUE, INNER)})
        assert found.to_pylist() == [[("k", NEW[0]), ("l", None)], None, []][start:]


def test_batches_have_the_columns_that_the_file_has() -> None:
    schema = pa.schema([("new", pa.int64()), ("swap", pa.string()), ("other", pa.string()), ("added", pa.int32())])
    mapper = ColumnMapper({"new": Source("old"), "swap": Source("other"), "other": Source("swap")}, schema)
    batch = pa.RecordBatch.from_pydict({"swap": ["s"], "other": ["o"], "old": pa.array([1], pa.int32())})
    assert mapper.map_batch(batch).to_pylist() == [{"new": 1, "swap": "o", "other": "s"}]
    assert mapper.list_stored_names(schema.names) == ["old", "other", "swap", "added"]
    assert mapper.is_same("swap", batch.schema)
    assert not mapper.is_same("new", batch.schema)
    assert mapper.map_batch(batch.select([])).num_rows == 1


def test_a_column_that_was_dropped_and_added_again_is_not_there() -> None:
    mapper = ColumnMapper({"a": Source(None)}, pa.schema([("a", pa.string())]))
    assert mapper.map_batch(pa.RecordBatch.from_pydict({"a": [1, 2]})).num_columns == 0
    assert mapper.list_stored_names(["a"]) == []


def test_declared_times_go_by_the_names_in_the_file() -> None:
    schema = pa.schema([("t", pa.timestamp("us")), ("s", pa.struct([("u", pa.timestamp("us"))]))])
    mapper = ColumnMapper({"t": Source(None), "s": Source("r", {"u": Source("v")})}, schema)
    assert mapper.rename_types(schema) == pa.schema([("r", pa.struct([("v", pa.timestamp("us"))]))])
    assert mapper.rename_types(None) is None


def test_blocks_of_one_version_share_a_mapper() -> None:
    mappings = FileMappings((0, 20260101000000000), ({"a": Source("b")}, {}))
    mapper = BlockMapper(mappings, pa.schema([("a", pa.int32())]), None)
    assert mapper.find("20250101000000000") is mapper.find("20250202000000000")
    assert [mapper.find(f"2026010100000000{number}")[1] for number in (0, 1)] == [["a"], ["a"]]
    assert mapper.find("1")[1] == ["b"]
    with pytest.raises(InvalidTableError):
        mapper.find("")


def test_an_unknown_type_change_names_the_column() -> None:
    mapper = ColumnMapper({}, pa.schema([("a", pa.int32())]))
    with pytest.raises(UnsupportedFeatureError) as caught:
        mapper.map_batch(pa.RecordBatch.from_pydict({"a": ["x"]}))
    assert caught.value.where["column"] == "a"
