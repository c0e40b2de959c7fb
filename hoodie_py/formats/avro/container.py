"""Read and write Avro object container files of one record, as used by the timeline (Hudi ``TimelineMetadataUtils``).

    file   = "Obj" 0x01, header map {avro.schema, avro.codec, ...}, sync marker (16 bytes), block*
    block  = record count, byte count, bytes (null or deflate codec), sync marker

The embedded schema is vetted before the record is decoded (``schema``): no recursive types, bounded depth and size, no
items without bytes. So the work is bounded by the size of the file, whatever it contains. Reading does not use
fastavro: its import, which loads OpenSSL, takes longer than reading a commit, and every process that opens a table
reads commits.

For writing, fastavro encodes the record, but the container is written here, because fastavro's own names the codec and
rewrites the schema, unlike Java's files. The codec is null and has no header entry. The sync marker is a hash of the
content, so the same record always gives the same bytes.

A record is read into Python objects: records become dicts, arrays lists, maps dicts; enums their symbols; bytes, fixed
and decimals bytes. Logical types are ignored: records of the timeline have none. A reader, like the steps of
``binary``, takes the position where the value starts and the end of the data, and returns the value and the position
after it.
"""

from __future__ import annotations

import io
import json
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any

from hoodie_py.errors import CorruptFileError, UnsupportedFeatureError
from hoodie_py.formats.avro.binary import encode_long, make_branch_error, read_count, read_span, read_varint
from hoodie_py.formats.avro.schema import (
    Array,
    AvroType,
    Decimal,
    Enum,
    Fixed,
    Map,
    Primitive,
    Record,
    Union,
    is_null,
    parse_record,
)
from hoodie_py.formats.limits import get_limits, raise_limit_error

Reader = Callable[[int, int], tuple[Any, int]]
Charge = Callable[[int], None]

_ONE_BYTE = 0x80
_REALS = {"float": struct.Struct("<f"), "double": struct.Struct("<d")}
_INTS = 1 << 31


def make_object_reader(data: bytes, node: AvroType, charge: Charge) -> Reader:
    """Return the reader of a value of a type.

    ``charge`` is called with the item count of every block of an array or map, and may raise to stop reading. The
    reader raises CorruptFileError for bytes that do not fit the type, and IndexError past the end of the data.
    """
    match node:
        case Primitive():
            return _make_primitive(data, node.kind)
        case Enum():
            return _make_enum(data, node.symbols)
        case Fixed() | Decimal(size=int()):
            return _make_fixed(data, node.min_size)
        case Decimal():
            return _make_bytes(data)
        case Array():
            return _make_array(data, node.items.min_size, make_object_reader(data, node.items, charge), charge)
        case Map():
            return _make_map(data, 1 + node.values.min_size, make_object_reader(data, node.values, charge), charge)
        case Record():
            return _make_record([(field.name, make_object_reader(data, field.type, charge)) for field in node.fields])
        case Union():
            return _make_union(data, node, charge)
    raise TypeError(type(node).__name__)


def _make_primitive(data: bytes, kind: str) -> Reader:
    match kind:
        case "null":
            return lambda pos, _: (None, pos)
        case "boolean":
            return _make_boolean(data)
        case "int":
            return _make_int(data)
        case "long":
            return _make_long(data)
        case "float" | "double":
            return _make_real(data, _REALS[kind])
        case "string":
            return _make_string(data)
    return _make_bytes(data)


def _make_boolean(data: bytes) -> Reader:
    def read(pos: int, _: int) -> tuple[bool, int]:
        byte = data[pos]
        if byte > 1:
            raise CorruptFileError(f"An Avro boolean cannot be {byte}.", offset=pos)
        return byte == 1, pos + 1

    return read


def _make_long(data: bytes) -> Reader:
    def read(pos: int, _: int) -> tuple[int, int]:
        byte = data[pos]
        if byte < _ONE_BYTE:
            return (byte >> 1) ^ -(byte & 1), pos + 1
        return read_varint(data, pos)

    return read


def _make_int(data: bytes) -> Reader:
    def read(pos: int, _: int) -> tuple[int, int]:
        value, stop = read_varint(data, pos)
        if not -_INTS <= value < _INTS:
            raise CorruptFileError("An Avro int has more than 32 bits.", offset=pos)
        return value, stop

    return read


def _make_real(data: bytes, form: struct.Struct) -> Reader:
    def read(pos: int, end: int) -> tuple[float, int]:
        if pos + form.size > end:
            raise CorruptFileError("An Avro number is cut short.", offset=pos)
        value: float = form.unpack_from(data, pos)[0]
        return value, pos + form.size

    return read


def _make_bytes(data: bytes) -> Reader:
    def read(pos: int, end: int) -> tuple[bytes, int]:
        start, stop = read_span(data, pos, end)
        return data[start:stop], stop

    return read


def _make_string(data: bytes) -> Reader:
    def read(pos: int, end: int) -> tuple[str, int]:
        byte = data[pos]
        start = pos + 1
        stop = start + (byte >> 1)
        if byte >= _ONE_BYTE or byte & 1 or stop > end:  # read_span reads longer lengths and refuses invalid ones
            start, stop = read_span(data, pos, end)
        try:
            return data[start:stop].decode(), stop
        except UnicodeDecodeError:
            raise CorruptFileError("An Avro string is not UTF-8.", offset=pos) from None

    return read


def _make_fixed(data: bytes, size: int) -> Reader:
    def read(pos: int, end: int) -> tuple[bytes, int]:
        if pos + size > end:
            raise CorruptFileError("An Avro fixed value is cut short.", offset=pos)
        return data[pos : pos + size], pos + size

    return read


def _make_enum(data: bytes, symbols: tuple[str, ...]) -> Reader:
    def read(pos: int, _: int) -> tuple[str, int]:
        number, stop = read_varint(data, pos)
        if not 0 <= number < len(symbols):
            raise CorruptFileError(f"An Avro enum has no symbol {number}.", offset=pos)
        return symbols[number], stop

    return read


def _make_record(fields: list[tuple[str, Reader]]) -> Reader:
    def read(pos: int, end: int) -> tuple[dict[str, Any], int]:
        values = {}
        for name, field in fields:
            values[name], pos = field(pos, end)
        return values, pos

    return read


def _make_union(data: bytes, node: Union, charge: Charge) -> Reader:
    branches = [None if is_null(branch) else make_object_reader(data, branch, charge) for branch in node.branches]
    count = len(branches)

    def read(pos: int, end: int) -> tuple[Any, int]:
        byte = data[pos]
        if byte >= _ONE_BYTE or byte & 1 or byte >> 1 >= count:  # a longer number, or an invalid one
            number, start = read_varint(data, pos)
            if not 0 <= number < count:
                raise make_branch_error(number, pos)
        else:
            number, start = byte >> 1, pos + 1
        branch = branches[number]
        return (None, start) if branch is None else branch(start, end)

    return read


def _make_array(data: bytes, min_size: int, item: Reader, charge: Charge) -> Reader:
    def read(pos: int, end: int) -> tuple[list[Any], int]:
        items: list[Any] = []
        while True:
            count, pos = read_count(data, pos, end, min_size)
            if count == 0:
                return items, pos
            charge(count)
            for _ in range(count):
                value, pos = item(pos, end)
                items.append(value)

    return read


def _make_map(data: bytes, min_size: int, value: Reader, charge: Charge) -> Reader:
    key = _make_string(data)

    def read_entry(pos: int, end: int) -> tuple[tuple[str, Any], int]:
        name, pos = key(pos, end)
        found, pos = value(pos, end)
        return (name, found), pos

    entries = _make_array(data, min_size, read_entry, charge)

    def read(pos: int, end: int) -> tuple[dict[str, Any], int]:
        found, pos = entries(pos, end)
        return dict(found), pos

    return read


MAGIC = b"Obj\x01"

_SYNC_BYTES = 16
_FREE_BYTES = 16 << 20  # always allowed for a decompressed record, whatever its compressed size
_MAX_HEADER_ENTRIES = 1000
_MAX_BLOCKS = 1000


def is_container(data: bytes) -> bool:
    """Return whether the data starts like an Avro object container file."""
    return data[:4] == MAGIC


def read_single(data: bytes, *names: str) -> Mapping[str, Any]:
    """Decode the one record of a container file.

    Only records with one of the names, without namespace, are accepted; every record if no name is given.

    Raises:
        CorruptFileError: the bytes are not a container file with exactly one record of such a name, or do not match
            the schema.
        UnsupportedFeatureError: the codec is neither null nor deflate.
    """
    if len(data) > get_limits().metadata_bytes:
        raise_limit_error(CorruptFileError, f"A file of the timeline has {len(data)} bytes", "metadata_bytes")
    reader = _ByteReader(data)
    if reader.take(4) != MAGIC:
        raise CorruptFileError("Not an Avro file: the magic is missing.", offset=0)
    header = dict(_read_header(reader))
    sync = reader.take(_SYNC_BYTES)
    codec = header.get("avro.codec", b"null").decode("ascii", errors="replace") or "null"
    if codec not in ("null", "deflate"):
        raise UnsupportedFeatureError(f"Avro codec {codec[:40]!r} is not supported in timeline files.")
    schema = vet_schema(header.get("avro.schema", b"").decode("utf-8", errors="replace"))
    if names and schema.name not in names:
        raise CorruptFileError(f"The file holds {schema.name}, not {' or '.join(names)}.")
    record: Mapping[str, Any] | None = None
    for count, body in _read_blocks(reader, sync, codec):
        if record is not None or count != 1:
            raise CorruptFileError("The file does not hold exactly one record.")
        record = decode_record(body, schema)
    if record is None:
        raise CorruptFileError("The file holds no record.")
    return record


def decode_record(body: bytes, schema: VettedSchema) -> Mapping[str, Any]:
    """Decode the Avro binary of one record as Python objects; it must fill ``body`` to its end.

    Raises CorruptFileError if the bytes do not match the schema, or contain more items than the limit
    ``metadata_items``: an item of one byte takes hundreds of bytes as a Python object.
    """
    items = 0
    most = get_limits().metadata_items

    def charge(count: int) -> None:
        nonlocal items
        items += count
        if items > most:
            raise_limit_error(
                CorruptFileError, f"A record of {schema.name} has at least {items} items", "metadata_items"
            )

    record: dict[str, Any] = {}
    stop = -1
    with suppress(IndexError):  # raised if the bytes end too early; ``stop`` is then still -1
        record, stop = make_object_reader(body, schema.record, charge)(0, len(body))
    if stop != len(body):
        raise CorruptFileError(f"The bytes do not match the Avro schema of {schema.name}.")
    return record


class _ByteReader:
    """Reads bytes in order and never past their end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    @property
    def at_end(self) -> bool:
        return self.at >= len(self._data)

    def take(self, size: int) -> bytes:
        if size < 0 or size > len(self._data) - self.at:
            raise CorruptFileError("The Avro file is cut short.", offset=self.at)
        self.at += size
        return self._data[self.at - size : self.at]

    def read_long(self) -> int:
        try:
            value, self.at = read_varint(self._data, self.at)
        except IndexError:
            raise CorruptFileError("The Avro file is cut short.", offset=len(self._data)) from None
        return value


def _read_header(reader: _ByteReader) -> Iterator[tuple[str, bytes]]:
    seen = 0
    while (count := reader.read_long()) != 0:
        if count < 0:
            count = -count
            reader.read_long()
        seen += count
        if seen > _MAX_HEADER_ENTRIES:
            raise CorruptFileError("The Avro header has too many entries.", offset=reader.at)
        for _ in range(count):
            key = reader.take(reader.read_long()).decode("utf-8", errors="replace")
            yield key, reader.take(reader.read_long())


def _read_blocks(reader: _ByteReader, sync: bytes, codec: str) -> Iterator[tuple[int, bytes]]:
    for _ in range(_MAX_BLOCKS):
        if reader.at_end:
            return
        count = reader.read_long()
        body = reader.take(reader.read_long())
        if reader.take(_SYNC_BYTES) != sync:
            raise CorruptFileError("A sync marker of the Avro file is wrong.", offset=reader.at - _SYNC_BYTES)
        if count != 0:
            yield count, _inflate(body) if codec == "deflate" else body
    if not reader.at_end:
        raise CorruptFileError("The Avro file has too many blocks.", offset=reader.at)


def _inflate(body: bytes) -> bytes:
    stream = zlib.decompressobj(-zlib.MAX_WBITS)
    by_ratio = max(_FREE_BYTES, get_limits().metadata_ratio * len(body))
    most = min(get_limits().metadata_bytes, by_ratio)
    try:
        plain = stream.decompress(body, most)
    except zlib.error as error:
        raise CorruptFileError("A deflated block of the Avro file is broken.") from error
    if len(plain) >= most and not stream.eof:
        name = "metadata_ratio" if most == by_ratio else "metadata_bytes"
        raise_limit_error(CorruptFileError, f"A deflated record of {len(body)} bytes has over {most}", name)
    if not stream.eof:
        raise CorruptFileError("A deflated block of the Avro file is cut short.")
    return plain


# Schemas -------------------------------------------------------------------------------------------------------------


class VettedSchema:
    """An Avro record schema that passed the checks, and its short name."""

    __slots__ = ("name", "record")

    def __init__(self, record: Record) -> None:
        self.name = record.name.rpartition(".")[2]
        self.record = record


@lru_cache(maxsize=64)
def vet_schema(text: str) -> VettedSchema:
    """Parse and check the schema of a metadata record. Raises as ``schema.parse_record``."""
    return VettedSchema(parse_record(text))


_MISFITS = (ValueError, TypeError, KeyError, AttributeError, OverflowError)


def write_single(record: Mapping[str, Any], schema: str | Mapping[str, Any]) -> bytes:
    """Encode a container file with one record.

    The record has exactly the fields of the schema. A schema given as text is stored unchanged.

    Raises ValueError if the record does not fit the schema.
    """
    import hashlib

    text = schema if isinstance(schema, str) else json.dumps(schema, separators=(",", ":"))
    body = encode_record(record, text)
    header = encode_long(1) + _encode_sized(b"avro.schema") + _encode_sized(text.encode()) + encode_long(0)
    sync = hashlib.blake2b(header + body, digest_size=_SYNC_BYTES).digest()
    return b"".join((MAGIC, header, sync, encode_long(1), _encode_sized(body), sync))


def encode_record(record: Mapping[str, Any], schema: str) -> bytes:
    """Encode one record as Avro binary without container. Raises ValueError if it does not fit the schema."""
    import fastavro

    stream = io.BytesIO()
    try:
        fastavro.schemaless_writer(stream, _parse_schema(schema), record, strict=True, disable_tuple_notation=True)
    except _MISFITS as error:
        raise ValueError(f"a record does not fit its Avro schema: {error}") from error
    return stream.getvalue()


@lru_cache(maxsize=64)
def _parse_schema(schema: str) -> Any:
    import fastavro

    return fastavro.parse_schema(json.loads(schema))


def _encode_sized(data: bytes) -> bytes:
    return encode_long(len(data)) + data
