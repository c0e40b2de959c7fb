"""Arrow's functions called by name, beside ``pyarrow.compute``."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hoodie_py.arrow.compute import call, cast, index_in, keep_where, take

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
from hoodie_py.arrow import compute as kernels
assert kernels._functions is pyarrow.compute
assert kernels.take(pa.array([1, 2]), pa.array([1])).to_pylist() == [2]
assert kernels.cast(pa.array([1]), pa.string()).to_pylist() == ["1"]
assert kernels.index_in(pa.array([1]), pa.array([0, 1])).to_pylist() == [1]
"""
    subprocess.run([sys.executable, "-c", script], check=True)
