"""The Spark reader of a load: columns, partitions, and the rows of a partition.

Spark makes it in a planning worker, pickles it for the tasks and then asks for partitions; each task reads one
partition.  The pickle holds only what tasks need.

There is no ``pushFilters``, and must not be one: Spark (4.1 to 4.3) keeps what the first planned use of a load answered
(PythonDataSourceV2.readInfo), partitions and all, and gives it to every later use of the same DataFrame, view or
catalog table, within one query as well.  Rows or files that one use's filter left out would be missing in the others.
For the same reason nothing else that belongs to one use may go into a reader.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from hoodie_py.errors import InvalidQueryError
from hoodie_py.reader.read_info import DEFAULT_BATCH_ROWS
from hoodie_py.spark.columns import find_names
from hoodie_py.spark.options import LoadOptions
from hoodie_py.spark.python_process import freeze_imports
from hoodie_py.spark.types import as_arrow_schema, can_widen, fit
from hoodie_py.table.query import make_scan
from hoodie_py.table.scan_task import ScanTask

if TYPE_CHECKING:
    from hoodie_py.table.predicate import Predicate
    from hoodie_py.table.scan import Scan
    from hoodie_py.table.snapshot import Snapshot

LARGEST_PARTITION = 48 << 10  # bytes of a pickled partition that holds several slices
_BATCH_VALUES = 1 << 19
_LEAST_BATCH_ROWS = 4096


class HoodiePartition(InputPartition):
    """Some scan tasks on their way to a worker; its repr shows no storage options."""

    def __init__(self, tasks: Sequence[ScanTask]) -> None:
        super().__init__(zlib.compress(pickle.dumps(tuple(tasks), pickle.HIGHEST_PROTOCOL)))
        self.count = len(tasks)

    @property
    def tasks(self) -> tuple[ScanTask, ...]:
        """The tasks."""
        tasks: tuple[ScanTask, ...] = pickle.loads(zlib.decompress(self.value))  # noqa: S301 - made by this session's planner
        return tasks

    def __repr__(self) -> str:
        return f"HoodiePartition({self.count} file slices)"


class HoodieReader(DataSourceReader):
    """Reads columns of one snapshot.

    Args:
        snapshot: the table.
        options: options of the load.
        schema: the columns, as Spark declared them.
        packed_mergers: mergers that tables may name.

    Raises:
        InvalidQueryError: a column that the table does not have, or not in a type whose values fit the declared one.
    """

    def __init__(self, snapshot: Snapshot, options: LoadOptions, schema: StructType, packed_mergers: bytes) -> None:
        self._snapshot = snapshot
        self._options = options
        self._packed_mergers = packed_mergers
        self._target = as_arrow_schema(schema)
        found = find_names(self._target.names, snapshot.schema.arrow.names)
        self._columns = dict(zip(self._target.names, found, strict=True))
        for field in self._target:
            have = snapshot.schema.arrow.field(self._columns[field.name]).type
            if not can_widen(have, field.type):
                raise InvalidQueryError(
                    f"Column {field.name!r} is {have} in the table, which cannot be read as {field.type}.",
                    hint="Declare it as the table has it, or leave out the schema and cast.",
                )

    def partitions(self) -> list[InputPartition]:
        """Return the work, in partitions of less than 64 KB each."""
        from hoodie_py.spark.packing import pack

        scan = make_load_scan(self._snapshot, self._options, list(self._columns.values()))
        return [partition for group in pack(scan.tasks()) for partition in make_partitions(group)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition in the declared schema; none for the empty partition of a table without files.

        Raises:
            HoodieError: files that are missing, corrupt or not supported, or versions that do not merge.
        """
        if not isinstance(partition, HoodiePartition):
            return
        yield from read_tasks(partition.tasks, self._packed_mergers, self._target)

    def __getstate__(self) -> dict[str, Any]:
        return {"_packed_mergers": self._packed_mergers, "_target": self._target}


def make_load_scan(
    snapshot: Snapshot, options: LoadOptions, columns: Sequence[str], predicate: Predicate | None = None
) -> Scan:
    """Return the scan that a load's options ask for.

    Raises:
        HoodieError: an option whose value has no meaning, or a kind of query that is not handled.
    """
    return make_scan(
        snapshot,
        columns=columns,
        filter=predicate,
        memory_limit=options.memory_limit,
        batch_rows=choose_batch_rows(len(columns)) if options.batch_rows is None else options.batch_rows,
        integrity=options.integrity,
        options=options.hoodie,
    )


def choose_batch_rows(columns: int) -> int:
    """Return how many rows of so many columns go to Spark at once: fewer of wide rows, so that a batch that Python has
    just written is still in the processor's cache when Spark unpacks it.
    """
    return max(_LEAST_BATCH_ROWS, min(DEFAULT_BATCH_ROWS, _BATCH_VALUES // max(1, columns)))


def read_tasks(tasks: Sequence[ScanTask], packed_mergers: bytes, target: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of some tasks, on a worker, in exactly the target's schema.

    Raises:
        HoodieError: files that are missing, corrupt or not supported, or versions that do not merge.
    """
    from hoodie_py.spark.mergers import choose_merger, load_mergers

    pa.set_cpu_count(1)  # Spark gives a task one core
    mergers = load_mergers(packed_mergers)
    for task in tasks:
        merger = choose_merger(task.info.config, mergers)
        for batch in replace(task, merger=merger).to_batches():
            yield fit(batch, target)
    freeze_imports()


def make_partitions(group: Sequence[ScanTask]) -> list[HoodiePartition]:
    """Return one partition, or several where one would be too large to send."""
    whole = HoodiePartition(group)
    if len(whole.value) <= LARGEST_PARTITION or len(group) == 1:
        return [whole]
    middle = len(group) // 2
    return [*make_partitions(group[:middle]), *make_partitions(group[middle:])]
