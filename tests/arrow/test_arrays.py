"""NumPy to Arrow and back, against pyarrow's own conversions."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.arrow.arrays import from_numpy, from_texts, is_valid, make_empty_batch, to_booleans, to_numbers

DTYPES = ("int8", "uint8", "int32", "int64", "uint64", "bool")
FIXED = (pa.int8(), pa.int32(), pa.uint32(), pa.int64(), pa.float32(), pa.float64())


@given(st.lists(st.tuples(st.integers(0, 100), st.booleans()), max_size=40), st.sampled_from(DTYPES))
def test_numpy_to_arrow(rows: list[tuple[int, bool]], dtype: str) -> None:
    values = np.array([value for value, _ in rows], dtype)
    missing = np.array([gone for _, gone in rows], bool)
    for mask in (None, missing):
        found = from_numpy(values, mask)
        found.validate(full=True)
        assert found.equals(pa.array(values, mask=mask))
    assert from_numpy(values[::2]).equals(pa.array(values[::2]))


@given(
    st.lists(st.none() | st.integers(0, 100)),
    st.sampled_from(FIXED),
    st.integers(0, 9),
    st.integers(-1, 3),
)
def test_numbers_of_arrow(values: list[int | None], kind: pa.DataType, offset: int, null: int) -> None:
    array = pa.array(values, kind).slice(offset)
    null = abs(null) if pa.types.is_unsigned_integer(kind) else null
    found = to_numbers(array, null)
    assert found.dtype == np.dtype(kind.to_pandas_dtype())
    assert found.tolist() == [null if value is None else value for value in values[offset:]]
    assert is_valid(array).tolist() == [value is not None for value in values[offset:]]


@given(st.lists(st.none() | st.text()))
def test_texts(values: list[str | None]) -> None:
    found = from_texts(values, pa.string())
    found.validate(full=True)
    assert found.equals(pa.array(values, pa.string()))
    octets = [None if value is None else value.encode() for value in values]
    assert from_texts(octets, pa.binary()).equals(pa.array(octets, pa.binary()))


def test_a_batch_without_rows() -> None:
    schema = pa.schema([("a", pa.list_(pa.struct([("b", pa.string())]))), ("c", pa.decimal128(5, 2))])
    assert make_empty_batch(schema).equals(pa.RecordBatch.from_pylist([], schema))


@given(st.lists(st.none() | st.booleans()), st.integers(0, 20))
def test_booleans_of_arrow(values: list[bool | None], offset: int) -> None:
    found = to_booleans(pa.array(values, pa.bool_()).slice(offset))
    assert found.dtype == np.bool_
    assert found.tolist() == [bool(value) for value in values[offset:]]


def test_nothing_but_nulls() -> None:
    assert to_numbers(pa.nulls(3, pa.int64()), -1).tolist() == [-1] * 3
    assert to_booleans(pa.nulls(3, pa.bool_())).tolist() == [False] * 3
    assert is_valid(pa.nulls(2)).tolist() == [False] * 2


@pytest.mark.parametrize("name", ["event_time_updates_mor_v9", "basic_mor_v9_part"])
def test_reading_a_table_does_not_import_pandas(corpus: Callable[[str], Path], name: str) -> None:
    script = """
import sys
from hoodie_py import HoodieTable
scan = HoodieTable.open(sys.argv[1]).scan()
rows = sum(batch.num_rows for batch in scan.to_batches())
assert rows == scan.count() > 0
assert HoodieTable.open(sys.argv[1]).scan(filter="_hoodie_record_key = 'none'").count() == 0
assert "pandas" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", script, str(corpus(name))], check=True)


def test_compacting_a_table_does_not_import_pandas(corpus: Callable[[str], Path], tmp_path: Path) -> None:
    script = """
import sys
from hoodie_py import HoodieTable
assert HoodieTable.open(sys.argv[1]).compact().rows_written > 0
assert "pandas" not in sys.modules
"""
    shutil.copytree(corpus("event_time_updates_mor_v9"), tmp_path / "table")
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "table")], check=True)
