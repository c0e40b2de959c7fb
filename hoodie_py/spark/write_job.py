"""The part of a write by data source that is the same for batches and streams: staged rows to a commit."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.types import StructType

from hoodie_py.errors import HoodieError, HoodieWarning
from hoodie_py.spark.mergers import choose_merger, load_mergers
from hoodie_py.spark.types import as_arrow_schema
from hoodie_py.spark.write_options import WriteOptions
from hoodie_py.spark.write_staging import StagedRows, Staging
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.session import WriteSession
from hoodie_py.writer.write_data import Writer
from hoodie_py.writer.write_result import WriteResult


@dataclass(frozen=True, slots=True, repr=False)
class WriteJob:
    """One write, as Spark's processes hand it around; its repr shows no storage options.

    Attributes:
        options: of the write.
        schema: columns of the rows.
        packed_mergers: that ``register`` was given.
    """

    options: WriteOptions
    schema: pa.Schema
    packed_mergers: bytes = b""

    @classmethod
    def plan(cls, options: WriteOptions, schema: StructType, packed_mergers: bytes) -> WriteJob:
        """Check what can be checked before any row is there.

        Raises:
            HoodieError: the options do not fit each other, the rows' columns, or the table.
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
        """Write the rows that tasks staged, make the table if there is none, and remove the staged files.

        Args:
            staging: where they are.
            staged: what each task reported.
            extra_metadata: of the commit.

        Returns:
            What was written; None where there were no rows.

        Raises:
            HoodieError: see ``HoodieTable.upsert``.
        """
        with (
            remove_afterwards(staging),
            staging.open_rows(staged) as rows,
            self.options.open_or_create(self.schema) as snapshot,
        ):
            session = WriteSession.open(snapshot, options=self.options.settings)
            merger = choose_merger(snapshot.config, load_mergers(self.packed_mergers))
            data = self.schema.empty_table() if rows is None else rows
            return Writer(session, merger, extra_metadata).write(data, self.options.operation)

    def __repr__(self) -> str:
        return f"WriteJob({self.options!r})"


class remove_afterwards:  # noqa: N801 - a context manager
    """Remove staged files however the block ends; what stands in the way is a warning."""

    def __init__(self, staging: Staging) -> None:
        self._staging = staging

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        try:
            self._staging.remove()
        except HoodieError as problem:
            warnings.warn(HoodieWarning(f"Rows on their way were not removed: {problem}"), stacklevel=3)


def find_landed_instant(snapshot: Snapshot, key: str, value: str) -> str | None:
    """Return the instant of the newest completed write whose extra metadata has an entry; None if none has."""
    for instant, metadata in iterate_extra_metadata(snapshot):
        if metadata.get(key) == value:
            return instant
    return None


def iterate_extra_metadata(snapshot: Snapshot) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield request times and extra metadata of completed writes, the newest first."""
    for instant in reversed(snapshot.timeline.list_completed_writes()):
        yield instant.request_time, snapshot.timeline.read_metadata(instant).extra_metadata
