"""A sample of ``make crash``: points by lot, other ones with each seed; HOODIE_CRASH_SEED repeats a run."""

from __future__ import annotations

import math
import os
import random

import pytest

from integration.crash.operations import LOCKS, OPERATIONS, QUICK
from integration.crash.stores import Bucket, Folder, Place
from integration.crash.tables import BOOTSTRAPPED, TABLES, table
from integration.crash.trials import Bench

SEED = int(os.environ.get("HOODIE_CRASH_SEED", "0")) or random.SystemRandom().randrange(1, 10**6)
TRIALS = 6
TRIALS_ON_S3 = 3


def some(place: Place, name: str, lock: str, operation: str, count: int) -> None:
    bench = Bench(place, table(name), OPERATIONS[operation], {**QUICK, **LOCKS[lock]}, name, lock)
    chosen = bench.some(SEED, count / len(bench.points))
    found = list(bench.run(chosen))
    wrong = [trial for trial in found if trial.problems or not trial.reached]
    assert wrong == [], f"repeat with HOODIE_CRASH_SEED={SEED}"
    assert len({trial.combination for trial in found}) == len(chosen) >= min(count, math.ceil(len(bench.points)))


@pytest.mark.parametrize("operation", [name for name, each in OPERATIONS.items() if not each.clusters])
@pytest.mark.parametrize("name", TABLES)
def test_on_a_disk(folder: Folder, name: str, operation: str) -> None:
    some(folder, name, "machine", operation, TRIALS)


@pytest.mark.parametrize(
    ("name", "operation"),
    [
        ("basic_mor_v6_part", "cluster again"),
        ("basic_mor_v9_part", "rollback of a clustering"),
        ("mdt_files_mor_v9", "cluster"),
    ],
)
def test_clustering_on_a_disk(folder: Folder, name: str, operation: str) -> None:
    some(folder, name, "machine", operation, TRIALS_ON_S3)


@pytest.mark.parametrize("operation", ["run", "rollback of a run", "clean"])
def test_bootstrapped_on_a_disk(folder: Folder, operation: str) -> None:
    some(folder, BOOTSTRAPPED, "machine", operation, TRIALS)


def test_on_a_disk_with_a_lock_file(folder: Folder) -> None:
    some(folder, "basic_mor_v9_part", "file", "run", TRIALS)


@pytest.mark.s3
@pytest.mark.parametrize("operation", ["schedule", "run again", "rollback of a run", "clean"])
def test_on_s3(bucket: Bucket, operation: str) -> None:
    some(bucket, "mdt_files_mor_v9", "object", operation, TRIALS_ON_S3)
