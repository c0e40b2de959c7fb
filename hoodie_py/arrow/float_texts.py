"""Convert columns of floats to strings, doubles and decimals as Java does: through the text of each float."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import is_valid, make_bitmap, to_numbers
from hoodie_py.arrow.compute import cast, take
from hoodie_py.arrow.java_floats import format_java_float

_LEAST_SHORT, _MOST_SHORT = 2.0**-20, 2.0**25  # between them, Java's text of a float32 is the shortest one


def print_floats(array: pa.Array) -> pa.Array:
    """Print floats of any width; each distinct value is formatted once."""
    return convert_distinct(array, pa.string(), lambda text: text)


def convert_distinct(array: pa.Array, target: pa.DataType, convert: Callable[[str], Any]) -> pa.Array:
    """Convert the text of each distinct float with a function, whose errors are passed on."""
    if pa.types.is_float16(array.type):
        array = array.cast(pa.float32())
    single = pa.types.is_float32(array.type)
    bits = array.view(pa.int32() if single else pa.int64())  # distinguishes -0.0 from 0.0
    coded = bits.dictionary_encode()
    texts = [format_java_float(value, single) for value in coded.dictionary.view(array.type).to_pylist()]
    return take(pa.array([convert(text) for text in texts], target), coded.indices)


def widen_floats(array: pa.Array) -> pa.Array:
    """Return float32 values as the doubles that their texts stand for: 1.1 stays 1.1."""
    numbers = np.abs(to_numbers(array))
    long = np.flatnonzero((numbers >= _MOST_SHORT) | ((numbers < _LEAST_SHORT) & (numbers > 0)))
    # Arrow prints the shortest text, which is Java's for most values; only the others are printed one by one.
    widened = cast(cast(array, pa.string()), pa.float64())
    if not len(long):
        return widened
    values = to_numbers(widened).copy()
    some = take(array, pa.array(long))
    values[long] = to_numbers(convert_distinct(some, pa.float64(), float))
    valid = make_bitmap(is_valid(array)) if array.null_count else None
    return pa.Array.from_buffers(pa.float64(), len(array), [valid, pa.py_buffer(values)])
