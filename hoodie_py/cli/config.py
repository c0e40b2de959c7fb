"""The configuration file of the command line: names of tables, storage options, catalogs.

It is ``$HOODIE_CONFIG``, else ``hoodie/config.toml`` in ``$XDG_CONFIG_HOME`` or ``~/.config``::

    [tables.trips]
    path = "s3://lake/trips"
    storage_options = {client_kwargs = {region_name = "eu-west-1"}}

    [stores."s3://lake/"]          # options for every table whose path has this prefix
    anon = true

    [catalogs.prod]
    kind = "hive"
    uri = "thrift://metastore:9083"

``TABLE`` is then a path or URI, the name of a table, or a table of a catalog: ``prod:lake.trips``. If a folder has the
same name, the folder is meant.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hoodie_py.errors import InvalidQueryError

_TABLE_KEYS = ("path", "storage_options")
_CATALOG_KEYS = ("kind", "uri", "options", "storage_options")


@dataclass(frozen=True, slots=True)
class NamedTable:
    """A table with a name: its path or URI, and the options of its store."""

    path: str
    storage_options: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class NamedCatalog:
    """A catalog with a name.

    ``options`` are for the catalog's client, ``storage_options`` for the stores of its tables.
    """

    kind: str
    uri: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    storage_options: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Config:
    """The contents of the configuration file; empty if there is no file."""

    tables: Mapping[str, NamedTable] = field(default_factory=dict)
    stores: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)
    catalogs: Mapping[str, NamedCatalog] = field(default_factory=dict)

    def resolve(self, place: str) -> NamedTable:
        """Return the table that a command's argument means: a path or URI, a name, or a table of a catalog.

        Raises:
            HoodieError: there is no such table in the catalog, or it cannot be reached.
        """
        name, colon, inner = place.partition(":")
        if "/" in place or Path(place).exists():
            found = NamedTable(place)
        elif place in self.tables:
            found = self.tables[place]
        elif colon and name in self.catalogs:
            found = self._find_in_catalog(name, inner)
        else:
            found = NamedTable(place)
        options: dict[str, Any] = {}
        for prefix in sorted(self.stores, key=len):  # the longest prefix counts most
            if found.path.startswith(prefix):
                options |= self.stores[prefix]
        return NamedTable(found.path, {**options, **found.storage_options})

    def _find_in_catalog(self, name: str, table: str) -> NamedTable:
        from hoodie_py.catalog import open_catalog

        catalog = self.catalogs[name]
        with open_catalog(catalog.kind, catalog.uri, catalog.options) as opened:
            return NamedTable(opened.find(table).uri, catalog.storage_options)


def find_config_file() -> Path:
    """Return the path of the configuration file, which need not exist."""
    named = os.environ.get("HOODIE_CONFIG")
    if named:
        return Path(named)
    home = os.environ.get("XDG_CONFIG_HOME")
    return (Path(home) if home else Path.home() / ".config") / "hoodie" / "config.toml"


def load_config() -> Config:
    """Read the file.

    Raises:
        InvalidQueryError: ``$HOODIE_CONFIG`` names no file, the file is not TOML, or has an unknown or wrong entry.
    """
    path = find_config_file()
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        if os.environ.get("HOODIE_CONFIG"):
            raise InvalidQueryError("HOODIE_CONFIG names no file.", hint="Unset it, or make it.", path=path) from None
        return Config()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidQueryError(f"The configuration cannot be read: {error}.", path=path) from None
    import tomllib

    try:
        return _read(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise InvalidQueryError(f"The configuration is not TOML: {error}.", path=path) from None
    except InvalidQueryError as error:
        raise error.locate(path=path) from None


def _read(parsed: Mapping[str, Any]) -> Config:
    _check_keys(parsed, ("tables", "stores", "catalogs"), "the configuration")
    tables = {}
    for name, entry in _get_group(parsed, "tables").items():
        _check_keys(_expect_group(entry, f"tables.{name}"), _TABLE_KEYS, f"tables.{name}")
        path = _get_text(entry, "path", f"tables.{name}", needed=True)
        tables[name] = NamedTable(str(path), _get_group(entry, "storage_options"))
    catalogs = {}
    for name, entry in _get_group(parsed, "catalogs").items():
        place = f"catalogs.{name}"
        _check_keys(_expect_group(entry, place), _CATALOG_KEYS, place)
        kind, uri = _get_text(entry, "kind", place, needed=True), _get_text(entry, "uri", place)
        catalogs[name] = NamedCatalog(
            str(kind), uri, _get_group(entry, "options"), _get_group(entry, "storage_options")
        )
    stores = _get_group(parsed, "stores")
    return Config(tables, {prefix: _expect_group(each, "stores") for prefix, each in stores.items()}, catalogs)


def _get_group(parent: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return _expect_group(parent.get(name, {}), name)


def _expect_group(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise InvalidQueryError(f"The entry {name} of the configuration must be a table of TOML.")
    return value


def _get_text(entry: Mapping[str, Any], key: str, place: str, *, needed: bool = False) -> str | None:
    value = entry.get(key)
    if value is None and not needed:
        return None
    if not isinstance(value, str) or not value:
        raise InvalidQueryError(f"The entry {place} of the configuration needs {key}, a text.")
    return value


def _check_keys(entry: Mapping[str, Any], known: Iterable[str], place: str) -> None:
    for key in entry:
        if key not in known:
            close = difflib.get_close_matches(key, list(known), 1)
            hint = f"Did you mean {close[0]}?" if close else f"There are {', '.join(known)}."
            raise InvalidQueryError(f"Unknown entry {key[:200]!r} in {place}.", hint=hint)
