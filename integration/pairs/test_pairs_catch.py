"""The pairs find what they are for: a check that is taken away shows."""

from __future__ import annotations

import pytest

from hoodie_py.writer.commit import first_look
from hoodie_py.writer.indexes import metadata_table
from integration.pairs.judge import Answer, Rows, allowed_rows, problems_of_answers
from integration.pairs.operations import FIRST, OPERATIONS, SECOND, Turn
from integration.pairs.tables import Kind, prepare
from integration.pairs.trials import Bench
from integration.pairs.windows import BEGAN, COMPLETING, DONE, LOOKED, OPENED, WORKED

KIND = Kind(9, False, False)


def problems(bench: Bench, first: str, window: str, second: str, kind: Kind = KIND) -> str:
    return " ".join(bench.trial(prepare(kind), OPERATIONS[first], window, OPERATIONS[second]).problems)


def test_an_upsert_is_stopped_in_each_of_its_windows(bench: Bench) -> None:
    windows = bench.windows(prepare(KIND), OPERATIONS["upsert"])
    assert {OPENED, LOOKED, BEGAN, WORKED, COMPLETING} <= set(windows)


def test_nothing_is_found_where_nothing_is_wrong(bench: Bench) -> None:
    assert problems(bench, "update", WORKED, "upsert") == ""


def test_writes_that_do_not_look_for_conflicts(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_look, "check_conflicts", lambda *_, **__: None)
    assert "the rows are not" in problems(bench, "update", WORKED, "upsert")


def test_an_index_that_is_not_told(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata_table.MetadataTable, "commit", lambda *_, **__: None)
    said = problems(bench, "savepoint", OPENED, "upsert", Kind(6, False, True))
    assert "verify says" in said or "the rows are not" in said


def answers_of(first: str, second: str, found: Rows, window: str = BEGAN) -> list[str]:
    """Return what is wrong where the second one, a reader, has found some rows."""
    prepared = prepare(KIND)
    turns = (Turn(prepared, FIRST, {}), Turn(prepared, SECOND, {}))
    operations = (OPERATIONS[first], OPERATIONS[second])
    return problems_of_answers(operations, turns, (Answer("done"), Answer("done", found=found)), window)


@pytest.mark.parametrize("reader", ["read", "follow"])
def test_a_reader_finds_the_rows_of_before_or_those_of_after(reader: str) -> None:
    prepared = prepare(KIND)
    before = prepared.rows
    after = OPERATIONS["upsert"].after(before, Turn(prepared, FIRST, {}))
    assert after != before
    assert answers_of("upsert", reader, before) == answers_of("upsert", reader, after) == []
    assert answers_of("upsert", reader, after, DONE) == []
    assert "rows that never were" in " ".join(answers_of("upsert", reader, before, DONE))
    half = dict([*before.items(), *[each for each in after.items() if each[0] not in before][:1]])
    assert "rows that never were" in " ".join(answers_of("upsert", reader, half))


def test_an_error_must_be_a_refusal() -> None:
    prepared = prepare(KIND)
    turns = (Turn(prepared, FIRST, {}), Turn(prepared, SECOND, {}))
    operations = (OPERATIONS["upsert"], OPERATIONS["insert"])
    refused = Answer("PlannedForClusteringError", kinds=frozenset({"PlannedForClusteringError", "ConflictError"}))
    failed = Answer("InvalidTableError", kinds=frozenset({"InvalidTableError", "HoodieError"}))
    assert problems_of_answers(operations, turns, (Answer("done"), refused), BEGAN) == []
    assert "InvalidTableError" in " ".join(problems_of_answers(operations, turns, (Answer("done"), failed), BEGAN))


def test_the_rows_are_those_of_one_order_or_the_other() -> None:
    prepared = prepare(KIND)
    turns = (Turn(prepared, FIRST, {}), Turn(prepared, SECOND, {}))
    operations = (OPERATIONS["upsert"], OPERATIONS["delete"])
    done, refused = Answer("done"), Answer("ConflictError")
    assert len(allowed_rows(operations, turns, (done, done))) == 2
    assert allowed_rows(operations, turns, (refused, refused)) == [prepared.rows]
    assert allowed_rows(operations, turns, (done, refused)) == [operations[0].after(prepared.rows, turns[0])]
