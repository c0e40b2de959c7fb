"""What a notebook shows: results as sentences, values short, foreign text escaped. The notebook of the docs is true.

Jupyter has some thirty packages, so cells run here, and ``show`` does as IPython does (``IPython.lib.pretty``).
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import re
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable
from tests.corpus import ROOT

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
CHANGING = [
    (r"\b\d{17}\b", "INSTANT"),
    (r"\b\d+\.\d+ s\b", "SECONDS"),
    (r"\b[\d,.]+ (bytes|KiB|MiB)\b", "SIZE"),
    (r"\b\d+,\d{3} written\b", "SIZE written"),
]


class Printer:
    """What IPython hands to ``_repr_pretty_``."""

    def __init__(self) -> None:
        self.printed = ""

    def text(self, text: str) -> None:
        self.printed += text


def show(value: Any) -> str:
    """Return what a notebook prints of the value of a cell."""
    for cls in type(value).__mro__:
        if "_repr_pretty_" in cls.__dict__:
            printer = Printer()
            cls._repr_pretty_(value, printer, False)
            return printer.printed
        if "__repr__" in cls.__dict__:
            break
    return repr(value)


def run_cell(source: str, names: dict[str, Any], name: str) -> str:
    """Run a cell, and return what it prints, then the value of its last line."""
    body = ast.parse(source)
    last = body.body.pop() if isinstance(body.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(body, name, "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), name, "eval"), names)
            if value is not None:
                print(show(value))
    return printed.getvalue()


def stored_text(cell: dict[str, Any]) -> str:
    parts = [each.get("text") or each["data"]["text/plain"] for each in cell["outputs"]]
    return "\n".join("".join(each) for each in parts)


def without_changing(text: str) -> str:
    for pattern, name in CHANGING:
        text = re.sub(pattern, name, text)
    return " ".join(text.split())  # IPython breaks long lists over lines


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_of_the_docs_runs_and_prints_what_it_shows(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("pandas", "polars"):
        pytest.importorskip(module, reason=f"NOT TESTED: {module} is not installed")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    names: dict[str, Any] = {"__name__": "__main__"}
    cells = [each for each in json.loads(path.read_text())["cells"] if each["cell_type"] == "code"]
    assert len(cells) > 5
    for number, cell in enumerate(cells):
        printed = run_cell("".join(cell["source"]), names, f"{path.name}, cell {number}")
        assert without_changing(printed) == without_changing(stored_text(cell))


def test_there_is_a_notebook_and_the_pages_link_it() -> None:
    assert NOTEBOOKS
    pages = "".join(each.read_text() for each in (ROOT / "docs").glob("*.md"))
    assert [each.name for each in NOTEBOOKS if f"(notebooks/{each.name})" not in pages] == []
    links = [
        link
        for path in NOTEBOOKS
        for cell in json.loads(path.read_text())["cells"]
        if cell["cell_type"] == "markdown"
        for link in re.findall(r"\]\(([^)]+)\)", "".join(cell["source"]))
    ]
    assert links
    assert [each for each in links if not (ROOT / "docs" / "notebooks" / each).resolve().is_file()] == []


@pytest.fixture
def table(tmp_path: Path) -> HoodieTable:
    schema = pa.schema([("id", pa.string()), ("ts", pa.int64())])
    table = HoodieTable.create(tmp_path / "t", schema, record_key="id", ordering="ts")
    table.upsert([{"id": "a", "ts": 1}, {"id": "b", "ts": 1}])
    return table


def test_results_print_as_sentences_and_keep_every_field_in_their_repr(table: HoodieTable) -> None:
    results: list[Any] = [table.upsert([{"id": "a", "ts": 2}]), table.compact(), table.clean(), table.verify()]
    for result in results:
        assert show(result) == str(result)
        assert show(result).endswith((".", "s."))
        assert repr(result).startswith(f"{type(result).__name__}(")


def test_values_are_short(table: HoodieTable) -> None:
    table.upsert([{"id": "a", "ts": 2}])
    (file_slice,) = table.file_slices()
    (task,) = table.scan(filter="ts > 1").tasks()
    texts = {
        "config": repr(table.config),
        "slice": repr(file_slice),
        "task": repr(task),
        "info": repr(table.read_info(file_slice)),
        "inspect": repr(table.inspect),
    }
    assert all(len(text) < 250 for text in texts.values()), texts
    assert texts["config"] == "TableConfig('t', MERGE_ON_READ, version 9, key id, ordering ts, EVENT_TIME_ORDERING)"
    assert texts["slice"].endswith(f"{file_slice.base_instant}, a base file, 1 log file)")
    assert ", 7 columns, where ts > " in texts["task"]


def test_a_timeline_is_a_table_of_its_instants(table: HoodieTable) -> None:
    shown = table.timeline._repr_html_()
    assert "Timeline of 1 instants" in shown
    assert f"<td>{next(iter(table.timeline)).request_time}</td>" in shown
