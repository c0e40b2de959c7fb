"""``hoodie savepoint``: keep a table as it was at a commit; list and delete savepoints."""

from __future__ import annotations

from typing import Annotated

import typer

from hoodie_py.cli.table_command import TableCommand, table_command

Instant = Annotated[
    str | None,
    typer.Argument(
        metavar="[INSTANT]", help="Request time of a commit; by default that of the newest.", show_default=False
    ),
]
User = Annotated[str, typer.Option("--user", metavar="NAME", help="Who makes the savepoint.", show_default=False)]
Comment = Annotated[str, typer.Option("--comment", metavar="TEXT", help="Why.", show_default=False)]
Listed = Annotated[bool, typer.Option("--list", help="List the table's savepoints; make none.")]
Deleted = Annotated[bool, typer.Option("--delete", help="Delete the savepoint at INSTANT.")]


@table_command("option", "timezone")
def savepoint(
    command: TableCommand,
    instant: Instant = None,
    user: User = "",
    comment: Comment = "",
    listed: Listed = False,
    delete: Deleted = False,
) -> None:
    """Keep the table as it was at a commit, so that `hoodie restore` can go back to it; list or delete savepoints."""
    from hoodie_py.cli.console import print_result

    options = command.options
    if delete and (instant is None or listed):
        raise typer.BadParameter("--delete needs the INSTANT of one savepoint, and goes without --list.")

    opened = command.open()
    if listed:
        for each in opened.savepoints():
            print_result(each, command.as_json)
    elif delete and instant is not None:
        print_result(opened.delete_savepoint(instant, options), command.as_json)
    else:
        print_result(opened.savepoint(instant, user, comment, options), command.as_json)
