"""``hoodie explain``: print every version of one record in merge order, which version wins each merge, and why."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated

import typer

from hoodie_py.cli.options import AsOf, Merger
from hoodie_py.cli.table_command import TableCommand, table_command
from hoodie_py.cli.values import escape_controls, to_json, to_text

if TYPE_CHECKING:
    from hoodie_py import HoodieTable
    from hoodie_py.reader.history import RecordHistory, Step

Key = Annotated[str, typer.Argument(metavar="KEY", help="The record key, as in the column _hoodie_record_key.")]


@table_command()
def explain(
    command: TableCommand,
    key: Key,
    as_of: AsOf = None,
    merger: Merger = None,
) -> None:
    """Show every version of a record, which one won and why."""
    from hoodie_py.cli.console import print_json, print_note

    opened = command.open()
    found = _find_histories(opened, key, as_of, merger)
    if command.as_json:
        print_json([to_json(dataclasses.asdict(each)) for each in found])
    elif found:
        for each in found:
            _print(each)
    if not found:
        print_note(f"No file of the table has the key {key!r}.")
        raise typer.Exit(1)


def _find_histories(opened: HoodieTable, key: str, as_of: str | None, merger: str | None) -> list[RecordHistory]:
    from hoodie_py.cli.console import iterate_with_progress
    from hoodie_py.options.read import CUSTOM_MERGER_CLASSES
    from hoodie_py.reader.history import trace_record_history
    from hoodie_py.reader.read_info import ReadOptions

    options = ReadOptions(options={CUSTOM_MERGER_CLASSES: merger} if merger else {})
    slices = opened.file_slices(as_of=as_of)
    traced = (
        trace_record_history(each, opened.read_info(each, as_of=as_of), key, options)
        for each in iterate_with_progress(slices, "reading file groups")
    )
    return [history for history in traced if history is not None]


def _print(history: RecordHistory) -> None:
    from hoodie_py.cli.console import Column, build_table, make_stdout

    columns = [
        Column("", style="bold"),
        Column("instant", style="cyan", keep=True),
        Column("version", keep=True),
        Column("ordering", justify="right"),
        Column("merge"),
        Column("file"),
    ]
    rows = [_make_row(number, step) for number, step in enumerate(history.steps, 1)]
    place = history.partition_path or "(the table)"
    title = f"{history.key} in partition {place}, file group {history.file_id}"
    console = make_stdout()
    console.print(build_table(columns, rows, title))
    if history.outcome is None:
        console.print("A snapshot does not show the record: it is deleted.\n")
    else:
        shown = history.outcome.items()
        values = ", ".join(
            f"{escape_controls(name)}={to_text(value)}" for name, value in shown if not name.startswith("_hoodie_")
        )
        console.print(f"A snapshot shows: {values}\n")


def _tell_fate(step: Step) -> str:
    """Say what became of a version. "loses" is never said of a version whose values the snapshot shows."""
    by = "" if step.by is None else f" {step.by}"
    return {
        "stays": "stays",
        "merged": "is merged",
        "loses": f"loses to{by}" if by else "loses",
        "replaced": f"replaced by{by}" if by else "replaced",
        "same": f"same values as{by}" if by else "has the values that are shown",
    }[step.fate]


def _make_row(number: int, step: Step) -> list[str]:
    version = step.version
    kind = "delete" if version.is_delete else "partial row" if version.partial else "row"
    place = version.path if version.offset is None else f"{version.path} at byte {version.offset}"
    ordering = "" if version.ordering is None else to_text(version.ordering)
    return [
        str(number),
        version.instant,
        f"{kind}, {version.source}",
        ordering,
        f"{_tell_fate(step)}: {step.reason}",
        place,
    ]
