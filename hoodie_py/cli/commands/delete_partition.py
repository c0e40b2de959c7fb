"""``hoodie delete-partition``: delete all rows of partitions by one replace commit."""

from __future__ import annotations

from typing import Annotated

import typer

from hoodie_py.cli.options import (
    Merger,
    load_merger,
)
from hoodie_py.cli.table_command import TableCommand, table_command

Paths = Annotated[
    list[str],
    typer.Argument(
        metavar="PARTITION...", help="Paths as they are on disk, such as sf, or city=sf; * stands for any characters."
    ),
]


@table_command("option", "metadata_mode", "timezone")
def delete_partition(
    command: TableCommand,
    partitions: Paths,
    merger: Merger = None,
) -> None:
    """Delete all rows of partitions, without reading any; cleans remove the files later."""
    from hoodie_py.cli.console import print_result, show_spinner

    options = command.options

    with show_spinner("deleting partitions"):
        opened = command.open()
        given = load_merger(opened.config, merger)
        result = opened.delete_partition(partitions, options, merger=given, missing_ok=False)
    print_result(result, command.as_json)
