"""``hoodie cluster``: write the rows of small file groups into larger ones, in this process or on Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hoodie_py.cli import options as cli_options
from hoodie_py.cli.commands.compact import EngineName, Instant, On, ScheduleOnly, open_engine
from hoodie_py.cli.table_command import TableCommand, table_command
from hoodie_py.cli.values import format_size

if TYPE_CHECKING:
    from hoodie_py.writer.clustering.report import PlannedGroup

Sort = Annotated[
    str | None, typer.Option("--sort", metavar="COLUMNS", help="Sort rows by these columns, joined by commas.")
]
LayoutName = Annotated[
    str | None, typer.Option("--layout", metavar="NAME", help="linear (the default), z-order or hilbert.")
]


@table_command("option", "metadata_mode", "timezone")
def cluster(
    command: TableCommand,
    schedule_only: ScheduleOnly = False,
    instant: Instant = None,
    engine: On = EngineName.local,
    dry_run: cli_options.DryRun = False,
    sort: Sort = None,
    layout: LayoutName = None,
    merger: cli_options.Merger = None,
    override_merger: cli_options.OverrideMerger = False,
) -> None:
    """Write the rows of small file groups into larger ones, sorted if asked: plan it and carry it out.

    If there is nothing to plan, the oldest pending plan is carried out.
    """
    from hoodie_py.cli.console import print_result, show_spinner
    from hoodie_py.options.clustering import LAYOUT, SORT_COLUMNS

    if instant is not None and (schedule_only or dry_run or sort or layout):
        raise typer.BadParameter("names an existing plan, so nothing can be planned", param_hint="--instant")
    if override_merger and merger is None:
        raise typer.BadParameter("needs --merger", param_hint="--override-merger")
    options = command.options

    options |= {} if sort is None else {str(SORT_COLUMNS): sort}
    options |= {} if layout is None else {str(LAYOUT): layout}

    with show_spinner("reading the table's metadata"):
        opened = command.open()
    named = cli_options.load_merger(opened.config, merger, override=override_merger)
    if dry_run:
        report = opened.schedule_clustering(options, dry_run=True)
        if not command.as_json and report.groups:
            _print_groups(report.groups)
        print_result(report, command.as_json)
    elif schedule_only:
        _print_plan(opened.schedule_clustering(options), command.as_json)
    else:
        with open_engine(engine, "hoodie cluster") as chosen, show_spinner("clustering"):
            planned = instant or opened.schedule_clustering(options)
            result = opened.run_clustering(planned, chosen, options, named, override_merger=override_merger)
        print_result(result, command.as_json)


def _print_plan(instant: str | None, as_json: bool) -> None:
    from hoodie_py.cli.console import print_json, print_note

    if as_json:
        print_json({"instant": instant})
    elif instant is None:
        print_note("There is nothing to cluster; --dry-run says why.")
    else:
        typer.echo(instant)


def _print_groups(groups: tuple[PlannedGroup, ...]) -> None:
    from hoodie_py.cli.console import Column, build_table, make_stdout

    columns = [
        Column("partition", style="bold"),
        Column("file groups", justify="right"),
        Column("base files", justify="right"),
        Column("logs", justify="right"),
        Column("log bytes", justify="right"),
        Column("new files", justify="right"),
    ]
    rows = [
        [
            each.partition_path or "(the table)",
            str(len(each.file_ids)),
            format_size(each.base_bytes),
            str(each.log_files) if each.log_files else "",
            format_size(each.log_bytes) if each.log_files else "",
            str(each.new_files),
        ]
        for each in groups
    ]
    make_stdout().print(build_table(columns, rows))
