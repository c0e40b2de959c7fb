"""Texts of values as Java prints them; the floats and bytes of keys are those of delete blocks that Java wrote."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.arrow.java_text import format_bytes, format_floats, make_float_formatter

SINGLE, DOUBLE = pa.float32(), pa.float64()
ARRAYS = st.lists(st.none() | st.floats() | st.floats(-1e8, 1e8), max_size=8)


@pytest.mark.parametrize(
    ("value", "type_", "text"),
    [
        (-0.0, SINGLE, "-0.0"),
        (123456.789, SINGLE, "123456.79"),
        (0.1, SINGLE, "0.1"),
        (1e-5, SINGLE, "1.0E-5"),
        (3e10, SINGLE, "3.0E10"),
        (1.4e-45, SINGLE, "1.4E-45"),
        (1234567.891, DOUBLE, "1234567.891"),
        (5e-324, DOUBLE, "4.9E-324"),
        (1e7, DOUBLE, "1.0E7"),
        (9999999.0, DOUBLE, "9999999.0"),
        (0.001, DOUBLE, "0.001"),
        (0.000999, DOUBLE, "9.99E-4"),
        (2e23, DOUBLE, "2.0E23"),
        (float("nan"), DOUBLE, "NaN"),
        (float("-inf"), DOUBLE, "-Infinity"),
        (None, DOUBLE, None),
    ],
)
def test_floats(value: float | None, type_: pa.DataType, text: str | None) -> None:
    assert format_floats(pa.array([value], type_)).to_pylist() == [text]


@given(ARRAYS, st.sampled_from([SINGLE, DOUBLE]))
def test_arrays_have_the_texts_of_their_values(values: list[float | None], type_: pa.DataType) -> None:
    with np.errstate(over="ignore"):
        array = pa.array(
            np.array([np.nan if each is None else each for each in values]).astype(type_.to_pandas_dtype())
        )
    convert = make_float_formatter(type_)
    texts = format_floats(array).to_pylist()
    assert texts == [convert(each) for each in array.to_pylist()]
    back = np.array([float(each.replace("Infinity", "inf")) for each in texts]).astype(type_.to_pandas_dtype())
    assert np.array_equal(back, array.to_numpy(), equal_nan=True)


@given(st.lists(st.none() | st.binary(max_size=4), max_size=6), st.integers(0, 6))
def test_bytes(values: list[Any], start: int) -> None:
    for type_ in (pa.binary(), pa.large_binary()):
        found = format_bytes(pa.array(values, type_).slice(start)).to_pylist()
        assert found == [None if each is None else each.hex() for each in values[start:]]


def test_bytes_of_one_length() -> None:
    assert format_bytes(pa.array([b"\x00\xff", None], pa.binary(2))).to_pylist() == ["00ff", None]
