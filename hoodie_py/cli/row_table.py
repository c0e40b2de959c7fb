"""Rows as a table on the terminal: the columns that fit, cells cut to a legible width."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from rich.console import Console

from hoodie_py.cli.console import Column, build_table, stdout
from hoodie_py.cli.values import printable, text_of

WIDEST_CELL = 40
_GAP = 1


def print_rows(rows: pa.Table, output: Path | None = None) -> list[str]:
    """Print rows to stdout or a file and return the names of columns for which there was no room.

    On a terminal, columns are left out at the right and long values are cut; elsewhere all is printed in full.
    """
    if output is not None:
        with output.open("w", encoding="utf-8") as target:
            return _print(rows, Console(file=target, width=10_000, markup=False, highlight=False, emoji=False), None)
    console = stdout()
    return _print(rows, console, console.width if console.is_terminal else None)


def _print(rows: pa.Table, console: Console, width: int | None) -> list[str]:
    cells = {name: [text_of(value) for value in column.to_pylist()] for name, column in _columns(rows)}
    if width is not None:
        cells = {name: [_cut(text) for text in texts] for name, texts in cells.items()}
    fitting = list(cells) if width is None else _fitting(cells, width)
    columns = [
        Column(name, "right" if _is_number(rows.schema.field(name).type) else "left", keep=True) for name in fitting
    ]
    lines = zip(*(cells[name] for name in fitting), strict=True) if fitting else ()
    console.print(build_table(columns, lines))
    return [name for name in cells if name not in fitting]


def _columns(rows: pa.Table) -> list[tuple[str, pa.ChunkedArray]]:
    return list(zip(rows.schema.names, rows.columns, strict=True))


def _cut(text: str) -> str:
    return text if len(text) <= WIDEST_CELL else text[: WIDEST_CELL - 1] + "…"


def _fitting(cells: dict[str, list[str]], width: int) -> list[str]:
    """Return the leading columns that fit in the width; the first always does, folded or cut by the terminal."""
    fitting: list[str] = []
    used = 0
    for name, texts in cells.items():
        used += max(len(printable(name)), *(len(text) for text in texts), 0) + _GAP
        if fitting and used - _GAP > width:
            break
        fitting.append(name)
    return fitting


def _is_number(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_))
