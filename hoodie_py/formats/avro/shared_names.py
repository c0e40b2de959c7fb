"""Logical types that several columns of an Avro schema share.

Avro defines a named type once and refers to it by name afterwards. Columns of blobs share the name ``blob``, and so do
vectors of one type. To change a schema, all definitions are written in full; references are restored at the end.
"""

from __future__ import annotations

from typing import Any

from hoodie_py.formats.logical_types import BLOB, VECTOR

_SHARED = frozenset({BLOB, VECTOR})
_INNER = ("type", "items", "values", "fields")


def write_in_full(tree: Any) -> Any:
    """Return a schema (parsed JSON) with definitions in place of references to shared logical types."""
    return _expand(tree, {})


def name_repeated(tree: Any) -> Any:
    """Return a schema (parsed JSON) that defines each shared logical type where it occurs first, and refers to it
    later.
    """
    return _shorten(tree, {})


def _is_shared(tree: Any) -> bool:
    return isinstance(tree, dict) and tree.get("logicalType") in _SHARED and tree.get("namespace") == ""


def _expand(tree: Any, known: dict[str, Any]) -> Any:
    if isinstance(tree, str):
        return known.get(tree, tree)
    if _is_shared(tree):
        known[str(tree.get("name"))] = tree
        return tree
    return _map_inner(tree, known, _expand)


def _shorten(tree: Any, known: dict[str, Any]) -> Any:
    if not _is_shared(tree):
        return _map_inner(tree, known, _shorten)
    name = str(tree.get("name"))
    if known.get(name) == tree:
        return name
    known[name] = tree
    return tree


def _map_inner(tree: Any, known: dict[str, Any], change: Any) -> Any:
    if isinstance(tree, list):
        return [change(each, known) for each in tree]
    if not isinstance(tree, dict):
        return tree
    return {key: change(value, known) if key in _INNER else value for key, value in tree.items()}
