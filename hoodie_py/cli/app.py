"""The typer application: all subcommands, in the order of ``hoodie --help``, with its texts and its logs."""

from __future__ import annotations

import logging
from typing import Annotated

import typer

from hoodie_py import __version__
from hoodie_py.cli.commands.alter import alter, downgrade, upgrade
from hoodie_py.cli.commands.changes import changes
from hoodie_py.cli.commands.clean import archive, clean
from hoodie_py.cli.commands.cluster import cluster
from hoodie_py.cli.commands.compact import compact, log_compact
from hoodie_py.cli.commands.doctor import doctor
from hoodie_py.cli.commands.explain import explain
from hoodie_py.cli.commands.history import history
from hoodie_py.cli.commands.index import index
from hoodie_py.cli.commands.log import log
from hoodie_py.cli.commands.read import read
from hoodie_py.cli.commands.savepoint import restore, rollback, savepoint
from hoodie_py.cli.commands.service import service
from hoodie_py.cli.commands.show import show, tables
from hoodie_py.cli.commands.slices import slices
from hoodie_py.cli.commands.sync import sync
from hoodie_py.cli.commands.timeline import timeline
from hoodie_py.cli.commands.verify import verify
from hoodie_py.cli.commands.write import delete_partition, write
from hoodie_py.cli.demo.demo import demo
from hoodie_py.cli.options import forget_named_options
from hoodie_py.cli.values import escape_controls
from hoodie_py.runtime.allocator import settle_allocators

app = typer.Typer(
    name="hoodie",
    help="Look into Apache Hudi tables, read, write and compact them, on disk or in an object store.",
    epilog="Results go to stdout, messages to stderr. Exit status: 0 done, 1 failed, 2 wrong usage.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

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
    del version, log_level  # their callbacks did it
    forget_named_options()


for _command in (
    show,
    timeline,
    slices,
    log,
    read,
    changes,
    explain,
    history,
    write,
    delete_partition,
    alter,
    service,
    compact,
    log_compact,
    cluster,
    rollback,
    clean,
    archive,
    savepoint,
    restore,
    upgrade,
    downgrade,
    index,
    sync,
    tables,
    verify,
    doctor,
    demo,
):
    app.command(_command.__name__.replace("_", "-"))(_command)


def main() -> None:
    """Run the command line and end the process with its exit status."""
    settle_allocators()
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
