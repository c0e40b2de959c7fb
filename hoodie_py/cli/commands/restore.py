"""``hoodie restore``: take a table back to a savepoint."""

from __future__ import annotations

from typing import Annotated

import typer

from hoodie_py.cli.options import (
    Merger,
    load_merger,
)
from hoodie_py.cli.table_command import TableCommand, table_command

Instant = Annotated[str, typer.Argument(metavar="INSTANT", help="Request time of a savepoint.")]


@table_command("option", "metadata_mode", "timezone")
def restore(
    command: TableCommand,
    instant: Instant,
    merger: Merger = None,
) -> None:
    """Take the table back to a savepoint: all later writes are undone, with their files. Stop all writers before."""
    from hoodie_py.cli.console import print_result, show_spinner

    options = command.options

    with show_spinner("restoring"):
        opened = command.open()
        result = opened.restore(instant, options, merger=load_merger(opened.config, merger))
    print_result(result, command.as_json)
