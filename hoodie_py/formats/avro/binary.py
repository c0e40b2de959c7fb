"""Avro's binary encoding: variable-length integers, spans, and steps over values of columns that are not wanted.

A step takes the position where a value starts and the end of its record, and returns the position after the value. A
step may run past the record's end by one value; its caller compares the last position with the record's end. A step
checks at once everything that could make it loop or jump: lengths are not negative and stay in the record, and item
counts fit into the remaining bytes. Reading past the data raises IndexError.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hoodie_py.errors import CorruptFileError
from hoodie_py.formats.avro.schema import Array, AvroType, Decimal, Enum, Fixed, Map, Primitive, Record, Union

Data = bytes | memoryview
Step = Callable[[int, int], int]

_ONE_BYTE = 0x80
_LONGEST_VARINT = 10
_TWO_TO_64 = 1 << 64


def encode_varint(value: int) -> bytes:
    """Encode a non-negative number, seven bits a byte, lowest first."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def encode_long(value: int) -> bytes:
    """Encode a long: zig-zag, then as ``encode_varint``."""
    return encode_varint((value << 1) ^ (value >> 63))


def read_varint(data: Data, pos: int) -> tuple[int, int]:
    """Read a zig-zag integer of up to 64 bits; return it and the position after it."""
    raw = 0
    for i in range(_LONGEST_VARINT):
        byte = data[pos + i]
        raw |= (byte & 0x7F) << (7 * i)
        if byte < _ONE_BYTE:
            if raw >= _TWO_TO_64:
                break
            return (raw >> 1) ^ -(raw & 1), pos + i + 1
    raise CorruptFileError("An Avro integer has more than 64 bits.", offset=pos)


def read_span(data: Data, pos: int, end: int) -> tuple[int, int]:
    """Read the length before a string or bytes value; return where the value starts and ends."""
    length, start = read_varint(data, pos)
    if not 0 <= length <= end - start:
        message = f"An Avro string or bytes value of length {length} does not fit into its record."
        raise CorruptFileError(message, offset=pos)
    return start, start + length


def read_count(data: Data, pos: int, end: int, min_size: int) -> tuple[int, int]:
    """Read the item count of an array or map block; a negative one is followed by the block's length in bytes."""
    count, start = read_varint(data, pos)
    if count < 0:
        count = -count
        _, start = read_varint(data, start)
    # Checked before anything loops over the items: a few bytes can promise billions.
    if count * min_size > end - start:
        message = f"An Avro array or map of {count} items does not fit into its record."
        raise CorruptFileError(message, offset=pos)
    return count, start


def make_branch_error(branch: int, pos: int) -> CorruptFileError:
    """Return the error for a branch number that the union does not have."""
    return CorruptFileError(f"An Avro union has no branch {branch}.", offset=pos)


def make_skip_step(data: Data, node: AvroType) -> Step:
    """Return the step over a value of a type in some data."""
    match node:
        case Primitive(kind="boolean"):
            return _make_fixed_step(1)
        case Primitive(kind="int" | "long") | Enum():
            return _make_varint_step(data)
        case Primitive(kind="string" | "bytes") | Decimal(size=None):
            return _make_span_step(data)
        case Primitive() | Fixed() | Decimal():
            return _make_fixed_step(node.min_size)
        case Array():
            return _make_blocks_step(data, node.items.min_size, make_skip_step(data, node.items))
        case Map():
            return _make_blocks_step(data, 1 + node.values.min_size, make_entry_step(data, node.values))
        case Record():
            return _make_fields_step([make_skip_step(data, field.type) for field in node.fields if field.type.min_size])
        case Union():
            return _make_union_step(data, node.branches)
    raise TypeError(type(node).__name__)


def _make_fixed_step(size: int) -> Step:
    return lambda pos, _: pos + size


def _make_varint_step(data: Data) -> Step:
    def step(pos: int, _: int) -> int:
        last = pos + _LONGEST_VARINT - 1
        while data[pos] >= _ONE_BYTE and pos < last:
            pos += 1
        if pos == last and data[pos] > 1:
            raise CorruptFileError("An Avro integer has more than 64 bits.", offset=last + 1 - _LONGEST_VARINT)
        return pos + 1

    return step


def _make_span_step(data: Data) -> Step:
    def step(pos: int, end: int) -> int:
        byte = data[pos]
        stop = pos + 1 + (byte >> 1)
        # The length is mostly one byte; read_span reads longer ones, and refuses invalid ones.
        if byte >= _ONE_BYTE or byte & 1 or stop > end:
            return read_span(data, pos, end)[1]
        return stop

    return step


def make_entry_step(data: Data, values: AvroType) -> Step:
    """Return the step over a key and a value of a map."""
    key, value = _make_span_step(data), make_skip_step(data, values)
    return lambda pos, end: value(key(pos, end), end)


def _make_fields_step(steps: list[Step]) -> Step:
    def step(pos: int, end: int) -> int:
        for field in steps:
            pos = field(pos, end)
        return pos

    return step


def _make_union_step(data: Data, branches: Sequence[AvroType]) -> Step:
    """Return the step over a union.

    The steps of branches are made when they are first needed: in a few records most values are null, and the branches
    of the metadata table's unions are large records.
    """
    count = len(branches)
    steps: list[Step | None] = [None] * count

    def step(pos: int, end: int) -> int:
        byte = data[pos]
        branch, start = byte >> 1, pos + 1
        if byte >= _ONE_BYTE or byte & 1 or branch >= count:  # a longer number, or an invalid one
            branch, start = read_varint(data, pos)
            if not 0 <= branch < count:
                raise make_branch_error(branch, pos)
        inner = steps[branch]
        if inner is None:
            inner = steps[branch] = make_skip_step(data, branches[branch])
        return inner(start, end)

    return step


def _make_blocks_step(data: Data, min_size: int, item: Step) -> Step:
    def step(pos: int, end: int) -> int:
        while True:
            count, pos = read_count(data, pos, end, min_size)
            if count == 0:
                return pos
            for _ in range(count):
                pos = item(pos, end)

    return step
