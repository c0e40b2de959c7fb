"""Tests of what a write carries from step to step."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from hoodie_py.writer.records import TaggedRecords, WriteOperation, WriteRecords


def _records() -> WriteRecords:
    return WriteRecords(
        rows=pa.table({"id": ["a", "b", "c"], "n": [1, 2, 3]}),
        keys=pa.chunked_array([["a", "b"], ["c"]]),
        partition_paths=pa.chunked_array([["x", "x", "y"]]),
        deletes=pa.chunked_array([[False, True, False]]),
        ordering=(pa.chunked_array([[10, 20, 30]]),),
    )


def test_every_column_is_taken() -> None:
    taken = _records().take(np.array([2, 0, 2]))
    assert len(taken) == 3
    assert taken.rows.to_pydict() == {"id": ["c", "a", "c"], "n": [3, 1, 3]}
    assert taken.keys.to_pylist() == ["c", "a", "c"]
    assert taken.partition_paths is not None
    assert taken.partition_paths.to_pylist() == ["y", "x", "y"]
    assert taken.deletes is not None
    assert taken.deletes.to_pylist() == [False, False, False]
    assert [each.to_pylist() for each in taken.ordering] == [[30, 10, 30]]


def test_deletes_by_bare_keys_have_no_other_columns() -> None:
    bare = WriteRecords(pa.table({}), pa.chunked_array([["a", "b"]]), None)
    taken = bare.take(pa.array([1]))
    assert (len(bare), len(taken), taken.keys.to_pylist()) == (2, 1, ["b"])
    assert (taken.partition_paths, taken.deletes, taken.ordering) == (None, None, ())


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="different lengths"):
        WriteRecords(pa.table({"id": ["a"]}), pa.chunked_array([["a", "b"]]), None)
    with pytest.raises(ValueError, match="different lengths"):
        TaggedRecords(_records(), pa.array(["f"]), pa.array(["1"]), np.zeros(1, np.int64))


def test_operations_have_the_names_of_hudi() -> None:
    assert WriteOperation("insert_overwrite_table").name == "INSERT_OVERWRITE_TABLE"
    assert {str(each) for each in WriteOperation} == {each.name.lower() for each in WriteOperation}
