"""``hoodie slices``: list the file slices of a snapshot with their base and log files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hoodie_py.cli.options import AsOf
from hoodie_py.cli.table_command import TableCommand, table_command
from hoodie_py.cli.values import format_size
from hoodie_py.runtime.wording import format_count

if TYPE_CHECKING:
    from hoodie_py.reader.file_slice import FileSlice

_RANDOM_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-")

Where = Annotated[
    str | None,
    typer.Option("--where", "--filter", metavar="SQL", help="Leave out partitions that cannot have matching rows."),
]
Files = Annotated[bool, typer.Option("--files", help="Print the path of every file, one per line.")]


@table_command("filter_timezone")
def slices(
    command: TableCommand,
    where: Where = None,
    as_of: AsOf = None,
    files: Files = False,
) -> None:
    """List the base files of a snapshot with their log files."""
    from hoodie_py.cli.console import print_json, print_path, show_spinner

    with show_spinner("listing files"):
        opened = command.open()
        found = opened.file_slices(as_of=as_of, filter=where)
    if command.as_json:
        print_json([describe(each) for each in found])
    elif files:
        for path in (path for each in found for path in list_paths(each)):
            print_path(f"{opened.uri.rstrip('/')}/{path}")
    else:
        _print(found)


def describe(file_slice: FileSlice) -> dict[str, Any]:
    """Return a file slice as JSON values; paths are relative to the table."""
    base = file_slice.base_file
    return {
        "partition": file_slice.partition_path,
        "file_id": file_slice.file_id,
        "base_instant": file_slice.base_instant,
        "base_file": None if base is None else {"path": base.path, "bytes": base.size, "instant": base.instant},
        "log_files": [
            {"path": log.path, "bytes": log.size, "instant": log.name.instant, "version": log.name.version}
            for log in file_slice.log_files
        ],
    }


def list_paths(file_slice: FileSlice) -> list[str]:
    """Return the paths of a slice's files: the base file, then the log files in merge order."""
    base = [] if file_slice.base_file is None else [file_slice.base_file.path]
    return [*base, *(log.path for log in file_slice.log_files)]


def _shorten(file_id: str) -> str:
    """Return the first part of a random file id. Other ids, such as in a metadata table, stay whole."""
    return file_id[:8] if _RANDOM_ID.match(file_id) else file_id


def _print(found: list[FileSlice]) -> None:
    from hoodie_py.cli.console import Column, build_table, make_stdout, print_note

    if not found:
        print_note("No file slices.")
        return
    columns = [
        Column("partition", style="bold"),
        Column("file group"),
        Column("base instant", style="cyan", keep=True),
        Column("base file", justify="right"),
        Column("logs", justify="right"),
        Column("log bytes", justify="right"),
    ]
    rows = [
        [
            each.partition_path or "(the table)",
            _shorten(each.file_id),
            each.base_instant,
            "none" if each.base_file is None else format_size(each.base_file.size),
            str(len(each.log_files)) if each.log_files else "",
            format_size(sum(log.size for log in each.log_files)) if each.log_files else "",
        ]
        for each in found
    ]
    make_stdout().print(build_table(columns, rows))
    logs = sum(len(each.log_files) for each in found)
    print_note(
        f"{format_count(len(found), 'file slice')}, {format_count(logs, 'log file')}; --files prints their paths"
    )
