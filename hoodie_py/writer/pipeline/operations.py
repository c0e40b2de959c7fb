"""Assign the records of a write to files, by operation and index: look keys up, then choose files.

Agrees with the operations of Hudi's ``BaseSparkCommitActionExecutor``: tagging by the index, then a partitioner.

The partitions to replace are named by paths (Hudi ``HoodieSparkSqlWriter.resolvePartitionWildcards``). ``*`` stands
for any characters, including slashes. If folders are bare values, ``city=sf`` stands for ``sf`` unless a partition has
that very name. Paths without a partition stand for nothing, as in Java, unless the caller forbids it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.arrays import from_numpy
from hoodie_py.arrow.fields import find_field_type, read_field_values
from hoodie_py.errors import InvalidQueryError, InvalidTableError, UnsupportedFeatureError
from hoodie_py.formats.names import check_partition
from hoodie_py.options.write import BULK_INSERT_SORT, BULK_INSERT_SORT_COLUMNS, INSERT_DUPLICATES
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.index.key_lookup import KeyLookup
from hoodie_py.writer.index.tagging import tag
from hoodie_py.writer.keygen.generator import KeyGenerator
from hoodie_py.writer.pipeline.assign import (
    AssignedRecords,
    assign_files,
    assign_new_bucket_files,
    assign_new_files,
    list_slices_of,
)
from hoodie_py.writer.pipeline.small_files import choose_filled
from hoodie_py.writer.precombine.combine import needs_combining
from hoodie_py.writer.records import TaggedRecords, WriteOperation, WriteRecords
from hoodie_py.writer.settings import WriteSettings

LOOKED_UP = (WriteOperation.UPSERT, WriteOperation.DELETE)
OVERWRITES = (WriteOperation.INSERT_OVERWRITE, WriteOperation.INSERT_OVERWRITE_TABLE)
REPLACING = (*OVERWRITES, WriteOperation.DELETE_PARTITION)
NON_BLOCKING_OPERATIONS = (WriteOperation.UPSERT, WriteOperation.INSERT, WriteOperation.DELETE)
_SHOWN = 5
_SORTING = ("GLOBAL_SORT", "PARTITION_SORT")


def assign_records(
    records: WriteRecords,
    snapshot: Snapshot,
    operation: WriteOperation,
    settings: WriteSettings,
    merger: Merger | None = None,
    lookup: KeyLookup | None = None,
) -> AssignedRecords:
    """Assign each record to a file.

    Each key occurs once if the operation combines records. If ``lookup`` is None, the table's files are read.

    Raises:
        InvalidQueryError: the table contains a key to insert, and the options forbid that; or an option is not valid.
        HoodieError: see ``tag``.
    """

    def tag_records() -> TaggedRecords:
        generator = KeyGenerator.from_snapshot(snapshot, settings.options)
        return tag(snapshot, records, settings, merger, generator.make_partition_paths, lookup)

    file_bytes = settings.plan.max_file_size
    is_bucket = settings.index.is_bucket
    check_replaceable(operation, settings)
    if is_bucket and operation in OVERWRITES:
        return assign_new_bucket_files(tag_records(), file_bytes)
    if is_bucket or operation in LOOKED_UP:
        tagged, only_logs = tag_records(), is_non_blocking(operation, settings)
        slices = list_slices_of(tagged.records, snapshot)
        small = choose_filled(operation, snapshot, settings, merger, lambda: slices)
        return assign_files(tagged, slices, file_bytes, small, only_logs=only_logs)
    if operation is WriteOperation.BULK_INSERT:
        return assign_new_files(_sort(records, settings.options), file_bytes)
    if operation is WriteOperation.INSERT and (policy := INSERT_DUPLICATES.read(settings.options)) != "none":
        records = _apply_duplicate_policy(tag_records(), policy)
    here = partial(list_slices_of, records, snapshot)
    small = choose_filled(operation, snapshot, settings, merger, here)
    return assign_new_files(records, file_bytes, small)


def check_replaceable(operation: WriteOperation, settings: WriteSettings) -> None:
    """Refuse to replace file groups that the table's index keeps naming.

    Raises:
        UnsupportedFeatureError: the table has consistent hashing.
    """
    if settings.index.consistent and operation in REPLACING:
        raise UnsupportedFeatureError(
            f"The operation {operation.value} on a table with consistent hashing, whose file groups stay.",
            hint="Delete the rows, then upsert.",
        )


def needs_insert_conflict_check(operation: WriteOperation, settings: WriteSettings) -> bool:
    """Whether a concurrent insert into the same partition may bring the same key, or the same new bucket.

    A write that looks keys up treats a key as new because it did not find it.
    """
    return operation in LOOKED_UP or settings.index.is_bucket


def is_non_blocking(operation: WriteOperation, settings: WriteSettings) -> bool:
    """Whether the write only adds log files to buckets, so that others may do so at the same time.

    Bulk inserts and overwrites do not, as in Java.
    """
    return settings.non_blocking and operation in NON_BLOCKING_OPERATIONS


def needs_lookup(operation: WriteOperation, settings: WriteSettings) -> bool:
    """Whether the write looks keys up in the table's files."""
    if settings.index.is_bucket:
        return False
    drops = operation is WriteOperation.INSERT and INSERT_DUPLICATES.read(settings.options) != "none"
    return operation in LOOKED_UP or drops


def is_independent(operation: WriteOperation, settings: WriteSettings) -> bool:
    """Whether each record goes into a new file, in any order, whatever the other records and keys."""
    if operation is not WriteOperation.BULK_INSERT or needs_combining(operation, settings.options):
        return False
    if settings.index.is_bucket:
        return False
    return BULK_INSERT_SORT.read(settings.options) == "NONE" and not BULK_INSERT_SORT_COLUMNS.read(settings.options)


def list_replaced_groups(snapshot: Snapshot, partitions: list[str] | None) -> dict[str, tuple[str, ...]]:
    """Return the file groups that an overwrite replaces, in ``partitions`` or, if None, in the whole table."""
    found: dict[str, tuple[str, ...]] = {}
    for each in snapshot.view.list_slices(None, partitions):
        found[each.partition_path] = (*found.get(each.partition_path, ()), each.file_id)
    return found


def is_plain_insert(operation: WriteOperation, settings: WriteSettings) -> bool:
    """Whether each record goes into a new file of its partition, in its place, whatever its key is."""
    if needs_combining(operation, settings.options) or settings.index.is_bucket:
        return False
    if operation is WriteOperation.BULK_INSERT:
        mode = BULK_INSERT_SORT.read(settings.options)
        return mode not in _SORTING and not BULK_INSERT_SORT_COLUMNS.read(settings.options)
    return operation is WriteOperation.INSERT and INSERT_DUPLICATES.read(settings.options) == "none"


def _apply_duplicate_policy(tagged: TaggedRecords, policy: str) -> WriteRecords:
    """Drop or refuse inserts of keys that the table contains."""
    records, file_ids = tagged.records, tagged.file_ids
    if file_ids.null_count == len(records):
        return records
    if policy == "fail":
        known = records.keys.filter(file_ids.is_valid())
        raise InvalidQueryError(
            f"{len(known)} of the keys to insert are in the table already, such as "
            f"{', '.join(map(repr, known.slice(0, _SHOWN).to_pylist()))}.",
            hint=f"Upsert them, or set {INSERT_DUPLICATES} to drop.",
        )
    return records.take(from_numpy(np.flatnonzero(file_ids.is_null().to_numpy(zero_copy_only=False))))


def _sort(records: WriteRecords, options: Mapping[str, str]) -> WriteRecords:
    """Sort a bulk insert by partition path and record key, or by columns, so that base files have narrow ranges.

    Rows of a partition are adjacent in any mode, so modes that repartition by path alone keep the order.

    Raises:
        InvalidQueryError: a sort column is not in the rows, or its type has no order.
    """
    if records.partition_paths is None:
        return records
    columns: tuple[str, ...] = BULK_INSERT_SORT_COLUMNS.read(options)
    if not columns and BULK_INSERT_SORT.read(options) not in _SORTING:
        return records
    values: dict[str, pa.ChunkedArray] = {"0": records.partition_paths}
    for number, name in enumerate(columns, 1):
        type_ = find_field_type(records.rows.schema, name)
        if type_ is None or pa.types.is_nested(type_):
            raise InvalidQueryError(
                f"The rows cannot be sorted by {name[:100]!r}.", hint=f"Name columns in {BULK_INSERT_SORT_COLUMNS}."
            )
        values[str(number)] = read_field_values(records.rows, name)
    if not columns:
        values["1"] = records.keys
    keys = [(name, "ascending") for name in values]
    return records.take(pc.sort_indices(pa.table(values), sort_keys=keys))


_WILD = "*"
_ENCODED = "%2A"  # Spark SQL encodes it
_SHOWN_PATHS = 20


def split_paths(text: str) -> tuple[str, ...]:
    """Return the paths in an option, which are joined by commas."""
    return tuple(each.strip() for each in text.split(",") if each.strip())


def choose_partitions(snapshot: Snapshot, paths: Iterable[str], *, missing_ok: bool = True) -> list[str]:
    """Return the partitions of the table that some paths stand for, sorted.

    Raises:
        InvalidQueryError: the table has no partitions, a path leads out of it, or no path was given; or a path stands
            for no partition and ``missing_ok`` is False.
    """
    wanted = [_check(each) for each in paths]
    if not wanted:
        raise InvalidQueryError("No partition was named.", hint="Give the paths of partitions, such as 'city=sf'.")
    if not snapshot.config.is_partitioned:
        raise InvalidQueryError("The table has no partitions.", hint="Overwrite the table, or delete by a filter.")
    every = snapshot.view.list_paths()
    fields = () if snapshot.config.hive_style_partitioning else snapshot.config.partition_fields
    found: set[str] = set()
    for each in wanted:
        meant = _find(every, each) or _find(every, _drop_fields(each, fields))
        if not meant and not missing_ok:
            raise make_missing_error(every, each)
        found.update(meant)
    return sorted(found)


def make_missing_error(every: Iterable[str], path: str) -> InvalidQueryError:
    """Return the error for a path that stands for no partition; it names the table's partitions."""
    names = sorted(every)
    more = len(names) - _SHOWN_PATHS
    shown = ", ".join(names[:_SHOWN_PATHS]) + (f" and {more:,} more" if more > 0 else "")
    return InvalidQueryError(
        f"The table has no partition {path[:200]!r}.", hint=f"There are: {shown}." if names else "It has none at all."
    )


def _find(every: Iterable[str], path: str) -> set[str]:
    if _WILD not in path:
        return {path}.intersection(every)
    pieces = path.split(_WILD)
    return {each for each in every if _matches(each, pieces)}


def _drop_fields(path: str, fields: Sequence[str]) -> str:
    """Return a path without the names of fields before its values, which are in the order of the fields."""
    parts = path.split("/")
    names = [*fields, *[""] * len(parts)]
    return "/".join(part.removeprefix(f"{name}=") if name else part for part, name in zip(parts, names, strict=False))


def check_rows_inside(named: Sequence[str], touched: Sequence[str]) -> list[str]:
    """Return the partitions that a caller named for an overwrite, if all rows lie in them.

    Raises:
        InvalidQueryError: a path leads out of the table, has a wildcard, or rows lie elsewhere.
    """
    paths = [_check(each) for each in named]
    wild = [each for each in paths if _WILD in each]
    if wild or not paths:
        raise InvalidQueryError(f"An overwrite needs the paths of partitions, not {wild or 'none'}.")
    outside = sorted(set(touched).difference(paths))
    if outside:
        raise InvalidQueryError(
            f"Rows lie in other partitions than those to overwrite, such as {outside[0][:200]!r}.",
            hint="Name that partition too, or leave these rows out.",
        )
    return paths


def _check(path: object) -> str:
    if not isinstance(path, str) or not path.strip("/"):
        raise InvalidQueryError(f"{path!r:.100} is not the path of a partition.")
    try:
        return check_partition(path.replace(_ENCODED, _WILD).strip("/"))
    except InvalidTableError as error:
        raise InvalidQueryError(f"The path {path[:100]!r} leads out of the table.") from error


def _matches(path: str, pieces: Sequence[str]) -> bool:
    """Whether a path consists of the pieces with any characters in between; linear in its length."""
    first, *middle, last = pieces
    if not path.startswith(first) or not path.endswith(last) or len(path) < len(first) + len(last):
        return False
    at, end = len(first), len(path) - len(last)
    for each in middle:
        at = path.find(each, at, end)
        if at < 0:
            return False
        at += len(each)
    return True
