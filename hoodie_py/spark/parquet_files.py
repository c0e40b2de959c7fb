"""Local Parquet files: many footers at once, the row groups that pyarrow reads as Spark does, and their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from hoodie_py.errors import CorruptFileError, FileMissingError, HoodieError
from hoodie_py.formats.parquet.decoder import check_footer
from hoodie_py.formats.parquet.key_range import SPARK_VERSION_KEY
from hoodie_py.spark.types import fit, has_same_values

Found = TypeVar("Found")
Looked = TypeVar("Looked")

_PATTERN = frozenset("*?[]{}\\")
_FOOTERS_AT_ONCE = 8
_ROWS_AT_ONCE = 1 << 15
_TASK_BYTES = 128 << 20  # as Spark's spark.sql.files.maxPartitionBytes
_LEAST_TASK_BYTES = 4 << 20
_UTC = pa.timestamp("us", "UTC")
_VERSION = SPARK_VERSION_KEY.encode()
_OLD_CALENDAR = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
_NEW_CALENDAR = (3, 1)  # Spark writes dates and times in the proleptic Gregorian calendar since this version


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A row group of a file: its number in the file and its compressed size in bytes."""

    path: str
    number: int
    bytes: int


def is_pattern(path: str) -> bool:
    """Whether Spark treats a path as a glob pattern."""
    return bool(_PATTERN.intersection(path))


def map_footers(look: Callable[[Looked], Found], of: Sequence[Looked]) -> list[Found]:
    """Apply a function that reads a file's footer to each item, in several threads; results keep the order."""
    with ThreadPoolExecutor(_FOOTERS_AT_ONCE, "hoodie-footers") as pool:
        return list(pool.map(look, of))


def find_row_groups(path: str, schema: pa.Schema, *, trusting: bool) -> list[RowGroup] | None:
    """Return the row groups of a file; None if Spark has to read it.

    ``schema``: the columns that Spark sees in the file. ``trusting``: Spark does not rebase dates and times of a file
    that does not name the Spark version that wrote it.
    """
    try:
        with _open_parquet(path) as file:
            check_footer(file, _ROWS_AT_ONCE)
            if not (_has_columns(file, schema) and _is_proleptic(file, schema, trusting=trusting)):
                return None
            metadata = file.metadata
            sizes = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
            return [RowGroup(path, i, _sum_compressed_bytes(group)) for i, group in enumerate(sizes) if group.num_rows]
    except (pa.ArrowException, OSError, ValueError, HoodieError):
        return None  # Spark reads the file, too, and reports the error


def _sum_compressed_bytes(group: pq.RowGroupMetaData) -> int:
    return sum(max(0, group.column(i).total_compressed_size) for i in range(group.num_columns))


def _open_parquet(path: str) -> pq.ParquetFile:
    return pq.ParquetFile(path, pre_buffer=False, coerce_int96_timestamp_unit="us")


def _has_columns(file: pq.ParquetFile, schema: pa.Schema) -> bool:
    found = file.schema_arrow
    if len({name.lower() for name in found.names}) != len(found.names) or set(found.names) != set(schema.names):
        return False
    leaves = [file.schema.column(i) for i in range(len(file.schema))]
    # pyarrow gives INT96 times no zone, but they are in UTC.
    int96 = {leaf.path for leaf in leaves if leaf.physical_type == "INT96"}
    if not int96 <= set(found.names):  # a nested one
        return False
    have = {field.name: _UTC if field.name in int96 else field.type for field in found}
    return all(_is_read_as(have[field.name], field.type) for field in schema)


def _is_proleptic(file: pq.ParquetFile, schema: pa.Schema, *, trusting: bool) -> bool:
    """Whether dates and times are in pyarrow's calendar; rules of Spark's ``DataSourceUtils.datetimeRebaseSpec``."""
    if not any(_has_calendar(field.type) for field in schema):
        return True
    facts = file.metadata.metadata or {}
    if _VERSION not in facts:
        return trusting
    parts: list[bytes] = facts[_VERSION].split(b".")
    major, minor = [*parts, b""][:2]
    if not (major.isdigit() and minor.isdigit()) or any(name in facts for name in _OLD_CALENDAR):
        return False
    return (int(major), int(minor)) >= _NEW_CALENDAR


def _is_read_as(have: pa.DataType, want: pa.DataType) -> bool:
    """Whether a column of type ``have`` in pyarrow has the same values as a column of type ``want`` in Spark."""
    if pa.types.is_timestamp(have) and pa.types.is_timestamp(want):
        return (have.tz is None) == (want.tz is None) and have.unit in ("ms", "us")
    if pa.types.is_large_string(have) or pa.types.is_large_binary(have):
        return bool(want == (pa.string() if pa.types.is_large_string(have) else pa.binary()))
    return has_same_values(have, want)


def _has_calendar(kind: pa.DataType) -> bool:
    if pa.types.is_nested(kind):
        return any(_has_calendar(kind.field(i).type) for i in range(kind.num_fields))
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def divide_groups(
    groups: Sequence[RowGroup], tasks: int, *, least: int = _LEAST_TASK_BYTES, most: int | None = _TASK_BYTES
) -> list[list[RowGroup]]:
    """Divide row groups among tasks, in order and about evenly by bytes.

    There are fewer tasks if each would have fewer bytes than ``least``, and more if one would have more than ``most``.
    """
    total = sum(group.bytes for group in groups)
    size = max(least, total // max(1, tasks) + 1)
    size = size if most is None else min(size, most)
    made: dict[int, list[RowGroup]] = {}
    starts = accumulate((group.bytes for group in groups), initial=0)  # one more than groups: the total
    for group, start in zip(groups, starts, strict=False):  # a group belongs to the task that has its middle byte
        made.setdefault((start + group.bytes // 2) // max(1, size), []).append(group)
    return list(made.values())


def read_groups(groups: Sequence[RowGroup], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of row groups in order, with exactly the schema.

    Raises:
        CorruptFileError: a file cannot be read, or has changed.
        FileMissingError: a file is missing.
    """
    for path, numbers in _iterate_files(groups):
        try:
            with _open_parquet(path) as file:
                if file.metadata.num_row_groups <= numbers[-1] or not _has_columns(file, schema):
                    raise CorruptFileError("The Parquet file has been changed while it was read.", path=path)
                for batch in file.iter_batches(_ROWS_AT_ONCE, numbers, schema.names, use_threads=False):
                    yield fit(batch.select(schema.names), schema)
        except FileNotFoundError as error:
            raise FileMissingError("There is no such file.", operation="read", path=path) from error
        except (pa.ArrowException, OSError, ValueError) as error:
            raise CorruptFileError(f"The file cannot be read as Parquet: {error}", path=path) from error


def _iterate_files(groups: Sequence[RowGroup]) -> Iterator[tuple[str, list[int]]]:
    numbers: dict[str, list[int]] = {}
    for group in groups:
        numbers.setdefault(group.path, []).append(group.number)
    yield from numbers.items()
