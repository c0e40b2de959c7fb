"""Read options of Hudi that are set on a session (``spark.conf.set("hoodie.datasource.query.type", ...)``).

Java's reader honours them; options of a load take precedence. A Python source does not get a session's settings, so
``register`` passes them on, and does so again when one of them is set on a classic session.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hoodie_py.options import undone
from hoodie_py.options.check import OF_READS
from hoodie_py.options.parse import Option
from hoodie_py.spark.process import is_connect

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
