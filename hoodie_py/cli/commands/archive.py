"""``hoodie archive``: move the oldest instants from the active timeline to the archive."""

from __future__ import annotations

from typing import Annotated

import typer

from hoodie_py.cli.options import (
    DryRun,
)
from hoodie_py.cli.table_command import TableCommand, table_command

MinCommits = Annotated[
    int | None,
    typer.Option("--min-commits", min=1, metavar="N", help="Number of commits that stay active; default 20."),
]
MaxCommits = Annotated[
    int | None,
    typer.Option("--max-commits", min=1, metavar="N", help="Archive nothing up to this number; default 30."),
]


@table_command("option", "metadata_mode", "timezone")
def archive(
    command: TableCommand,
    min_commits: MinCommits = None,
    max_commits: MaxCommits = None,
    dry_run: DryRun = False,
) -> None:
    """Move the oldest completed instants from the active timeline to the archive."""
    from hoodie_py.cli.console import print_result, show_spinner
    from hoodie_py.options.write import KEEP_MAX_COMMITS, KEEP_MIN_COMMITS

    options = dict(command.options)
    given = {KEEP_MIN_COMMITS: min_commits, KEEP_MAX_COMMITS: max_commits}
    options |= {str(key): str(value) for key, value in given.items() if value is not None}

    with show_spinner("looking at the timeline"):
        opened = command.open()
        result = opened.archive(options, dry_run)
    print_result(result, command.as_json)
