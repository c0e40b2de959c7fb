"""Reads from a Spark session the settings that decide what its SQL means, by which ``where`` judges rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hoodie_py.table.filter.sql_settings import SqlSettings

ZONE = "spark.sql.session.timeZone"
ANSI = "spark.sql.ansi.enabled"
CASE_SENSITIVE = "spark.sql.caseSensitive"
#: Settings that change the meaning of SQL, with the only value for which filters are judged here.
FOLLOWED: Mapping[str, str] = {
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.legacy.typeCoercion.datetimeToString.enabled": "false",
    "spark.sql.legacy.literal.pickMinimumPrecision": "true",
    "spark.sql.legacy.exponentLiteralAsDecimal.enabled": "false",
    "spark.sql.legacy.allowNegativeScaleOfDecimal": "false",
    "spark.sql.legacy.decimal.retainFractionDigitsOnTruncate": "false",
    "spark.sql.legacy.bangEqualsNot": "false",
    "spark.sql.session.collation.default": "UTF8_BINARY",
}


def read_sql_settings(spark: Any) -> SqlSettings:
    """Return the current settings of a session, classic or Connect."""
    given = {name: str(value) for name, value in dict(spark.conf.getAll).items()}
    zone, ansi, case_sensitive = (given.get(name) or str(spark.conf.get(name)) for name in (ZONE, ANSI, CASE_SENSITIVE))
    changed = [name for name, value in FOLLOWED.items() if given.get(name, value).lower() != value.lower()]
    return SqlSettings(
        zone,
        ansi.lower() == "true",
        case_sensitive.lower() == "true",
        f"{changed[0]}={given[changed[0]]}" if changed else None,
    )
