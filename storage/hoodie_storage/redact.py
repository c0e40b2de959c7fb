"""Hides credentials in every text that a person may read."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

HIDDEN = "***"

_SECRET_KEY = re.compile(
    r"secret|passw|token|credential|signature|sas|connection.?string|(access|account|api|private|encryption).?key"
    r"|^key$|^username$|^auth",
    re.IGNORECASE,
)
_NOT_SECRET = re.compile(r"provider|endpoint|region|^anon", re.IGNORECASE)
_ENVIRONMENT = (
    "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
    "AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_SAS_TOKEN",
    "AZURE_STORAGE_CLIENT_SECRET",
)  # fmt: skip
_IN_CONNECTION_STRING = re.compile(r"(?:AccountKey|SharedAccessSignature)=([^;]+)", re.IGNORECASE)
# In Azure's URIs the part before the @ is the container, not a user.
_USERINFO = re.compile(r"(\b(?!abfss?:|wasbs?:)[A-Za-z][A-Za-z0-9+.-]*://)[^/\s'\"@?#]*@")
_QUERY = re.compile(r"(\b[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"?]*)\?[^\s'\"]*")
_AZURE = frozenset({"abfs", "abfss", "wasb", "wasbs"})
_SHORTEST = 6  # shorter secrets ("test") are also ordinary words


def redact_uri(uri: str) -> str:
    """Hide user names, passwords and query strings of URIs in a text."""
    return _QUERY.sub(rf"\1?{HIDDEN}", _USERINFO.sub(rf"\1{HIDDEN}@", uri))


class Redactor:
    """Hides the secrets of storage options and of a URI in texts."""

    def __init__(self, options: Mapping[str, Any], uri: str = "") -> None:
        self._secrets = frozenset(_list_secrets(options, hidden=False)) | frozenset(_list_uri_secrets(uri))

    def __call__(self, text: str) -> str:
        """Return the text without secrets."""
        known = self._secrets | {os.environ.get(name, "") for name in _ENVIRONMENT}
        known |= {part for secret in known for part in _IN_CONNECTION_STRING.findall(secret)}
        # Longest first: hiding a shorter secret inside a longer one would leave the rest of it visible.
        for secret in sorted(known, key=len, reverse=True):
            if len(secret) >= _SHORTEST:
                text = text.replace(secret, HIDDEN)
        return redact_uri(text)

    def __repr__(self) -> str:
        return "Redactor()"


def _list_uri_secrets(uri: str) -> Iterator[str]:
    """Yield user name, password and the values of the query, both encoded and decoded."""
    scheme, _, rest = uri.partition("://")
    place, _, query = rest.partition("?")
    if scheme.lower() not in _AZURE and "@" in place.partition("/")[0]:
        for part in place.partition("/")[0].rpartition("@")[0].split(":"):
            yield from (part, _decode(part))
    for name_and_value in query.split("&"):
        value = name_and_value.partition("=")[2]
        yield from (value, _decode(value))


def _decode(text: str) -> str:
    if "%" not in text:
        return text
    from urllib.parse import unquote  # imported here, since local tables save 0.4 MB without it

    return unquote(text)


def _list_secrets(value: Any, *, hidden: bool) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            secret = bool(_SECRET_KEY.search(str(key))) and not _NOT_SECRET.search(str(key))
            yield from _list_secrets(inner, hidden=hidden or secret)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _list_secrets(inner, hidden=hidden)
    elif hidden and isinstance(value, str | bytes):
        yield value if isinstance(value, str) else value.decode("utf-8", "replace")
