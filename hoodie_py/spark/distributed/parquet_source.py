"""Reads the rows of a DataFrame of Parquet files in the workers that write them.

Reading such a DataFrame with Spark takes longer than all the rest of a bulk insert: the JVM decodes columns, makes rows
of them, and makes columns again for Python. So if a DataFrame only loads local Parquet files, the workers read the
files themselves.

Whether it does is decided by the session: a load of the same files with the same schema must have the same semantics
(``DataFrame.sameSemantics``), which fails for any option, filter, projection or renaming. Each file must also have
exactly the DataFrame's columns, in types that pyarrow and Spark read alike. Spark reads all other DataFrames.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from pyspark.errors import AnalysisException

from hoodie_py.spark.attempts import iterate_numbers, make_numbers
from hoodie_py.spark.parquet_files import RowGroup, divide_groups, find_row_groups, is_pattern, map_footers, read_groups
from hoodie_py.spark.process import is_connect
from hoodie_py.spark.types import as_arrow_schema

Step = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

_LOCAL = "file://"
_MOST_FILES = 2000  # reading the footers of more files takes too long
_LEAST_BYTES = 4 << 20  # for fewer bytes the checks take longer than they save
# Settings that change what a session reads, and the value with which Spark reads as pyarrow does.
_SETTINGS = {
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.parquet.fieldId.read.enabled": "false",
    "spark.sql.parquet.int96TimestampConversion": "false",
}
# Settings for files that do not say which calendar they use.
_CALENDARS = ("spark.sql.parquet.datetimeRebaseModeInRead", "spark.sql.parquet.int96RebaseModeInRead")


@dataclass(frozen=True, slots=True)
class FrameSource:
    """Rows of a DataFrame, read by Spark."""

    df: Any

    def map_batches(self, step: Step, schema: Any, most: int | None = None) -> Any:
        """Return a DataFrame of the results of a step, which workers run on the batches of each partition.

        ``step``: picklable. ``schema``: Spark's schema of its results. ``most``: most partitions.
        """
        return (self.df if most is None else self.df.coalesce(most)).mapInArrow(step, schema)


@dataclass(frozen=True, slots=True)
class FileSource:
    """Rows of Parquet files, read by the workers of a classic session."""

    spark: Any
    groups: Sequence[RowGroup]
    schema: pa.Schema

    def map_batches(self, step: Step, schema: Any, most: int | None = None) -> Any:
        """See ``FrameSource``."""
        tasks = divide_groups(self.groups, self.spark.sparkContext.defaultParallelism)
        if most is not None and len(tasks) > most:
            tasks = divide_groups(self.groups, most, least=0, most=None)
        return make_numbers(self.spark, len(tasks)).mapInArrow(_ReadFiles(tasks, self.schema, step), schema)


@dataclass(frozen=True, slots=True)
class _ReadFiles:
    """Reads row groups on a worker and runs the step: row i of the input stands for task i."""

    tasks: Sequence[Sequence[RowGroup]]
    schema: pa.Schema
    step: Step

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        groups = [group for number in iterate_numbers(batches) for group in self.tasks[number]]
        yield from self.step(read_groups(groups, self.schema))


def choose_row_source(df: Any) -> FrameSource | FileSource:
    """Return the faster source of a DataFrame's rows."""
    files = _find_plain_files(df)
    if not files:
        return FrameSource(df)
    schema = as_arrow_schema(df.schema)
    trusting = all(str(df.sparkSession.conf.get(name)).upper() == "CORRECTED" for name in _CALENDARS)
    found = map_footers(lambda path: find_row_groups(path, schema, trusting=trusting), files)
    groups = [group for each in found for group in each or ()]
    return FrameSource(df) if None in found or not groups else FileSource(df.sparkSession, groups, schema)


def _find_plain_files(df: Any) -> list[str]:
    """Return the local files that a DataFrame reads; none if it is not a plain load of these files."""
    spark = df.sparkSession
    if is_connect(spark) or df.isStreaming or _is_cached(df):
        return []
    if any(str(spark.conf.get(name, value)).lower() != value for name, value in _SETTINGS.items()):
        return []
    names = sorted(unquote(name) for name in df.inputFiles()[: _MOST_FILES + 1])
    if not 0 < len(names) <= _MOST_FILES or not all(name.startswith(f"{_LOCAL}/") for name in names):
        return []
    files = [name.removeprefix(_LOCAL) for name in names]
    if any(map(is_pattern, files)) or _sum_bytes(files) < _LEAST_BYTES:
        return []
    return files if any(_is_load_of(df, roots) for roots in _iterate_load_paths(files)) else []


def _sum_bytes(files: Sequence[str]) -> int:
    try:
        return sum(Path(file).stat().st_size for file in files)
    except OSError:  # Spark reads the files then, and reports the error
        return 0


def _list_folder(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 - names are all that is needed
    except OSError:  # then the user cannot have loaded the folder
        return []


def _iterate_load_paths(files: Sequence[str]) -> Iterator[list[str]]:
    """Yield the path lists by which a user may have loaded exactly these files.

    ``sameSemantics`` compares a single path as text, so all spellings of it are tried.
    """
    if len(files) > 1:
        yield list(files)
    singles = list(files) if len(files) == 1 else []
    folder = Path(files[0]).parent
    if {name for name in _list_folder(folder) if name[0] not in "._"} == {Path(file).name for file in files}:
        singles += [str(folder), f"{folder}/"]
    for path in singles:
        yield [path]
        yield [_LOCAL + path]


def _is_load_of(df: Any, roots: Sequence[str]) -> bool:
    """Whether a DataFrame is a plain load of some paths."""
    try:
        return bool(df.sameSemantics(df.sparkSession.read.schema(df.schema).parquet(*roots)))
    except AnalysisException:  # a path is missing: Spark reads the files then, and reports the error
        return False


def _is_cached(df: Any) -> bool:
    """Whether Spark caches the rows. Then the cached rows are the rows to write, even if the files change."""
    level = df.storageLevel
    return bool(level.useMemory or level.useDisk or level.useOffHeap)
