"""A sample of ``make crash``: points by lot, other ones with each seed; HOODIE_CRASH_SEED repeats a run."""

from __future__ import annotations

import math
import os
import random

import pytest

from integration.crash.operations import LOCKS, OPERATIONS, QUICK
from integration.crash.stores import Bucket, Folder, Place
from integration.crash.tables import BOOTSTRAPPED, TABLES
from integration.crash.trials import Bench
from integration.crash.write_tables import write_table

SEED = int(os.environ.get("HOODIE_CRASH_SEED", "0")) or random.SystemRandom().randrange(1, 10**6)
TRIALS = 5
FEW = 3
OF_ALL_TABLES = (
    "schedule", "run", "run again", "rollback of a run", "rollback of a plan", "rollback of a write", "clean",
    "clean again", "archive",
)  # fmt: skip


def some(place: Place, name: str, lock: str, operation: str, count: int) -> None:
    bench = Bench(place, write_table(name), OPERATIONS[operation], {**QUICK, **LOCKS[lock]}, name, lock)
    chosen = bench.some(SEED, count / len(bench.points))
    found = list(bench.run(chosen))
    wrong = [trial for trial in found if trial.problems or not trial.reached]
    assert wrong == [], f"repeat with HOODIE_CRASH_SEED={SEED}"
    assert len({trial.combination for trial in found}) == len(chosen) >= min(count, math.ceil(len(bench.points)))


@pytest.mark.parametrize("operation", OF_ALL_TABLES)
@pytest.mark.parametrize("name", TABLES)
def test_on_a_disk(folder: Folder, name: str, operation: str) -> None:
    some(folder, name, "machine", operation, TRIALS)


@pytest.mark.parametrize(
    ("name", "operation"),
    [
        ("basic_mor_v6_part", "cluster again"),
        ("basic_mor_v9_part", "rollback of a clustering"),
        ("mdt_files_mor_v9", "cluster"),
        ("made mor 6 ring", "cluster"),
        ("made mor 9 ring", "cluster again"),
        ("made mor 9 ring indexed", "rollback of a clustering"),
        ("made mor 9 ring", "restore past a clustering"),
        ("made cow 6", "cluster"),
        ("made cow 6", "archive writes"),
        ("made cow 9", "restore writes"),
        ("mdt_files_mor_v9", "restore"),
        ("made mor 9", "restore again"),
        ("mdt_files_mor_v9", "log compact"),
        ("basic_mor_v6_part", "log compact again"),
        ("made mor 9", "rollback of a log compaction"),
        ("basic_mor_v6_part", "savepoint"),
        ("made mor 9", "delete a savepoint"),
        ("basic_mor_v6_part", "change of version"),
        ("mdt_files_mor_v9", "change of version beside plans"),
        ("basic_mor_v6_part", "build an index"),
        ("mdt_files_mor_v9", "build an index beside plans"),
        ("made mor 9", "drop an index"),
    ],
)
def test_services_on_a_disk(folder: Folder, name: str, operation: str) -> None:
    some(folder, name, "machine", operation, FEW)


@pytest.mark.parametrize("operation", ["run", "rollback of a run", "clean"])
def test_bootstrapped_on_a_disk(folder: Folder, operation: str) -> None:
    some(folder, BOOTSTRAPPED, "machine", operation, TRIALS)


def test_on_a_disk_with_a_lock_file(folder: Folder) -> None:
    some(folder, "basic_mor_v9_part", "file", "run", TRIALS)


@pytest.mark.s3
@pytest.mark.parametrize(
    "operation",
    [
        "schedule",
        "run again",
        "restore past a plan",
        "change of version beside plans",
        *(pytest.param(each, marks=pytest.mark.thorough) for each in ("rollback of a run", "clean")),
    ],
)
def test_on_s3(bucket: Bucket, operation: str) -> None:
    some(bucket, "mdt_files_mor_v9", "object", operation, FEW)
