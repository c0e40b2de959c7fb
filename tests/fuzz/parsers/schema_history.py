"""The history of a schema-on-read schema."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from hoodie_py.errors import HoodieError
from hoodie_py.files import FileInfo
from hoodie_py.table.schema.history import SCHEMA_FOLDER, needs_matching_by_id
from tests.fuzz.trees import BUILT, is_built, tree

WORDS = (
    "schemas", "version_id", "type", "fields", "id", "name", "element_id", "element", "key_id", "key", "value_id",
    "value", "record", "array", "map", "int", "long", "string", "a", "b", "20260101000000000",
)  # fmt: skip
_FIELDS = [
    {"id": 0, "name": "a", "optional": True, "type": "int"},
    {"id": 1, "name": "b", "type": {"type": "array", "element_id": 2, "element": "long", "element_optional": True}},
]
_VERSION = {"max_column_id": 2, "version_id": 20260101000000000, "type": "record", "fields": _FIELDS}


class _OneFile:
    """A folder with one history in it."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def list_or_empty(self, path: str) -> list[FileInfo]:
        return [FileInfo(f"{path}/1.schemacommit", len(self._data), is_dir=False)]

    def read(self, path: str, most: int | None = None) -> bytes:
        assert path.startswith(SCHEMA_FOLDER)
        return self._data[:most]


def seeds() -> list[bytes]:
    """Histories of no, one and two versions."""
    newer = _VERSION | {"version_id": 20260102000000000, "fields": [_FIELDS[0] | {"type": "long"}, _FIELDS[1]]}
    histories: list[Any] = [{"schemas": versions} for versions in ([], [_VERSION], [newer, _VERSION])]
    return [json.dumps(history).encode() for history in histories] + [bytes([BUILT, 0x61, 0, 0x41, 0x63, 1, 0, 0x12])]


def parse(data: bytes) -> None:
    """Ask whether columns match by name, now and at a time."""
    if is_built(data):
        data = json.dumps({"schemas": [tree(data, WORDS)]}).encode()
    files: Any = _OneFile(data)
    for as_of in (None, "20260101000000000"):
        with suppress(HoodieError):
            needs_matching_by_id(files, as_of)
