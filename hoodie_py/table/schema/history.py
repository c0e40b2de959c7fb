"""Check in a table's schema-on-read history whether columns of older files can be matched by name.

A table with schema-on-read keeps all versions of its schema in
``.hoodie/.schema/<instant>[_<completion>].schemacommit``: JSON ``{"schemas": [newest, ...]}``. Each version has a
``version_id`` (an instant as a number) and fields with an id (Hudi ``InternalSchema``,
``FileBasedInternalSchemaStorageManager``). Java matches columns by id. Matching by name gives the same rows if no
column was renamed, added again under an old name, or retyped other than from int to long.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from hoodie_py.errors import CorruptFileError
from hoodie_py.files import TableFiles
from hoodie_py.formats.names import METADATA_FOLDER
from hoodie_py.table.bounded import read_bounded

SCHEMA_FOLDER = f"{METADATA_FOLDER}/.schema"

_MAX_DEPTH = 64
_SAFE_RETYPES = frozenset({("int", "long")})
_NESTED = (("element_id", "element", "element"), ("key_id", "key", "key"), ("value_id", "value", "value"))


def needs_matching_by_id(files: TableFiles, as_of: str | None) -> bool:
    """Say whether a version up to a request time (None: all) renames, re-adds or retypes a column.

    Without a history, a rename cannot be excluded, and the answer is yes.

    Raises:
        CorruptFileError: the history is no JSON of the expected shape.
        StorageError: the history cannot be read.
    """
    text = _read_newest_history(files)
    if text is None:
        return True
    ids: dict[str, int] = {}
    names: dict[int, str] = {}
    types: dict[int, str] = {}
    for version in reversed(_parse_versions(text, as_of)):
        for column_id, name, type_ in _iterate_columns(version, "", 0):
            old = types.get(column_id, type_)
            if ids.setdefault(name, column_id) != column_id or names.setdefault(column_id, name) != name:
                return True
            if old != type_ and (old, type_) not in _SAFE_RETYPES:
                return True
            types[column_id] = type_
    return False


def _read_newest_history(files: TableFiles) -> bytes | None:
    listing = files.list_or_empty(SCHEMA_FOLDER)
    completed = [info.path for info in listing if not info.is_dir and info.name.endswith(".schemacommit")]
    return read_bounded(files, max(completed)) if completed else None


def _parse_versions(text: bytes, as_of: str | None) -> list[Mapping[str, Any]]:
    try:
        schemas = json.loads(text)["schemas"]
        return [each for each in schemas if as_of is None or _format_version(each) <= as_of.ljust(17, "9")]
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise CorruptFileError("The schema history is not in Hudi's format.", path=SCHEMA_FOLDER) from error


def _format_version(version: Mapping[str, Any]) -> str:
    return str(int(version["version_id"])).rjust(17, "0")


def _iterate_columns(node: Any, prefix: str, depth: int) -> Iterator[tuple[int, str, str]]:
    """Yield id, full name and type (the kind of a nested type) of every column and nested element."""
    if depth > _MAX_DEPTH or not isinstance(node, Mapping):
        raise CorruptFileError("The schema history is not in Hudi's format.", path=SCHEMA_FOLDER)
    fields = node.get("fields") or []
    if not isinstance(fields, list) or not all(isinstance(each, Mapping) for each in fields):
        raise CorruptFileError("The schema history has a field that is no JSON object.", path=SCHEMA_FOLDER)
    entries = [(each.get("id"), each.get("name"), each.get("type")) for each in fields]
    entries += [(node[key], name, node.get(type_)) for key, type_, name in _NESTED if key in node]
    for column_id, name, type_ in entries:
        if not isinstance(column_id, int) or not isinstance(name, str):
            raise CorruptFileError("The schema history has a column without id or name.", path=SCHEMA_FOLDER)
        full = f"{prefix}.{name}" if prefix else name
        if isinstance(type_, Mapping):
            yield column_id, full, str(type_.get("type"))
            yield from _iterate_columns(type_, full, depth + 1)
        else:
            yield column_id, full, str(type_)
