"""Read from a Spark session the options of Hudi and the settings of its SQL that are set on it.

Java's reader honours options of Hudi (``spark.conf.set("hoodie.datasource.query.type", ...)``); options of a load take
precedence. A Python source does not get a session's settings, so ``register`` passes them on, and does so again when
one of them is set on a classic session. The settings of SQL are those by which ``where`` judges rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hoodie_py.options import undone
from hoodie_py.options.check import OF_READS
from hoodie_py.options.parse import Option
from hoodie_py.spark.process import is_connect
from hoodie_py.table.filter.sql_settings import SqlSettings

_HUDI = "hoodie."
_CONCERNED: tuple[Option, ...] = (*OF_READS, *(each.option for each in undone.OF_READS))
_NAMES = frozenset(name.lower() for option in _CONCERNED for name in option.names if name.startswith(_HUDI))


def read_session_options(spark: Any) -> dict[str, str]:
    """Return the read options that are set on a session, by lower-case name."""
    return {name.lower(): value for name, value in dict(spark.conf.getAll).items() if name.lower() in _NAMES}


def add_session_options(options: Mapping[str, str], session: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a load with those of its session; an option of the load wins, under any of its names."""
    given = {name.lower() for name in options}
    said = {
        name.lower()
        for option in _CONCERNED
        if any(each.lower() in given for each in option.names)
        for name in option.names
    }
    return {**{name: value for name, value in session.items() if name not in said}, **options}


def call_on_change(spark: Any, key: str, call: Callable[[], None]) -> None:
    """Call ``call`` whenever Python sets or unsets a read option on a classic session.

    A session has one call for each ``key``. A Connect session makes its ``conf`` anew for each use, so nothing is
    called there.
    """
    if is_connect(spark):
        return
    conf = spark.conf
    calls: dict[str, Callable[[], None]] | None = vars(conf).get(_CALLS)
    if calls is None:
        calls = {}
        setattr(conf, _CALLS, calls)
        for name in ("set", "unset"):
            setattr(conf, name, _tell(getattr(conf, name), calls))
    calls[key] = call


def _tell(change: Callable[..., None], calls: Mapping[str, Callable[[], None]]) -> Callable[..., None]:
    """Return a method of ``conf`` that also makes the calls."""

    def change_and_tell(key: str, *value: Any, **named: Any) -> None:
        change(key, *value, **named)
        if key.lower() in _NAMES:
            for call in calls.values():
                call()

    return change_and_tell


_CALLS = "_hoodie_py_calls"


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
