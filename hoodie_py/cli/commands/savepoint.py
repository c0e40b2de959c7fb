"""``hoodie savepoint``: keep a table as it was at a commit; list and delete savepoints."""

from __future__ import annotations

from typing import Annotated

import typer

from hoodie_py.cli.console import report_errors
from hoodie_py.cli.options import (
    AsJson,
    Debug,
    EndpointUrl,
    HudiOptions,
    StorageOptions,
    TableUri,
    Timezone,
    parse_hudi_options,
    parse_storage_options,
)

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


def savepoint(
    table: TableUri,
    instant: Instant = None,
    user: User = "",
    comment: Comment = "",
    listed: Listed = False,
    delete: Deleted = False,
    option: HudiOptions = None,
    timezone: Timezone = None,
    storage_option: StorageOptions = None,
    endpoint_url: EndpointUrl = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Keep the table as it was at a commit, so that `hoodie restore` can go back to it; list or delete savepoints."""
    options = parse_hudi_options(option)
    if delete and (instant is None or listed):
        raise typer.BadParameter("--delete needs the INSTANT of one savepoint, and goes without --list.")
    with report_errors(debug):
        from hoodie_py import HoodieTable
        from hoodie_py.cli.console import print_result

        opened = HoodieTable.open(table, parse_storage_options(storage_option, endpoint_url), timezone)
        if listed:
            for each in opened.savepoints():
                print_result(each, as_json)
        elif delete and instant is not None:
            print_result(opened.delete_savepoint(instant, options), as_json)
        else:
            print_result(opened.savepoint(instant, user, comment, options), as_json)
