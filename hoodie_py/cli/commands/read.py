"""``hoodie read``: print a table's merged rows, or write them as CSV, JSON lines or Parquet."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from hoodie_py.cli.console import report_errors
from hoodie_py.cli.options import AsOf, Debug, EndpointUrl, StorageOptions, TableUri, parse_storage_options
from hoodie_py.cli.values import format_count

if TYPE_CHECKING:
    import pyarrow as pa

    from hoodie_py.hoodie_table import HoodieTable
    from hoodie_py.table.scan.scan import Scan

ROWS_ON_THE_TERMINAL = 50


class Format(StrEnum):
    """Format of the output."""

    table = "table"
    csv = "csv"
    json = "json"
    parquet = "parquet"


class QueryType(StrEnum):
    """Query type of the scan."""

    snapshot = "snapshot"
    read_optimized = "read_optimized"


Columns = Annotated[
    str | None, typer.Option("--columns", metavar="A,B,...", help="Columns to read, in order; default all.")
]
Where = Annotated[
    str | None,
    typer.Option("--where", metavar="SQL", help="Condition for rows: \"price > 10 and city = 'sf'\"."),
]
Kind = Annotated[QueryType, typer.Option("--query-type", help="Merged rows, or rows of base files only.")]
As = Annotated[
    Format, typer.Option("--format", help="Table for the terminal, CSV, JSON (one object per line) or Parquet.")
]
Json = Annotated[bool, typer.Option("--json", help="The same as --format json.")]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to a file instead of stdout.")
]
Limit = Annotated[
    int | None,
    typer.Option(
        "--limit", min=0, metavar="N", help=f"Most rows to read; default {ROWS_ON_THE_TERMINAL} for tables, else all."
    ),
]


def read(
    table: TableUri,
    columns: Columns = None,
    where: Where = None,
    as_of: AsOf = None,
    query_type: Kind = QueryType.snapshot,
    format: As = Format.table,
    as_json: Json = False,
    output: Output = None,
    limit: Limit = None,
    storage_option: StorageOptions = None,
    endpoint_url: EndpointUrl = None,
    debug: Debug = False,
) -> None:
    """Read a table's rows, merged as Hudi merges them."""
    kind = Format.json if as_json else format
    if as_json and format not in {Format.table, Format.json}:
        raise typer.BadParameter(f"contradicts --format {format.value}", param_hint="--json")
    with report_errors(debug):
        from hoodie_py import HoodieTable

        opened = HoodieTable.open(table, parse_storage_options(storage_option, endpoint_url))
        asked = None if columns is None else [name.strip() for name in columns.split(",") if name.strip()]
        on_terminal = kind is Format.table
        shown = _list_user_columns(opened) if on_terminal and asked is None else asked
        most = ROWS_ON_THE_TERMINAL if on_terminal and limit is None else limit
        scan = opened.scan(shown, where, as_of, query_type.value, most if most is None or not on_terminal else most + 1)
        if on_terminal:
            _print(scan, most or 0, asked is None and len(scan.columns) < len(opened.schema), output)
        else:
            _write(scan, kind, output)


def _list_user_columns(table: HoodieTable) -> list[str]:
    """Return the columns without Hudi's meta columns, as a terminal is narrow; ``--columns`` can name them."""
    names = table.schema.names
    return [name for name in names if not name.startswith("_hoodie_")] or names


def _print(scan: Scan, most: int, meta_left_out: bool, output: Path | None) -> None:
    from hoodie_py.cli.console import print_note, show_spinner
    from hoodie_py.cli.rows.table import print_rows

    with show_spinner("reading"):
        rows = scan.to_arrow()
    left_out = print_rows(rows.slice(0, most), output)
    if rows.num_rows > most:
        print_note(f"the first {format_count(most, 'row')}; --limit N shows more")
    if left_out:
        print_note(f"too wide for the terminal: {', '.join(left_out)}; --columns chooses")
    if meta_left_out:
        print_note("without Hudi's meta columns; --columns can name them")


def _write(scan: Scan, kind: Format, output: Path | None) -> None:
    from hoodie_py.cli.console import print_note
    from hoodie_py.cli.rows import files as row_files

    writers: dict[Format, Callable[[IO[bytes], pa.Schema], row_files.RowWriter]] = {
        Format.csv: row_files.CsvWriter,
        Format.json: row_files.JsonWriter,
        Format.parquet: row_files.ParquetWriter,
    }
    if output is None and kind is Format.parquet and sys.stdout.isatty():
        raise typer.BadParameter("Parquet is binary: give --output FILE, or redirect stdout", param_hint="--format")
    rows = 0
    with row_files.open_output(output) as target, writers[kind](target, scan.schema) as file:
        for batch in _iterate_batches(scan):
            file.write(batch)
            rows += batch.num_rows
    if output is not None:
        print_note(f"{format_count(rows, 'row')} in {output}")


def _iterate_batches(scan: Scan) -> Iterator[pa.RecordBatch]:
    """Yield a scan's rows with a progress bar that counts tasks. With a limit there is none: few tasks may do."""
    from hoodie_py.cli.console import iterate_with_progress

    if scan.limit is not None:
        yield from scan.to_batches()
        return
    for task in iterate_with_progress(scan.tasks(), "reading file groups"):
        yield from task.to_batches()
