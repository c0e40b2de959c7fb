"""Records fit the schemas of older metadata tables, or are refused."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.writer.metadata_table.older_schemas import fit_to_schema


def test_fields_without_values_are_left_out() -> None:
    inner = pa.array(
        [{"a": 1, "b": None}, None, {"a": 2, "b": None}], pa.struct([("a", pa.int32()), ("b", pa.int32())])
    )
    array = pa.StructArray.from_arrays([inner, pa.array([True, False, True])], names=["s", "isTightBound"])
    found = fit_to_schema(array, pa.struct([("s", pa.struct([("a", pa.int32())]))]))
    assert found.to_pylist() == [{"s": {"a": 1}}, {"s": None}, {"s": {"a": 2}}]


def test_fields_with_values_are_refused() -> None:
    array = pa.array([{"a": 1, "b": 2}])
    with pytest.raises(UnsupportedFeatureError, match="no place"):
        fit_to_schema(array, pa.struct([("a", pa.int64())]))


def test_other_arrays_stay() -> None:
    array = pa.array([1])
    assert fit_to_schema(array, pa.int64()) is array
