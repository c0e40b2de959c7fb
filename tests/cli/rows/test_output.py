from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from rich.console import Console

from hoodie_py.cli.rows import output as row_table
from hoodie_py.cli.rows.output import print_rows

WIDE = pa.table({f"column_{i}": ["x" * (10 * i)] for i in range(1, 8)})


def on_a_terminal(monkeypatch: pytest.MonkeyPatch, rows: pa.Table, width: int) -> tuple[list[str], list[str]]:
    console = Console(force_terminal=True, width=width, color_system=None)
    monkeypatch.setattr(row_table, "make_stdout", lambda: console)
    with console.capture() as captured:
        left_out = print_rows(rows)
    return captured.get().splitlines(), left_out


@pytest.mark.parametrize("width", [20, 40, 80, 120])
def test_it_fits_the_terminal(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    lines, left_out = on_a_terminal(monkeypatch, WIDE, width)
    assert max(map(len, lines)) <= width
    assert lines[0].split() + left_out == WIDE.column_names
    assert len(lines) == 3


def test_values_are_cut_before_columns_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    lines, left_out = on_a_terminal(monkeypatch, WIDE.select(["column_6", "column_7"]), 80)
    assert left_out == []
    assert "…" in lines[2]


def test_elsewhere_all_is_printed(tmp_path: Path) -> None:
    target = tmp_path / "rows.txt"
    assert print_rows(WIDE, target) == []
    assert "x" * 70 in target.read_text()


def test_data_is_never_markup(tmp_path: Path) -> None:
    target = tmp_path / "rows.txt"
    print_rows(pa.table({"[red]name": ["[bold]:smile: \x1b[31m"]}), target)
    assert "[bold]:smile: \\x1b[31m" in target.read_text()
    assert "[red]name" in target.read_text()


def test_no_rows_and_no_columns(tmp_path: Path) -> None:
    print_rows(pa.table({"a": pa.array([], pa.int64())}), tmp_path / "rows.txt")
    assert (tmp_path / "rows.txt").read_text().startswith("a")
    assert print_rows(pa.table({}), tmp_path / "none.txt") == []
