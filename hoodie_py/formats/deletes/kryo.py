"""Reads the Kryo objects of old delete blocks.

Delete blocks of versions 1 and 2 (Hudi before 0.14) are Kryo 4 streams: ``HoodieKey[]`` and ``DeleteRecord[]``. This
module reads only these classes and the classes of their ordering values. A class name in the stream only selects one of
the methods below. No class is loaded by name, and all other names are refused.

The encoding (com.esotericsoftware.kryo with reference tracking, as Hudi's SerializationUtils sets it up):

    class       varint: 0 null, 1 a class by name, n >= 2 the registered class n - 2 (int String float boolean byte char
                short long double). By name: varint number of the name, and where it is new, the name as text.
    reference   in front of every object that is not a boxed number, boolean or char; varint: 0 null, 1 a new object,
                n >= 2 the object n - 2 in the order of their first appearance
    array       varint length + 1, then each element as class and value
    fields      in alphabetical order of their names
    text        2 to 63 ASCII characters: their bytes, the last with its high bit set; otherwise length + 1 (6 bits,
                then 7 a byte) and UTF-16 units in 1 to 3 bytes; 0x80 is null, 0x81 empty
    numbers     int, long: zig-zag varint (the ninth byte of a long holds 8 bits); float, double, short: big-endian
    BigDecimal  varint byte count + 1, two's complement; zig-zag varint scale
"""

from __future__ import annotations

import decimal
import struct
from dataclasses import dataclass
from typing import Any

from hoodie_py.errors import CorruptFileError, UnsupportedFeatureError
from hoodie_py.formats.limits import get_limits, raise_limit_error

KEY_CLASS = "org.apache.hudi.common.model.HoodieKey"
DELETE_CLASS = "org.apache.hudi.common.model.DeleteRecord"
DECIMAL_CLASS = "java.math.BigDecimal"

_REGISTERED = ("int", "String", "float", "boolean", "byte", "char", "short", "long", "double")
_BY_NAME = 1
_FIRST_REGISTERED = 2
_NEW_OBJECT = 1
_FIRST_BACK_REFERENCE = 2
_HIGH = 0x80
_MORE_LENGTH = 0x40
_MAX_DECIMAL_BYTES = 64
_MAX_DECIMAL_SCALE = 1000
_FORMATS = {"float": struct.Struct(">f"), "short": struct.Struct(">h"), "double": struct.Struct(">d")}


@dataclass(frozen=True, slots=True)
class KryoDelete:
    """A deleted key; ``kind`` is the Java type of its ordering value: a registered name, "decimal", or None."""

    key: str
    partition: str | None
    kind: str | None
    value: Any


def read_deletes(data: bytes) -> list[KryoDelete]:
    """Read ``HoodieKey[]`` or ``DeleteRecord[]``.

    Raises:
        CorruptFileError: the bytes are not a stream of these classes.
        UnsupportedFeatureError: the stream contains another class.
    """
    reader = _KryoReader(data)
    try:
        deletes = reader.read_array()
    except IndexError:
        raise CorruptFileError("A delete block ends within a Kryo object.", offset=len(data)) from None
    if reader.pos != len(data):
        message = f"{len(data) - reader.pos} bytes are left over after the Kryo objects."
        raise CorruptFileError(message, offset=reader.pos)
    return deletes


class _KryoReader:
    """Reads a stream from its start; keeps class names and objects, to which later ones refer by number."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.pos = 0
        self._names: list[str] = []
        self._objects: list[Any] = []

    def read_array(self) -> list[KryoDelete]:
        array_class = self._read_class()
        element = {f"[L{KEY_CLASS};": KEY_CLASS, f"[L{DELETE_CLASS};": DELETE_CLASS}.get(array_class or "null")
        if element is None:
            raise _make_class_error(array_class, 0)
        if self._read_varint() != _NEW_OBJECT:
            raise CorruptFileError("A Kryo stream must start with a new array.", offset=self.pos)
        self._objects.append(None)
        count = self._read_varint() - 1
        # Every element takes at least one byte.
        if not 0 <= count <= len(self._data) - self.pos:
            raise CorruptFileError(f"A Kryo array of {count} elements does not fit into its block.", offset=self.pos)
        if count > get_limits().block_records:
            raise_limit_error(UnsupportedFeatureError, f"A block has {count} deletes", "block_records")
        return [self._read_element(element) for _ in range(count)]

    def _read_element(self, expected: str) -> KryoDelete:
        start = self.pos
        found = self._read_class()
        if found != expected:
            raise _make_class_error(found, start)
        if expected == KEY_CLASS:
            partition, key = self._read_key()
            return KryoDelete(key, partition, None, None)
        known, place = self._read_reference(KryoDelete)
        if place is None:
            record: KryoDelete = known
            return record
        if self._read_class() != KEY_CLASS:
            raise CorruptFileError("A deleted record must start with its key.", offset=self.pos)
        partition, key = self._read_key()
        kind, value = self._read_ordering_value()
        record = KryoDelete(key, partition, kind, value)
        self._objects[place] = record
        return record

    def _read_key(self) -> tuple[str | None, str]:
        known, place = self._read_reference(tuple)
        if place is None:
            pair: tuple[str | None, str] = known
            return pair
        partition = self._read_text_object()
        key = self._read_text_object()
        if key is None:
            raise CorruptFileError("A delete block has a record without a key.", offset=self.pos)
        self._objects[place] = (partition, key)
        return partition, key

    def _read_ordering_value(self) -> tuple[str | None, Any]:
        start = self.pos
        found = self._read_class()
        if found is None:
            return None, None
        if found == "String":
            text = self._read_text_object()
            return ("String", text) if text is not None else (None, None)
        if found == DECIMAL_CLASS:
            known, place = self._read_reference(decimal.Decimal)
            if place is not None:
                known = self._objects[place] = self._read_decimal()
            return "decimal", known
        return found, self._read_number(found, start)

    def _read_number(self, kind: str, start: int) -> Any:
        if kind in ("int", "long"):
            raw = self._read_varint() if kind == "int" else self._read_long_varint()
            return (raw >> 1) ^ -(raw & 1)
        if kind == "boolean":
            return self._read_byte() != 0
        if kind == "byte":
            return int.from_bytes(self._read_bytes(1), "big", signed=True)
        if kind in _FORMATS:
            return _FORMATS[kind].unpack(self._read_bytes(_FORMATS[kind].size))[0]
        raise _make_class_error(kind, start)

    def _read_decimal(self) -> decimal.Decimal:
        length = self._read_varint() - 1
        if not 0 < length <= _MAX_DECIMAL_BYTES:
            raise CorruptFileError(f"A decimal cannot have {length} bytes.", offset=self.pos)
        unscaled = int.from_bytes(self._read_bytes(length), "big", signed=True)
        raw = self._read_varint()
        scale = (raw >> 1) ^ -(raw & 1)
        if abs(scale) > _MAX_DECIMAL_SCALE:
            raise CorruptFileError(f"A decimal cannot have scale {scale}.", offset=self.pos)
        return decimal.Decimal(f"{unscaled}e{-scale}")

    def _read_class(self) -> str | None:
        start = self.pos
        tag = self._read_varint()
        if tag == 0:
            return None
        if tag == _BY_NAME:
            number = self._read_varint()
            if number < len(self._names):
                return self._names[number]
            name = self._read_text() if number == len(self._names) else None
            if name is None:
                raise CorruptFileError("A Kryo class has no name.", offset=start)
            self._names.append(name)
            return name
        if tag - _FIRST_REGISTERED < len(_REGISTERED):
            return _REGISTERED[tag - _FIRST_REGISTERED]
        raise _make_class_error(f"number {tag - _FIRST_REGISTERED}", start)

    def _read_reference(self, kind: type) -> tuple[Any, int | None]:
        """Read a reference.

        Return the known object and None, or None and the number under which the caller must store the new object.
        """
        start = self.pos
        tag = self._read_varint()
        if tag == _NEW_OBJECT:
            self._objects.append(None)
            return None, len(self._objects) - 1
        number = tag - _FIRST_BACK_REFERENCE
        if not 0 <= number < len(self._objects) or not isinstance(self._objects[number], kind):
            raise CorruptFileError("A Kryo reference does not lead to an object of its type.", offset=start)
        return self._objects[number], None

    def _read_text_object(self) -> str | None:
        if self._data[self.pos] == 0:
            self.pos += 1
            return None
        known, place = self._read_reference(str)
        if place is None:
            text: str | None = known
            return text
        text = self._objects[place] = self._read_text()
        return text

    def _read_text(self) -> str | None:
        start = self.pos
        first = self._read_byte()
        if first < _HIGH:
            return self._read_ascii(start)
        length = self._read_text_length(first) - 1
        if length < 0:
            return None
        if length > len(self._data) - self.pos:
            raise CorruptFileError(f"A text of {length} characters does not fit into its block.", offset=start)
        units = [self._read_utf16_unit() for _ in range(length)]
        try:
            return struct.pack(f">{length}H", *units).decode("utf-16-be")
        except UnicodeDecodeError:
            raise CorruptFileError("A text is not valid Unicode.", offset=start) from None

    def _read_ascii(self, start: int) -> str:
        stop = start
        while self._data[stop] < _HIGH:
            stop += 1
        self.pos = stop + 1
        return (self._data[start:stop] + bytes([self._data[stop] & 0x7F])).decode("ascii")

    def _read_text_length(self, first: int) -> int:
        length = first & 0x3F
        if first & _MORE_LENGTH:
            length |= self._read_varint() << 6
        return length

    def _read_utf16_unit(self) -> int:
        byte = self._read_byte()
        match byte >> 4:
            case 0xC | 0xD:
                return (byte & 0x1F) << 6 | self._read_byte() & 0x3F
            case 0xE:
                high = (byte & 0x0F) << 12 | (self._read_byte() & 0x3F) << 6
                return high | self._read_byte() & 0x3F
            case top if top < 0x8:
                return byte
        raise CorruptFileError("A text is not valid Unicode.", offset=self.pos)

    def _read_varint(self) -> int:
        """Read an unsigned integer of at most 32 bits."""
        start = self.pos
        value = 0
        for shift in range(0, 35, 7):
            byte = self._read_byte()
            value |= (byte & 0x7F) << shift
            if byte < _HIGH and value < 1 << 32:
                return value
        raise CorruptFileError("A Kryo integer is too long.", offset=start)

    def _read_long_varint(self) -> int:
        value = 0
        for shift in range(0, 56, 7):
            byte = self._read_byte()
            value |= (byte & 0x7F) << shift
            if byte < _HIGH:
                return value
        return value | self._read_byte() << 56

    def _read_byte(self) -> int:
        byte = self._data[self.pos]
        self.pos += 1
        return byte

    def _read_bytes(self, length: int) -> bytes:
        if length > len(self._data) - self.pos:
            raise CorruptFileError("A delete block ends within a Kryo object.", offset=self.pos)
        self.pos += length
        return self._data[self.pos - length : self.pos]


def _make_class_error(name: str | None, offset: int) -> UnsupportedFeatureError:
    message = f"Delete blocks with Kryo objects of class {str(name)[:200]!r} are not supported."
    hint = "Compact the table with the Hudi version that wrote it."
    return UnsupportedFeatureError(message, offset=offset, hint=hint)
