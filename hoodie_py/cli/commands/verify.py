"""``hoodie verify``: check a table's files, and its metadata table against them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from hoodie_py.cli.options import Merger, load_merger
from hoodie_py.cli.table_command import TableCommand, table_command
from hoodie_py.cli.values import escape_controls

OnlyMetadata = Annotated[
    bool, typer.Option("--metadata", help="Check only the metadata table: every entry against the files.")
]

Resume = Annotated[
    Path | None,
    typer.Option("--resume", metavar="FILE", help="Keep what is done in this file, and go on where it ended."),
]


@table_command("option", "timezone")
def verify(
    command: TableCommand,
    metadata: OnlyMetadata = False,
    resume: Resume = None,
    merger: Merger = None,
) -> None:
    """Check every file and block of a table, and every entry of its metadata table.

    Exit status 1: something is wrong.
    """
    from hoodie_py.cli.console import print_json, print_text

    options = command.options

    opened = command.open()
    own = load_merger(opened.config, merger)
    with _show_progress() as told:
        report = opened.verify(data=not metadata, options=options, on_progress=told, resume=resume, merger=own)
    if command.as_json:
        print_json({"right": report.is_right, **dataclasses.asdict(report)})
    else:
        print_text(str(report))
    if not report.is_right:
        raise typer.Exit(1)


@contextmanager
def _show_progress() -> Iterator[Callable[[str, int, int | None], None] | None]:
    """Show on stderr which part is being checked and how far the check is; yields None if stderr is no terminal."""
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn

    from hoodie_py.cli.console import show_progress

    columns = (TextColumn("checking {task.description}", markup=False), BarColumn(), TimeRemainingColumn())
    with show_progress(*columns) as bar:
        shown = ""

        def tell(part: str, entries: int, total: int | None) -> None:
            nonlocal shown
            assert bar is not None
            if part != shown:  # a task of rich cannot lose its total
                bar.remove_task(bar.task_ids[0])
                bar.add_task("", total=total)
                shown = part
            text = f"{part}: {entries:,}" if total is None else f"{part}: {entries:,} of {total:,}"
            bar.update(bar.task_ids[0], description=escape_controls(text), completed=entries)

        yield None if bar is None else tell
