"""Kill, refuse and silence the store at every call of every operation, and check what is left: ``make crash``.

    python -m integration.crash                      all points on a disk, and a tenth of those on S3
    python -m integration.crash --share 0.1 --seed 7 a tenth of all points, by lot
    python -m integration.crash --stores local --tables basic_mor_v9_part --operations run

The last lines say how many distinct combinations of operation, call, fault, version, metadata table and store there
were, how much of the traces they cover, and whether anything was violated; ``--json`` keeps the same and every trial.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from integration.crash.children import warm_up, warm_up_for_s3
from integration.crash.operations import LOCKS, OPERATIONS, QUICK
from integration.crash.stores import Bucket, Folder, Place
from integration.crash.tables import TABLES
from integration.crash.trials import Bench, Broken, NotPossible, Trial
from integration.crash.write_tables import RINGS, write_table
from integration.saved import save_json

Done = Mapping[tuple[str, str, str, str], AbstractSet[tuple[int, str]]]
LOCKS_OF = {"local": ("machine",), "s3": ("object",)}


@dataclass(frozen=True)
class Job:
    """One operation on one table on one store."""

    store: str
    lock: str
    table: str
    operation: str
    share: float


@dataclass(frozen=True)
class Campaign:
    """What is cut short: operations on tables, and how the bench of one is made."""

    tables: tuple[str, ...]
    operations: tuple[str, ...]
    bench: Callable[[Place, str, str, dict[str, str], str], Bench]


def _bench(place: Place, name: str, operation: str, options: dict[str, str], lock: str) -> Bench:
    return Bench(place, write_table(name), OPERATIONS[operation], options, name, lock)


SERVICES = Campaign((*TABLES, *RINGS), tuple(OPERATIONS), _bench)


def main(arguments: list[str] | None = None, campaign: Campaign = SERVICES) -> int:
    """Run, print, and return 1 where something was violated."""
    asked = _parser(campaign).parse_args(arguments)
    jobs = [
        Job(store, lock, name, operation, asked.s3_share if store == "s3" else asked.share)
        for store in asked.stores.split(",")
        for lock in (asked.locks.split(",") if asked.locks else LOCKS_OF[store])
        for name in asked.tables.split(",")
        for operation in asked.operations.split(",")
    ]
    random.Random(asked.seed).shuffle(jobs)
    began = time.monotonic()
    until = began + asked.seconds
    warm_up()
    if "s3" in asked.stores:
        warm_up_for_s3()
    summary = Summary(asked.seed)
    for path in asked.after:
        summary.carry_on(json.loads(path.read_text()))
    done = summary.done()
    context = multiprocessing.get_context("fork")
    queue: Any = context.SimpleQueue()
    todo: Any = context.Queue()
    for job in jobs:
        todo.put(job)
    workers = [
        context.Process(target=_work, args=(todo, queue, campaign, asked.seed, until, done))
        for _ in range(asked.workers)
    ]
    for _ in workers:
        todo.put(None)
    for worker in workers:
        worker.start()
    left = len(workers)
    while left:
        what, *news = queue.get()
        if what == "end":
            left -= 1
        else:
            summary.add(what, *news)
    for worker in workers:
        worker.join()
    text = summary.text(time.monotonic() - began)
    print(text)
    if asked.json is not None:
        asked.json.parent.mkdir(parents=True, exist_ok=True)
        save_json(asked.json, summary.as_dict())
    if broken := [worker.name for worker in workers if worker.exitcode]:
        print(f"NOT FINISHED: {', '.join(broken)} ended with an error (above)", file=sys.stderr)
    return 1 if summary.violations or broken else 0


def _parser(campaign: Campaign) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m integration.crash", description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--share", type=float, default=1.0, help="of the points of each operation, by lot")
    parser.add_argument("--s3-share", type=float, default=0.1, help="the same on S3, where a trial takes seconds")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no trial after so long")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--stores", default="local,s3")
    parser.add_argument("--locks", default="", help=f"of {', '.join(LOCKS)}")
    parser.add_argument("--tables", default=",".join(campaign.tables))
    parser.add_argument("--operations", default=",".join(campaign.operations))
    parser.add_argument("--json", type=Path, help="file for the summary and all trials")
    parser.add_argument(
        "--after", type=Path, action="append", default=[], help="such a file, to carry on from; may be given again"
    )
    return parser


def _work(todo: Any, news: Any, campaign: Campaign, seed: int, until: float, done: Done) -> None:
    places: dict[str, Place] = {}
    with tempfile.TemporaryDirectory(prefix="hoodie-crash-", dir=_memory()) as folder:
        try:
            while (job := todo.get()) is not None:
                if time.monotonic() < until:
                    _do(job, campaign, places, Path(folder), news, seed, until, done)
        finally:
            for place in places.values():
                if isinstance(place, Bucket):
                    place.close()
            news.put(("end",))


def _do(
    job: Job,
    campaign: Campaign,
    places: dict[str, Place],
    folder: Path,
    news: Any,
    seed: int,
    until: float,
    done: Done,
) -> None:
    try:
        if job.store not in places:
            base = folder / "table"
            base.mkdir(exist_ok=True)
            places[job.store] = Bucket() if job.store == "s3" else Folder(base)
        options = {**QUICK, **LOCKS[job.lock]}
        bench = campaign.bench(places[job.store], job.table, job.operation, options, job.lock)
        chosen = bench.some(seed, job.share, done.get((job.store, job.lock, job.table, job.operation), frozenset()))
        news.put(("bench", job, len(bench.calls), len(bench.points)))
        for number, fault in chosen:
            if time.monotonic() >= until:
                break
            news.put(("trial", bench.trial(number, fault)))
        news.put(("states", bench.states))
    except NotPossible as error:
        news.put(("refused", job, str(error)))
    except Broken as error:
        news.put(("broken", job, str(error)))


def _memory() -> str | None:
    """Return a folder in memory where there is one: what a power cut does to a disk is not tried here."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


class Summary:
    """What trials came to."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._trials: list[Trial] = []
        self._calls: Counter[tuple[str, ...]] = Counter()
        self._points: Counter[tuple[str, ...]] = Counter()
        self._refused: list[str] = []
        self._broken: list[str] = []
        self._states = 0

    def add(self, what: str, *news: Any) -> None:
        """Take up what a worker tells, and tell at once what is wrong."""
        if what == "states":
            self._states += news[0]
        elif what in ("refused", "broken"):
            job, why = news
            said, word = (self._refused, "NOT TRIED") if what == "refused" else (self._broken, "VIOLATION undisturbed:")
            said.append(f"{job.operation} of {job.table} on {job.store}: {why}")
            print(f"{word} {said[-1]}", flush=True)
        elif what == "bench":
            job, calls, points = news
            self._calls[job.store, job.lock, job.table, job.operation] = calls
            self._points[job.store, job.lock, job.table, job.operation] = points
        else:
            self._trials.append(news[0])
            if news[0].problems or not news[0].reached:
                print(f"VIOLATION {news[0]}", flush=True)
            if len(self._trials) % 500 == 0:
                print(f"{len(self._trials):,} trials", flush=True)

    def carry_on(self, said: Mapping[str, Any]) -> None:
        """Take up what an earlier run came to."""
        for each in said["all"]:
            self._trials.append(Trial(**{**each, "problems": tuple(each["problems"])}))
        self._states += said["states_judged"]

    def done(self) -> Done:
        """Return the points that were tried already."""
        found: dict[tuple[str, str, str, str], set[tuple[int, str]]] = {}
        for each in self._trials:
            found.setdefault(each.job, set()).add((each.number, each.fault))
        return found

    @property
    def violations(self) -> list[Trial | str]:
        """Trials that went wrong, or that did not come to the call, and what goes wrong undisturbed."""
        return [*self._broken, *(each for each in self._trials if each.problems or not each.reached)]

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers and all trials."""
        distinct = {each.combination for each in self._trials}
        return {
            "seed": self._seed,
            "trials": len(self._trials),
            "distinct_combinations": len(distinct),
            "points_of_the_traces": sum(self._points.values()),
            "calls_of_the_traces": sum(self._calls.values()),
            "calls_tried": len({(*each.job, each.number) for each in self._trials}),
            "states_judged": self._states,
            "violations": len(self.violations),
            "not_tried": self._refused,
            "broken": self._broken,
            "scratch_files": sum(each.scratch > 0 for each in self._trials),
            "outcomes": dict(Counter(each.outcome for each in self._trials)),
            "faults": dict(Counter(each.fault for each in self._trials)),
            "by": {
                f"version {version}, metadata table {'on' if on else 'off'}, {store}": count
                for (version, on, store), count in sorted(
                    Counter((each.version, each.metadata_table, each.store) for each in self._trials).items()
                )
            },
            "operations": {
                name: {
                    "trials": count,
                    "points": sum(points for key, points in self._points.items() if key[3] == name),
                }
                for name, count in Counter(each.operation for each in self._trials).items()
            },
            "all": [each.as_dict() for each in self._trials],
        }

    def text(self, seconds: float) -> str:
        """Return the report."""
        said = self.as_dict()
        lines = [f"seed {self._seed}, {seconds:.0f} s; {said['trials']:,} trials"]
        lines.append(
            f"{said['distinct_combinations']:,} distinct combinations of operation, call, before or after, fault, "
            "version, metadata table and store"
        )
        lines.append(
            f"of the traces: {said['calls_tried']:,} of {said['calls_of_the_traces']:,} storage calls, "
            f"{said['trials']:,} of {said['points_of_the_traces']:,} points; {said['states_judged']:,} different ends"
        )
        for title in ("operations", "by", "faults", "outcomes"):
            lines += [f"  {name}: {count}" for name, count in said[title].items()]
        lines += [f"NOT TRIED {each}" for each in self._refused]
        lines.append(f"{said['violations']} violations")
        return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
