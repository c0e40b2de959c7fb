"""Print floats as Java up to version 18 does, on which Spark 3 runs: not always with the fewest digits (JDK-4511638).

The digits matter beyond strings: Hudi converts floats to doubles and decimals through their texts. 3.4E10 as a float
prints as 3.3999999E10, and becomes the double 33999999000.

The rules (``Float.toString``, ``Double.toString`` of JDK 8 to 18): a whole number is rounded to the digits that
distinguish floats of its size. For other numbers, digits are generated one by one until the rest is less than the gap
to the next float; the last digit is rounded. A text with an exponent has at least two digits.
"""

from __future__ import annotations

import math
import struct

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
