"""Every operation beside every other one: ``make pairs``.

    python -m integration.pairs                     each operation, in each of its windows, beside each other one, once
    python -m integration.pairs --kinds 12          the same on each kind of table
    python -m integration.pairs --share 0.1 --seed 7 --version 9 --kind mor --first upsert

Operation A stops in a window; operation B runs whole in another process; A goes on. The kind of table (version, merge
on read or copy on write, with indexes or without) is drawn by lot for each of these; ``--kinds`` says how many kinds
each is tried at. The last lines say how many there were and what was violated; ``--json`` keeps all, ``--after``
carries on.
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
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from integration.crash.children import warm_up_for_s3
from integration.crash.stores import Bucket, Folder, Place
from integration.pairs.operations import OPERATIONS, traits_of
from integration.pairs.tables import INDEXES, KINDS, VERSIONS, Kind, prepare
from integration.pairs.trials import Bench, Trial, warm_up_all
from integration.pairs.windows import WINDOWS
from integration.saved import save_json

_AT_ONCE, _SAVED_EVERY = 4, 25


@dataclass(frozen=True, slots=True)
class Job:
    """An operation that stops on a kind of table, and what is done in its windows: pairs of window and operation."""

    kind: Kind
    first: str
    seconds: tuple[tuple[str, str], ...]


def list_kinds(versions: list[int], kinds: list[str], indexes: list[str]) -> list[Kind]:
    """Return kinds of tables."""
    return [
        Kind(version, kind == "mor", indexed == "indexed")
        for version in versions
        for kind in kinds
        for indexed in indexes
    ]


def list_triples(firsts: list[str], seconds: list[str]) -> Iterator[tuple[str, str, str]]:
    """Return names of two operations that can meet, and a window of the first; not each has each window."""
    for first in firsts:
        for second in seconds:
            if traits_of(OPERATIONS[first], OPERATIONS[second]) is not None:
                yield from ((first, window, second) for window in WINDOWS)


def choose_jobs(triples: list[tuple[str, str, str]], kinds: list[Kind], count: int, seed: int) -> list[Job]:
    """Draw so many kinds of tables for each triple, and return what is to be done at each, in any order."""
    chosen: dict[tuple[Kind, str], list[tuple[str, str]]] = {}
    for first, window, second in triples:
        one, two = OPERATIONS[first], OPERATIONS[second]
        trait = traits_of(one, two) or ""
        can = [Kind(each.version, each.merge_on_read, each.indexed, trait) for each in kinds]
        can = [each for each in can if one.possible(each) and two.possible(each)]
        lot = random.Random(f"{seed}/{first}/{window}/{second}")
        for kind in lot.sample(can, min(count, len(can))):
            chosen.setdefault((kind, first), []).append((window, second))
    jobs = []
    for (kind, first), seconds in chosen.items():
        random.Random(f"{seed}/{kind}/{first}").shuffle(seconds)
        jobs += [Job(kind, first, tuple(seconds[at : at + _AT_ONCE])) for at in range(0, len(seconds), _AT_ONCE)]
    random.Random(seed).shuffle(jobs)
    return jobs


def main(arguments: list[str] | None = None) -> int:
    """Run, print, and return 1 where something was violated."""
    asked = _parser().parse_args(arguments)
    kinds = list_kinds(asked.version or list(VERSIONS), asked.kind or list(KINDS), asked.indexes or list(INDEXES))
    triples = list(list_triples(asked.first or list(OPERATIONS), asked.second or list(OPERATIONS)))
    if asked.window:
        triples = [each for each in triples if each[1] in asked.window]
    triples = sorted(random.Random(asked.seed).sample(triples, round(len(triples) * min(asked.share, 1.0))))
    jobs = choose_jobs(triples, kinds, asked.kinds, asked.seed)
    began = time.monotonic()
    summary = Summary(asked.seed, asked.json)
    for path in asked.after:
        summary.carry_on(json.loads(path.read_text()))
    warm_up_all()
    if asked.store == "s3":
        warm_up_for_s3()
    broken = _run(jobs, asked, summary, began + asked.seconds)
    print(summary.text(time.monotonic() - began))
    summary.save()
    if broken:
        print(f"NOT FINISHED: {', '.join(broken)} ended with an error (above)", file=sys.stderr)
    return 1 if summary.violations or broken else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m integration.pairs", description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=1, help="of the kinds of tables, and of a share")
    parser.add_argument("--share", type=float, default=1.0, help="of pairs and windows, by lot")
    parser.add_argument(
        "--kinds", type=int, default=1, help="how many kinds of tables each pair with window is tried at"
    )
    parser.add_argument("--version", type=int, action="append", choices=VERSIONS)
    parser.add_argument("--kind", action="append", choices=KINDS)
    parser.add_argument("--indexes", action="append", choices=INDEXES)
    parser.add_argument("--first", action="append", choices=OPERATIONS, metavar="OPERATION", help="that stops")
    parser.add_argument("--second", action="append", choices=OPERATIONS, metavar="OPERATION", help="that runs whole")
    parser.add_argument("--window", action="append", choices=WINDOWS)
    parser.add_argument("--store", choices=("local", "s3"), default="local")
    parser.add_argument("--lock", choices=("machine", "file", "object"), default="", help="of all writers")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no trial after so long")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--json", type=Path, help="file for the summary and all trials")
    parser.add_argument("--after", type=Path, action="append", default=[], help="such a file, to carry on from")
    return parser


def _run(jobs: list[Job], asked: argparse.Namespace, summary: Summary, until: float) -> list[str]:
    """Let workers do the jobs, and return the names of those that broke."""
    context = multiprocessing.get_context("fork")
    news: Any = context.SimpleQueue()
    todo: Any = context.Queue()
    for each in [*jobs, *[None] * asked.workers]:
        todo.put(each)
    done = summary.places()
    workers = [
        context.Process(target=_work, args=(todo, news, asked.store, asked.lock, until, done))
        for _ in range(asked.workers)
    ]
    for worker in workers:
        worker.start()
    left = len(workers)
    while left:
        said = news.get()
        if isinstance(said, Trial):
            summary.add(said)
        else:
            left -= 1
            summary.states += said[0]
            summary.refused |= said[1]
    for worker in workers:
        worker.join()
    return [worker.name for worker in workers if worker.exitcode]


def _work(todo: Any, news: Any, store: str, lock: str, until: float, done: frozenset[tuple[str, ...]]) -> None:
    said: tuple[int, dict[tuple[str, str], str]] = (0, {})
    with tempfile.TemporaryDirectory(prefix="hoodie-pairs-", dir=_memory()) as name:
        base = Path(name) / "t"
        base.mkdir()
        place: Place = Bucket() if store == "s3" else Folder(base)
        try:
            bench = Bench(place, lock)
            while (job := todo.get()) is not None:
                for trial in run(bench, job, until, done):
                    news.put(trial)
            said = (bench.states, bench.refused)
        finally:
            if isinstance(place, Bucket):
                place.close()
            news.put(said)


def run(bench: Bench, job: Job, until: float, done: frozenset[tuple[str, ...]] = frozenset()) -> Iterator[Trial]:
    """Make the trials of a job, save those that are done."""
    if time.monotonic() >= until:
        return
    prepared, first = prepare(job.kind), OPERATIONS[job.first]
    windows = bench.windows(prepared, first)
    for window, second in job.seconds:
        place = (str(job.kind), bench.place.store, job.first, window, second, bench.lock)
        if window in windows and place not in done and time.monotonic() < until:
            yield bench.trial(prepared, first, window, OPERATIONS[second])


def _memory() -> str | None:
    """Return a folder in memory where there is one."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


class Summary:
    """What trials came to."""

    def __init__(self, seed: int, path: Path | None = None) -> None:
        self._seed, self._path = seed, path
        self._trials: list[Trial] = []
        self.states = 0
        self.refused: dict[tuple[str, str], str] = {}

    def add(self, trial: Trial) -> None:
        """Take up a trial, and tell at once what is wrong."""
        self._trials.append(trial)
        if trial.problems:
            print(f"VIOLATION {trial}", flush=True)
        if len(self._trials) % _SAVED_EVERY == 0:
            print(f"{len(self._trials):,} trials", flush=True)
            self.save()

    def carry_on(self, said: dict[str, Any]) -> None:
        """Take up what an earlier run came to."""
        for each in said["all"]:
            lists = {name: tuple(value) for name, value in each.items() if isinstance(value, list)}
            self._trials.append(Trial(**{**each, **lists}))

    def places(self) -> frozenset[tuple[str, ...]]:
        """Return what was tried already."""
        return frozenset(each.place for each in self._trials)

    @property
    def violations(self) -> list[Trial]:
        """Trials that went wrong."""
        return [each for each in self._trials if each.problems]

    def save(self) -> None:
        """Keep what there is so far."""
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            save_json(self._path, self.as_dict())

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers and all trials."""
        return {
            "seed": self._seed,
            "trials": len(self._trials),
            "pairs": len({(each.first, each.second) for each in self._trials}),
            "pairs_with_windows": len({(each.first, each.window, each.second) for each in self._trials}),
            "states_judged": self.states,
            "violations": len(self.violations),
            "windows": dict(Counter(each.window for each in self._trials)),
            "kinds": dict(sorted(Counter(each.kind for each in self._trials).items())),
            "answers": dict(Counter(" and ".join(each.answers) for each in self._trials).most_common()),
            "all": [each.as_dict() for each in self._trials],
        }

    def text(self, seconds: float) -> str:
        """Return the report."""
        said = self.as_dict()
        lines = [
            (
                f"seed {self._seed}, {seconds:.0f} s; {said['trials']:,} trials: {said['pairs']:,} pairs, "
                f"{said['pairs_with_windows']:,} with their windows; {said['states_judged']:,} different ends judged"
            )
        ]
        for title in ("windows", "kinds", "answers"):
            lines += [f"  {name}: {count}" for name, count in said[title].items()]
        lines += [f"NOT TRIED {name} of {kind}: {why}" for (kind, name), why in sorted(self.refused.items())]
        lines.append(f"{said['violations']} violations")
        return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
