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
"""

from __future__ import annotations

import io
import json
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any

from hoodie_py.errors import CorruptFileError, UnsupportedFeatureError
from hoodie_py.formats.avro.binary import encode_long, read_varint
from hoodie_py.formats.avro.objects import make_object_reader
from hoodie_py.formats.avro.schema import Record, parse_record
from hoodie_py.formats.limits import get_limits, raise_limit_error

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
    """Decode the Avro binary of one record as Python objects (``objects``); it must fill ``body`` to its end.

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
