"""What a notebook shows: results as sentences, values short, foreign text escaped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable


class Printer:
    """What IPython hands to ``_repr_pretty_``."""

    def __init__(self) -> None:
        self.printed = ""

    def text(self, text: str) -> None:
        self.printed += text


@pytest.fixture
def table(tmp_path: Path) -> HoodieTable:
    schema = pa.schema([("id", pa.string()), ("ts", pa.int64())])
    table = HoodieTable.create(tmp_path / "t", schema, record_key="id", ordering="ts")
    table.upsert([{"id": "a", "ts": 1}, {"id": "b", "ts": 1}])
    return table


def test_results_print_as_sentences_and_keep_every_field_in_their_repr(table: HoodieTable) -> None:
    results: list[Any] = [table.upsert([{"id": "a", "ts": 2}]), table.compact(), table.clean(), table.verify()]
    for result in results:
        printer = Printer()
        result._repr_pretty_(printer, False)
        assert printer.printed == str(result)
        assert printer.printed.endswith((".", "s."))
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
