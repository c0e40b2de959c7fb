"""Avro schemas, with the Arrow types and defaults made of them."""

from __future__ import annotations

import json
from contextlib import suppress

from hoodie_py.errors import HoodieError
from hoodie_py.formats.avro.container import vet_schema
from hoodie_py.formats.avro.data_blocks import AvroSchema
from hoodie_py.formats.log.framing import LogBlock, iterate_blocks
from tests.fuzz.parsers.avro_data import SCHEMAS
from tests.fuzz.seeds import all_files, distinct, is_log
from tests.fuzz.trees import is_built, tree

WORDS = (
    "type", "name", "fields", "namespace", "items", "values", "symbols", "size", "default", "logicalType", "precision",
    "scale", "record", "error", "array", "map", "enum", "fixed", "null", "boolean", "int", "long", "float", "double",
    "bytes", "string", "decimal", "date", "time-millis", "time-micros", "timestamp-millis", "timestamp-micros",
    "local-timestamp-micros", "uuid", "duration", "vector", "dimension", "elementType", "storageBacking", "FLOAT",
    "blob",
    "variant", "a", "b", "a.b", "c", "é", "doc", "aliases", "order",
)  # fmt: skip
BUILT_SEEDS = tuple(bytes.fromhex(text) for text in ("fe630000000c010023026263010123001463", "fe63000f010b41000001"))


def seeds() -> list[bytes]:
    """The schemas of real log blocks."""
    real = (
        block.schema_text.encode()
        for _, _, data in all_files(is_log, 20_000)
        for block in iterate_blocks(data)
        if isinstance(block, LogBlock) and block.schema_text is not None
    )
    return [text.encode() for text, _ in SCHEMAS] + distinct(real, 20) + list(BUILT_SEEDS)


def parse(data: bytes) -> None:
    """Vet a schema for blocks and for metadata records."""
    text = json.dumps(tree(data, WORDS)) if is_built(data) else data.decode("utf-8", "replace")
    with suppress(HoodieError):
        schema = AvroSchema.parse(text)
        assert len(schema.arrow) == len(schema.record.fields)
    with suppress(HoodieError):
        vet_schema(text)
