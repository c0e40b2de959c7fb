"""Reads and writes structs in Thrift's compact protocol, which the footers of Parquet files have.

A struct becomes a tree of values that knows no field by name, so fields of newer versions of Parquet are written as
they were read. The bytes may come from a file that others wrote: lengths are compared with the bytes that are left, and
depth and the number of values are bounded. Maps and sets, which Parquet does not use, are refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hoodie_py.errors import CorruptFileError

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, _SET, _MAP, STRUCT = range(1, 13)
_INTEGERS = (I16, I32, I64)
_MOST_DEPTH = 16
_MOST_VALUES = 300_000  # of forty row groups with seventeen columns: forty thousand


@dataclass(slots=True)
class Value:
    """A value and its type in the protocol. Bools have the type TRUE or FALSE, by their value."""

    kind: int
    value: Any


@dataclass(slots=True)
class Items:
    """The values of a list, of one type."""

    kind: int
    values: list[Any]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)


Struct = dict[int, Value]


def read_struct(data: bytes) -> Struct:
    """Read a struct, which begins with the first byte. Raises CorruptFileError if the bytes are not one."""
    return _Reader(data).read_struct(0)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._left = _MOST_VALUES

    def read_struct(self, depth: int) -> Struct:
        if depth > _MOST_DEPTH:
            raise CorruptFileError("A footer's structs are nested too deeply.")
        found: Struct = {}
        last = 0
        while head := self._take(1)[0]:
            kind, step = head & 15, head >> 4
            last = last + step if step else self._take_integer()
            if last in found:
                raise CorruptFileError("A footer's struct has a field twice.")
            found[last] = Value(kind, kind == TRUE if kind in (TRUE, FALSE) else self._take_value(kind, depth))
        return found

    def _take_value(self, kind: int, depth: int) -> Any:
        self._left -= 1
        if self._left < 0:
            raise CorruptFileError("A footer has too many values.")
        if kind in _INTEGERS:
            return self._take_integer()
        if kind == BINARY:
            return self._take(self._take_number())
        if kind == STRUCT:
            return self.read_struct(depth + 1)
        if kind == LIST:
            return self._take_list(depth + 1)
        if kind in (TRUE, FALSE, BYTE):
            return self._take(1)
        if kind == DOUBLE:
            return self._take(8)
        raise CorruptFileError(f"A footer has a value of type {kind}, which is not known.")

    def _take_list(self, depth: int) -> Items:
        head = self._take(1)[0]
        count, kind = head >> 4, head & 15
        if count == 15:
            count = self._take_number()
        if depth > _MOST_DEPTH or count > len(self._data) - self._at:  # each value has a byte at least
            raise CorruptFileError("A footer's list is longer than the footer, or nested too deeply.")
        return Items(kind, [self._take_value(kind, depth) for _ in range(count)])

    def _take(self, count: int) -> bytes:
        end = self._at + count
        if end > len(self._data):
            raise CorruptFileError("A footer is cut short.")
        found = self._data[self._at : end]
        self._at = end
        return found

    def _take_number(self) -> int:
        number = shift = 0
        while True:
            byte = self._take(1)[0]
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
            shift += 7
            if shift > 63:
                raise CorruptFileError("A footer's number is too long.")

    def _take_integer(self) -> int:
        number = self._take_number()
        return (number >> 1) ^ -(number & 1)


def write_struct(given: Struct) -> bytes:
    """Return the bytes of a struct."""
    out = bytearray()
    _put_struct(out, given)
    return bytes(out)


def _put_struct(out: bytearray, given: Struct) -> None:
    last = 0
    for at, each in sorted(given.items()):
        if 0 < at - last < 16:
            out.append((at - last) << 4 | each.kind)
        else:
            out.append(each.kind)
            _put_integer(out, at)
        last = at
        if each.kind not in (TRUE, FALSE):
            _put_value(out, each.kind, each.value)
    out.append(0)


def _put_value(out: bytearray, kind: int, value: Any) -> None:
    if kind in _INTEGERS:
        _put_integer(out, value)
    elif kind == STRUCT:
        _put_struct(out, value)
    elif kind == LIST:
        _put_list(out, value)
    else:
        if kind == BINARY:
            _put_number(out, len(value))
        out += value


def _put_list(out: bytearray, items: Items) -> None:
    if len(items.values) < 15:
        out.append(len(items.values) << 4 | items.kind)
    else:
        out.append(0xF0 | items.kind)
        _put_number(out, len(items.values))
    for each in items:
        _put_value(out, items.kind, each)


def _put_number(out: bytearray, number: int) -> None:
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)


def _put_integer(out: bytearray, number: int) -> None:
    _put_number(out, (number << 1) ^ (number >> 63))
