"""The subcommands that put away what is old: ``hoodie clean`` file slices, ``hoodie archive`` instants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hoodie_py.cli.options import DryRun
from hoodie_py.cli.table_command import TableCommand, table_command
from hoodie_py.cli.values import format_size

if TYPE_CHECKING:
    from hoodie_py import CleanReport

RetainCommits = Annotated[
    int | None,
    typer.Option("--retain-commits", min=1, metavar="N", help="Number of commits that stay readable; default 10."),
]
Policy = Annotated[
    str | None,
    typer.Option("--policy", metavar="NAME", help="KEEP_LATEST_COMMITS (the default) or KEEP_LATEST_FILE_VERSIONS."),
]


@table_command("option", "metadata_mode", "timezone")
def clean(
    command: TableCommand,
    retain_commits: RetainCommits = None,
    policy: Policy = None,
    dry_run: DryRun = False,
) -> None:
    """Remove file slices that no retained commit needs, and finish interrupted cleans."""
    from hoodie_py.cli.console import print_result, show_spinner
    from hoodie_py.options.write import CLEAN_POLICY

    options = {**command.options, CLEAN_POLICY: policy} if policy else command.options

    with show_spinner("looking for old file slices"):
        opened = command.open()
        if dry_run:
            report = opened.clean(retain_commits, options, dry_run=True)
        else:
            result = opened.clean(retain_commits, options)
    if dry_run and not command.as_json:
        _print_slices(report)
    print_result(report if dry_run else result, command.as_json)


def _print_slices(report: CleanReport) -> None:
    from hoodie_py.cli.console import Column, build_table, make_stdout

    columns = [
        Column("", style="bold"),
        Column("partition", style="bold"),
        Column("file group", keep=True),
        Column("instant", style="cyan", keep=True),
        Column("files", justify="right"),
        Column("bytes", justify="right"),
        Column("why"),
    ]
    rows = [
        [
            "goes" if each.removed else "stays",
            each.partition_path or "(the table)",
            each.file_id[:8],
            each.instant,
            str(len(each.files)),
            format_size(each.size),
            each.reason,
        ]
        for each in report.slices
    ]
    if rows:
        make_stdout().print(build_table(columns, rows))


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
