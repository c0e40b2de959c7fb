"""``df.write.format("hoodie")``: tasks stage their rows, the driver's commit writes them.

Spark runs ``commit`` or ``abort`` in a process of its own, on a copy of the writer, and calls ``abort`` too when
``commit`` raised: by then the commit may have landed, so ``abort`` looks at the timeline, and only ever removes staged
rows. What a commit that failed left in the table it takes back itself; if it was killed, the next writer does.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from uuid import uuid4

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from hoodie_py.errors import HoodieError, HoodieWarning
from hoodie_py.spark.python_process import freeze_imports
from hoodie_py.spark.write_job import WriteJob, find_landed_instant, remove_afterwards
from hoodie_py.spark.write_staging import StagedRows, Staging

WRITE_ID = "hoodie_py.write.id"
"""Key of a commit's extra metadata: tells a write's own commit from others."""


@dataclass(frozen=True, slots=True)
class HoodieWriter(DataSourceArrowWriter):
    """One write of a DataFrame.

    Attributes:
        job: what to write where.
        staging: where rows wait.
        write_id: in the extra metadata of the commit.
    """

    job: WriteJob
    staging: Staging
    write_id: str = field(default_factory=lambda: str(uuid4()))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> StagedRows:
        """Stage the rows of a task, on a worker.

        Raises:
            StorageError: the store refused.
        """
        staged = self.staging.write(iterator)
        freeze_imports()
        return staged

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Write what tasks staged.

        Raises:
            HoodieError: see ``HoodieTable.upsert``; the table is as it was unless the error says otherwise.
        """
        self.job.commit(self.staging, list_staged(messages), {WRITE_ID: self.write_id})

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Remove what tasks staged, and say so if the commit had landed all the same."""
        with remove_afterwards(self.staging):
            warn_if_landed(self.job, WRITE_ID, self.write_id)


def list_staged(messages: Sequence[WriterCommitMessage | None]) -> list[StagedRows]:
    """Return what tasks reported, in their order."""
    return [each for each in messages if isinstance(each, StagedRows)]


def warn_if_landed(job: WriteJob, key: str, value: str) -> None:
    """Look for the commit of a write that Spark believes to have failed."""
    try:
        snapshot = job.options.open()
        instant = None if snapshot is None else find_landed_instant(snapshot, key, value)
    except HoodieError as problem:
        warnings.warn(HoodieWarning(f"Whether the write landed is not known: {problem}"), stacklevel=3)
        return
    if instant is not None:
        warnings.warn(HoodieWarning(f"The write is reported as failed, but it landed: {instant}."), stacklevel=3)
