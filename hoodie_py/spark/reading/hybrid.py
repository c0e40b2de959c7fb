"""One DataFrame from two readers: Spark's Parquet reader for file slices without log files, ours for the others.

Spark's reader is about twice as fast as a Python data source, and reads only the columns that a query uses. It reads a
file slice if the slice has no log files and Spark sees the same rows: the query is not of a range of commits, and the
file has every needed column in exactly the table's type. If a value comes from the partition path, the file's
statistics must show the same value. Python workers read all other slices.

A filter is applied to the rows of all slices by Spark. Skipping files, and rows of slices with logs before Spark gets
them, uses only conditions that mean the same here as in the session (``SqlSettings``).

The table is listed once, when the DataFrame is made. Both readers use that listing, so each slice is read once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.formats.logical_types.variant import is_variant
from hoodie_py.options.read import RANGE_FILTERS
from hoodie_py.reader.base.base_file import BaseFileReader
from hoodie_py.spark.attempts import iterate_numbers, make_numbers
from hoodie_py.spark.load_options import LoadOptions, find_names, to_option_texts
from hoodie_py.spark.mergers import choose_merger, dump_mergers, find_session_merger, pack_mergers
from hoodie_py.spark.parquet_files import is_pattern, map_footers
from hoodie_py.spark.pin import open_table
from hoodie_py.spark.reading.reader import HoodiePartition, make_load_scan, make_partitions, pack, read_tasks
from hoodie_py.spark.session_options import read_sql_settings
from hoodie_py.spark.types import as_arrow_schema, as_spark_schema, has_same_values
from hoodie_py.table.filter.as_predicate import as_predicate
from hoodie_py.table.filter.predicate import Predicate
from hoodie_py.table.filter.sql_settings import SqlSettings
from hoodie_py.table.scan.query import Task
from hoodie_py.table.scan.scan import Scan
from hoodie_py.table.scan.task import ScanTask

if TYPE_CHECKING:
    from hoodie_py.reader.merge.merger import Merger


@dataclass(frozen=True, slots=True)
class _ReadPartitions:
    """Reads scan tasks on a worker: row i of the input stands for partition i."""

    partitions: Sequence[HoodiePartition]
    packed_mergers: bytes
    target: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in iterate_numbers(batches):
            yield from read_tasks(self.partitions[number].tasks, self.packed_mergers, self.target)


def load(
    spark: Any,
    options: Mapping[str, Any],
    session: Mapping[str, str],
    columns: Sequence[str] | None,
    condition: str | None,
    mergers: Sequence[Merger],
) -> Any:
    """Return the rows of a table as a DataFrame; see ``session.read``.

    Raises:
        HoodieError: there is no table, it cannot be read, or the query is not valid.
    """
    parsed = LoadOptions.parse(to_option_texts(options), session)
    if condition is not None or RANGE_FILTERS.read(parsed.hoodie):
        parsed = replace(parsed, sql=read_sql_settings(spark))
    snapshot = open_table(parsed)
    known = make_load_scan(snapshot, parsed).schema
    wanted = parsed.columns if columns is None else columns
    names = known.names if wanted is None else find_names(wanted, known.names)
    predicate, judged = _bind(condition, known, parsed.sql)
    scan = make_load_scan(snapshot, parsed, [*names, *(each for each in judged if each not in names)], predicate)
    tasks = scan.tasks()
    plain = map_footers(find_plain_file, tasks)
    merged = [task for task, path in zip(tasks, plain, strict=True) if path is None]
    files = [path for path in plain if path is not None]
    parts = []
    if merged or not files:
        packed = dump_mergers(mergers)
        own = find_session_merger(spark, snapshot.config, parsed.hoodie, choose_merger(snapshot.config, mergers))
        parts.append(_read_merged(spark, scan, merged, packed if own is None else pack_mergers([own])))
    if files:
        parts.append(_read_plain(spark, scan, files))
    rows = parts[0] if len(parts) == 1 else parts[0].union(parts[1])
    if condition is None:
        return rows
    return rows.where(condition).select(*[f"`{name.replace('`', '``')}`" for name in names])


def _bind(condition: str | None, known: pa.Schema, settings: SqlSettings) -> tuple[Predicate | None, list[str]]:
    """Return a condition as it is applied here to files and slices with logs, and the columns that Spark needs for it.

    If the session's SQL cannot be followed here, only Spark applies it, and it may use any column that the text names.
    """
    try:
        predicate = as_predicate(condition, known, settings=settings)
    except UnsupportedFeatureError:
        text = str(condition).lower()
        return None, [name for name in known.names if name.lower() in text]
    return predicate, [] if predicate is None else sorted(predicate.columns)


def find_plain_file(task: Task) -> str | None:
    """Return the path of the base file if Spark can read the task's rows from it directly; else None.

    Raises:
        CorruptFileError: the file's footer cannot be read.
    """
    if not isinstance(task, ScanTask) or task.info.instants is not None:  # not all rows of the file
        return None
    if task.info.mappings is not None:  # Spark would match columns by name
        return None
    base = task.file_slice.base_file
    if base is None or base.source is not None or task.file_slice.log_files or task.options.integrity == "strict":
        return None
    local = task.info.files.local_path(base.path)
    if local is None or is_pattern(local) or Path(local).name.startswith(("_", ".")):
        return None
    needed = {*task.columns, *(task.predicate.columns if task.predicate is not None else ())}
    if not base.path.endswith(".parquet"):
        return None
    reader = BaseFileReader(task.info.files, base, task.info.times)
    found, table, constants = reader.schema, task.info.schema, task.info.constants
    if len({name.lower() for name in found.names}) != len(found.names):
        return None
    if needed & reader.retyped:
        return None
    for name in needed:
        if name not in found.names or not has_same_values(found.field(name).type, table.field(name).type):
            return None
        if is_variant(table.field(name)):
            return None
        if name in constants and not _holds_only(reader.footer, name, constants[name]):
            return None
    return f"file://{local}"


def _holds_only(metadata: pq.FileMetaData | None, column: str, value: Any) -> bool:
    """Whether a file's statistics say that a top-level column has the value in every row."""
    if metadata is None:
        return False
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        chunks = [row_group.column(i) for i in range(row_group.num_columns)]
        statistics = next((chunk.statistics for chunk in chunks if chunk.path_in_schema == column), None)
        if statistics is None or not statistics.has_min_max or not statistics.has_null_count:
            return False
        if statistics.null_count or statistics.min != value or statistics.max != value:
            return False
    return True


def _read_merged(spark: Any, scan: Scan, tasks: Sequence[Task], packed_mergers: bytes) -> Any:
    schema = as_spark_schema(scan.schema)
    partitions = [each for group in pack(tasks) for each in make_partitions(group)]
    numbers = make_numbers(spark, len(partitions))
    return numbers.mapInArrow(_ReadPartitions(partitions, packed_mergers, as_arrow_schema(schema)), schema)


def _read_plain(spark: Any, scan: Scan, files: Sequence[str]) -> Any:
    schema = as_spark_schema(pa.schema([scan.snapshot.schema.arrow.field(name) for name in scan.columns]))
    return spark.read.schema(schema).parquet(*files)
