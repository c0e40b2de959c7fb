"""A sample of ``make crash-streams``, other faults with each seed; HOODIE_CRASH_SEED repeats a run."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark.sql.streaming.datasource", reason="NOT TESTED: PySpark 4.2 or newer is not installed")

from integration.crash.stream_faults import FaultySource
from integration.crash.stream_trials import list_faults, run_trials

SEED = int(os.environ.get("HOODIE_CRASH_SEED", "0")) or random.SystemRandom().randrange(1, 10**6)
TRIALS = 4


@pytest.mark.parametrize("number", [0, pytest.param(1, marks=pytest.mark.thorough)])
def test_a_stream_that_fails_loses_nothing_and_doubles_nothing(spark: Any, tmp_path: Path, number: int) -> None:
    spark.dataSource.register(FaultySource)
    done = list(run_trials(spark, tmp_path, SEED + number, TRIALS))
    assert [each for each in done if each.problems] == [], f"repeat with HOODIE_CRASH_SEED={SEED}"
    assert any(each.happened for each in done)


def test_faults_of_a_run_are_at_every_step_in_every_way() -> None:
    faults = list_faults(random.Random(1), 200, 10)
    assert len(faults) == 200
    assert sum(how == "kill driver" for _, how in faults) == 10
    assert len(set(faults)) > 30
