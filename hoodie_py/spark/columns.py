"""Match column names that a load asks for with the table's columns."""

from __future__ import annotations

from collections.abc import Sequence

from hoodie_py.errors import InvalidQueryError


def find_names(wanted: Sequence[str], known: Sequence[str]) -> list[str]:
    """Return the table's names for some columns. Case does not matter, unless it is needed to tell columns apart.

    Raises:
        InvalidQueryError: an unknown column, or one named twice.
    """
    found: list[str] = []
    for name in wanted:
        alike = [name] if name in known else [other for other in known if other.lower() == name.lower()]
        if len(alike) != 1:
            what = f"Several columns are called {name!r}" if alike else f"Unknown column {name!r}"
            raise InvalidQueryError(f"{what}.", hint=f"The table has: {', '.join(known)}.")
        if alike[0] in found:
            raise InvalidQueryError(f"Column {name!r} is asked for twice.")
        found.append(alike[0])
    return found
