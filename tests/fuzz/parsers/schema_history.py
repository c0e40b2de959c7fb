"""The history of a schema-on-read schema, and the mappings of columns that follow from it."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from hoodie_py.errors import HoodieError
from hoodie_py.formats.avro.columns import InternalSchema, parse_internal_schema, parse_schema_history
from hoodie_py.table.schema.by_id import make_mappings
from tests.fuzz.trees import BUILT, is_built, tree

WORDS = (
    "schemas", "version_id", "type", "fields", "id", "name", "element_id", "element", "key_id", "key", "value_id",
    "value", "record", "array", "map", "int", "long", "string", "a", "b", "20260101000000000",
)  # fmt: skip
_FIELDS = [
    {"id": 0, "name": "a", "optional": True, "type": "int"},
    {"id": 1, "name": "b", "type": {"type": "array", "element_id": 2, "element": "long", "element_optional": True}},
]
_INNER = {"type": "record", "fields": [{"id": 4, "name": "x", "optional": True, "type": "int"}]}
_MAP = {"type": "map", "key_id": 5, "key": "string", "value_id": 6, "value": _INNER, "value_optional": True}
_VERSION = {"max_column_id": 2, "version_id": 20260101000000000, "type": "record", "fields": _FIELDS}
_NESTED = _VERSION | {"version_id": 3, "fields": [*_FIELDS, {"id": 7, "name": "m", "optional": True, "type": _MAP}]}


def seeds() -> list[bytes]:
    """Histories of no, one and two versions."""
    renamed = _FIELDS[0] | {"name": "c", "type": "long"}
    newer = _VERSION | {"version_id": 20260102000000000, "fields": [renamed, _FIELDS[1]]}
    histories: list[Any] = [{"schemas": versions} for versions in ([], [_VERSION], [newer, _VERSION], [newer, _NESTED])]
    return [json.dumps(history).encode() for history in histories] + [bytes([BUILT, 0x61, 0, 0x41, 0x63, 1, 0, 0x12])]


def parse(data: bytes) -> None:
    """Parse a history, map every version to every other one, and find the mapping of an instant."""
    built = tree(data, WORDS) if is_built(data) else None
    text = data if built is None else json.dumps({"schemas": [built]}).encode()
    with suppress(HoodieError):
        parse_internal_schema(text.decode("utf-8", "replace"))
    with suppress(HoodieError):
        versions = parse_schema_history(text)
        for query in (*versions[:2], *versions[-2:]):
            _map(query, versions)


def _map(query: InternalSchema, versions: tuple[InternalSchema, ...]) -> None:
    with suppress(HoodieError):
        found = make_mappings(query, versions)
        if found is not None:
            found.find("20260101000000000")
            found.cut(["1", "20260101000000000"]).find("20260101000000000")
