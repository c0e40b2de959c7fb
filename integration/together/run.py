"""One run: some writers at one table, which are killed, stopped and replaced by lot, and then the judge."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hoodie_py import HoodieTable
from integration.together.journal import read_journal
from integration.together.judge import judge
from integration.together.worker import SCHEMA, Settings

_LOCKS = "org.apache.hudi.client.transaction.lock."
LOCKS: Mapping[str, Mapping[str, str]] = {
    "machine": {},
    "file": {
        "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
        "hoodie.write.lock.provider": f"{_LOCKS}FileSystemBasedLockProvider",
        "hoodie.write.lock.filesystem.expire": "0.1",
    },
    "object": {
        "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
        "hoodie.write.lock.provider": f"{_LOCKS}StorageBasedLockProvider",
        "hoodie.write.lock.storage.validity.timeout.secs": "6",
        "hoodie.write.lock.storage.renew.interval.secs": "0.6",
    },
}
BRIEF = {  # a writer that is stopped for longer than all of this is taken for dead
    "hoodie.client.heartbeat.interval_in_ms": "1500",
    "hoodie.client.heartbeat.tolerable.misses": "3",
    "hoodie.write.lock.wait_time_ms": "30000",
    "hoodie.write.lock.wait_time_ms_between_retry": "50",
    "hoodie.time.generator.max_expected_clock_skew_ms": "10",
}
_LONGEST_STOP = 9.0
_GRACE = 120.0


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run is; everything else follows from the seed."""

    seed: int
    seconds: float = 120.0
    processes: int = 4
    table_type: str = "MERGE_ON_READ"
    version: int = 9
    lock: str = "machine"
    metadata: bool = True
    index: str = "SIMPLE"
    faults: bool = True
    skew: float = 3.0
    uri: str = ""
    storage_options: Mapping[str, Any] = field(default_factory=dict)
    extra: Mapping[str, str] = field(default_factory=dict)
    services: bool = True
    non_blocking: bool = False

    def __str__(self) -> str:
        place = self.uri.partition("://")[0] if "://" in self.uri else "disk"
        lock = f"{self.lock}, non-blocking" if self.non_blocking else self.lock
        return (
            f"seed {self.seed}: {self.processes} writers, {self.table_type} v{self.version}, {self.index} index, lock "
            f"{lock}, metadata table {'on' if self.metadata else 'off'}, on {place}"
        )

    @property
    def options(self) -> dict[str, str]:
        """The options of all writers."""
        own = {"hoodie.metadata.enable": str(self.metadata).lower(), "hoodie.index.type": self.index}
        if self.index == "BUCKET":
            own["hoodie.bucket.index.num.buckets"] = "2"
        if self.non_blocking:
            own["hoodie.write.concurrency.mode"] = "NON_BLOCKING_CONCURRENCY_CONTROL"
        return {**BRIEF, **LOCKS[self.lock], **own, **self.extra}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to."""

    plan: Plan
    problems: tuple[str, ...]
    ends: Mapping[str, int]
    kills: int
    stops: int

    def __str__(self) -> str:
        counts = ", ".join(f"{count} {end}" for end, count in sorted(self.ends.items()))
        said = "".join(f"\n  VIOLATION {problem}" for problem in self.problems) or "\n  nothing lost, nothing doubled"
        return f"{self.plan}; {self.kills} kills, {self.stops} stops; {counts}{said}"


class Run:
    """The processes of a run."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self._plan = plan
        self._folder = folder
        self._lot = random.Random(plan.seed)
        self._until = 0.0
        self._begun = 0
        self._kills = 0
        self._stops = 0
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self._stopped: dict[int, float] = {}  # by place of the writer: when it goes on
        self._journals: dict[int, Path] = {}

    def do(self) -> Outcome:
        """Run it."""
        plan = self._plan
        HoodieTable.create(
            plan.uri,
            SCHEMA,
            record_key="id",
            ordering="ts",
            partition_by="part",
            table_type=plan.table_type,
            table_version=plan.version,
            storage_options=plan.storage_options,
        )
        self._until = time.monotonic() + plan.seconds
        for place in range(plan.processes):
            self._begin(place)
        try:
            self._disturb()
        finally:
            for each in self._running.values():
                if each.poll() is None:
                    each.kill()
                each.wait()
        attempts, looks, others = read_journal(self._folder)
        problems = [*others, *judge(plan.uri, plan.storage_options, plan.options, attempts)]
        problems += [f"while it ran: {text}" for text in looks.wrong]
        ends = Counter(each.end for each in attempts)
        ends.update({"reads": looks.right})
        return Outcome(plan, tuple(problems), ends, self._kills, self._stops)

    def _begin(self, place: int) -> None:
        name = f"w{self._begun}"
        self._begun += 1
        settings = Settings(
            name=name,
            seed=self._lot.randrange(1 << 30),
            uri=self._plan.uri,
            storage_options=dict(self._plan.storage_options),
            options=self._plan.options,
            skew=self._lot.choice((0.0, 0.0, self._plan.skew, -self._plan.skew)),
            until=self._until,
            journal=str(self._folder / f"{name}.jsonl"),
            services=self._plan.services,
        )
        self._journals[place] = Path(settings.journal)
        temporary = self._folder / f"tmp{place % 2}"
        temporary.mkdir(exist_ok=True)
        with (self._folder / f"{name}.log").open("wb") as log:
            self._running[place] = subprocess.Popen(
                [sys.executable, "-m", "integration.together.worker", settings.to_text()],
                env={**os.environ, "TMPDIR": str(temporary), "PYTHONUNBUFFERED": "1"},
                stdout=log,
                stderr=log,
            )

    def _disturb(self) -> None:
        """Kill, stop and replace writers until the time is over, then wait for those that are left."""
        while time.monotonic() < self._until:
            time.sleep(0.1)
            self._wake()
            for place, each in list(self._running.items()):
                if each.poll() is not None and time.monotonic() < self._until - 3:
                    self._begin(place)
            if self._plan.faults and self._lot.random() < 0.03:
                self._harm()
        for place in list(self._stopped):
            self._stopped[place] = 0.0
        self._wake()
        deadline = time.monotonic() + _GRACE
        while any(each.poll() is None for each in self._running.values()) and time.monotonic() < deadline:
            time.sleep(0.1)

    def _harm(self) -> None:
        place = self._lot.choice([*self._running])
        one = self._running[place]
        if one.poll() is not None or place in self._stopped or not self._has_begun(place):
            return
        if self._lot.random() < 0.5:
            one.send_signal(signal.SIGKILL)
            self._kills += 1
        elif len(self._stopped) < len(self._running) - 1:
            one.send_signal(signal.SIGSTOP)
            self._stops += 1
            self._stopped[place] = time.monotonic() + self._lot.uniform(0.2, _LONGEST_STOP)

    def _has_begun(self, place: int) -> bool:
        """Whether a writer has written anything down: one that is still being started is no test."""
        journal = self._journals[place]
        return journal.exists() and journal.stat().st_size > 0

    def _wake(self) -> None:
        for place, until in list(self._stopped.items()):
            if time.monotonic() >= until:
                del self._stopped[place]
                self._running[place].send_signal(signal.SIGCONT)
