"""The pairs find what they are for: a check that is taken away shows."""

from __future__ import annotations

import pytest

from hoodie_py.writer.commit import write_commit
from hoodie_py.writer.metadata_table import metadata_table
from integration.pairs.operations import OPERATIONS
from integration.pairs.tables import Kind, prepare
from integration.pairs.trials import Bench
from integration.pairs.windows import BEGAN, COMPLETING, LOOKED, OPENED, WORKED

KIND = Kind(9, False, False)


def problems(bench: Bench, first: str, window: str, second: str, kind: Kind = KIND) -> str:
    return " ".join(bench.trial(prepare(kind), OPERATIONS[first], window, OPERATIONS[second]).problems)


def test_an_upsert_is_stopped_in_each_of_its_windows(bench: Bench) -> None:
    windows = bench.windows(prepare(KIND), OPERATIONS["upsert"])
    assert {OPENED, LOOKED, BEGAN, WORKED, COMPLETING} <= set(windows)


def test_nothing_is_found_where_nothing_is_wrong(bench: Bench) -> None:
    assert problems(bench, "update", WORKED, "upsert") == ""


def test_writes_that_do_not_look_for_conflicts(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_commit, "check_conflicts", lambda *_, **__: None)
    assert "the rows are not" in problems(bench, "update", WORKED, "upsert")


def test_an_index_that_is_not_told(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata_table.MetadataTable, "commit", lambda *_, **__: None)
    said = problems(bench, "savepoint", OPENED, "upsert", Kind(6, False, True))
    assert "verify says" in said or "the rows are not" in said
