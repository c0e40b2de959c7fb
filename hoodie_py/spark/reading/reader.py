"""The Spark reader of a load: its columns, its partitions, and the rows of a partition.

Spark makes the reader in a planning worker, pickles it for the tasks and then asks it for partitions. Each task reads
one partition. The pickle has only what tasks need.

The reader must not have ``pushFilters``. Spark (4.1 to 4.3) caches the answers of the first planned use of a load,
partitions included (``PythonDataSourceV2.readInfo``), and reuses them for every later use of the same DataFrame, view
or catalog table, even in the same query. Rows or files that the filter of one use excludes would be missing in the
other uses. For the same reason a reader must not depend on anything else of a single use.

A file slice is the smallest unit of work. A Spark task costs tens of milliseconds in any case, so small slices share a
partition, and every larger slice has its own. The sizes are fixed because planning runs in a worker without a session
and does not know the number of cores.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from hoodie_py.errors import InvalidQueryError
from hoodie_py.options.read import HOLES_POLICY, INCREMENTAL_FORMAT, RANGE_START
from hoodie_py.reader import read_info
from hoodie_py.spark.catalog_note import explain_columns
from hoodie_py.spark.load_options import LoadOptions, find_names
from hoodie_py.spark.process import freeze_imports
from hoodie_py.spark.sentence import put_sentence_first
from hoodie_py.spark.types import as_arrow_schema, can_widen, fit
from hoodie_py.table.query import make_query
from hoodie_py.table.scan.query import Task
from hoodie_py.table.scan.task import ScanTask
from hoodie_py.table.timeline.loader import LATEST

if TYPE_CHECKING:
    from hoodie_py.table.filter.predicate import Predicate
    from hoodie_py.table.scan.scan import Scan
    from hoodie_py.table.snapshot import Snapshot

LARGEST_PARTITION = 48 << 10  # most bytes of a pickled partition of several slices
TINY = 1 << 20  # a slice of fewer bytes shares a partition
FULL = 8 << 20  # most bytes, by ``estimate_work``, of the small slices in a partition
MOST = 64  # most small slices in a partition
_LOG_COST = 3  # decoding and merging a log byte takes about three times as long as reading a base byte
_BATCH_VALUES = 1 << 19
_LEAST_BATCH_ROWS = 4096


class HoodiePartition(InputPartition):
    """Pickled scan tasks for one Spark task; its repr shows no storage options."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        super().__init__(zlib.compress(pickle.dumps(tuple(tasks), pickle.HIGHEST_PROTOCOL)))
        self.count = len(tasks)

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The tasks, unpickled."""
        tasks: tuple[Task, ...] = pickle.loads(zlib.decompress(self.value))  # noqa: S301 - made by this session's planner
        return tasks

    def __repr__(self) -> str:
        return f"HoodiePartition({self.count} file slices)"


class HoodieReader(DataSourceReader):
    """Reads columns of one snapshot.

    ``schema``: the columns that Spark declares. ``packed_mergers``: mergers, one of which the table may name.
    ``noted``: the note in the columns of a table of Spark's catalog.

    Raises:
        InvalidQueryError: the table does not have a column, or the column's values do not fit the declared type.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        options: LoadOptions,
        schema: StructType,
        packed_mergers: bytes,
        noted: Mapping[str, str] | None = None,
    ) -> None:
        self._snapshot = snapshot
        self._options = options
        self._packed_mergers = packed_mergers
        self._target = as_arrow_schema(schema)
        known = make_load_scan(snapshot, options).schema
        with explain_columns(noted or {}):
            self._columns = match_columns(self._target, known)

    @put_sentence_first()
    def partitions(self) -> list[InputPartition]:
        """Return the partitions to read; each is smaller than 64 KB when pickled."""
        asked = make_load_scan(self._snapshot, self._options, self._columns)
        return [partition for group in pack(asked.tasks()) for partition in make_partitions(group)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition in the declared schema.

        For a table without files Spark passes an empty partition of its own type, which has no rows.

        Raises:
            HoodieError: a file is missing, corrupt or not supported, or record versions cannot be merged.
        """
        if not isinstance(partition, HoodiePartition):
            return
        yield from read_tasks(partition.tasks, self._packed_mergers, self._target)

    def __getstate__(self) -> dict[str, Any]:
        return {"_packed_mergers": self._packed_mergers, "_target": self._target}


def find_columns(snapshot: Snapshot, options: LoadOptions) -> pa.Schema:
    """Return all columns of the query that the options of a load ask for.

    They do not depend on a range of commits. So the range may be unreadable, or have no start: Spark asks for the
    columns of a stream in the same way.

    Raises:
        HoodieError: an option's value is not valid, or the query type is not handled.
    """
    given = {str(RANGE_START): LATEST, str(HOLES_POLICY): "BLOCK", **options.hoodie}
    return make_load_scan(snapshot, replace(options, hoodie=given)).schema


def match_columns(target: pa.Schema, known: pa.Schema) -> list[str]:
    """Return the query's names for the columns that Spark declares.

    Raises:
        InvalidQueryError: the query does not have a column, or the column's values do not fit the declared type.
    """
    found = find_names(target.names, known.names)
    for name, field in zip(found, target, strict=True):
        have = known.field(name).type
        if not can_widen(have, field.type):
            raise InvalidQueryError(
                f"Column {field.name!r} is {have} in the table, which cannot be read as {field.type}.",
                hint="Declare it as the table has it, or leave out the schema and cast.",
            )
    return found


def make_load_scan(
    snapshot: Snapshot,
    options: LoadOptions,
    columns: Sequence[str] | None = None,
    predicate: Predicate | None = None,
) -> Scan:
    """Return the scan of the kind that the options of a load ask for; by default with all columns.

    Raises:
        HoodieError: an option's value is not valid, or the query type is not handled.
    """
    batch_rows = options.batch_rows
    if batch_rows is None and columns is not None and INCREMENTAL_FORMAT.read(options.hoodie) != "cdc":
        batch_rows = choose_batch_rows(len(columns))
    return make_query(
        snapshot,
        columns=columns,
        filter=predicate,
        memory_limit=options.memory_limit,
        batch_rows=batch_rows,
        integrity=options.integrity,
        options=options.hoodie,
        sql=options.sql,
    )


def choose_batch_rows(columns: int) -> int:
    """Return the most rows of a batch for Spark, so that it is still in the processor's cache when Spark unpacks it."""
    return read_info.choose_batch_rows(columns, _BATCH_VALUES, _LEAST_BATCH_ROWS)


def read_tasks(tasks: Sequence[Task], packed_mergers: bytes, target: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of scan tasks on a worker, in exactly the target schema.

    Raises:
        HoodieError: a file is missing, corrupt or not supported, or record versions cannot be merged.
    """
    from hoodie_py.spark.mergers import choose_merger, load_mergers

    pa.set_cpu_count(1)  # Spark gives a task one core
    mergers = load_mergers(packed_mergers)
    with put_sentence_first():
        for task in tasks:
            merger = choose_merger(task.info.config, mergers)
            for batch in replace(task, merger=merger).to_batches():
                yield fit(batch, target)
    freeze_imports()


def estimate_work(task: Task) -> int:
    """Return the work of a task, as the number of base file bytes whose reading takes as long."""
    if not isinstance(task, ScanTask):
        return _LOG_COST * task.size
    logs = sum(log.size for log in task.file_slice.log_files)
    return task.size + (_LOG_COST - 1) * logs


def pack(tasks: Sequence[Task]) -> list[list[Task]]:
    """Group tasks into partitions, the heaviest first."""
    packed = [[task] for task in tasks if task.size >= TINY]
    group: list[Task] = []
    filled = 0
    for task in tasks:
        if task.size >= TINY:
            continue
        if group and (filled + estimate_work(task) > FULL or len(group) >= MOST):
            packed.append(group)
            group, filled = [], 0
        group.append(task)
        filled += estimate_work(task)
    if group:
        packed.append(group)
    # Heavy partitions come first, so that no core starts a long one at the end.
    return sorted(packed, key=lambda group: -sum(estimate_work(task) for task in group))


def make_partitions(group: Sequence[Task]) -> list[HoodiePartition]:
    """Return a group of tasks as one partition, or as several if one would be too large to send."""
    whole = HoodiePartition(group)
    if len(whole.value) <= LARGEST_PARTITION or len(group) == 1:
        return [whole]
    middle = len(group) // 2
    return [*make_partitions(group[:middle]), *make_partitions(group[middle:])]
