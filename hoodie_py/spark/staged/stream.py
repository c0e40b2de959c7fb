"""``df.writeStream.format("hoodie")``: writes each batch of a streaming query in one commit, exactly once.

After a failure Spark repeats the last batch, which may have been committed. So the extra metadata of a commit names the
query and the batch, as in Java (``HoodieStreamingSink``), and a batch that the table already has writes nothing. The
query is identified by an option or by its id, which stays the same as long as its checkpoint exists.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import datasource
from pyspark.sql.datasource import WriterCommitMessage

from hoodie_py.errors import HoodieError
from hoodie_py.options.source import STREAM_CHECKPOINT, STREAM_IDENTIFIER
from hoodie_py.spark.process import freeze_imports
from hoodie_py.spark.sentence import put_sentence_first
from hoodie_py.spark.staged.batch import (
    WriteJob,
    iterate_extra_metadata,
    list_staged,
    remove_afterwards,
    warn_if_landed,
)
from hoodie_py.spark.staged.staging import StagedRows, Staging
from hoodie_py.table.snapshot import Snapshot

if TYPE_CHECKING:
    _Base = Any
else:
    _Base = getattr(datasource, "DataSourceStreamArrowWriter", object)  # PySpark 4.0 has none

CAN_STREAM = _Base is not object
_QUERY_ID = "sql.streaming.queryId"  # Spark's local property


@dataclass(frozen=True, slots=True)
class HoodieStreamWriter(_Base):  # type: ignore[misc]
    """The writes of a streaming query.

    ``staging``: the folder for the staged rows of this copy. Spark commits with other copies of the writer.
    """

    job: WriteJob
    staging: Staging

    @put_sentence_first()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> StagedRows:
        """Stage the rows of a task, on a worker.

        Raises:
            StorageError: the store refused.
        """
        context = TaskContext.get()
        query = None if context is None else context.getLocalProperty(_QUERY_ID)
        staged = self.staging.write(iterator, query)
        freeze_imports()
        return staged

    @put_sentence_first()
    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Write the staged rows, unless the table has this batch already.

        Raises:
            HoodieError: see ``HoodieTable.upsert``; the table is unchanged unless the error says otherwise.
        """
        staged = list_staged(messages)
        staging, writer = self._find_staging(staged), self._find_identifier(staged)
        snapshot = self.job.options.open()
        if snapshot is not None and (last := find_last_batch(snapshot, writer)) is not None and last >= batchId:
            with remove_afterwards(staging):
                return
        self.job.commit(staging, staged, {STREAM_CHECKPOINT: make_checkpoint(writer, batchId)})

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Remove the staged rows, and warn if the commit was written after all."""
        staged = list_staged(messages)
        if staged:
            with remove_afterwards(self._find_staging(staged)):
                warn_if_landed(self.job, STREAM_CHECKPOINT, make_checkpoint(self._find_identifier(staged), batchId))

    def _find_staging(self, staged: Sequence[StagedRows]) -> Staging:
        """Return the folder that the tasks wrote to; their copy of this writer has another folder."""
        paths = (each.path for each in staged if each.path is not None)
        folder = next((path.rpartition("/")[0] for path in paths), self.staging.folder)
        return Staging(self.staging.files, folder)

    def _find_identifier(self, staged: Sequence[StagedRows]) -> str:
        """Return the identifier of the writer: the option's value, or the id of the query.

        Raises:
            HoodieError: Spark does not give the id of the query.
        """
        named = STREAM_IDENTIFIER.read(self.job.options.settings)
        found = named or next((each.query for each in staged if each.query), None)
        if found is None:
            raise HoodieError(
                "Spark does not tell the id of the streaming query.", hint=f"Give the option {STREAM_IDENTIFIER}."
            )
        return found


def make_checkpoint(writer: str, batch: int) -> str:
    """Return the JSON text by which a commit names its batch, in the form of Java's ``HoodieStreamingSink``."""
    return json.dumps({writer: str(batch)}, separators=(",", ":"))


def find_last_batch(snapshot: Snapshot, writer: str) -> int | None:
    """Return the latest batch of a writer in the active timeline; None if there is none."""
    for _, metadata in iterate_extra_metadata(snapshot):
        text = metadata.get(STREAM_CHECKPOINT)
        if not text:
            continue
        try:
            said = json.loads(text)
        except ValueError:
            continue  # another writer's form, which cannot name this batch
        batch = said.get(writer) if isinstance(said, dict) else None
        if isinstance(batch, str | int) and str(batch).isdecimal():
            return int(batch)
    return None
