"""Two operations of which one begins and ends while the other is at work: their commits overlap."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hoodie_py import HoodieError, HoodieTable, Instant, TableFiles
from hoodie_py.table.snapshot import open_snapshot
from integration.histories.expected import COMMITS
from tests.writer.faulty_files import WRITES

BESIDE_OTHERS = {"hoodie.clean.failed.writes.policy": "LAZY"}


@dataclass
class Pause:
    """The moment before a write makes its first data file; what happens then, and what came of that.

    Attributes:
        act: what happens.
        known: request times of instants that were there before the write.
        timeline: when it began; None where it did not.
        begun: request time of the write that was at work then.
        error: how what happened failed.
        lock: of the threads of the write.
    """

    act: Callable[[], None]
    known: frozenset[str]
    timeline: list[Instant] | None = None
    begun: str | None = None
    error: HoodieError | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, files: TableFiles) -> None:
        """Do it, once, if the write has begun: before that it may have rolled back others. Its threads wait."""
        with self.lock:
            self._run(files)

    def _run(self, files: TableFiles) -> None:
        if self.timeline is not None:
            return
        timeline = list(HoodieTable(open_snapshot(files)).timeline)
        self.begun = next((each.request_time for each in timeline if self._has_begun(each)), None)
        if self.begun is None:
            return
        self.timeline = timeline
        try:
            self.act()
        except HoodieError as error:
            self.error = error

    def _has_begun(self, instant: Instant) -> bool:
        return instant.action in COMMITS and not instant.is_completed and instant.request_time not in self.known


class PausedFiles(TableFiles):
    """The files of another TableFiles, with a pause before the first data file is written."""

    def __init__(self, files: TableFiles, pause: Pause) -> None:
        super().__init__(files._store)
        self.plain, self.pause = files, pause

    def sub(self, path: str) -> PausedFiles:
        return PausedFiles(super().sub(path), self.pause)


def _pausing(verb: str) -> Callable[..., Any]:
    def call(self: PausedFiles, path: Any, *args: Any, **kwargs: Any) -> Any:
        name = str(path)
        if not name.startswith(".hoodie") and (".log." in name or name.endswith(".parquet")):
            self.pause.run(self.plain)
        return getattr(TableFiles, verb)(self, path, *args, **kwargs)

    return call


for _verb in WRITES:
    setattr(PausedFiles, _verb, _pausing(_verb))


def open_paused(uri: str, pause: Pause) -> HoodieTable:
    """Return a table whose writes pause."""
    return HoodieTable(open_snapshot(PausedFiles(TableFiles.open(uri), pause)))
