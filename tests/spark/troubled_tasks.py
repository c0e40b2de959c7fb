"""Compaction tasks with the failures of clusters, in a module that workers can import."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path

from hoodie_py.errors import StorageError
from hoodie_py.spark.engine import SparkEngine
from hoodie_py.writer.handles.data_file import TaskResult
from hoodie_py.writer.services.compaction_task import CompactionTask, OnRows


class FailsOnce(CompactionTask):
    """The first attempt fails after it wrote its file, which stays."""

    def run(self, on_rows: OnRows | None = None) -> TaskResult:
        """Write the file; fail at the first attempt."""
        result = super().run(on_rows)
        note = Path(tempfile.gettempdir(), f"hoodie-tried-{self.facts.run_id}-{self.index}")
        if note.exists():
            note.unlink()
            return result
        note.touch()
        raise StorageError("The machine went away.", path=result.path)


class RunsTwice(CompactionTask):
    """Two attempts write complete files, as in speculative execution; one is reported."""

    def run(self, on_rows: OnRows | None = None) -> TaskResult:
        """Write two files."""
        super().run(on_rows)
        return super().run(on_rows)


class Breaks(CompactionTask):
    """Fails with an unexpected error."""

    def run(self, on_rows: OnRows | None = None) -> TaskResult:
        """Fail."""
        raise ZeroDivisionError("one over nothing")


class Troubled(SparkEngine):
    """Runs every task as another class of task."""

    kind: type[CompactionTask] = CompactionTask

    def run(self, tasks: Sequence[CompactionTask], on_rows: OnRows) -> Iterator[TaskResult]:
        """Run them."""
        changed = [self.kind(**{each.name: getattr(task, each.name) for each in fields(task)}) for task in tasks]
        return super().run(changed, on_rows)

    @classmethod
    def by(cls, spark: object, kind: type[CompactionTask]) -> Troubled:
        """Return a runner for a class of task."""
        runner = cls(spark)  # type: ignore[arg-type]
        runner.kind = kind
        return runner
