"""Engines that run tasks otherwise than they should, and a lock that gets lost."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from hoodie_py.errors import ConflictError
from hoodie_py.writer.pipeline.local_engine import LocalEngine


class Repeated:
    """An engine that runs each task twice, on other machines."""

    def run(self, tasks: Sequence[Any], on_rows: Callable[[int], None]) -> Iterator[Any]:
        for task in pickle.loads(pickle.dumps(list(tasks))):
            yield pickle.loads(pickle.dumps(task.run()))
            yield task.run()


class Forgetful(LocalEngine):
    """An engine that leaves a task out."""

    def run(self, tasks: Sequence[Any], on_rows: Callable[[int], None]) -> Iterator[Any]:
        return super().run(tasks[1:], on_rows)


class Late(LocalEngine):
    """Keeps its tasks, for attempts after its run."""

    def __init__(self) -> None:
        super().__init__()
        self.tasks: list[Any] = []

    def run(self, tasks: Sequence[Any], on_rows: Callable[[int], None]) -> Iterator[Any]:
        self.tasks.extend(tasks)
        return super().run(tasks, on_rows)


class Losable:
    """A user's own lock, which gets lost when told."""

    renew_every = None

    def __init__(self) -> None:
        self.lost = False

    def acquire(self, timeout: float) -> None:
        """Take it."""

    def renew(self) -> None:
        """Confirm it."""
        if self.lost:
            raise ConflictError("lost")

    def release(self) -> None:
        """Give it back."""
