"""Write the rows of a scan to stdout or a file: as a table for people, or as CSV, JSON lines or Parquet."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

import pyarrow as pa
import typer
from rich.console import Console

from hoodie_py.cli.console import (
    Column,
    PlainConsole,
    build_table,
    iterate_with_progress,
    make_stdout,
    print_note,
    show_spinner,
)
from hoodie_py.cli.options import OutputFormat
from hoodie_py.cli.rows.files import CsvWriter, JsonWriter, ParquetWriter, RowWriter, open_output
from hoodie_py.cli.values import escape_controls, to_text
from hoodie_py.runtime.wording import format_count

if TYPE_CHECKING:
    from hoodie_py.table.incremental.follow import TableFollower
    from hoodie_py.table.scan.scan import Scan

Describe = Callable[[pa.Table], pa.Table]

_WRITERS: dict[OutputFormat, Callable[[IO[bytes], pa.Schema], RowWriter]] = {
    OutputFormat.csv: CsvWriter,
    OutputFormat.json: JsonWriter,
    OutputFormat.parquet: ParquetWriter,
}

_CELL_WIDTHS = (40, 24, 16)  # most characters of a cell; the next width is tried if columns do not fit
_GAP = 2


def print_scan(scan: Scan, most: int, output: Path | None, describe: Describe | None = None) -> None:
    """Print up to ``most`` rows as a table.

    The scan's limit should be ``most + 1``, so that it is known whether there are more. ``describe`` converts the rows
    before they are shown.
    """
    with show_spinner("reading"):
        rows = scan.to_arrow()
    shown = rows.slice(0, most)
    print_table(shown if describe is None else describe(shown), output)
    if rows.num_rows > most > 0:
        print_note(f"the first {format_count(most, 'row')}; --limit N shows more")


def print_table(rows: pa.Table, output: Path | None = None) -> None:
    """Print rows as a table, and say which columns did not fit."""
    left_out = print_rows(rows, output)
    if left_out:
        print_note(f"too wide for the terminal: {', '.join(left_out)}; --columns chooses")


def write_scan(scan: Scan, kind: OutputFormat, output: Path | None) -> None:
    """Write all rows in a machine-readable format.

    Raises:
        typer.BadParameter: binary output for a terminal.
    """
    if output is None and kind is OutputFormat.parquet and sys.stdout.isatty():
        raise typer.BadParameter("Parquet is binary: give --output FILE, or redirect stdout", param_hint="--format")
    rows = 0
    with open_output(output) as target, _WRITERS[kind](target, scan.schema) as file:
        for batch in _iterate_batches(scan):
            file.write(batch)
            rows += batch.num_rows
    if output is not None:
        print_note(f"{format_count(rows, 'row')} in {output}")


def _iterate_batches(scan: Scan) -> Iterator[pa.RecordBatch]:
    """Yield a scan's rows while a progress bar counts its tasks.

    With a limit there is no bar, because the first few tasks may suffice.
    """
    if scan.limit is not None:
        yield from scan.to_batches()
        return
    for task in iterate_with_progress(scan.tasks(), "reading file groups"):
        yield from task.to_batches()


def stream_rows(follower: TableFollower, kind: OutputFormat, describe: Describe | None = None) -> None:
    """Write a follower's rows to stdout as they arrive, until it ends or the user interrupts it.

    The token goes to stderr after the rows of whole commits.

    ``describe`` converts the rows for a table.
    """
    file: RowWriter | None = None
    try:
        for batch in follower:
            rows = batch.rows
            if kind is OutputFormat.table:
                if rows.num_rows:
                    shown = pa.Table.from_batches([rows])
                    print_table(shown if describe is None else describe(shown))
            else:
                with open_output(None) as target:
                    if file is None or file.schema != rows.schema:
                        file = _WRITERS[kind](target, rows.schema)
                    file.write(rows)
            sys.stdout.flush()
            if batch.is_last:
                print_note(f"{format_count(len(batch.commits), 'commit')}; the token is {batch.token}")
    except KeyboardInterrupt:
        print_note(f"The token is {follower.token}")
    finally:
        follower.close()


def print_rows(rows: pa.Table, output: Path | None = None) -> list[str]:
    """Print rows to stdout or a file, and return the names of the columns that did not fit.

    A terminal gets the leftmost columns that fit, with long values cut. Files and pipes get everything in full.
    """
    if output is not None:
        with output.open("w", encoding="utf-8") as target:
            return _print(rows, PlainConsole(target), None)
    console = make_stdout()
    return _print(rows, console, console.width if console.is_terminal else None)


def _print(rows: pa.Table, console: Console, width: int | None) -> list[str]:
    cells = {
        name: [to_text(value) for value in column.to_pylist()]
        for name, column in zip(rows.schema.names, rows.columns, strict=True)
    }
    fitting = list(cells)
    if width is not None:
        cells, fitting = _fit(cells, width)
    columns = [
        Column(name, "right" if _is_number(rows.schema.field(name).type) else "left", keep=True) for name in fitting
    ]
    lines = zip(*(cells[name] for name in fitting), strict=True) if fitting else ()
    console.print(build_table(columns, lines))
    return [name for name in cells if name not in fitting]


def _fit(cells: dict[str, list[str]], width: int) -> tuple[dict[str, list[str]], list[str]]:
    """Return cells cut so that as many columns as possible fit, and the names of the columns that fit."""
    cut = cells
    for most in _CELL_WIDTHS:
        cut = {name: [_cut(text, most) for text in texts] for name, texts in cells.items()}
        if len(fitting := _find_fitting(cut, width)) == len(cells):
            return cut, fitting
    return cut, _find_fitting(cut, width)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _find_fitting(cells: dict[str, list[str]], width: int) -> list[str]:
    """Return the leading columns that fit in the width.

    The first one is always among them; the terminal may fold it.
    """
    fitting: list[str] = []
    used = 0
    for name, texts in cells.items():
        used += max(len(escape_controls(name)), *(len(text) for text in texts), 0) + _GAP
        if fitting and used - _GAP > width:
            break
        fitting.append(name)
    return fitting


def _is_number(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_))
