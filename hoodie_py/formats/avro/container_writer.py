"""Write Avro object container files of one record, the form of the timeline's files (Hudi TimelineMetadataUtils).

    file   = "Obj" 0x01, header map {avro.schema}, sync marker (16 bytes), block
    block  = record count 1, byte count, bytes, sync marker

fastavro encodes the record. The container around it is written here, because fastavro's names the codec and rewrites
the schema, which Java's files do not. The codec is null and has no header entry. The sync marker is a hash of the
content, so the same record gives the same bytes. ``container.read_single`` reads these files.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import fastavro

from hoodie_py.formats.avro.binary import encode_long
from hoodie_py.formats.avro.container import MAGIC

_SYNC_BYTES = 16
_MISFITS = (ValueError, TypeError, KeyError, AttributeError, OverflowError)


def write_single(record: Mapping[str, Any], schema: str | Mapping[str, Any]) -> bytes:
    """Encode a container file that holds one record.

    The record has every field of the schema and no other. A schema that is given as text is stored unchanged.

    Raises ValueError if the record does not fit the schema.
    """
    text = schema if isinstance(schema, str) else json.dumps(schema, separators=(",", ":"))
    body = encode_record(record, text)
    header = encode_long(1) + _encode_sized(b"avro.schema") + _encode_sized(text.encode()) + encode_long(0)
    sync = hashlib.blake2b(header + body, digest_size=_SYNC_BYTES).digest()
    return b"".join((MAGIC, header, sync, encode_long(1), _encode_sized(body), sync))


def encode_record(record: Mapping[str, Any], schema: str) -> bytes:
    """Encode one record as Avro binary without container; ValueError when it does not fit the schema."""
    stream = io.BytesIO()
    try:
        fastavro.schemaless_writer(stream, _parse_schema(schema), record, strict=True, disable_tuple_notation=True)
    except _MISFITS as error:
        raise ValueError(f"a record does not fit its Avro schema: {error}") from error
    return stream.getvalue()


@lru_cache(maxsize=64)
def _parse_schema(schema: str) -> Any:
    return fastavro.parse_schema(json.loads(schema))


def _encode_sized(data: bytes) -> bytes:
    return encode_long(len(data)) + data
