"""One writer of a run: ``python -m integration.together.worker SETTINGS``.

It does operations by lot until its time is over, and writes down in a journal what it is about to do and how that
ended, each line before anything else happens. Its rows are its own, but for some that all writers change; there the
newest ordering value counts, which comes from one clock for all processes.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

import pyarrow as pa

DONE, REFUSED, UNKNOWN = "done", "refused", "unknown"
SHARED = [f"shared-{number}" for number in range(6)]
PARTITIONS = ("p0", "p1", "p2")
SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("part", pa.string()), ("write", pa.string())])
SERVICES = ("compact", "cluster", "clean", "archive", "savepoint", "log_compact", "roll_back", "index", "alter")
INDEXES = ("record_index", "column_stats", "bloom_filters")


@dataclass(frozen=True, slots=True)
class Settings:
    """What a worker is told; ``skew`` is by how many seconds its clock is ahead."""

    name: str
    seed: int
    uri: str
    storage_options: dict[str, Any]
    options: dict[str, str]
    skew: float
    until: float  # on the clock that all processes share
    journal: str
    services: bool = True

    def to_text(self) -> str:
        return json.dumps(asdict(self))


def partition_of(key: str) -> str:
    """Return where a key lies: it never moves."""
    return PARTITIONS[sum(key.encode()) % len(PARTITIONS)]


class Worker:
    """A writer with what it knows of its own rows: the write that each has, None once it is deleted."""

    def __init__(self, settings: Settings, table: Any) -> None:
        self._settings = settings
        self._lot = random.Random(settings.seed)
        self._table = table
        self._journal = Path(settings.journal).open("a", buffering=1, encoding="utf-8")  # noqa: SIM115
        self._rows: dict[str, str | None] = {}
        self._aside: set[str] = set()  # keys of writes whose end is not known: their rows are left alone from then on
        self._number = 0

    def run(self) -> None:
        """Do operations until the time is over."""
        acts: dict[str, tuple[int, Callable[[], None]]] = {
            "insert": (6, self._insert),
            "upsert": (6, self._upsert),
            "merge": (2, self._merge),
            "update": (2, self._update),
            "delete": (2, self._delete),
            "look": (3, self._look),
        }
        if self._settings.services:
            acts |= {name: (1, lambda name=name: self._serve(name)) for name in SERVICES}  # type: ignore[misc]
        names, weights = [*acts], [weight for weight, _ in acts.values()]
        while time.monotonic() < self._settings.until:
            acts[self._lot.choices(names, weights)[0]][1]()

    def _note(self, **said: Any) -> None:
        self._journal.write(json.dumps(said) + "\n")

    def _insert(self) -> None:
        keys = [f"{self._settings.name}-{self._number}-{each}" for each in range(self._lot.randint(1, 8))]
        self._write("insert", keys)

    def _upsert(self) -> None:
        self._write("upsert", self._choose_keys())

    def _merge(self) -> None:
        self._write("merge", self._choose_keys())

    def _choose_keys(self) -> list[str]:
        """Return keys of own rows, of new ones, and of some that all writers change."""
        own = [key for key, write in self._rows.items() if write is not None and key not in self._aside]
        keys = self._lot.sample(own, min(len(own), self._lot.randint(0, 5)))
        new = [f"{self._settings.name}-{self._number}-{each}" for each in range(self._lot.randint(0, 2))]
        shared = self._lot.sample(SHARED, self._lot.randint(0, 2))
        return [*keys, *new, *shared]

    def _update(self) -> None:
        own = [key for key, write in self._rows.items() if write is not None and key not in self._aside]
        self._write("update", self._lot.sample(own, min(len(own), self._lot.randint(1, 3))))

    def _delete(self) -> None:
        own = [key for key, write in self._rows.items() if write is not None and key not in self._aside]
        self._write("delete", self._lot.sample(own, min(len(own), self._lot.randint(1, 3))))

    def _write(self, kind: str, keys: list[str]) -> None:
        if not keys:
            return
        name = f"{self._settings.name}:{self._number}"
        self._number += 1
        ts = time.monotonic_ns()
        self._note(write=name, kind=kind, keys=keys, ts=ts)
        act = self._make_act(kind, keys, name, ts)
        end = self._do(act, name)
        if end == DONE:
            self._rows |= dict.fromkeys((key for key in keys if key not in SHARED), None if kind == "delete" else name)
        elif end == UNKNOWN:
            self._aside.update(keys)

    def _make_act(self, kind: str, keys: list[str], name: str, ts: int) -> Callable[[], Any]:
        options = self._settings.options
        if kind == "delete":
            gone = [{"id": key, "part": partition_of(key)} for key in keys]
            return lambda: self._table.refresh().delete(gone, options=options)
        if kind == "update":
            wanted = ", ".join(f"'{key}'" for key in keys)
            change = {"write": f"'{name}'", "ts": str(ts)}
            return lambda: self._table.refresh().update(change, f"id in ({wanted})", options=options)
        rows = [{"id": key, "ts": ts, "part": partition_of(key), "write": name} for key in keys]
        data = pa.Table.from_pylist(rows, SCHEMA)
        if kind == "merge":
            both = {"when_matched": "update", "when_not_matched": "insert", "options": options}
            return lambda: self._table.refresh().merge(data, ["id", "part"], **both)
        return lambda: getattr(self._table.refresh(), kind)(data, options=options)

    def _do(self, act: Callable[[], Any], name: str) -> str:
        from hoodie_py import CommitStateUnknownError, HoodieError

        try:
            act()
        except CommitStateUnknownError as error:
            end, said = UNKNOWN, error
        except HoodieError as error:
            end, said = REFUSED, error
        else:
            self._note(end=DONE, of=name)
            return DONE
        self._note(end=end, of=name, error=type(said).__name__, text=str(said)[:300])
        return end

    def _serve(self, name: str) -> None:
        options = self._settings.options
        many = {**options, "hoodie.keep.min.commits": "12", "hoodie.keep.max.commits": "16"}
        logs = {**options, "hoodie.log.compaction.blocks.threshold": "3"}
        small = {**options, "hoodie.clustering.plan.strategy.small.file.limit": "100000000"}

        def keep() -> None:
            table = self._table.refresh()
            kept = table.savepoints()
            if kept:
                table.delete_savepoint(kept[0].instant, options)
            else:
                table.savepoint(comment="kept", options=options)

        def index() -> None:
            """Build an index, or drop it where it is there."""
            name, table = self._lot.choice(INDEXES), self._table.refresh()
            if name in [each.name for each in table.index.show()]:
                table.index.drop(name, options=options)
            else:
                table.index.build(name, options=options)

        acts: dict[str, Callable[[], Any]] = {
            "index": index,
            "alter": lambda: self._table.refresh().alter(
                comment={"write": f"of {self._settings.name}"}, options=options
            ),
            "compact": lambda: self._table.refresh().compact(options=options),
            "cluster": lambda: self._table.refresh().cluster(options=small),
            "clean": lambda: self._table.refresh().clean(10, options),
            "archive": lambda: self._table.refresh().archive(many),
            "log_compact": lambda: self._table.refresh().log_compact(options=logs),
            "savepoint": keep,
            "roll_back": lambda: self._table.refresh().services(run=True, options=options),
        }
        self._note(service=name)
        self._do(acts[name], name)

    def _look(self) -> None:
        """Read: each row once, and of the worker's own rows what it was told was written."""
        from hoodie_py import HoodieError

        try:
            found = self._table.refresh().scan(["id", "write"]).to_arrow().to_pylist()
        except HoodieError as error:
            self._note(look="failed", error=type(error).__name__, text=str(error)[:500])
            return
        rows = {row["id"]: row["write"] for row in found}
        wrong = [] if len(rows) == len(found) else [f"{len(found) - len(rows)} rows twice"]
        wrong += [
            f"{key} is {rows.get(key)}, not {write}"
            for key, write in self._rows.items()
            if key not in self._aside and rows.get(key) != write
        ]
        self._note(look="wrong" if wrong else "right", rows=len(rows), wrong=wrong[:5])


def set_clock(ahead: float) -> None:
    """Set this process's clock, before anything takes it."""
    plain, real = time.time, datetime
    vars(time)["time"] = lambda: plain() + ahead

    class Ahead(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Any:
            return real.now(tz or UTC) + timedelta(seconds=ahead)

    from hoodie_py.writer.timeline import session

    vars(session)["datetime"] = Ahead


def main(text: str) -> None:
    settings = Settings(**json.loads(text))
    if settings.skew:
        set_clock(settings.skew)
    warnings.simplefilter("ignore")
    from hoodie_py import HoodieTable

    Worker(settings, HoodieTable.open(settings.uri, settings.storage_options)).run()
    sys.stdout.flush()
    os._exit(0)  # threads of clients would keep it waiting


if __name__ == "__main__":
    main(sys.argv[1])
