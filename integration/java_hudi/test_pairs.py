"""Java Hudi reads tables on which two operations met, and finds nothing wrong in their metadata tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from integration.crash.stores import Folder
from integration.java_hudi.session import JavaSession
from integration.pairs.judge import allowed_rows
from integration.pairs.operations import FIRST, OPERATIONS, SECOND, Turn
from integration.pairs.tables import Kind, prepare, rows_of
from integration.pairs.trials import Bench, warm_up_all
from integration.pairs.windows import BEGAN, COMPLETING, LOOKED, WORKED

PAIRS = [
    (Kind(9, True, True), "upsert", WORKED, "compaction"),
    (Kind(9, False, True), "clustering", BEGAN, "insert"),
    (Kind(8, True, True), "compaction", BEGAN, "upsert"),
    (Kind(8, False, False), "update", LOOKED, "delete partition"),
    (Kind(6, True, True), "clean", BEGAN, "merge"),
    (Kind(6, False, True), "delete", COMPLETING, "insert overwrite"),
]


@pytest.mark.parametrize(("kind", "first", "window", "second"), PAIRS, ids=str)
def test_java_reads_what_two_left(
    java: JavaSession, tmp_path: Path, kind: Kind, first: str, window: str, second: str
) -> None:
    warm_up_all()
    (tmp_path / "t").mkdir()
    prepared = prepare(kind)
    operations = (OPERATIONS[first], OPERATIONS[second])
    met = Bench(Folder(tmp_path / "t")).meet(prepared, operations[0], window, operations[1])
    assert met.stopped
    assert not met.broken
    turns = (Turn(prepared, FIRST, {}), Turn(prepared, SECOND, {}))
    assert rows_of(java.read(tmp_path / "t")) in allowed_rows(operations, turns, met.answers)
    if kind.indexed:
        assert java.wrong_metadata(tmp_path / "t") == []
