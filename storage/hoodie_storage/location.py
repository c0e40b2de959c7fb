"""The location of a store, parsed from a URI or path, and the paths inside a store.

A path inside often comes from a table's metadata, so it is not trusted. It must stay below the root, whatever dots,
slashes and schemes mean to the store.
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
