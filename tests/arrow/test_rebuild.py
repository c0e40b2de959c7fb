"""Lists and maps around converted values."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hoodie_py.arrow.rebuild import rebuild_list, rebuild_map


def _cast(values: pa.Array, target: pa.DataType) -> pa.Array:
    return values.cast(target)


def _add_one(values: pa.Array, target: pa.DataType) -> pa.Array:
    return pc.add(values, 1).cast(target)


@pytest.mark.parametrize("source", [pa.list_(pa.int32()), pa.large_list(pa.int32()), pa.list_(pa.int32(), 2)], ids=str)
@pytest.mark.parametrize("start", [0, 1])
def test_lists_keep_their_nulls_and_slices(source: pa.DataType, start: int) -> None:
    rows = [[1, 2], None, [3, None], [5, 6]]
    array = pa.array(rows, source).slice(start, 3)
    found = rebuild_list(array, pa.list_(pa.int64()), _cast)
    found.validate(full=True)
    assert found.to_pylist() == rows[start : start + 3]
    assert found.type == pa.list_(pa.int64())


@pytest.mark.parametrize("start", [0, 1])
def test_maps_convert_keys_and_items_each_in_their_own_way(start: int) -> None:
    rows = [[("a", 1)], None, [("b", None), ("c", 3)], []]
    target = pa.map_(pa.large_string(), pa.float64())
    array = pa.array(rows, pa.map_(pa.string(), pa.int32())).slice(start, 3)
    found = rebuild_map(array, target, _cast, _add_one)
    found.validate(full=True)
    more = [[("a", 2)], None, [("b", None), ("c", 4)], []]
    assert found.to_pylist() == more[start : start + 3]
    assert found.type == target
