"""BLOB: bytes in the row, or a reference to bytes in a file elsewhere (HoodieSchema.Blob).

    type        INLINE or OUT_OF_LINE
    data        the bytes; null if they are elsewhere
    reference   external_path, offset and length (null: the whole file), managed (whether Hudi owns the file)

A read of such a column returns this struct; ``hoodie_py.read_blob`` returns the bytes.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from hoodie_py.errors import InvalidQueryError
from hoodie_py.formats.logical_types import BLOB

INLINE, OUT_OF_LINE = "INLINE", "OUT_OF_LINE"
STORAGE_TYPES = (INLINE, OUT_OF_LINE)
REFERENCE = pa.struct([
    pa.field("external_path", pa.string(), nullable=False),
    pa.field("offset", pa.int64()),
    pa.field("length", pa.int64()),
    pa.field("managed", pa.bool_(), nullable=False),
])  # fmt: skip
BLOB_TYPE = pa.struct([
    pa.field("type", pa.string(), nullable=False), pa.field("data", pa.binary()), pa.field("reference", REFERENCE),
])  # fmt: skip


def write_blob() -> dict[str, Any]:
    """Make the Avro schema of the type, as parsed JSON."""
    return {
        "type": "record",
        "name": BLOB,
        "namespace": "",
        "fields": [
            {"name": "type", "type": {"type": "enum", "name": "blob_storage_type", "symbols": list(STORAGE_TYPES)}},
            {"name": "data", "type": ["null", "bytes"], "default": None},
            {"name": "reference", "type": ["null", _write_reference()], "default": None},
        ],
        "logicalType": BLOB,
    }


def _write_reference() -> dict[str, Any]:
    fields = [
        {"name": "external_path", "type": "string"},
        {"name": "offset", "type": ["null", "long"]},
        {"name": "length", "type": ["null", "long"]},
        {"name": "managed", "type": "boolean"},
    ]
    return {"type": "record", "name": "reference", "fields": fields}


def check_blob(type_: pa.DataType) -> None:
    """Check that a column marked as BLOB has the fields of one.

    Raises InvalidQueryError if it does not.
    """
    if not _has_fields(type_, BLOB_TYPE) or not _has_fields(type_.field("reference").type, REFERENCE):
        raise InvalidQueryError(f"A column marked as BLOB has the type {type_}.", hint=f"Give it {BLOB_TYPE}.")


def _has_fields(type_: pa.DataType, wanted: pa.StructType) -> bool:
    names = sorted(field.name for field in wanted)
    return bool(pa.types.is_struct(type_)) and sorted(field.name for field in type_) == names
