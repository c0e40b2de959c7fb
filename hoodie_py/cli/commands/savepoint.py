"""The subcommands that take a table back: ``hoodie savepoint``, ``hoodie restore`` and ``hoodie rollback``.

A savepoint keeps a table as it was at a commit. A restore goes back to a savepoint. A rollback undoes one instant that
has not completed.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from hoodie_py.cli import options as cli_options
from hoodie_py.cli.table_command import TableCommand, table_command
from hoodie_py.cli.values import format_size

if TYPE_CHECKING:
    from hoodie_py import RollbackReport

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


SavepointInstant = Annotated[str, typer.Argument(metavar="INSTANT", help="Request time of a savepoint.")]


@table_command("option", "metadata_mode", "timezone")
def restore(
    command: TableCommand,
    instant: SavepointInstant,
    merger: cli_options.Merger = None,
) -> None:
    """Take the table back to a savepoint: all later writes are undone, with their files. Stop all writers before."""
    from hoodie_py.cli.console import print_result, show_spinner

    options = command.options

    with show_spinner("restoring"):
        opened = command.open()
        result = opened.restore(instant, options, merger=cli_options.load_merger(opened.config, merger))
    print_result(result, command.as_json)


PendingInstant = Annotated[str, typer.Argument(metavar="INSTANT", help="Request time of a pending instant.")]


@table_command("option", "timezone")
def rollback(
    command: TableCommand,
    instant: PendingInstant,
    dry_run: cli_options.DryRun = False,
) -> None:
    """Undo an instant that has not completed: a write that failed, or a compaction.

    A compaction under way goes back to requested; a requested one is removed.
    """
    from hoodie_py.cli.console import print_result, show_spinner

    options = command.options

    with show_spinner("looking at the instant's files" if dry_run else "rolling back"):
        opened = command.open()
        if dry_run:
            report = opened.rollback(instant, options, dry_run=True)
        else:
            result = opened.rollback(instant, options)
    if dry_run and not command.as_json:
        _print_files(report)
    print_result(report if dry_run else result, command.as_json)


def _print_files(report: RollbackReport) -> None:
    from hoodie_py.cli.console import Column, build_table, make_stdout

    columns = [Column("goes"), Column("blocks"), Column("bytes", justify="right", keep=True)]
    rows = [[each.path, _count_blocks(each.blocks), format_size(each.size)] for each in report.files]
    rows += [[path, "", ""] for path in (*report.metadata_files, *report.timeline_files)]
    if rows:
        make_stdout().print(build_table(columns, rows))


def _count_blocks(blocks: tuple[str, ...]) -> str:
    """Return the types of a log file's blocks with their numbers: "2 AVRO_DATA, 1 DELETE"."""
    return ", ".join(f"{number} {kind}" for kind, number in Counter(blocks).items())
