"""Show the messages of the package's loggers on stderr, for ``hoodie --log-level``."""

from __future__ import annotations

import logging

import typer

from hoodie_py.cli.values import escape_controls

_PACKAGES = ("hoodie_py", "hoodie_storage")
_LEVELS = ("debug", "info", "warning", "error")
_FORM = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class _SafeFormatter(logging.Formatter):
    """Formats messages with control characters escaped, so that names from a table cannot change the terminal."""

    def format(self, record: logging.LogRecord) -> str:
        return escape_controls(super().format(record), lines=True)


def show_logs(level: str) -> None:
    """Send this package's messages of at least this level to stderr.

    Raises:
        typer.BadParameter: there is no such level.
    """
    if level.lower() not in _LEVELS:
        raise typer.BadParameter(f"{level!r} is none of {', '.join(_LEVELS)}.")
    handler = logging.StreamHandler()
    handler.setFormatter(_SafeFormatter(_FORM))
    for name in _PACKAGES:
        logger = logging.getLogger(name)
        logger.addHandler(handler)
        logger.setLevel(level.upper())
