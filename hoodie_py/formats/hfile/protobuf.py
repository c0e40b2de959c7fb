"""Fields of protobuf messages, as far as HFiles, ORC and Lance files use them: numbers and bytes.

A message consists of adjacent fields. A field is a varint of number * 8 + wire type, followed by a varint (wire type
0), or by a varint length and that many bytes (wire type 2).
"""

from __future__ import annotations

from collections.abc import Iterator

from hoodie_py.errors import CorruptFileError
from hoodie_py.formats.avro.binary import encode_varint

_VARINT, _OCTETS = 0, 2  # wire types


def encode_number_field(number: int, value: int) -> bytes:
    """Encode a field with a number."""
    return encode_varint(number << 3 | _VARINT) + encode_varint(value)


def encode_octets_field(number: int, value: bytes) -> bytes:
    """Encode a field with bytes: a string or a message."""
    return encode_varint(number << 3 | _OCTETS) + encode_varint(len(value)) + value


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the varint at ``at`` and the offset of its end. Raises CorruptFileError if it is cut short or too long."""
    value = shift = 0
    while True:
        if at >= len(data) or shift >= 64:
            raise CorruptFileError("A protobuf number is cut short or too long.", offset=at)
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7


def read_fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the fields of a message in order: the number, and the value as int or bytes.

    Raises CorruptFileError if the message is cut short, or contains a field of another wire type.
    """
    at = 0
    while at < len(data):
        tag, at = read_varint(data, at)
        kind = tag & 7
        value, at = read_varint(data, at)
        if kind == _VARINT:
            yield tag >> 3, value
        elif kind == _OCTETS and value <= len(data) - at:
            yield tag >> 3, data[at : at + value]
            at += value
        else:
            raise CorruptFileError("A protobuf field is cut short or of an unknown kind.", offset=at)


def read_numbers(value: int | bytes) -> Iterator[int]:
    """Yield the numbers of a repeated field: a single one, or several packed ones. Raises as ``read_varint``."""
    if isinstance(value, int):
        yield value
        return
    at = 0
    while at < len(value):
        number, at = read_varint(value, at)
        yield number


def as_bytes(value: int | bytes | None) -> bytes:
    """Return the bytes of a field; none if it is missing or a number."""
    return value if isinstance(value, bytes) else b""
