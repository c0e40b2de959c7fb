"""Kill and restart streams at every step of a micro-batch: ``make crash-streams``.

    python -m integration.crash.stream_trials                      200 trials, 10 of which kill the whole driver
    python -m integration.crash.stream_trials --trials 20 --seed 7

A trial writes a commit to the source, starts the query, and lets one of its processes fail at a planned step, or stops
the query at a moment by lot, or removes Spark's note that a batch is done, as if it had died before it. The next
trial's query goes on where that one was. After each trial no row may be at the sink twice or unwritten; after every
few a query runs to its end, and no row may be missing.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from integration.crash.stream_faults import DRIVER, ERROR, KILL, KILL_SOON, STEPS, Faults
from integration.crash.stream_pipe import KINDS, Pipe, run_query, start_session
from integration.saved import save_json

STOP, FORGET = "stop", "forget the note"
TRIALS_OF_A_PIPE = 8
FULL_RUNS = 4
MOST_RUNS = 10  # on a busy machine Spark may not get a Python process in time
DRIVER_SECONDS = 240.0


@dataclass(frozen=True)
class Trial:
    """A trial and what came of it; ``happened`` is false if the query ended before the planned step."""

    kind: str
    step: str
    how: str
    happened: bool
    problems: tuple[str, ...]


def list_faults(lot: random.Random, count: int, drivers: int) -> list[tuple[str, str]]:
    """Return faults in a random order; each step comes about as often, in each way."""
    ways = [(step, how) for step in STEPS for how in (ERROR, KILL)]
    ways += [("commit", KILL_SOON), ("partitions", KILL_SOON), ("stage", KILL_SOON)] * 2
    ways += [("", STOP), ("", FORGET)] * 3
    lot.shuffle(ways)
    plain = [ways[number % len(ways)] for number in range(max(0, count - drivers))]
    steps = ("latestOffset done", "partitions done", "read", "stage done", "commit", "commit done")
    chosen = plain + [(steps[number % len(steps)], DRIVER) for number in range(min(count, drivers))]
    lot.shuffle(chosen)
    return chosen


def run_trials(spark: Any, folder: Path, seed: int, count: int, drivers: int = 0) -> Iterator[Trial]:
    """Yield trials; ``drivers`` of them kill a driver of its own."""
    lot = random.Random(seed)
    pending = list_faults(lot, count, drivers)
    number = 0
    while pending:
        mine, pending = pending[:TRIALS_OF_A_PIPE], pending[TRIALS_OF_A_PIPE:]
        version, kind = KINDS[number % len(KINDS)]
        place = folder / f"pipe{number}"
        place.mkdir()
        pipe = Pipe(place, version, kind)
        # The start of a stream comes once in a pipe.
        mine.sort(key=lambda fault: fault[0] != "initialOffset")
        for at, (step, how) in enumerate(mine, 1):
            happened = run_trial(spark, pipe, step, how, lot)
            ends = at % FULL_RUNS == 0 or at == len(mine)
            problems = finish(spark, pipe) if ends else pipe.find_problems(complete=False)
            yield Trial(f"version {version} {kind}", step, how, happened, tuple(problems))
        number += 1


def finish(spark: Any, pipe: Pipe) -> list[str]:
    """Run the query to its end, and compare all rows."""
    wrong: str | None = ""
    for _ in range(MOST_RUNS):
        wrong = run_query(spark, pipe.folder)
        if wrong is None:
            return pipe.find_problems(complete=True)
        time.sleep(1)
    return [f"the query does not come to its end any more: {wrong}", *pipe.find_problems(complete=False)]


def run_trial(spark: Any, pipe: Pipe, step: str, how: str, lot: random.Random) -> bool:
    """Let the query fail once; say whether the fault happened."""
    pipe.write(lot)
    pipe.serve(lot)
    faults = Faults(str(pipe.folder / "plan"))
    if how == STOP:
        run_query(spark, pipe.folder, stop_after=lot.uniform(0.2, 6.0))
        return True
    if how == FORGET:
        run_query(spark, pipe.folder)
        return _forget_last_note(pipe.folder / "checkpoint")
    faults.plan(step, how, delay=lot.uniform(0.0, 0.25))
    if how == DRIVER:
        _kill_driver(pipe.folder, faults)
    else:
        run_query(spark, pipe.folder)
    return faults.cancel()


def _forget_last_note(checkpoint: Path) -> bool:
    notes = [each for each in (checkpoint / "commits").glob("[0-9]*") if each.name.isdecimal()]
    if not notes:
        return False
    last = max(notes, key=lambda each: int(each.name))
    last.unlink()
    last.with_name(f".{last.name}.crc").unlink(missing_ok=True)
    return True


def _kill_driver(folder: Path, faults: Faults) -> None:
    """Run the query in a driver of its own, and kill that with its JVM when the step is reached."""
    command = [sys.executable, "-m", "integration.crash.stream_pipe", str(folder)]
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    driver = subprocess.Popen(command, start_new_session=True, **silent)  # type: ignore[call-overload]
    until = time.monotonic() + DRIVER_SECONDS
    while driver.poll() is None and not faults.has_happened and time.monotonic() < until:
        time.sleep(0.05)
    os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()


def main(arguments: list[str] | None = None) -> int:
    """Run, print, and return 1 where something went wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m integration.crash.stream_trials", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--drivers", type=int, default=10, help="of the trials, those that kill the whole driver")
    parser.add_argument("--json", type=Path, help="file for the summary and all trials")
    asked = parser.parse_args(arguments)
    done: list[Trial] = []
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="hoodie-streams-") as folder:
        spark = start_session()
        try:
            for trial in run_trials(spark, Path(folder), asked.seed, asked.trials, asked.drivers):
                done.append(trial)
                print(f"{time.monotonic() - began:6.0f} s {len(done):4} {trial}", flush=True)
        finally:
            spark.stop()
    summary = summarize(asked.seed, done)
    print(json.dumps(summary, indent=1))
    if asked.json is not None:
        asked.json.parent.mkdir(parents=True, exist_ok=True)
        save_json(asked.json, {**summary, "all": [asdict(trial) for trial in done]})
    return 1 if summary["violations"] else 0


def summarize(seed: int, done: list[Trial]) -> dict[str, Any]:
    """Return the numbers of some trials."""
    happened = [trial for trial in done if trial.happened]
    return {
        "seed": seed,
        "trials": len(done),
        "faults_that_happened": len(happened),
        "violations": sum(bool(trial.problems) for trial in done),
        "ways": dict(Counter(trial.how for trial in happened)),
        "steps": dict(Counter(trial.step or trial.how for trial in happened)),
        "tables": dict(Counter(trial.kind for trial in done)),
    }


if __name__ == "__main__":
    sys.exit(main())
