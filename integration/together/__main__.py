"""Runs of several writers at one table: ``python -m integration.together --runs 60 --seconds 120 --seed 1``.

A run is made from its seed: ``--seed N --runs 1`` runs it again, as far as chance allows. Exit status 1: a violation.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from integration import versitygw
from integration.together.run import Outcome, Plan, Run


def choose_plan(seed: int, seconds: float, stores: list[str]) -> tuple[Plan, str]:
    """Return what a seed means, and the store; its uri is still missing."""
    lot = random.Random(f"plan/{seed}")
    store = lot.choice(stores)
    plan = Plan(
        seed=seed,
        seconds=seconds,
        processes=lot.randint(2, 6),
        table_type=lot.choice(("MERGE_ON_READ", "MERGE_ON_READ", "COPY_ON_WRITE")),
        version=lot.choice((6, 8, 9, 9)),
        lock="object" if store == "s3" else lot.choice(("machine", "file")),
        metadata=lot.random() < 0.7,
        index=lot.choice(("SIMPLE", "SIMPLE", "BUCKET")),
    )
    can = plan.index == "BUCKET" and plan.table_type == "MERGE_ON_READ" and plan.version > 6 and plan.lock != "machine"
    return replace(plan, non_blocking=can and lot.random() < 0.7), store


@contextmanager
def place(store: str, folder: Path, plan: Plan) -> Iterator[Plan]:
    """Give a plan its table's place: a folder, or a bucket of an S3 server that honours conditions."""
    if store == "disk":
        yield replace(plan, uri=str(folder / "table"))
        return
    command = versitygw.program()
    if command is None:
        raise SystemExit(f"There is no S3 server: {versitygw.HOW}")
    with versitygw.running(command, folder / "server") as server:
        yield replace(plan, uri=f"{server.uri}/table", storage_options=server.storage_options)


def do(seed: int, seconds: float, stores: list[str], keep: Path | None) -> Outcome:
    """Do the run of a seed; where it goes wrong, its table and journals are kept."""
    plan, store = choose_plan(seed, seconds, stores)
    with tempfile.TemporaryDirectory(prefix="hoodie-together-") as name:
        folder = Path(name)
        (folder / "server").mkdir()
        with place(store, folder, plan) as whole:
            outcome = Run(whole, folder).do()
        if outcome.problems and keep is not None:
            shutil.copytree(folder, keep / f"seed{seed}", dirs_exist_ok=True)
    return outcome


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m integration.together", description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--stores", default="disk,s3")
    parser.add_argument("--keep", type=Path, help="folder for the tables of runs that went wrong")
    asked = parser.parse_args()
    wrong = 0
    for seed in range(asked.seed, asked.seed + asked.runs):
        outcome = do(seed, asked.seconds, asked.stores.split(","), asked.keep)
        print(outcome, flush=True)
        wrong += bool(outcome.problems)
    print(f"{asked.runs} runs, {wrong} with violations")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
