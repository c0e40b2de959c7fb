"""A sketch finds all of its keys and few others."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyspark", reason="NOT TESTED: pyspark is not installed")

from hoodie_py.spark.distributed.shards import KeySketch


@given(st.lists(st.text()), st.lists(st.text()), st.lists(st.text()))
def test_every_key_is_found(one: list[str], other: list[str], absent: list[str]) -> None:
    sketch = KeySketch.unite(
        [KeySketch.from_keys(pa.array(one, pa.string())), KeySketch.from_keys(pa.array(other, pa.string()))]
    )
    asked = pa.array([*absent, *one, *other], pa.string())
    found = KeySketch.unpack(pickle.loads(pickle.dumps(sketch)).pack()).find(asked)
    assert set(found.tolist()) >= set(range(len(absent), len(asked)))
    assert KeySketch.unite([]).find(asked).tolist() == []


def test_other_keys_hardly_pass() -> None:
    sketch = KeySketch.from_keys(pa.array([f"key-{n:08}" for n in range(100_000)]))
    others = pa.array([f"key-{n:08}" for n in range(100_000, 400_000)])
    assert len(sketch.find(others)) < 6_000
    assert len(sketch.find(others.slice(299_990))) <= 10


def test_few_keys_take_few_bytes() -> None:
    assert len(KeySketch.from_keys(pa.array(["a", "b"])).pack()) < 16_000
    assert len(KeySketch.from_keys(pa.array([str(n) for n in range(3_000_000)])).pack()) < 1_100_000
