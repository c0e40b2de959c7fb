"""``hoodie history``: print the commits that changed one record, with its values and files."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated

import typer

from hoodie_py.cli.options import Merger
from hoodie_py.cli.table_command import TableCommand, table_command
from hoodie_py.cli.values import to_json, to_text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from hoodie_py.table.key_history import KeyEvent, KeyHistory

Key = Annotated[str, typer.Argument(metavar="KEY", help="The record key, as in the column _hoodie_record_key.")]
Partition = Annotated[
    str | None, typer.Option("--partition", metavar="PATH", help="Look only into this partition, such as city=sf.")
]
_STYLES = {"inserted": "green", "written": "green", "updated": "yellow", "deleted": "red"}


@table_command()
def history(
    command: TableCommand,
    key: Key,
    partition: Partition = None,
    merger: Merger = None,
) -> None:
    """Show which commits inserted, updated and deleted a record."""
    from hoodie_py.cli.console import iterate_with_progress, print_json, print_note
    from hoodie_py.options.read import CUSTOM_MERGER_CLASSES
    from hoodie_py.reader.read_info import ReadOptions
    from hoodie_py.table.key_history import trace_key_history

    found = trace_key_history(
        command.open_snapshot(),
        key,
        partition=partition,
        options=ReadOptions(options={CUSTOM_MERGER_CLASSES: merger} if merger else {}),
        watch=lambda groups: iterate_with_progress(groups, "reading file groups"),
    )
    if command.as_json:
        print_json({**to_json(dataclasses.asdict(found)), "is_complete": found.is_complete})
    elif found.events:
        _print(found)
    if not found.events:
        place = "the table" if partition is None else f"the partition {partition!r}"
        print_note(f"No file of {place} has the key {key!r}. {_say_what_is_gone(found)}".rstrip())
        raise typer.Exit(1)


def _print(found: KeyHistory) -> None:
    from rich.text import Text

    from hoodie_py.cli.console import Column, build_table, make_stdout, print_note

    columns = [
        Column("commit", style="cyan", keep=True),
        Column("operation"),
        Column("change", keep=True),
        Column("values"),
        Column("file"),
    ]
    console = make_stdout()
    for partition in dict.fromkeys(each.partition_path for each in found.events):
        shown: Mapping[str, Any] = {}
        rows: list[list[str | Text]] = []
        for each in (event for event in found.events if event.partition_path == partition):
            change = Text(each.change, style=_STYLES.get(each.change, "dim"))
            operation = (each.operation or "").lower()
            rows.append([each.commit, operation, change, _format_values(each, shown), each.file or ""])
            if each.change != "outdated":
                shown = each.values or {}
        title = f"{found.key} in partition {partition}" if partition else found.key
        console.print(build_table(columns, rows, title))
    if not found.is_complete:
        print_note(f"What happened to the key earlier is not known. {_say_what_is_gone(found)}".rstrip())


def _format_values(event: KeyEvent, shown: Mapping[str, Any]) -> str:
    """Return an event's values without meta columns; for an update only the values that changed."""
    values = {name: value for name, value in (event.values or {}).items() if not name.startswith("_hoodie_")}
    if event.change == "updated":
        values = {name: value for name, value in values.items() if name not in shown or value != shown[name]} or values
    if event.change == "moved":
        return ""
    return ", ".join(f"{name}={to_text(value)}" for name, value in values.items())


def _say_what_is_gone(found: KeyHistory) -> str:
    if found.kept_since is not None:
        return f"Files from before {found.kept_since} were cleaned."
    return "Older files were cleaned." if found.was_cleaned else ""
