"""A data source whose processes fail at a planned step of a micro-batch: once, by an error or by SIGKILL.

The plan is a file, because the steps run in many processes. The process that takes the file away fails.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import InputPartition, WriterCommitMessage
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType

from hoodie_py.spark.data_source import HoodieSource
from hoodie_py.spark.staged.staging import StagedRows, Staging
from hoodie_py.spark.staged.stream import HoodieStreamWriter
from hoodie_py.spark.stream.reader import HoodieStreamReader

FORMAT = "faulty"
PLAN = "faults"  # the option that names the folder of the plan
STEPS = (
    "initialOffset", "latestOffset", "latestOffset done", "partitions", "partitions done", "read", "read amid",
    "read done", "stage", "stage done", "commit", "commit done",
)  # fmt: skip
ERROR, KILL, KILL_SOON, DRIVER = "error", "kill", "kill soon", "kill driver"
_LONGEST_WAIT = 60.0


@dataclass(frozen=True)
class Faults:
    """The plan of one fault, in a folder."""

    folder: str

    def plan(self, step: str, how: str, delay: float = 0.0) -> None:
        """Plan a fault; ``delay`` is in seconds, for a kill that comes while the step runs."""
        Path(self.folder).mkdir(exist_ok=True)
        self._fired.unlink(missing_ok=True)
        self._plan.write_text(json.dumps([step, how, delay]))

    def cancel(self) -> bool:
        """Take the plan back; say whether the fault happened."""
        self._plan.unlink(missing_ok=True)
        return self.has_happened

    def reach(self, step: str) -> None:
        """Fail if this is the planned step."""
        try:
            planned, how, delay = json.loads(self._plan.read_text())
            if planned != step:
                return
            self._plan.rename(self._fired)
        except (OSError, ValueError):
            return
        _fail(step, how, delay)

    @property
    def has_happened(self) -> bool:
        """Whether the planned step was reached."""
        return self._fired.exists()

    @property
    def _plan(self) -> Path:
        return Path(self.folder, "plan")

    @property
    def _fired(self) -> Path:
        return Path(self.folder, "fired")


def _fail(step: str, how: str, delay: float) -> None:
    if how == ERROR:
        raise RuntimeError(f"planned at {step}")
    if how == KILL:
        os.kill(os.getpid(), signal.SIGKILL)
    if how == KILL_SOON:
        threading.Timer(delay, os.kill, (os.getpid(), signal.SIGKILL)).start()
    if how == DRIVER:  # the driver is killed from outside meanwhile, and this process is left behind
        time.sleep(_LONGEST_WAIT)


class FaultyStreamReader(HoodieStreamReader):
    """A reader that fails as planned."""

    faults: Faults

    def initialOffset(self) -> dict[str, Any]:
        self.faults.reach("initialOffset")
        return super().initialOffset()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        self.faults.reach("latestOffset")
        found = super().latestOffset(start, limit)
        if found != start:
            self.faults.reach("latestOffset done")
        return found

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        self.faults.reach("partitions")
        found = super().partitions(start, end)
        self.faults.reach("partitions done")
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        self.faults.reach("read")
        for batch in super().read(partition):
            yield batch
            self.faults.reach("read amid")
        self.faults.reach("read done")

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "faults": self.faults}


@dataclass(frozen=True)
class FaultyStreamWriter(HoodieStreamWriter):
    """A writer that fails as planned."""

    faults: Faults

    def write(self, iterator: Iterator[pa.RecordBatch]) -> StagedRows:
        self.faults.reach("stage")
        staged = super().write(iterator)
        self.faults.reach("stage done")
        return staged

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        self.faults.reach("commit")
        super().commit(messages, batchId)
        self.faults.reach("commit done")


class FaultySource(HoodieSource):
    """``format("faulty")``: hoodie_py's source, with faults."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def streamReader(self, schema: StructType) -> FaultyStreamReader:
        plain = super().streamReader(schema)
        made = FaultyStreamReader.__new__(FaultyStreamReader)
        made.__dict__.update(vars(plain), faults=Faults(self.options[PLAN]))
        return made

    def streamWriter(self, schema: StructType, overwrite: bool) -> FaultyStreamWriter:
        job = self._plan_job(schema, overwrite=overwrite)
        return FaultyStreamWriter(job, Staging.choose(job.options.open_files()), Faults(self.options[PLAN]))
