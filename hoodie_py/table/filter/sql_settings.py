"""What a session decides about the meaning of SQL: the time zone, ANSI mode, and whether names match by case.

A process that opens a table has the zone of ``timezone=`` and otherwise Spark's defaults, but for names, which match
exactly. ``hoodie_py.spark`` reads the settings of the Spark session. Where a session is not known, as in the processes
that plan a load of ``format("hoodie")``, a filter may say only what means the same in every session.
"""

from __future__ import annotations

from dataclasses import dataclass

from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.table.filter.time_zones import UTC_ZONE, find_zone


@dataclass(frozen=True, slots=True)
class SqlSettings:
    """Settings of a session; None is an unknown one.

    Attributes:
        zone: of times without a zone (``spark.sql.session.timeZone``).
        ansi: whether what has no value is an error; else it is null (``spark.sql.ansi.enabled``).
        case_sensitive: whether names of columns match exactly (``spark.sql.caseSensitive``).
        refused: a setting that changes the meaning of SQL in a way that is not followed here.
    """

    zone: str | None = UTC_ZONE
    ansi: bool | None = True
    case_sensitive: bool | None = True
    refused: str | None = None

    def check(self) -> None:
        """Raise UnsupportedFeatureError if filters of the session cannot be judged."""
        if self.refused is not None:
            raise UnsupportedFeatureError(f"Filters in a session with {self.refused}.", hint="Filter after reading.")

    def get_zone(self, what: str) -> str:
        """Return the zone, for something that depends on it.

        Raises:
            UnsupportedFeatureError: it is not known, or it is no zone that is known here.
        """
        if self.zone is None:
            raise _make_unknown("the session's time zone", what)
        find_zone(self.zone)
        return self.zone

    def is_ansi(self, what: str) -> bool:
        """Return the mode, for something that depends on it; errors as for ``get_zone``."""
        if self.ansi is None:
            raise _make_unknown("the session's ANSI mode", what)
        return self.ansi


def _make_unknown(setting: str, what: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"A filter that depends on {setting}, which Spark does not tell a Python data source: {what}.",
        hint="Filter the DataFrame with where(), or read with hoodie_py.spark.read.",
    )


def of_process(timezone: str | None) -> SqlSettings:
    """Return the settings of a process that opened a table with ``timezone=``."""
    return UTC_SESSION if timezone is None else SqlSettings(zone=timezone)


#: The session of a process that opens a table without ``timezone=``.
UTC_SESSION = SqlSettings()
#: A session of which nothing is known.
UNKNOWN_SESSION = SqlSettings(None, None, None)
