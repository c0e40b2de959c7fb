"""The logical types of Hudi 1.2: VECTOR, VARIANT and BLOB (HoodieSchema.Vector, Variant and Blob).

An Arrow field names its logical type in its metadata, under the key that Hudi's Spark writer uses for columns.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

TYPE_KEY = b"hudi_type"  # HoodieSchema.TYPE_METADATA_FIELD
VECTOR, VARIANT, BLOB = "vector", "variant", "blob"  # as in Avro schemas
RECORD_TYPES = frozenset({VARIANT, BLOB})  # logical types of records
_LONGEST = 200


def read_type_name(field: pa.Field) -> str | None:
    """Return the logical type named in a field's metadata, as it is spelt there; None if there is none."""
    metadata = field.metadata
    if metadata is None or TYPE_KEY not in metadata:
        return None
    return str(metadata[TYPE_KEY][:_LONGEST], "utf-8", "replace").strip()


def name_type(field: pa.Field, name: str) -> pa.Field:
    """Return a field whose metadata contains the name of a logical type."""
    metadata: dict[Any, Any] = {**(field.metadata or {}), TYPE_KEY: name}
    return field.with_metadata(metadata)
