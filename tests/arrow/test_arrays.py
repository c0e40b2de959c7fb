"""NumPy to Arrow and back, against pyarrow's own conversions.

Arrow's functions called by name, beside ``pyarrow.compute``.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.arrow.arrays import (
    call,
    cast,
    from_numpy,
    from_texts,
    index_in,
    is_valid,
    keep_where,
    make_empty_batch,
    take,
    to_booleans,
    to_numbers,
)

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


TEXTS = pa.array(["b", None, "a", "b"])
BATCH = pa.record_batch({"n": [1, 2, 3, 4], "t": TEXTS})


def test_they_are_the_functions_of_pyarrow_compute() -> None:
    mask, places = pa.array([True, False, None, True]), pa.array([3, 0, 0])
    assert keep_where(TEXTS, mask).equals(pc.filter(TEXTS, mask))
    assert keep_where(BATCH, mask).equals(BATCH.filter(mask))
    assert take(TEXTS, places).equals(TEXTS.take(places))
    assert take(BATCH, places).equals(BATCH.take(places))
    assert index_in(TEXTS, pa.array(["a", "b"])).equals(pc.index_in(TEXTS, pa.array(["a", "b"])))
    assert call("equal", TEXTS, pa.scalar("b")).equals(pc.equal(TEXTS, "b"))
    assert call("array_sort_indices", TEXTS).equals(pc.sort_indices(TEXTS))
    assert call("dictionary_encode", TEXTS).equals(TEXTS.dictionary_encode())


@pytest.mark.parametrize("type_", [pa.int8(), pa.float64(), pa.string()])
def test_a_cast_is_pyarrows(type_: pa.DataType) -> None:
    assert cast(BATCH["n"], type_).equals(BATCH["n"].cast(type_))
    assert cast(pa.scalar(7), type_).equals(pa.scalar(7).cast(type_))


def test_nothing_is_lost_or_made_up() -> None:
    with pytest.raises(pa.ArrowInvalid):
        cast(pa.array([300]), pa.int8())
    with pytest.raises(pa.ArrowIndexError):
        take(TEXTS, pa.array([4]))
    with pytest.raises(pa.ArrowKeyError):
        call("no such function", TEXTS)


def test_without_the_private_module_the_public_one_does() -> None:
    script = """
import sys
import pyarrow as pa
import pyarrow.compute
del pa._compute
sys.modules["pyarrow._compute"] = None
from hoodie_py.arrow import arrays as kernels
assert kernels._functions is pyarrow.compute
assert kernels.take(pa.array([1, 2]), pa.array([1])).to_pylist() == [2]
assert kernels.cast(pa.array([1]), pa.string()).to_pylist() == ["1"]
assert kernels.index_in(pa.array([1]), pa.array([0, 1])).to_pylist() == [1]
"""
    subprocess.run([sys.executable, "-c", script], check=True)
