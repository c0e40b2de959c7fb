"""Print values as Java does: floats (``Float.toString``, ``Double.toString``), bytes as hex (Hudi ``StringUtils``).

Floats have the fewest digits that give the same value, as in Java 19 and later. Older JVMs print a few values with more
digits (``java_floats``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import from_numpy, is_valid, make_bitmap
from hoodie_py.arrow.compute import call, cast, take

_LEAST_PLAIN, _GREATEST_PLAIN = 1e-3, 1e7  # values outside are printed with an exponent
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)


def format_floats(values: pa.Array) -> pa.Array:
    """Return the text of every float32 or float64; null stays null."""
    texts = cast(values, pa.string())  # between the bounds Arrow prints Java's text, except for a missing ".0"
    whole = call("match_substring_regex", texts, options=_find_whole())
    texts = call("if_else", whole, call("binary_join_element_wise", texts, pa.scalar(".0"), pa.scalar("")), texts)
    size = np.abs(np.asarray(values.to_numpy(zero_copy_only=False), np.float64))
    odd = is_valid(values) & ~((size >= _LEAST_PLAIN) & (size < _GREATEST_PLAIN))
    if not odd.any():
        return texts
    at = np.flatnonzero(odd)
    convert = make_float_formatter(values.type)
    made = pa.array([convert(each) for each in take(values, from_numpy(at)).to_pylist()], pa.string())
    # Arrow cannot assign to single places: append the new texts, then gather.
    back = np.arange(len(values))
    back[at] = len(values) + np.arange(len(at))
    return take(pa.concat_arrays([texts, made]), from_numpy(back))


def make_float_formatter(type_: pa.DataType) -> Callable[[float], str]:
    """Return a function that prints one value of float32 or float64."""
    kind: Any = np.float32 if pa.types.is_float32(type_) else np.float64

    def convert(value: float) -> str:
        if math.isnan(value):
            return "NaN"
        if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        sign = "-" if math.copysign(1, value) < 0 else ""
        if value == 0:
            return sign + "0.0"
        mantissa, exponent_text = np.format_float_scientific(kind(abs(value)), unique=True, trim="-").split("e")
        # Java prints at least two digits, and takes the nearest text of two.
        if "." not in mantissa:
            nearest, nearest_exponent = np.format_float_scientific(kind(abs(value)), 1, unique=False).split("e")
            if kind(f"{nearest}e{nearest_exponent}") == kind(abs(value)):
                mantissa, exponent_text = nearest.removesuffix("0"), nearest_exponent
        digits, exponent = mantissa.replace(".", ""), int(exponent_text)
        if not -3 <= exponent < 7:
            return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"
        if exponent < 0:
            return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
        digits = digits.ljust(exponent + 1, "0")
        return f"{sign}{digits[: exponent + 1]}.{digits[exponent + 1 :] or '0'}"

    return convert


def format_bytes(values: pa.Array) -> pa.Array:
    """Return every binary value in hex, two lower-case digits a byte; null stays null."""
    large = cast(values, pa.large_binary())
    if not len(large):
        return pa.array([], pa.string())
    _, offset_buffer, data_buffer = large.buffers()
    offsets = np.frombuffer(offset_buffer, np.int64, len(large) + 1, 8 * large.offset)
    base, size = int(offsets[0]), int(offsets[-1] - offsets[0])
    octets = np.frombuffer(data_buffer, np.uint8, size, base) if size else np.empty(0, np.uint8)
    digits = _HEX[np.stack([octets >> 4, octets & 15], axis=1)]
    buffers = [pa.py_buffer(2 * (offsets - base)), pa.py_buffer(np.ascontiguousarray(digits))]
    texts = pa.LargeStringArray.from_buffers(len(large), *buffers, make_bitmap(is_valid(large)))
    return cast(texts, pa.string())


def _find_whole() -> Any:
    """Return the options that match texts of whole numbers."""
    import pyarrow.compute as pc

    return pc.MatchSubstringOptions(r"^-?[0-9]+$")
