"""``hoodie doctor``: check what is installed and whether it works, and say what to install."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hoodie_py.cli.options import AsJson, Debug, EndpointUrl, StorageOptions, parse_storage_options
from hoodie_py.cli.reporting import report_errors

if TYPE_CHECKING:
    from hoodie_py.cli.checks import Check

MaybeTable = Annotated[
    str | None, typer.Argument(metavar="TABLE", help="A table to try to open, with the storage options given.")
]


def doctor(
    table: MaybeTable = None,
    storage_option: StorageOptions = None,
    endpoint_url: EndpointUrl = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Check Python, Java, Spark and storage; say what to install."""
    with report_errors(debug):
        from dataclasses import asdict

        from hoodie_py.cli.checks import Status, run_checks
        from hoodie_py.cli.console import print_json, show_spinner

        with show_spinner("checking"):
            checks = list(run_checks(table, parse_storage_options(storage_option, endpoint_url), endpoint_url))
        if as_json:
            print_json([asdict(check) for check in checks])
        else:
            _print(checks)
        if any(check.status is Status.BROKEN for check in checks):
            raise typer.Exit(1)


def _print(checks: list[Check]) -> None:
    from rich.text import Text

    from hoodie_py.cli.checks import Status
    from hoodie_py.cli.console import Column, build_table, make_stdout

    style = {Status.OK: "green", Status.MISSING: "yellow", Status.BROKEN: "bold red"}
    rows: list[list[str | Text]] = [
        [check.name, Text(check.status.value, style=style[check.status]), check.found] for check in checks
    ]
    console = make_stdout(100)
    console.print(build_table([Column("", style="bold", keep=True), Column("", keep=True), Column("found")], rows))
    advice = dict.fromkeys(f"{check.name}: {check.advice}" for check in checks if check.advice)
    for line in advice:
        console.print(Text(line))
    if any(check.status is Status.BROKEN for check in checks):
        console.print(Text("Something that is needed does not work.", style="bold red"))
    elif advice:
        console.print(Text("All that is needed works. What is missing is for Spark or S3 only.", style="green"))
    else:
        console.print(Text("Everything works.", style="green"))
