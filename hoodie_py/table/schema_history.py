"""Schema-on-read history: whether columns of older files may still be matched by name.

A table with schema-on-read keeps every version of its schema in
``.hoodie/.schema/<instant>[_<completion>].schemacommit``: JSON ``{"schemas": [newest, ...]}``, each with
``version_id`` (an instant as a number) and fields that carry an id (Hudi ``InternalSchema``,
``FileBasedInternalSchemaStorageManager``). Java matches columns by id. Matching by name gives the same rows as long
as no column was renamed, re-added under a name in use before, or retyped other than from int to long; that is what
is checked here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from hoodie_py.errors import CorruptFileError, FileMissingError
from hoodie_py.files import TableFiles
from hoodie_py.formats.names import METADATA_FOLDER
from hoodie_py.table.bounded import read_bounded

SCHEMA_FOLDER = f"{METADATA_FOLDER}/.schema"

_MAX_DEPTH = 64
_SAFE_RETYPES = frozenset({("int", "long")})
_NESTED = (("element_id", "element", "element"), ("key_id", "key", "key"), ("value_id", "value", "value"))


def needs_matching_by_id(files: TableFiles, as_of: str | None) -> bool:
    """Whether the versions up to a request time (None: all) rename, re-add or retype a column.

    Where the history is missing that cannot be excluded, so the answer is yes.

    Raises:
        CorruptFileError: the history is no JSON of the expected shape.
        StorageError: it cannot be read.
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
    try:
        listing = files.list(SCHEMA_FOLDER)
    except FileMissingError:
        return None
    completed = [info.path for info in listing if not info.is_dir and info.name.endswith(".schemacommit")]
    return read_bounded(files, max(completed)) if completed else None


def _parse_versions(text: bytes, as_of: str | None) -> list[Mapping[str, Any]]:
    try:
        schemas = json.loads(text)["schemas"]
        return [each for each in schemas if as_of is None or _format_version(each) <= as_of.ljust(17, "9")]
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise CorruptFileError("the schema history is not what Hudi writes", path=SCHEMA_FOLDER) from error


def _format_version(version: Mapping[str, Any]) -> str:
    return str(int(version["version_id"])).rjust(17, "0")


def _iterate_columns(node: Any, prefix: str, depth: int) -> Iterator[tuple[int, str, str]]:
    """Every column and nested element of a version: id, full name, type (its kind where nested)."""
    if depth > _MAX_DEPTH or not isinstance(node, Mapping):
        raise CorruptFileError("the schema history is not what Hudi writes", path=SCHEMA_FOLDER)
    fields = node.get("fields") or []
    if not isinstance(fields, list) or not all(isinstance(each, Mapping) for each in fields):
        raise CorruptFileError("the schema history has fields that are none", path=SCHEMA_FOLDER)
    entries = [(each.get("id"), each.get("name"), each.get("type")) for each in fields]
    entries += [(node[key], name, node.get(type_)) for key, type_, name in _NESTED if key in node]
    for column_id, name, type_ in entries:
        if not isinstance(column_id, int) or not isinstance(name, str):
            raise CorruptFileError("the schema history has a column without id or name", path=SCHEMA_FOLDER)
        full = f"{prefix}.{name}" if prefix else name
        if isinstance(type_, Mapping):
            yield column_id, full, str(type_.get("type"))
            yield from _iterate_columns(type_, full, depth + 1)
        else:
            yield column_id, full, str(type_)
