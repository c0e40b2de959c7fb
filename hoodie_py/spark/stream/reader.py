"""The Spark reader of a stream: which commits make a batch, and the tasks of a batch (Spark's ``MicroBatchStream``).

One process keeps the reader for the whole query and answers Spark there; copies of it read in the tasks. Every answer
is computed from the table's current state, so a query that was killed continues as if it had not been.

A batch is the range of commits between two offsets. ``latestOffset`` decides where it ends, and ``partitions`` lists
the timeline again: a long listing may miss a commit and yet see a later one, but the next listing has both.
``partitions`` gives the same rows each time, also after a restart. For that it takes the table as it was at the end of
the batch (``history``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.spark.pin import open_table
from hoodie_py.spark.process import freeze_imports
from hoodie_py.spark.reading.reader import HoodiePartition, make_partitions, pack, read_tasks
from hoodie_py.spark.sentence import put_sentence_first
from hoodie_py.spark.stream.history import History
from hoodie_py.spark.stream.limits import Limits
from hoodie_py.spark.stream.offset import StreamOffset
from hoodie_py.spark.stream.options import StreamOptions
from hoodie_py.spark.types import as_arrow_schema

if TYPE_CHECKING:
    from hoodie_py.spark.load_options import LoadOptions


class HoodieStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads columns of the rows, or of the changes, of each commit.

    ``schema``: the columns that Spark declares. ``packed_mergers``: mergers, one of which the table may name.

    Raises:
        HoodieError: the options are not those of a stream.
    """

    def __init__(self, load: LoadOptions, schema: StructType, packed_mergers: bytes) -> None:
        self._options = StreamOptions.parse(load)
        self._packed_mergers = packed_mergers
        self._target = as_arrow_schema(schema)
        self._last: str | None = None

    @put_sentence_first()
    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Return where the stream begins.

        Raises:
            HoodieError: there is no table, or the start is no time.
        """
        return self._open().find_start().to_json()

    @put_sentence_first()
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Return where the next batch ends; the start if there is nothing to read.

        Raises:
            HoodieError: the checkpoint does not belong to the table, or the table cannot be read.
        """
        offset, history = StreamOffset.from_json(start), self._open()
        end = history.choose_end(offset, self._apply(limit), self._last)
        return start if end.position == offset.position else end.to_json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Return a limit if the options have one.

        Spark has no limit by commits, so a limit by bytes may stand for it.
        """
        given = self._options.limits
        if not given:
            return ReadAllAvailable()
        return ReadMaxBytes(given.bytes or _ANY) if given.files is None else ReadMaxFiles(given.files)

    @put_sentence_first()
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Fix the last commit that the query reads.

        Raises:
            HoodieError: there is no table, or it cannot be read.
        """
        self._last = self._open().find_last_position()

    @put_sentence_first()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Return the partitions of a batch, each smaller than 64 KB when pickled.

        Raises:
            InvalidQueryError: the checkpoint does not belong to the table, or files of the batch are gone.
            HoodieError: the table cannot be read, or no longer has the columns.
        """
        begin, until = StreamOffset.from_json(start), StreamOffset.from_json(end)
        if begin.position == until.position:
            return []
        tasks = self._open().make_scan(begin, until, self._target).tasks()
        planned: list[InputPartition] = [each for group in pack(tasks) for each in make_partitions(group)]
        freeze_imports()
        return planned

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition in the declared schema.

        Raises:
            HoodieError: a file is missing, corrupt or not supported, or record versions cannot be merged.
        """
        if isinstance(partition, HoodiePartition):
            yield from read_tasks(partition.tasks, self._packed_mergers, self._target)

    def _open(self) -> History:
        return History(open_table(self._options.load), self._options)

    def _apply(self, limit: ReadLimit) -> Limits:
        """Return the limits of the next batch; none if Spark asks for everything, as some triggers do.

        Raises:
            UnsupportedFeatureError: a limit of another kind.
        """
        given = self._options.limits
        if isinstance(limit, ReadAllAvailable):
            return Limits()
        if isinstance(limit, ReadMaxFiles):
            return Limits(given.commits, limit.max_files, given.bytes)
        if isinstance(limit, ReadMaxBytes):
            return Limits(given.commits, given.files, None if limit.max_bytes == _ANY else limit.max_bytes)
        raise UnsupportedFeatureError(f"A limit of the kind {type(limit).__name__} for a stream.")

    def __getstate__(self) -> dict[str, Any]:
        return {"_packed_mergers": self._packed_mergers, "_target": self._target}


_ANY = (1 << 63) - 1  # stands for "no limit of bytes" in ReadMaxBytes
