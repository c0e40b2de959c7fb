"""``hoodie rollback``: undo an instant that has not completed."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from hoodie_py.cli.options import (
    DryRun,
)
from hoodie_py.cli.table_command import TableCommand, table_command
from hoodie_py.cli.values import format_size

if TYPE_CHECKING:
    from hoodie_py import RollbackReport

Instant = Annotated[str, typer.Argument(metavar="INSTANT", help="Request time of a pending instant.")]


@table_command("option", "timezone")
def rollback(
    command: TableCommand,
    instant: Instant,
    dry_run: DryRun = False,
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
