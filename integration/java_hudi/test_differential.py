"""Random histories of random tables that Java Hudi and this package make together; every kind of query is compared.

``HOODIE_DIFFERENTIAL`` says how many (few by default), ``HOODIE_DIFFERENTIAL_SEED`` the first seed.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from integration.java_hudi.differential import run_history
from integration.java_hudi.recipes import make_recipe
from integration.java_hudi.session import JavaSession

COUNT = int(os.environ.get("HOODIE_DIFFERENTIAL", "3"))
FIRST = int(os.environ.get("HOODIE_DIFFERENTIAL_SEED", "1"))
STEPS = 10


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_both_answer_alike(java: JavaSession, seed: int, tmp_path: Path) -> None:
    history = run_history(java, tmp_path / "table", make_recipe(seed), STEPS)
    assert len(history.done) > STEPS // 2
    assert history.compared > STEPS
