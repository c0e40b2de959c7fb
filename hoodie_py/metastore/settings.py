"""The options of a sync, resolved for one table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from hoodie_py.errors import InvalidQueryError
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.options import sync as options
from hoodie_py.options.parse import Option

_NAME = re.compile(r"[A-Za-z0-9_]{1,128}", re.ASCII)  # what Hive allows (MetaStoreUtils.validateName)


@dataclass(frozen=True, slots=True)
class SyncSettings:
    """The settings of a sync: how the entries of a table are named, and which there are.

    Attributes:
        database: name of the database.
        table: name of the table, without suffix.
        strategy: which entries a MERGE_ON_READ table has: ALL, RO or RT.
        given: all options.
    """

    database: str
    table: str
    strategy: str = "ALL"
    given: Mapping[str, str] = field(default_factory=dict)


def read_settings(
    config: TableConfig, given: Mapping[str, str], kind: str, database: str | None, table: str | None
) -> SyncSettings:
    """Resolve the options for a table in a catalog of a kind, "hive" or "glue".

    Arguments come before options, options before the names in the table's properties.

    Raises:
        InvalidQueryError: a value is not valid, or catalogs do not allow a name.
        UnsupportedFeatureError: an option needs a feature that is not supported.
    """
    for option in options.OPTIONS:
        option.check(given)
    glue = kind == "glue"
    found_database = (
        database
        or (options.GLUE_DATABASE.read(given) if glue else None)
        or options.DATABASE.read(given)
        or config.database
        or "default"
    )
    found_table = (
        table or (options.GLUE_TABLE.read(given) if glue else None) or options.TABLE.read(given) or config.name
    )
    for what, name, option in (("database", found_database, options.DATABASE), ("table", found_table, options.TABLE)):
        if not _NAME.fullmatch(name):
            raise InvalidQueryError(
                f"A catalog cannot have the name {name[:200]!r}: letters, digits and underscores are allowed.",
                hint=f"Name the {what} with {option}.",
            )
    return SyncSettings(found_database.lower(), found_table.lower(), options.STRATEGY.read(given), dict(given))


def parse_properties(given: Mapping[str, str], option: Option) -> dict[str, str]:
    """Return the properties in an option's text: one ``key=value`` per line (``ConfigUtils.toMap``).

    Raises:
        InvalidQueryError: a line has no equals sign.
    """
    found = {}
    for line in (option.find_text(given) or "").splitlines():
        key, equals, value = line.partition("=")
        if line.strip() and not equals:
            raise InvalidQueryError(f"{option} has a line without an equals sign.", hint="Give key=value in each line.")
        if line.strip():
            found[key.strip()] = value.strip()
    return found
