"""Print rows as a table: on a terminal only the columns that fit, with long values cut."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from rich.console import Console

from hoodie_py.cli.console import Column, PlainConsole, build_table, make_stdout
from hoodie_py.cli.values import escape_controls, to_text

CELL_WIDTHS = (40, 24, 16)  # most characters of a cell; the next width is tried if columns do not fit
_GAP = 2


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
    for most in CELL_WIDTHS:
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
