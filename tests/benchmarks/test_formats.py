"""The benchmark beside other formats gives every engine the same rows, and its answers agree."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.benchmarks.format_engines import ENGINES
from tests.benchmarks.formats import make_rows

ROWS = 500


@pytest.mark.parametrize("name", ["hoodie_py MOR", "hoodie_py COW"])
def test_jobs_write_and_read_the_same_rows(name: str, tmp_path: Path) -> None:
    engine, path = ENGINES[name], str(tmp_path / "t")
    engine.create(path, make_rows(0, ROWS))
    engine.append(path, make_rows(ROWS, 10))
    engine.upsert(path, make_rows(5, 20, 1))
    assert engine.read(path) == ROWS + 10
    assert engine.read(path, columns=["id"], where=[("i1", "<", 50), ("category", "==", "c07")]) == sum(
        each["i1"] < 50 and each["category"] == "c07" for each in make_rows(0, ROWS + 10).to_pylist()
    )
    limit = ENGINES["pyarrow"].read(path)
    assert limit >= ROWS + 10  # it reads the base files, old ones too
