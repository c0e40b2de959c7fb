"""A table's files on a store that dies, refuses or loses its answer at a chosen call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hoodie_py.errors import CommitStateUnknownError, StorageError
from hoodie_py.files import TableFiles

READS = ("read", "read_range", "read_ranges", "list", "list_names", "list_many", "stat", "exists", "open_file")
WRITES = ("put", "put_if_absent", "create_from", "put_if_match", "delete", "remove_folder")


class Killed(BaseException):
    """The process ends here; nothing that comes after reaches the store."""


@dataclass
class Plan:
    """Which call goes wrong, and how: the ``at``-th of those watched.

    ``fault``: "kill before", "kill after", "refuse" (nothing is done) or "lose answer" (it is done, and an error says
    that nobody knows).
    """

    at: int | None = None
    fault: str = "kill before"
    watched: tuple[str, ...] = (*READS, *WRITES)
    trace: list[str] = field(default_factory=list)
    dead: bool = False

    def call(self, verb: str, path: Any, act: Callable[[], Any]) -> Any:
        if self.dead:
            raise Killed
        if verb not in self.watched:
            return act()
        self.trace.append(f"{verb} {path}")
        if self.at is None or len(self.trace) - 1 != self.at:
            return act()
        if self.fault == "refuse":
            raise StorageError("no space left on device", operation=verb, path=str(path))
        if self.fault == "kill before":
            self.dead = True
            raise Killed
        answer = act()
        if self.fault == "kill after":
            self.dead = True
            raise Killed
        if verb in ("put_if_absent", "create_from"):
            raise CommitStateUnknownError("the answer got lost", path=str(path))
        if verb in READS:
            return answer
        raise StorageError("the answer got lost", operation=verb, path=str(path))


class FaultyFiles(TableFiles):
    """The files of another TableFiles, each call by way of a plan."""

    def __init__(self, files: TableFiles, plan: Plan) -> None:
        super().__init__(files._store)
        self.plan = plan

    def sub(self, path: str) -> FaultyFiles:
        return FaultyFiles(super().sub(path), self.plan)


def _faulty(verb: str) -> Callable[..., Any]:
    def call(self: FaultyFiles, path: Any, *args: Any, **kwargs: Any) -> Any:
        return self.plan.call(verb, path, lambda: getattr(TableFiles, verb)(self, path, *args, **kwargs))

    return call


for _verb in (*READS, *WRITES):
    setattr(FaultyFiles, _verb, _faulty(_verb))
