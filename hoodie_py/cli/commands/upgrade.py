"""``hoodie upgrade`` and ``hoodie downgrade``: convert a table to another table version."""

from __future__ import annotations

from typing import Annotated

import typer

from hoodie_py.cli.options import (
    DryRun,
    Merger,
    load_merger,
)
from hoodie_py.cli.table_command import TableCommand, table_command

To = Annotated[int, typer.Option("--to", metavar="VERSION", help="Table version: 6, 8 or 9.")]


@table_command("option", "timezone")
def upgrade(
    command: TableCommand,
    to: To = 9,
    dry_run: DryRun = False,
    merger: Merger = None,
) -> None:
    """Bring the table to a later table version. Stop writers of older releases before."""
    _run(command, True, to, dry_run, merger)


@table_command("option", "timezone")
def downgrade(
    command: TableCommand,
    to: To,
    dry_run: DryRun = False,
    merger: Merger = None,
) -> None:
    """Bring the table to an earlier table version, 8 or 6. Indexes that it does not know are dropped."""
    _run(command, False, to, dry_run, merger)


def _run(command: TableCommand, upwards: bool, to: int, dry_run: bool, merger: str | None) -> None:
    from hoodie_py.cli.console import print_result, show_spinner

    with show_spinner("upgrading" if upwards else "downgrading"):
        opened = command.open()
        change = opened.upgrade if upwards else opened.downgrade
        result = change(to, dry_run=dry_run, options=command.options, merger=load_merger(opened.config, merger))
    print_result(result, command.as_json)
