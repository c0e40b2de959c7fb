"""The typer application: all subcommands, in the order of ``hoodie --help``, with its texts and its logs."""

from __future__ import annotations

import gc
import logging
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from hoodie_py import __version__
from hoodie_py.cli.values import escape_controls
from hoodie_py.runtime.allocator import settle_allocators

# The subcommands in the order of ``hoodie --help``, each with the module that has it.
_COMMANDS = {
    "show": "commands.show",
    "timeline": "commands.timeline",
    "slices": "commands.slices",
    "log": "commands.log",
    "read": "commands.read",
    "changes": "commands.changes",
    "explain": "commands.explain",
    "history": "commands.history",
    "write": "commands.write",
    "delete-partition": "commands.write",
    "alter": "commands.alter",
    "service": "commands.service",
    "compact": "commands.compact",
    "log-compact": "commands.compact",
    "cluster": "commands.cluster",
    "rollback": "commands.savepoint",
    "clean": "commands.clean",
    "archive": "commands.clean",
    "savepoint": "commands.savepoint",
    "restore": "commands.savepoint",
    "upgrade": "commands.alter",
    "downgrade": "commands.alter",
    "index": "commands.index",
    "sync": "commands.sync",
    "tables": "commands.show",
    "verify": "commands.verify",
    "doctor": "commands.doctor",
    "demo": "demo.demo",
}


@cache
def _make_command(name: str) -> Any:
    alone = typer.Typer(add_completion=False, rich_markup_mode="rich")
    alone.command(name)(getattr(import_module(f"hoodie_py.cli.{_COMMANDS[name]}"), name.replace("-", "_")))
    return typer.main.get_command(alone)


class _Commands(Mapping[str, Any]):
    """Typer's commands by name. Each is imported when it is asked for: importing all takes as long as running one."""

    def __getitem__(self, name: str) -> Any:
        return _make_command(name)

    def __iter__(self) -> Iterator[str]:
        return iter(_COMMANDS)

    def __len__(self) -> int:
        return len(_COMMANDS)


class _Group(TyperGroup):
    """The ``hoodie`` command with its subcommands."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{**settings, "commands": _Commands()})


app = typer.Typer(
    name="hoodie",
    cls=_Group,
    help="Look into Apache Hudi tables, read, write and compact them, on disk or in an object store.",
    epilog="Results go to stdout, messages to stderr. Exit status: 0 done, 1 failed, 2 wrong usage.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

_OBJECTS_TO_COLLECT_AFTER = 50_000
_PACKAGES = ("hoodie_py", "hoodie_storage")
_LEVELS = ("debug", "info", "warning", "error")
_FORM = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"hoodie_py {__version__}")
        raise typer.Exit


def _log_messages(level: str | None) -> str | None:
    if level is not None:
        _show_logs(level)
    return level


@app.callback()
def _hoodie(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
    log_level: Annotated[
        str | None,
        typer.Option(
            "--log-level",
            callback=_log_messages,
            metavar="LEVEL",
            help="Show what happens inside on stderr: debug, info, warning or error.",
        ),
    ] = None,
) -> None:
    """Look into Apache Hudi tables, read, write and compact them, on disk or in an object store."""
    from hoodie_py.cli.options import forget_named_options

    del version, log_level  # their callbacks did it
    forget_named_options()


def main() -> None:
    """Run the command line and end the process with its exit status."""
    settle_allocators()
    # Importing makes many objects and hardly any garbage: with Python's threshold of 700 a tenth of a short command's
    # time goes into 120 collections.
    gc.set_threshold(_OBJECTS_TO_COLLECT_AFTER)
    app(prog_name="hoodie")


class _SafeFormatter(logging.Formatter):
    """Formats messages with control characters escaped, so that names from a table cannot change the terminal."""

    def format(self, record: logging.LogRecord) -> str:
        return escape_controls(super().format(record), lines=True)


def _show_logs(level: str) -> None:
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
