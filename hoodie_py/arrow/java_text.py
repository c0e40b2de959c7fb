"""Print values as Java does: floats (``Float.toString``, ``Double.toString``), bytes as hex (Hudi ``StringUtils``).

Floats have the fewest digits that give the same value, as in Java 19 and later, or the digits of Java up to version 18,
on which Spark 3 runs: a few values have more (JDK-4511638). The digits matter beyond strings: Hudi converts floats to
doubles and decimals through their texts. 3.4E10 as a float prints as 3.3999999E10, and becomes the double 33999999000.

The older rules (``Float.toString``, ``Double.toString`` of JDK 8 to 18): a whole number is rounded to the digits that
distinguish floats of its size. For other numbers, digits are generated one by one until the rest is less than the gap
to the next float; the last digit is rounded. A text with an exponent has at least two digits.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import call, cast, from_numpy, is_valid, make_bitmap, take, to_numbers

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


_FRACTION_BITS = 52  # of a double; a float's bits are shifted to the same place
_BIAS = 1023
_MOST_WHOLE = 62  # a whole number of more bits does not fit Java's long, and is printed like a fraction
_LONG_BITS = 64
_FEWEST_FIXED, _MOST_FIXED = -3, 8  # exponents between them need no E


def format_java_float(value: float, single: bool) -> str:
    """Print a float as Java's Float.toString (``single``) or Double.toString does: 1.0, 1.0E10, NaN, -Infinity."""
    if value != value:
        return "NaN"
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    if math.isinf(value):
        return f"{sign}Infinity"
    if not value:
        return f"{sign}0.0"
    digits, point = _find_digits(*_split_float(abs(value), single))
    if _FEWEST_FIXED < point < _MOST_FIXED:
        if point <= 0:
            return f"{sign}0.{'0' * -point}{digits}"
        whole, fraction = digits[:point].ljust(point, "0"), digits[point:]
        return f"{sign}{whole}.{fraction or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{point - 1}"


def _split_float(value: float, single: bool) -> tuple[int, int, int]:
    """Return the fraction with its leading one, the power of two of that one, and the number of significant bits."""
    if single:
        bits = int.from_bytes(struct.pack(">f", value), "big")
        exponent, fraction, width = bits >> 23, (bits & (1 << 23) - 1) << _FRACTION_BITS - 23, 24
        power = exponent - 127
    else:
        bits = int.from_bytes(struct.pack(">d", value), "big")
        exponent, fraction, width = bits >> 52, bits & (1 << 52) - 1, 53
        power = exponent - _BIAS
    if exponent:
        return fraction | 1 << _FRACTION_BITS, power, width
    shift = _FRACTION_BITS + 1 - fraction.bit_length()  # a subnormal number has fewer significant bits
    return fraction << shift, power + 1 - shift, width - shift


def _find_digits(fraction: int, power: int, width: int) -> tuple[str, int]:
    """Return the digits, and the place of the decimal point relative to the first one."""
    zeros = (fraction & -fraction).bit_length() - 1
    bits = _FRACTION_BITS + 1 - zeros
    if power <= _MOST_WHOLE and bits - power - 1 <= 0 and bits < _LONG_BITS:
        whole = fraction << power - _FRACTION_BITS if power >= _FRACTION_BITS else fraction >> _FRACTION_BITS - power
        return _print_whole(whole, _count_insignificant(power - width - 1) if power > width else 0)
    return _make_digits(fraction, power, width, bits)


def _count_insignificant(power: int) -> int:
    """Return how many trailing digits of a whole number are smaller than a gap of two to the ``power``."""
    return len(str(1 << power)) - 1 if power > 1 else 0


def _print_whole(whole: int, insignificant: int) -> tuple[str, int]:
    unit = 10**insignificant
    kept, rest = divmod(whole, unit)
    text = str(kept + (insignificant > 0 and rest >= unit >> 1))
    return text.rstrip("0"), len(text) + insignificant


def _make_digits(fraction: int, power: int, width: int, bits: int) -> tuple[str, int]:
    """Generate digits of ``value / scale`` while the rest is at least ``gap``, all scaled by a power of two."""
    exponent = _estimate_exponent(fraction, power)
    tiny = max(0, bits - power - 1)
    fives, scale_fives = max(0, -exponent), max(0, exponent)
    twos = fives + tiny + power
    scale_twos = scale_fives + tiny
    gap_twos = twos - width
    twos -= bits - 1
    common = min(twos, scale_twos)
    shifted = False
    twos, scale_twos, gap_twos = twos - common, scale_twos - common, gap_twos - common - (bits == 1)
    if gap_twos < 0:
        twos, scale_twos, gap_twos = twos - gap_twos, scale_twos - gap_twos, 0
    most = _find_most(max(_count_bits(bits + twos, fives), _count_bits(scale_twos + 1, scale_fives + 1)))
    value = (fraction >> _FRACTION_BITS + 1 - bits) * 5**fives << twos
    scale = 5**scale_fives << scale_twos
    gap = 5**fives << gap_twos
    tens = scale * 10
    digits: list[int] = []
    low = high = False
    while not (low or high):
        digit, value = divmod(value, scale)
        value, gap = value * 10, _overflow(gap * 10, most)
        if most is None:
            low, high = value < gap, value + gap >= tens
        elif gap > 0 or not (digits or shifted):
            low, high = value < gap, _overflow(value + gap, most) > tens
        else:
            low = high = True
        if digits or digit or high:
            digits.append(digit)
            first = len(digits) == 1 and not shifted
        else:
            exponent -= 1
            shifted = first = True
        if first and not _FEWEST_FIXED <= exponent < _MOST_FIXED:
            low = high = False
    if high and (not low or value * 2 > tens or (value * 2 == tens and digits[-1] % 2)):
        return _round_up(digits, exponent + 1)
    return "".join(map(str, digits)), exponent + 1


def _round_up(digits: list[int], point: int) -> tuple[str, int]:
    text = str(int("".join(map(str, digits))) + 1).rjust(len(digits), "0")
    return text[: len(digits)].rstrip("0") or "0", point + len(text) - len(digits)


def _count_bits(twos: int, fives: int) -> int:
    return twos + ((5**fives).bit_length() if fives else 0)


def _find_most(bits: int) -> int | None:
    """Return the limit at which the integers of Java's digit loop overflow; None if it uses big integers.

    The overflows change where the digits end. The test for the end also differs for big integers, when a sum just
    reaches the limit.
    """
    return 1 << 31 if bits < 32 else 1 << 63 if bits < _LONG_BITS else None


def _overflow(number: int, most: int | None) -> int:
    return number if most is None else (number + most) % (2 * most) - most


def _estimate_exponent(fraction: int, power: int) -> int:
    """Return the decimal exponent, or one more, by Java's estimate."""
    first = (fraction & (1 << _FRACTION_BITS) - 1) / (1 << _FRACTION_BITS) + 1.0
    return math.floor((first - 1.5) * 0.289529654 + 0.176091259 + power * 0.301029995663981)


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
