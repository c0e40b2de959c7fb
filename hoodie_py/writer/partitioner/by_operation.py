"""Assign the records of a write to files, by operation and index: look keys up, then choose files.

Agrees with the operations of Hudi's ``BaseSparkCommitActionExecutor``: tagging by the index, then a partitioner.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.arrays import from_numpy
from hoodie_py.arrow.fields import find_field_type, read_field_values
from hoodie_py.errors import InvalidQueryError, UnsupportedFeatureError
from hoodie_py.options.write import (
    BULK_INSERT_SORT,
    BULK_INSERT_SORT_COLUMNS,
    INSERT_DUPLICATES,
)
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.index.key_lookup import KeyLookup
from hoodie_py.writer.index.tagging import tag
from hoodie_py.writer.keygen.generator import KeyGenerator
from hoodie_py.writer.partitioner.assign import (
    AssignedRecords,
    assign_files,
    assign_new_bucket_files,
    assign_new_files,
    list_slices_of,
)
from hoodie_py.writer.partitioner.fill import Fill, choose_fill
from hoodie_py.writer.partitioner.small_files import choose_small_files
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
        fill = choose_fill(operation, snapshot, settings, merger)
        small = [] if fill is Fill.NONE else choose_small_files(snapshot, slices, settings)
        return assign_files(tagged, slices, file_bytes, small, fill, only_logs=only_logs)
    if operation is WriteOperation.BULK_INSERT:
        return assign_new_files(_sort(records, settings.options), file_bytes)
    if operation is WriteOperation.INSERT and (policy := INSERT_DUPLICATES.read(settings.options)) != "none":
        records = _apply_duplicate_policy(tag_records(), policy)
    fill = choose_fill(operation, snapshot, settings, merger)
    small = [] if fill is Fill.NONE else choose_small_files(snapshot, list_slices_of(records, snapshot), settings)
    return assign_new_files(records, file_bytes, small, fill)


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
