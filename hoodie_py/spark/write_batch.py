"""``df.write.format("hoodie")``: tasks stage their rows, and the driver's commit writes them; Java: ``DefaultSource``.

Spark runs ``commit`` or ``abort`` in a separate process, on a copy of the writer. It also calls ``abort`` if ``commit``
raised an error. By then the commit may have been written, so ``abort`` reads the timeline, and it never removes
anything but staged rows. A commit that fails rolls itself back; if its process is killed, the next writer does it.
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
"""Key of a commit's extra metadata, by which ``abort`` finds the commit of its write."""


@dataclass(frozen=True, slots=True)
class HoodieWriter(DataSourceArrowWriter):
    """One write of a DataFrame.

    Attributes:
        job: the write.
        staging: the folder for staged rows.
        write_id: identifies the write in the extra metadata of its commit.
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
        """Write the staged rows.

        Raises:
            HoodieError: see ``HoodieTable.upsert``; the table is unchanged unless the error says otherwise.
        """
        self.job.commit(self.staging, list_staged(messages), {WRITE_ID: self.write_id})

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Remove the staged rows, and warn if the commit was written after all."""
        with remove_afterwards(self.staging):
            warn_if_landed(self.job, WRITE_ID, self.write_id)


def list_staged(messages: Sequence[WriterCommitMessage | None]) -> list[StagedRows]:
    """Return the reports of tasks, in the order of the tasks; a task that Spark did not run has none."""
    return [each for each in messages if isinstance(each, StagedRows)]


def warn_if_landed(job: WriteJob, key: str, value: str) -> None:
    """Look for the commit of a write that Spark reports as failed, and warn if there is one."""
    try:
        snapshot = job.options.open()
        instant = None if snapshot is None else find_landed_instant(snapshot, key, value)
    except HoodieError as problem:
        warnings.warn(HoodieWarning(f"Whether the write landed is not known: {problem}"), stacklevel=3)
        return
    if instant is not None:
        warnings.warn(HoodieWarning(f"The write is reported as failed, but it landed: {instant}."), stacklevel=3)
