"""The Avro schema of a new metadata table's records (Hudi ``HoodieMetadataRecord`` of release 1.2.0).

Existing metadata tables keep the schema that their files have. Java stores the meta columns first, though no record
fills them, and requires Java's own strings (``avro.java.string``), since it merges maps by such keys.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, Final

from hoodie_py.formats.names import META_FIELDS

FILES_COLUMN: Final = "filesystemMetadata"
BLOOM_COLUMN: Final = "BloomFilterMetadata"
STATISTICS_COLUMN: Final = "ColumnStatsMetadata"
RECORD_INDEX_COLUMN: Final = "recordIndexMetadata"
SECONDARY_INDEX_COLUMN: Final = "SecondaryIndexMetadata"
"""Columns of a record: one of them is filled, by the type of the record."""

_TEXT: dict[str, Any] = {"type": "string", "avro.java.string": "String"}
_WRAPPERS: tuple[tuple[str, Any], ...] = (
    ("BooleanWrapper", "boolean"),
    ("IntWrapper", "int"),
    ("LongWrapper", "long"),
    ("FloatWrapper", "float"),
    ("DoubleWrapper", "double"),
    ("BytesWrapper", "bytes"),
    ("StringWrapper", _TEXT),
    ("DateWrapper", "int"),
    ("DecimalWrapper", {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 15}),
    ("TimeMicrosWrapper", {"type": "long", "logicalType": "time-micros"}),
    ("TimestampMicrosWrapper", "long"),
    ("LocalDateWrapper", "int"),
)


@lru_cache(maxsize=1)
def make_record_schema() -> str:
    """Return the schema as JSON text, meta columns first."""
    fields = [
        *(_field(name, ["null", "string"], None) for name in META_FIELDS),
        _field("key", _TEXT),
        _field("type", "int"),
        _field(FILES_COLUMN, ["null", _make_file_map()]),
        _field(BLOOM_COLUMN, ["null", _make_bloom_filter()], None),
        _field(STATISTICS_COLUMN, ["null", _make_column_statistics()], None),
        _field(RECORD_INDEX_COLUMN, ["null", _make_record_location()], None),
        _field(
            SECONDARY_INDEX_COLUMN,
            ["null", _record("HoodieSecondaryIndexInfo", _field("isDeleted", "boolean"))],
            None,
        ),
    ]
    schema = _record("HoodieMetadataRecord", *fields)
    return json.dumps(schema | {"namespace": "org.apache.hudi.avro.model"}, separators=(",", ":"))


def _make_file_map() -> dict[str, Any]:
    file = _record("HoodieMetadataFileInfo", _field("size", "long"), _field("isDeleted", "boolean"))
    return {"type": "map", "values": file, "avro.java.string": "String"}


def _make_bloom_filter() -> dict[str, Any]:
    return _record(
        "HoodieMetadataBloomFilter",
        _field("type", _TEXT),
        _field("timestamp", _TEXT),
        _field("bloomFilter", "bytes"),
        _field("isDeleted", "boolean"),
    )


def _make_column_statistics() -> dict[str, Any]:
    names = [name for name, _ in _WRAPPERS]
    wrappers = [_record(name, _field("value", type_)) for name, type_ in _WRAPPERS]
    values = _field("wrappedValues", ["null", {"type": "array", "items": ["null", *names]}], None)
    kind = _record("HoodieValueTypeInfo", _field("typeOrdinal", "int"), _optional("additionalInfo", _TEXT))
    return _record(
        "HoodieMetadataColumnStats",
        _optional("fileName", _TEXT),
        _optional("columnName", _TEXT),
        _field("minValue", ["null", *wrappers, _record("ArrayWrapper", values)], None),
        _field("maxValue", ["null", *names, "ArrayWrapper"], None),
        *(_optional(name, "long") for name in ("valueCount", "nullCount", "totalSize", "totalUncompressedSize")),
        _field("isDeleted", "boolean"),
        _field("isTightBound", "boolean", False),
        _optional("valueType", kind),
    )


def _make_record_location() -> dict[str, Any]:
    return _record(
        "HoodieRecordIndexInfo",
        _optional("partitionName", _TEXT),
        _optional("fileIdHighBits", "long"),
        _optional("fileIdLowBits", "long"),
        _optional("fileIndex", "int"),
        _optional("fileId", _TEXT),
        _optional("instantTime", "long"),
        _field("fileIdEncoding", "int", 0),
        _optional("position", "long"),
    )


def _record(name: str, *fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def _field(name: str, type_: Any, *default: Any) -> dict[str, Any]:
    return {"name": name, "type": type_, **({"default": default[0]} if default else {})}


def _optional(name: str, type_: Any) -> dict[str, Any]:
    return _field(name, ["null", type_], None)
