"""Writes of ``df.write.format("hoodie")``: tasks stage their rows, and the driver's commit writes them.

Streams share ``WriteJob``, which writes staged rows in a commit. Spark runs ``commit`` or ``abort`` in a separate
process, on a copy of the writer. It also calls ``abort`` if ``commit`` raised an error. By then the commit may have
been written, so ``abort`` reads the timeline, and it never removes anything but staged rows. A commit that fails rolls
itself back; if its process is killed, the next writer does it. Java: ``DefaultSource``.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import uuid4

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from hoodie_py.errors import HoodieError, HoodieWarning
from hoodie_py.spark.mergers import choose_merger, load_mergers
from hoodie_py.spark.process import freeze_imports
from hoodie_py.spark.sentence import put_sentence_first
from hoodie_py.spark.staged.staging import StagedRows, Staging
from hoodie_py.spark.types import as_arrow_schema
from hoodie_py.spark.write_options import WriteOptions
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.commit.result import WriteResult
from hoodie_py.writer.pipeline.write import Writer
from hoodie_py.writer.timeline.session import WriteSession

WRITE_ID = "hoodie_py.write.id"
"""Key in a commit's extra metadata by which ``abort`` finds the commit of its write."""


@dataclass(frozen=True, slots=True, repr=False)
class WriteJob:
    """A write in a form that Spark can pickle; its repr shows no storage options."""

    options: WriteOptions
    schema: pa.Schema
    packed_mergers: bytes = b""

    @classmethod
    def plan(cls, options: WriteOptions, schema: StructType, packed_mergers: bytes) -> WriteJob:
        """Check options and columns before Spark computes any row.

        Raises:
            HoodieError: the options contradict each other, the rows' columns, or the table.
        """
        job = cls(options, as_arrow_schema(schema), packed_mergers)
        if options.open() is None:
            options.check_new(job.schema)
        return job

    def commit(
        self,
        staging: Staging,
        staged: Sequence[StagedRows],
        extra_metadata: Mapping[str, str],
    ) -> WriteResult | None:
        """Write the staged rows in a commit, create the table if there is none, and remove the staged files.

        Raises:
            HoodieError: see ``HoodieTable.upsert``.
        """
        with (
            remove_afterwards(staging),
            staging.open_rows(staged) as rows,
            self.options.open_or_create(self.schema, staging.folder) as snapshot,
        ):
            merger = choose_merger(snapshot.config, load_mergers(self.packed_mergers))
            session = WriteSession.open(snapshot, options=self.options.settings, merger=merger)
            data = self.schema.empty_table() if rows is None else rows
            return Writer(session, merger, extra_metadata).write(data, self.options.operation)

    def __repr__(self) -> str:
        return f"WriteJob({self.options!r})"


@contextmanager
def remove_afterwards(staging: Staging) -> Iterator[None]:
    """Remove the staged files after the block, even if it raised an error. A failure to remove them is a warning."""
    try:
        yield
    finally:
        try:
            staging.remove()
        except HoodieError as problem:
            warnings.warn(HoodieWarning(f"Staged rows were not removed: {problem}"), stacklevel=4)


def find_landed_instant(snapshot: Snapshot, key: str, value: str) -> str | None:
    """Return the instant of the latest completed write with an entry in its extra metadata; None if there is none."""
    for instant, metadata in iterate_extra_metadata(snapshot):
        if metadata.get(key) == value:
            return instant
    return None


def iterate_extra_metadata(snapshot: Snapshot) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield request time and extra metadata of each completed write, the latest first."""
    for instant in reversed(snapshot.timeline.list_completed_writes()):
        yield instant.request_time, snapshot.timeline.read_metadata(instant).extra_metadata


@dataclass(frozen=True, slots=True)
class HoodieWriter(DataSourceArrowWriter):
    """One write of a DataFrame.

    ``write_id`` identifies the write in the extra metadata of its commit.
    """

    job: WriteJob
    staging: Staging
    write_id: str = field(default_factory=lambda: str(uuid4()))

    @put_sentence_first()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> StagedRows:
        """Stage the rows of a task, on a worker.

        Raises:
            StorageError: the store refused.
        """
        staged = self.staging.write(iterator)
        freeze_imports()
        return staged

    @put_sentence_first()
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
