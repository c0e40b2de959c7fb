"""Write steps with the failures of clusters, in a module that workers can import."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from hoodie_py.errors import StorageError
from hoodie_py.spark.attempts import pack_failure
from hoodie_py.spark.distributed.files import WriteFiles
from hoodie_py.spark.distributed.jobs import FrameJobs
from hoodie_py.spark.engine import SparkEngine


class FailsLast(WriteFiles):
    """Fails after the files were written."""

    def _run_task(self, label: int, payloads: Sequence[pa.Buffer]) -> pa.RecordBatch:
        super()._run_task(label, payloads)
        return pack_failure(StorageError("The machine went away."))


class Breaks(WriteFiles):
    """Fails with an unexpected error."""

    def _run_task(self, label: int, payloads: Sequence[pa.Buffer]) -> pa.RecordBatch:
        super()._run_task(label, payloads)
        raise ZeroDivisionError("one over nothing")


class RunsTwice(WriteFiles):
    """Two attempts write complete files, as in speculative execution; one is reported."""

    def _run_task(self, label: int, payloads: Sequence[pa.Buffer]) -> pa.RecordBatch:
        super()._run_task(label, payloads)
        return super()._run_task(label, payloads)


class LosesRows(WriteFiles):
    """Gets more rows than were counted, as from a DataFrame whose rows change."""

    def _run_task(self, label: int, payloads: Sequence[pa.Buffer]) -> pa.RecordBatch:
        return super()._run_task(label, [*payloads, *payloads])


def troubled(spark: Any, kind: type[WriteFiles]) -> SparkEngine:
    """Return an engine that writes files by a class of step."""
    engine = SparkEngine(spark)
    engine.jobs = type("TroubledJobs", (FrameJobs,), {"step": kind})  # type: ignore[misc]
    return engine
