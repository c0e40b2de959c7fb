"""Settings of a session that change the meaning of SQL: the time zone, ANSI mode, and whether names match by case.

In a process that opens a table the zone is ``timezone=``; the other settings are Spark's defaults, except that names
match exactly. ``hoodie_py.spark`` reads the settings of the Spark session. If the session is unknown, as in the
processes that plan a load of ``format("hoodie")``, a filter may use only what means the same in every session.
"""

from __future__ import annotations

from dataclasses import dataclass

from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.table.filter.time_zones import UTC_ZONE, find_zone


@dataclass(frozen=True, slots=True)
class SqlSettings:
    """Settings of a session; None means unknown.

    Attributes:
        zone: time zone assumed for times without one (``spark.sql.session.timeZone``).
        ansi: whether a missing result is an error; otherwise it is null (``spark.sql.ansi.enabled``).
        case_sensitive: whether names of columns match exactly (``spark.sql.caseSensitive``).
        refused: a setting that changes the meaning of SQL and is not supported here.
    """

    zone: str | None = UTC_ZONE
    ansi: bool | None = True
    case_sensitive: bool | None = True
    refused: str | None = None

    def check(self) -> None:
        """Raise UnsupportedFeatureError if the session has a setting that is not supported here."""
        if self.refused is not None:
            raise UnsupportedFeatureError(f"Filters in a session with {self.refused}.", hint="Filter after reading.")

    def get_zone(self, what: str) -> str:
        """Return the zone. ``what`` is the part of a filter that depends on it, for the error.

        Raises:
            UnsupportedFeatureError: the zone is unknown, or not a zone that Python knows.
        """
        if self.zone is None:
            raise _make_unknown("the session's time zone", what)
        find_zone(self.zone)
        return self.zone

    def is_ansi(self, what: str) -> bool:
        """Return whether the mode is ANSI; ``what`` and errors as for ``get_zone``."""
        if self.ansi is None:
            raise _make_unknown("the session's ANSI mode", what)
        return self.ansi


def _make_unknown(setting: str, what: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"A filter that depends on {setting}, which Spark does not tell a Python data source: {what}.",
        hint="Filter the DataFrame with where(), or read with hoodie_py.spark.read.",
    )


def of_process(timezone: str | None) -> SqlSettings:
    """Return the settings of a process that opens a table with ``timezone=``."""
    return UTC_SESSION if timezone is None else SqlSettings(zone=timezone)


#: The session of a process that opens a table without ``timezone=``.
UTC_SESSION = SqlSettings()
#: A session whose settings are all unknown.
UNKNOWN_SESSION = SqlSettings(None, None, None)
