"""The records of the partition ``files``: the table's partitions, and the files of each (Hudi
``HoodieMetadataPayload.createPartitionFilesRecord``, ``createPartitionListRecord``).

    key                   type   filesystemMetadata
    __all_partitions__    1      each partition that the instant touches, size 0; none for a clean or rollback
    partition path        2      each file's size, or that the file is deleted
    "."                   2      the same, for a table without partitions

Readers merge the maps of all records of a key, so a file that a record does not name stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.arrays import from_texts, join_chunks
from hoodie_py.errors import FileMissingError, InvalidTableError
from hoodie_py.formats.indexes.definitions import ALL_PARTITIONS, NO_PARTITION
from hoodie_py.formats.indexes.record_schema import FILES_COLUMN
from hoodie_py.formats.log.framing import LogBlock, iterate_blocks
from hoodie_py.formats.names import check_file_name, check_inside, parse_log_file_name
from hoodie_py.formats.timeline.instants import CLEAN, CLUSTERING, REQUESTED
from hoodie_py.formats.timeline.plans import CleanPlan
from hoodie_py.table.bounded import read_bounded
from hoodie_py.table.indexes.file_lists import read_file_lists
from hoodie_py.table.indexes.view import MetadataView
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.indexes.entry_checks import Facts
from hoodie_py.writer.indexes.index import (
    GroupPlan,
    Index,
    MetadataCommit,
    Names,
    PartitionRecords,
    Portion,
    Sizes,
    place_records,
)
from hoodie_py.writer.indexes.table_source import IndexSource

PARTITION_LIST, FILE_LIST = 1, 2
_FILES_AT_ONCE = 50_000
_FILE = pa.struct([pa.field("size", pa.int64(), nullable=False), pa.field("isDeleted", pa.bool_(), nullable=False)])
_SCHEMA = pa.schema(
    {"key": pa.string(), "type": pa.int32(), FILES_COLUMN: pa.map_(pa.string(), pa.field("value", _FILE))}
)

File = tuple[str, dict[str, Any]]


class Files(Index):
    """The partition ``files``. A check compares each data file of the listing with its size, and each partition."""

    _prefix = "files-"

    def records(self, change: MetadataCommit, view: MetadataView) -> PartitionRecords:
        """Make the records of an instant; errors as ``list_files``."""
        del view
        rows = list_files(change.added, change.deleted)
        # The first record lists all partitions, and these operations add none.
        some = rows.slice(1) if change.kind in ("clean", "rollback", "restore") else rows
        return PartitionRecords(self.partition, some)

    def portions(self, source: IndexSource, groups: GroupPlan) -> Iterator[Portion]:
        """Yield the files of each partition, and last the table's partitions."""
        every = sorted(source.files)
        some: dict[str, Mapping[str, int]] = {}
        for number, path in enumerate(every, 1):
            some[path] = source.files[path]
            if number == len(every) or sum(map(len, some.values())) >= _FILES_AT_ONCE:
                yield place_records(list_files(some, {}).slice(1), groups)
                some = {}
        yield place_records(list_files({path: {} for path in every}, {}).slice(0, 1), groups)

    def count_groups(self, options: Mapping[str, str]) -> int:
        """Return 1: Java looks for all records in one file group."""
        del options
        return 1

    def describe(self, source: IndexSource, rows: pa.Table, owner: str | None) -> Facts:
        """Describe each file by its size, and each partition that has files."""
        del owner
        files = join_chunks(rows[FILES_COLUMN])
        entry = pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", files.type.item_type)])
        lists = files.cast(pa.list_(entry))
        owners = join_chunks(rows["key"]).cast(pa.string()).take(pc.list_parent_indices(lists))
        names, facts = pc.struct_field(lists.flatten(), "key"), pc.struct_field(lists.flatten(), "value")
        there = pc.invert(pc.fill_null(pc.struct_field(facts, "isDeleted"), False))
        sizes = pc.binary_join_element_wise(pc.struct_field(facts, "size").cast(pa.string()), "bytes", " ")
        values = pc.if_else(pc.equal(owners, ALL_PARTITIONS), "a partition", sizes)
        keys = pc.binary_join_element_wise(owners, names, "\0")
        # Readers lose nothing, whether a partition without files is listed or not.
        ignored = [f"{ALL_PARTITIONS}\0{path or NO_PARTITION}" for path in source.empty_partitions]
        ignored += [f"{path or NO_PARTITION}\0{name}" for path, _, name in (p.rpartition("/") for p in source.left_out)]
        counts = pc.and_(there, pc.invert(pc.is_in(keys, from_texts(ignored, pa.string()))))
        return Facts(keys.filter(counts), values.filter(counts))


def list_files(added: Sizes, deleted: Names) -> pa.Table:
    """Make the records of files that come and go, the record of all partitions first.

    Raises:
        InvalidTableError: a path leads out of the table, a file name is a path, or a size is not positive.
    """
    partitions = sorted({*added, *deleted})
    keys = [check_inside(path) or NO_PARTITION for path in partitions]
    files = [list(_iterate_files(added, deleted, path)) for path in partitions]
    every: list[File] = [(key, _make_file(0)) for key in keys]
    columns = [
        pa.array([ALL_PARTITIONS, *keys], pa.string()),
        pa.array([PARTITION_LIST, *([FILE_LIST] * len(keys))], pa.int32()),
        pa.array([every, *files], _SCHEMA.field(FILES_COLUMN).type),
    ]
    return pa.Table.from_arrays(columns, schema=_SCHEMA)


def _iterate_files(added: Sizes, deleted: Names, partition: str) -> Iterator[File]:
    gone = set(deleted.get(partition, ()))
    for name, size in added.get(partition, {}).items():
        if size <= 0:
            raise InvalidTableError("A file of the metadata table needs its size.", path=name)
        if name not in gone:
            yield check_file_name(name), _make_file(size)
    for name in sorted(gone):
        yield check_file_name(name), _make_file(0, deleted=True)


def _make_file(size: int, *, deleted: bool = False) -> dict[str, Any]:
    return {"size": size, "isDeleted": deleted}


def find_leftovers(snapshot: Snapshot, view: MetadataView) -> frozenset[str]:
    """Return the paths of log files that only pending instants wrote: what a failed write leaves until its rollback.

    From table version 8 on the names of log files show their instant, except in new buckets of a pending clustering,
    whose log files carry its time. Up to version 6 a log file is named after its slice's base file, so its blocks are
    read (spec F2.3). The metadata table has no entry for such a file, as it gets entries when a write completes.

    Raises:
        CorruptFileError: a log file is too large to look at, or the metadata table cannot be read.
        StorageError: the store refused.
    """
    timeline = snapshot.timeline
    pending = timeline.pending_times
    clusterings = timeline.select_pending().select_actions(CLUSTERING).pending_times
    named_by_commit = snapshot.config.has_logs_named_by_commit
    if not (clusterings if named_by_commit else pending):
        return frozenset()
    _, listed = read_file_lists(view, None)
    known = {each.path for files in listed.values() for each in files}
    unknown = [
        each.path
        for listing in snapshot.view.list_partitions()
        for each in listing.files
        if each.path not in known and _may_be_left(each.name, clusterings if named_by_commit else None)
    ]
    return frozenset(path for path in unknown if _is_of(snapshot, path, pending))


def find_cleaned(snapshot: Snapshot) -> frozenset[str]:
    """Return the paths of files that a clean at work has removed: the metadata table has them until it completes.

    Raises:
        CorruptFileError: the plan of a clean is damaged.
        StorageError: the store refused.
    """
    found: set[str] = set()
    for each in snapshot.timeline.select_pending().select_actions(CLEAN):
        try:
            plan = snapshot.timeline.read_instant_file(replace(each, state=REQUESTED), CleanPlan.from_bytes)
        except InvalidTableError:  # the clean has ended since the listing
            continue
        for path, names in plan.files.items():
            found.update(f"{path}/{name}" if path else name for name in names)
    if found:
        found -= {each.path for listing in snapshot.view.list_partitions() for each in listing.files}
    return frozenset(found)


def _may_be_left(name: str, times: frozenset[str] | None) -> bool:
    """Whether a file is a log file named after one of some times; None: after any time."""
    parsed = parse_log_file_name(name)
    return parsed is not None and (times is None or parsed.instant in times)


def _is_of(snapshot: Snapshot, path: str, pending: frozenset[str]) -> bool:
    try:
        data = read_bounded(snapshot.files, path, "log_bytes")
    except FileMissingError:  # rolled back since the listing
        return True
    times = {block.instant_time for block in iterate_blocks(data) if isinstance(block, LogBlock)}
    return bool(times) and times <= pending
