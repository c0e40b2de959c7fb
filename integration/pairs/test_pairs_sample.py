"""A sample of ``make pairs``: other ones with each seed; HOODIE_PAIRS_SEED repeats a run."""

from __future__ import annotations

import os
import random
import time

import pytest

from integration.pairs.__main__ import choose_jobs, list_kinds, list_triples, run
from integration.pairs.operations import OPERATIONS
from integration.pairs.tables import INDEXES, KINDS, VERSIONS, Kind, prepare
from integration.pairs.trials import Bench
from integration.pairs.windows import BEGAN, COMPLETING, LOOKED, WORKED

SEED = int(os.environ.get("HOODIE_PAIRS_SEED", "0")) or random.SystemRandom().randrange(1, 10**6)
SECONDS = 12.0
OF_PAIRS = ("upsert", "update", "delete", "compaction", "clustering", "clean", "read", "verify")


def triples() -> list[tuple[str, str, str]]:
    return list(list_triples(list(OPERATIONS), list(OPERATIONS)))


def test_every_operation_meets_every_other_one_in_every_window() -> None:
    jobs = choose_jobs(triples(), list_kinds([*VERSIONS], [*KINDS], [*INDEXES]), 1, SEED)
    met = {(job.first, second) for job in jobs for _, second in job.seconds}
    assert {first for first, _ in met} == {second for _, second in met} == set(OPERATIONS)
    assert len(met) > 0.9 * len(OPERATIONS) ** 2
    assert {window for job in jobs for window, _ in job.seconds} >= {LOOKED, BEGAN, WORKED, COMPLETING}


@pytest.mark.parametrize("kind", [Kind(9, True, True), Kind(6, False, False)], ids=str)
def test_some_pairs_on_a_disk(bench: Bench, kind: Kind) -> None:
    chosen = [each for each in triples() if each[0] in OF_PAIRS and each[2] in OF_PAIRS]
    until, trials = time.monotonic() + SECONDS, []
    for job in choose_jobs(chosen, [kind], 1, SEED):
        trials += list(run(bench, job, until))
    assert trials
    assert [each for each in trials if each.problems] == [], f"repeat with HOODIE_PAIRS_SEED={SEED}"


@pytest.mark.s3
def test_a_pair_on_s3(s3_bench: Bench) -> None:
    prepared = prepare(Kind(9, True, False))
    trial = s3_bench.trial(prepared, OPERATIONS["upsert"], WORKED, OPERATIONS["update"])
    assert trial.problems == ()
    assert "ConflictError" in trial.answers
