"""Print variants as JSON: the Parquet variant encoding (version 1), with the texts of Spark's ``to_json``.

    metadata   header byte (version, width of offsets), number of names, offsets, names in UTF-8
    value      header byte: 2 bits of basic type (primitive, short string, object, array), 6 bits of its own; then data

Values without a form in JSON become text: binary in base64, dates, times (with ``+00:00`` if in UTC), UUIDs, and the
floats NaN and Infinity. Decimals are plain numbers.

The bytes are hostile until checked. Children of an object or array may overlap, so a few bytes could unfold to any
number of values. So a value may contain at most as many values as bytes, and depth and text are bounded.
"""

from __future__ import annotations

import base64
import itertools
import json
import uuid
from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache

import numpy as np
import pyarrow as pa

from hoodie_py.errors import CorruptFileError, InvalidQueryError, UnsupportedFeatureError
from hoodie_py.formats.logical_types.variant import METADATA, VALUE, VARIANT_TYPE, check_variant, refuse_shredded

MOST_LEVELS = 100
MOST_CHARS = 1 << 28  # of one value; the texts of a column have at most 2 GiB

_VERSION = 1
_LARGEST_TEXT = (1 << 31) - 1
_WHOLE = {3: 1, 4: 2, 5: 4, 6: 8}  # bytes of int8, int16, int32, int64
_DECIMALS = {8: 4, 9: 8, 10: 16}
_UNITS = {12: "us", 13: "us", 18: "ns", 19: "ns"}  # times with a date
_IN_UTC = frozenset({12, 18})
_MOST_DIGITS = 38


def variant_to_json(values: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    r"""Print a column of variants as JSON texts; null stays null.

    A variant that is JSON's null gives the text ``null``.

    Raises:
        InvalidQueryError: the column is not a struct of ``metadata`` and ``value``.
        CorruptFileError: the bytes are not a variant; ``where`` names the row.
        UnsupportedFeatureError: the column is shredded, a value is nested too deeply, or the texts are too long.

    Examples:
        >>> column = pa.array([{"metadata": b"\x01\x01\x00\x01n", "value": b"\x02\x01\x00\x00\x02\x0c\x05"}])
        >>> variant_to_json(column).to_pylist()
        ['{"n":5}']
    """
    if isinstance(values, pa.ChunkedArray):
        return pa.chunked_array([variant_to_json(chunk) for chunk in values.chunks], pa.string())
    refuse_shredded(values.type)
    try:
        check_variant(values.type)
    except InvalidQueryError:
        message = f"A column of type {values.type} is no column of variants."
        raise InvalidQueryError(message, hint=f"Give one of type {VARIANT_TYPE}.") from None
    parts = zip(values.field(METADATA).to_pylist(), values.field(VALUE).to_pylist(), values.is_valid(), strict=True)
    texts: list[str | None] = []
    size = 0
    for row, (metadata, value, valid) in enumerate(parts):
        if not valid.as_py():
            texts.append(None)
            continue
        try:
            text = print_variant(metadata or b"", value or b"")
        except (CorruptFileError, UnsupportedFeatureError) as error:
            raise error.locate(row=row) from None
        size += 4 * len(text)  # the most that a character takes in UTF-8
        if size > _LARGEST_TEXT:
            raise UnsupportedFeatureError("The texts of a column are too long.", hint="Convert fewer rows at a time.")
        texts.append(text)
    return pa.array(texts, pa.string())


def print_variant(metadata: bytes, value: bytes) -> str:
    """Print one variant as JSON.

    Raises:
        CorruptFileError: the bytes are not a variant.
        UnsupportedFeatureError: the value is nested too deeply, or its text is too long.
    """
    printer = _Printer(value, _read_names(metadata))
    try:
        printer.print_value(0, MOST_LEVELS)
    except IndexError:
        raise CorruptFileError(f"A variant of {len(value)} bytes ends too early.") from None
    except UnicodeDecodeError:
        raise CorruptFileError("A variant has text that is not UTF-8.") from None
    return "".join(printer.parts)


@lru_cache(maxsize=64)
def _read_names(metadata: bytes) -> tuple[str, ...]:
    """Return the dictionary of names, each as JSON text."""
    if not metadata or metadata[0] & 0x0F != _VERSION:
        raise CorruptFileError(f"The metadata of a variant have no version {_VERSION}: {metadata[:8]!r}.")
    width = (metadata[0] >> 6) + 1
    count = int.from_bytes(metadata[1 : 1 + width], "little")
    first = 1 + width * (count + 2)
    if len(metadata) < 1 + width or first > len(metadata):
        raise CorruptFileError(f"The metadata of a variant cannot have {count} names in {len(metadata)} bytes.")
    ends = _read_numbers(metadata, 1 + width, width, count + 1)
    if ends[0] or any(b < a for a, b in itertools.pairwise(ends)) or first + ends[-1] > len(metadata):
        raise CorruptFileError("The names in the metadata of a variant have offsets that are out of order.")
    try:
        names = [str(metadata[first + a : first + b], "utf-8") for a, b in itertools.pairwise(ends)]
    except UnicodeDecodeError:
        raise CorruptFileError("A name in the metadata of a variant is not UTF-8.") from None
    return tuple(map(_quote, names))


def _read_numbers(data: bytes, start: int, width: int, count: int) -> list[int]:
    """Read unsigned little-endian numbers of 1 to 4 bytes. Raises IndexError if there are too few bytes."""
    stop = start + width * count
    if stop > len(data):
        raise IndexError
    if width == 1:
        return list(data[start:stop])
    octets = np.frombuffer(data, np.uint8, width * count, start).reshape(count, width)
    wide = np.zeros((count, 4), np.uint8)
    wide[:, :width] = octets
    return [int(each) for each in wide.view("<u4")[:, 0]]


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


class _Printer:
    """Prints one value; ``parts`` are the pieces of its text."""

    def __init__(self, data: bytes, names: Sequence[str]) -> None:
        self.parts: list[str] = []
        self._data = data
        self._names = names
        self._values = len(data)
        self._chars = MOST_CHARS

    def print_value(self, at: int, levels: int) -> None:
        """Print the value at a position, which may contain up to ``levels`` more levels."""
        self._values -= 1
        if self._values < 0:
            raise CorruptFileError("A variant has more values than bytes: some of them overlap.")
        header = self._data[at]
        kind, own = header & 3, header >> 2
        if kind == 0:
            self._add(self._read_primitive(own, at + 1))
        elif kind == 1:
            self._add(_quote(str(self._take(at + 1, own), "utf-8")))
        elif not levels:
            raise UnsupportedFeatureError(f"A variant of more than {MOST_LEVELS} levels.")
        elif kind == 2:
            self._print_object(own, at + 1, levels - 1)
        else:
            self._print_array(own, at + 1, levels - 1)

    def _print_object(self, own: int, at: int, levels: int) -> None:
        width, id_width = (own & 3) + 1, (own >> 2 & 3) + 1
        count, at = self._read_count(at, large=bool(own >> 4 & 1))
        ids = _read_numbers(self._data, at, id_width, count)
        at += id_width * count
        offsets = _read_numbers(self._data, at, width, count + 1)
        start = at + width * (count + 1)
        self._add("{")
        for i, (name, offset) in enumerate(zip(ids, offsets, strict=False)):
            if name >= len(self._names):
                raise CorruptFileError(f"A variant has the name {name} of {len(self._names)}.")
            self._add(f"{',' if i else ''}{self._names[name]}:")
            self.print_value(start + offset, levels)
        self._add("}")

    def _print_array(self, own: int, at: int, levels: int) -> None:
        width = (own & 3) + 1
        count, at = self._read_count(at, large=bool(own >> 2 & 1))
        offsets = _read_numbers(self._data, at, width, count + 1)
        start = at + width * (count + 1)
        self._add("[")
        for i, offset in enumerate(offsets[:-1]):
            if i:
                self._add(",")
            self.print_value(start + offset, levels)
        self._add("]")

    def _read_count(self, at: int, *, large: bool) -> tuple[int, int]:
        width = 4 if large else 1
        return int.from_bytes(self._take(at, width), "little"), at + width

    def _read_primitive(self, kind: int, at: int) -> str:
        if kind < 3:
            return ("null", "true", "false")[kind]
        if kind in _WHOLE:
            return str(int.from_bytes(self._take(at, _WHOLE[kind]), "little", signed=True))
        if kind in _DECIMALS:
            return _format_decimal(self._take(at, 1 + _DECIMALS[kind]))
        if kind in (7, 14):
            return _format_float(self._take(at, 8 if kind == 7 else 4))
        if kind == 11:
            return f'"{_format_time(self._take(at, 4), "D")}"'
        if kind in _UNITS:
            return f'"{_format_time(self._take(at, 8), _UNITS[kind])}{"+00:00" if kind in _IN_UTC else ""}"'
        if kind == 17:
            return _format_time_of_day(self._take(at, 8))
        if kind in (15, 16):
            data = self._take(at + 4, int.from_bytes(self._take(at, 4), "little"))
            return _quote(str(data, "utf-8")) if kind == 16 else f'"{base64.b64encode(data).decode()}"'
        if kind == 20:
            return f'"{uuid.UUID(bytes=self._take(at, 16))}"'
        raise UnsupportedFeatureError(f"Variants of the primitive type {kind}.")

    def _take(self, at: int, size: int) -> bytes:
        data = self._data[at : at + size]
        if len(data) != size:
            raise IndexError
        return data

    def _add(self, text: str) -> None:
        self._chars -= len(text)
        if self._chars < 0:
            raise UnsupportedFeatureError(f"A variant whose text has more than {MOST_CHARS} characters.")
        self.parts.append(text)


def _format_decimal(data: bytes) -> str:
    scale, unscaled = data[0], int.from_bytes(data[1:], "little", signed=True)
    if scale > _MOST_DIGITS or abs(unscaled) >= 10**_MOST_DIGITS:
        raise CorruptFileError(f"A variant has a decimal of scale {scale} that is too large.")
    text = f"{Decimal((unscaled < 0, tuple(map(int, str(abs(unscaled)))), -scale)):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _format_float(data: bytes) -> str:
    value = np.frombuffer(data, "<f8" if len(data) == 8 else "<f4")[0]
    if not np.isfinite(value):
        return '"NaN"' if np.isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'
    return str(value)  # the shortest text of this float of 4 or 8 bytes


def _format_time(data: bytes, unit: str) -> str:
    """Print a date, or a date and time, as Java does: years of five digits have a sign, trailing zeros are cut."""
    number = int.from_bytes(data, "little", signed=True)
    if number == -(1 << (8 * len(data) - 1)) and len(data) == 8:
        raise CorruptFileError("A variant has a time that is out of range.")
    day, _, time = str(np.datetime_as_string(np.array(number, f"M8[{unit}]"))).partition("T")
    day = f"+{day}" if len(day) > len("2026-01-01") and not day.startswith("-") else day
    return f"{day} {time.rstrip('0').rstrip('.') if '.' in time else time}" if time else day


def _format_time_of_day(data: bytes) -> str:
    micros = int.from_bytes(data, "little", signed=True)
    if not 0 <= micros < 86_400_000_000:
        raise CorruptFileError("A variant has a time of the day that is out of range.")
    return f'"{_format_time(micros.to_bytes(8, "little", signed=True), "us").partition(" ")[2]}"'
