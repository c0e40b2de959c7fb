"""``hoodie index``: build, drop or show the indexes of a table, which are the partitions of its metadata table."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from hoodie_py.cli import options as cli_options
from hoodie_py.cli.table_command import TableCommand, table_command
from hoodie_py.cli.values import escape_controls, format_size

if TYPE_CHECKING:
    from hoodie_py.table.indexes.overview import IndexOverview
    from hoodie_py.writer.index_jobs.build import OnRecords


class Action(StrEnum):
    """What to do."""

    show = "show"
    build = "build"
    drop = "drop"


What = Annotated[Action, typer.Argument(metavar="[show|build|drop]", help="Default: show.")]
Name = Annotated[
    str | None,
    typer.Argument(
        metavar="[INDEX]",
        help="record_index, column_stats, partition_stats, bloom_filters, files, or the name of a secondary or "
        "expression index.",
    ),
]
Column = Annotated[
    str | None, typer.Option("--column", metavar="NAME", help="Column of a secondary or expression index.")
]
Function = Annotated[
    str | None,
    typer.Option("--function", metavar="NAME", help="Function of an expression index, such as year or lower."),
]
Kind = Annotated[
    str | None,
    typer.Option("--kind", metavar="KIND", help="Of an expression index: column_stats (default) or bloom_filters."),
]
Arguments = Annotated[
    list[str] | None,
    typer.Option("--argument", metavar="K=V", help="Argument of the function, such as pos=1; repeatable."),
]
Partitioned = Annotated[
    bool, typer.Option("--partitioned", help="A record index whose keys are unique within a partition only.")
]


@table_command("option", "timezone")
def index(
    command: TableCommand,
    action: What = Action.show,
    name: Name = None,
    column: Column = None,
    function: Function = None,
    kind: Kind = None,
    argument: Arguments = None,
    partitioned: Partitioned = False,
    merger: cli_options.Merger = None,
) -> None:
    """Show, build or drop indexes of a table: the partitions of its metadata table."""
    from hoodie_py.cli.console import print_json, print_text, show_spinner

    if (name is None) != (action is Action.show):
        wanted = "is for build and drop" if action is Action.show else f"is missing: what to {action.value}"
        raise typer.BadParameter(wanted, param_hint="INDEX")
    options = command.options
    arguments = dict(cli_options.split_pairs(argument, "--argument"))

    with show_spinner("reading the table's metadata"):
        opened = command.open()
    if name is None:
        _print_overview(opened.index.show(), command.as_json)
    elif action is Action.drop:
        dropped = opened.index.drop(name, options=options)
        print_json({"dropped": list(dropped)}) if command.as_json else print_text(f"Dropped {', '.join(dropped)}.")
    else:
        own = cli_options.load_merger(opened.config, merger)
        with _show_progress() as told:
            built = opened.index.build(
                name,
                column,
                function=function,
                kind=kind,
                partitioned=partitioned,
                arguments=arguments,
                options=options,
                on_records=told,
                merger=own,
            )
        if command.as_json:
            print_json([dataclasses.asdict(each) for each in built])
        else:
            print_text("\n".join(map(str, built)))


@contextmanager
def _show_progress() -> Iterator[OnRecords | None]:
    """Show the number of records on stderr during the block; yields None if stderr is no terminal."""
    from rich.progress import TextColumn

    from hoodie_py.cli.console import show_progress

    with show_progress(TextColumn("building {task.description}", markup=False)) as bar:

        def tell(partition: str, records: int) -> None:
            assert bar is not None
            bar.update(bar.task_ids[0], description=escape_controls(f"{partition}: {records:,} records"))

        yield None if bar is None else tell


def _print_overview(overview: IndexOverview, as_json: bool) -> None:
    from hoodie_py.cli.console import Column as TableColumn
    from hoodie_py.cli.console import build_table, make_stdout, print_json, print_note

    if as_json:
        print_json([dataclasses.asdict(each) for each in overview])
        return
    if not overview:
        print_note("The table has no metadata table, so it has no index.")
        return
    columns = [
        TableColumn("index", style="bold"),
        TableColumn("kind"),
        TableColumn("columns"),
        TableColumn("groups", justify="right"),
        TableColumn("files", justify="right"),
        TableColumn("records", justify="right"),
        TableColumn("bytes", justify="right"),
        TableColumn("state", style="cyan"),
    ]
    rows = [
        [
            each.name,
            "" if each.kind == each.name else each.kind,
            each.expression or ", ".join(each.columns),
            f"{each.groups:,}",
            f"{each.files:,}",
            f"{each.records:,}",
            format_size(each.bytes),
            each.state,
        ]
        for each in overview
    ]
    make_stdout().print(build_table(columns, rows))
