"""Random histories of operations on small tables, each compared with a model after every step: ``make histories``.

What ranges of commits changed is compared, too: of times in the middle of a history, of commits at its end.

    python -m integration.histories --steps 100000 --seed 1

The last lines say how many steps of which kind there were, how many operations were cut short by a store that fails,
and in how many histories the answer would have been another one, had a compaction come at another time.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import traceback
from pathlib import Path

from integration.histories.machine import Findings, run
from integration.saved import save_json

STEPS_OF_A_HISTORY = 40
HISTORIES_AT_ONCE = 10
RANGES_OF_A_HISTORY = 60


def main(arguments: list[str] | None = None) -> int:
    """Run, print, and return 1 where a table differed from its model."""
    parser = argparse.ArgumentParser(prog="python -m integration.histories", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ranges", type=int, default=RANGES_OF_A_HISTORY, help="to read once a history has ended")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no further histories after so long")
    parser.add_argument("--base", default="/dev/shm" if Path("/dev/shm").is_dir() else None, help="folder for tables")
    parser.add_argument("--json", type=Path, help="file for the numbers")
    parser.add_argument("--no-shrink", action="store_true", help="show a history that fails as it is")
    asked = parser.parse_args(arguments)
    os.environ.setdefault("HOODIE_PY_READ_THREADS", "1")  # tables are small
    findings, failures, began, number = Findings(), 0, time.monotonic(), 0
    while findings.counts.steps < asked.steps and time.monotonic() - began < asked.seconds:
        with tempfile.TemporaryDirectory(prefix="hoodie-histories-", dir=asked.base) as folder:
            try:
                run(
                    folder, findings, histories=HISTORIES_AT_ONCE, steps=STEPS_OF_A_HISTORY,
                    seed_=asked.seed * 1_000_000 + number, ranges=asked.ranges, shrink=not asked.no_shrink,
                )  # fmt: skip
            except Exception:
                failures += 1
                print(f"FAILURE at seed {asked.seed}, part {number}\n{traceback.format_exc(limit=-3)}", flush=True)
        number += 1
        print(f"{findings.counts.steps:,} steps, {time.monotonic() - began:.0f} s, {failures} failures", flush=True)
        if asked.json is not None:
            save_json(asked.json, as_dict(findings, failures))
    print(text(findings, failures))
    return 1 if failures else 0


def as_dict(findings: Findings, failures: int) -> dict[str, object]:
    """Return the numbers of a run."""
    counts, changes = findings.counts, findings.moved
    return {
        "steps": counts.steps,
        "histories": counts.histories,
        "failures": failures,
        "reads compared": counts.reads,
        "reads of the past compared": counts.looks_back,
        "overlapping commits": dict(counts.overlaps.most_common()),
        "ranges": dict(counts.ranges.most_common()),
        "faults met": sum(counts.faults.values()),
        "operations cut short": counts.cut_short,
        "of these landed": counts.landed,
        "compactions": sum(each.compactions for each in changes),
        "places of compactions tried": sum(each.placements for each in changes),
        "places that change the answer": sum(each.other_answers for each in changes),
        "histories where they do": findings.histories_with_other_answers,
        "histories where that is for a forgotten delete": findings.histories_with_forgotten_deletes,
        "operations": dict(counts.operations.most_common()),
        "refusals that were right": dict(counts.refusals.most_common()),
        "faults": dict(counts.faults.most_common()),
        "kinds of table": len(counts.kinds),
    }


def text(findings: Findings, failures: int) -> str:
    """Return the report."""
    return "\n".join(f"{name}: {value}" for name, value in as_dict(findings, failures).items())


if __name__ == "__main__":
    sys.exit(main())
