"""Checks and joins paths inside a store.

A path often comes from a table's metadata, so it is not trusted. It must stay below the root, whatever dots, slashes
and schemes mean to the store.
"""

from __future__ import annotations

import re

from hoodie_storage.errors import PathError

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
_SHOWN = 200


def check_path(path: str) -> str:
    """Return the path if it is below the root.

    Raises:
        PathError: the path is absolute, or has a scheme, a NUL, a backslash, or a segment that is empty, ``.`` or
            ``..``.
    """
    problem = _find_problem(path)
    if problem:
        raise PathError(f"{problem}: {path[:_SHOWN]!r}", hint="Paths are relative to the root and stay below it.")
    return path


def _find_problem(path: str) -> str | None:
    if not path:
        return None
    if path.startswith("/"):
        return "an absolute path"
    if "\0" in path:
        return "a NUL character in a path"
    if "\\" in path:
        return "a backslash in a path"
    if _SCHEME.match(path):
        return "a path with a scheme"
    segments = path.split("/")
    if ".." in segments:
        return "a path that climbs"
    if "" in segments or "." in segments:
        return "a path with an empty segment"
    return None


def join_paths(*parts: str) -> str:
    """Join parts with slashes; empty parts are left out."""
    return "/".join(part for part in parts if part)
