"""Engines for tests: during their writes something happens, or their tasks run otherwise than once and in order."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hoodie_py import HoodieTable
from hoodie_py.errors import StorageError
from hoodie_py.writer.commit.result import WriteResult
from hoodie_py.writer.handles.data_file import TaskResult
from hoodie_py.writer.pipeline.engine import Engine, Rows, Target
from hoodie_py.writer.pipeline.local_engine import LocalEngine
from hoodie_py.writer.pipeline.tasks import Job
from hoodie_py.writer.pipeline.write import Writer
from hoodie_py.writer.records import WriteOperation
from tests.writer.compaction_tables import QUICK


class Meanwhile(LocalEngine):
    """Something happens between the files of a write and its commit."""

    def __init__(self, act: Callable[[], object]) -> None:
        super().__init__()
        self.act = act

    def run_jobs(self, jobs: Sequence[Job]) -> Sequence[TaskResult]:
        """Run the jobs, then act."""
        done = super().run_jobs(jobs)
        self.act()
        return done


class AfterKeys(LocalEngine):
    """Something happens when the rows of a write have keys, and are not looked up yet."""

    def __init__(self, act: Callable[[], object]) -> None:
        super().__init__()
        self.act = act

    def key(self, data: Any, target: Target) -> Rows:
        """Make keys, then act."""
        keyed = super().key(data, target)
        self.act()
        return keyed


class Twice(LocalEngine):
    """Every file is written twice; one attempt counts. Results come in any order."""

    def run_jobs(self, jobs: Sequence[Job]) -> Sequence[TaskResult]:
        """Run the jobs twice."""
        super().run_jobs(jobs)
        done = list(super().run_jobs(jobs))
        random.Random(len(done)).shuffle(done)
        return done


class Failing(LocalEngine):
    """A task fails after all files were written."""

    def run_jobs(self, jobs: Sequence[Job]) -> Sequence[TaskResult]:
        """Run the jobs, and fail."""
        super().run_jobs(jobs)
        raise StorageError("The machine went away.")


def write_by(
    engine: Engine, base: Path, data: Any, operation: str = "upsert", options: Mapping[str, Any] = QUICK
) -> WriteResult:
    """Write by an engine."""
    session = HoodieTable.open(base)._open_session(dict(options), None)
    return Writer(session, engine=engine).write(data, WriteOperation(operation))
