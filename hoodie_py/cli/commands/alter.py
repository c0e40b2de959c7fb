"""The subcommands that change a table's columns, ``hoodie alter``, or its version, ``upgrade`` and ``downgrade``."""

from __future__ import annotations

from typing import Annotated

import typer

from hoodie_py.cli import options as cli_options
from hoodie_py.cli.table_command import TableCommand, table_command

Add = Annotated[list[str] | None, typer.Option("--add", metavar="NAME=TYPE", help="A new column, as price=double.")]
Rename = Annotated[list[str] | None, typer.Option("--rename", metavar="OLD=NEW", help="A new name of a column.")]
Drop = Annotated[list[str] | None, typer.Option("--drop", metavar="NAME", help="A column to drop.")]
Cast = Annotated[list[str] | None, typer.Option("--cast", metavar="NAME=TYPE", help="A new type of a column.")]
Move = Annotated[
    list[str] | None,
    typer.Option("--move", metavar="NAME=PLACE", help="A place: first, 'after NAME' or 'before NAME'."),
]
Nullable = Annotated[list[str] | None, typer.Option("--nullable", metavar="NAME", help="A column that may be null.")]
Comment = Annotated[
    list[str] | None, typer.Option("--comment", metavar="NAME=TEXT", help="A comment; an empty text takes it away.")
]
AllowLoss = Annotated[
    bool, typer.Option("--allow-loss", help="Allow casts in which values may lose digits or become text.")
]


@table_command("option", "timezone")
def alter(
    command: TableCommand,
    add: Add = None,
    rename: Rename = None,
    drop: Drop = None,
    cast: Cast = None,
    move: Move = None,
    nullable: Nullable = None,
    comment: Comment = None,
    allow_loss: AllowLoss = False,
    dry_run: cli_options.DryRun = False,
) -> None:
    """Add, rename, drop, retype and move columns, and rewrite no file. Every option may be given several times."""
    from hoodie_py.cli.console import print_json, print_text, show_spinner

    options = command.options
    added, renamed, casts = _split("--add", add), _split("--rename", rename), _split("--cast", cast)
    places, comments = _split("--move", move), _split("--comment", comment)

    with show_spinner("altering columns"):
        opened = command.open()
        result = opened.alter(
            added,
            renamed,
            drop or (),
            casts,
            places,
            nullable or (),
            {name: text or None for name, text in comments.items()},
            allow_loss=allow_loss,
            dry_run=dry_run,
            options=options,
        )
    if command.as_json:
        columns = {field.name: str(field.type) for field in result.schema}
        times = {"instant": result.instant, "completion_time": result.completion_time}
        print_json({**times, "changes": list(result.changes), "columns": columns})
    else:
        print_text(str(result))


def _split(option: str, given: list[str] | None) -> dict[str, str]:
    found = {}
    for each in given or ():
        name, separator, value = each.partition("=")
        if not separator or not name.strip():
            raise typer.BadParameter(f"{each!r} is not NAME=VALUE", param_hint=option)
        found[name.strip()] = value.strip()
    return found


To = Annotated[int, typer.Option("--to", metavar="VERSION", help="Table version: 6, 8 or 9.")]


@table_command("option", "timezone")
def upgrade(
    command: TableCommand,
    to: To = 9,
    dry_run: cli_options.DryRun = False,
    merger: cli_options.Merger = None,
) -> None:
    """Bring the table to a later table version. Stop writers of older releases before."""
    _run(command, True, to, dry_run, merger)


@table_command("option", "timezone")
def downgrade(
    command: TableCommand,
    to: To,
    dry_run: cli_options.DryRun = False,
    merger: cli_options.Merger = None,
) -> None:
    """Bring the table to an earlier table version, 8 or 6. Indexes that it does not know are dropped."""
    _run(command, False, to, dry_run, merger)


def _run(command: TableCommand, upwards: bool, to: int, dry_run: bool, merger: str | None) -> None:
    from hoodie_py.cli.console import print_result, show_spinner

    with show_spinner("upgrading" if upwards else "downgrading"):
        opened = command.open()
        change = opened.upgrade if upwards else opened.downgrade
        result = change(
            to, dry_run=dry_run, options=command.options, merger=cli_options.load_merger(opened.config, merger)
        )
    print_result(result, command.as_json)
