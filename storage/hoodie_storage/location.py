"""The location of a store, parsed from a URI or path, the paths inside a store, and places that a table names.

Paths inside a store, and places outside of it, often come from a table's metadata, so they are not trusted. They must
stay below their root, whatever dots, slashes, schemes and escapes mean to the store.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from hoodie_storage.errors import PathError
from hoodie_storage.redact import redact_uri

_SCHEME = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?P<rest>/.*|/?)\Z", re.DOTALL)
_CHAIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*::|.*::[A-Za-z][A-Za-z0-9+.-]*://", re.DOTALL)
_S3 = frozenset({"s3", "s3a", "s3n"})
_GOOGLE = frozenset({"gs", "gcs"})
_SCHEMED = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
_SHOWN = 200
_LOCAL = frozenset({"file", "local"})
_PLACE = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):(?://([^/]*))?)?((?:/.*)?)", re.DOTALL)
_LONGEST_PLACE = 4096  # characters: the most that Linux opens


@dataclass(frozen=True, slots=True)
class Location:
    """The root of a store.

    Args:
        protocol: fsspec's name of the store: ``file``, ``memory``, ``s3``, ...; empty for chained URIs.
        root: the root by the store's own name: an absolute path, ``bucket/prefix``, or the whole URI if fsspec must
            parse it.
        uri: the text for messages, without credentials.
    """

    protocol: str
    root: str
    uri: str

    def __repr__(self) -> str:
        return f"Location({self.uri!r})"


def parse_location(place: str | os.PathLike[str]) -> Location:
    """Parse a URI or a path.

    A local store is a path (``~`` is the home folder, relative paths start at the working directory) or a ``file://``
    URI; its ``uri`` is the absolute path. ``s3a://`` and ``s3n://`` are ``s3://``, ``gcs://`` is ``gs://``.

    Raises PathError if the text is not a location.
    """
    text = os.fspath(place)
    if not isinstance(text, str) or not text.strip():
        raise PathError("an empty path", hint="Give a path or a URI such as s3://bucket/table.")
    if "\0" in text:
        raise PathError("a NUL character in a path")
    if _CHAIN.match(text):
        return Location("", text, redact_uri(text))
    found = _SCHEME.match(text)
    if not found:
        return _parse_local(text)
    scheme, rest = found["scheme"].lower(), found["rest"]
    if scheme in _LOCAL:
        return _parse_local(_parse_file_uri(rest))
    if not rest.startswith("//"):
        raise PathError(f"{redact_uri(text)!r} is no URI", hint=f"Write {scheme}://...")
    if scheme in _S3:
        return _parse_s3(text, rest)
    if scheme in _GOOGLE:
        scheme, text = "gs", f"gs:{rest}"
    if scheme == "memory":
        inside = rest.strip("/")
        return Location("memory", f"/{inside}" if inside else "", f"memory://{inside}")
    return Location(scheme, text, redact_uri(text).rstrip("/"))


def _parse_local(text: str) -> Location:
    path = os.path.abspath(os.path.expanduser(text))
    return Location("file", path, path)


def _parse_file_uri(rest: str) -> str:
    if not rest.startswith("//"):
        return rest or "/"
    host, slash, path = rest[2:].partition("/")
    if host not in {"", "localhost"}:
        raise PathError(f"file://{host}/ names another machine", hint="Write file:///path or just /path.")
    return slash + path or "/"


def _parse_s3(text: str, rest: str) -> Location:
    from urllib.parse import urlsplit

    if "@" in urlsplit(text).netloc:
        raise PathError(
            f"credentials inside {redact_uri(text)!r}", hint="Give them in storage_options, or in the environment."
        )
    inside = rest.strip("/")
    if not inside or rest.startswith("///"):
        raise PathError("an S3 URI without a bucket", hint="Write s3://bucket/path.")
    return Location("s3", inside, f"s3://{inside}")


def check_path(path: str) -> str:
    """Return the path if it is below the root.

    Raises PathError if the path is absolute, or has a scheme, a NUL, a backslash, or a segment that is empty, ``.`` or
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
    if _SCHEMED.match(path):
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


@dataclass(frozen=True, slots=True)
class Place:
    """A file or folder outside of the table that the table names: scheme, host or bucket, and segments of the path.

    ``scheme`` and ``host`` are None where the text has none.
    """

    scheme: str | None
    host: str | None
    segments: tuple[str, ...]

    def find_inside(self, folder: Place) -> str | None:
        """Return the path relative to a folder, "" for the folder itself; None if it is not below it.

        A scheme or host that one side lacks is the other side's.
        """
        depth = len(folder.segments)
        agree = _agree(self.scheme, folder.scheme) and _agree(self.host, folder.host)
        return "/".join(self.segments[depth:]) if agree and self.segments[:depth] == folder.segments else None


def parse_place(text: str) -> Place:
    """Parse an absolute path or URI that a table names. ``s3a`` and ``s3n`` are ``s3``, ``local`` is ``file``.

    Raises PathError if it is neither, has credentials or more than 4,096 characters, or climbs: also for a store that
    decodes escapes, takes backslashes for slashes or reads chains of URIs. Its text has nothing of a place with
    credentials.
    """
    found = _PLACE.fullmatch(text)
    if found is None or not (found[3] or found[2]) or len(text) > _LONGEST_PLACE or "\0" in text or "::" in text:
        raise PathError("a place that is neither an absolute path nor a URI")
    scheme, host = (found[1] or "").lower() or None, found[2] or None
    scheme = "s3" if scheme in _S3 else "file" if scheme in _LOCAL else scheme
    if host is not None and "@" in host:
        raise PathError("a place with credentials in it")
    if scheme == "file" and host is not None:
        if host != "localhost":
            raise PathError("a place on another machine")
        host = None
    path = found[3][1:].rstrip("/")
    segments = tuple(path.split("/")) if path else ()
    if any(map(_climbs, segments)):
        raise PathError("a place whose path climbs, or has an empty segment")
    return Place(scheme, host, segments)


def _climbs(segment: str) -> bool:
    from urllib.parse import unquote

    # Some stores decode a name once, and a proxy before them once more.
    parts = unquote(unquote(segment)).replace("\\", "/").split("/")
    return segment in {"", "."} or ".." in parts


def _agree(one: str | None, other: str | None) -> bool:
    return one is None or other is None or one == other
