"""Check one partition of a metadata table: each entry against the table's files (Hudi
``HoodieMetadataTableValidator``).

The makers that build a partition (``registry``) give the expected entries. Expected and stored entries are sorted on
disk (``SortedRecords``) and compared window by window, so memory stays bounded. Only the parts of an entry that locate
rows or files are compared: sizes of files, file groups of records. The time when it was written is not.

* ``files``: each data file of the listing with its size, and no other; each partition.
* ``record_index``: each record key with its file group, and no other; each in the file group that a look-up reads.
* ``bloom_filters``: the filter in the footer of each base file, and no other.
* ``column_stats``, ``partition_stats``, ``expr_index_*``: see ``range_checks``.
* ``secondary_index_*``: each value with its record key, and no other; each in the file group that a look-up reads.

A partition that the table's properties name must have file groups, unless it rightly has none yet
(``may_have_no_groups``). File groups of another index are wrong in any partition: look-ups by key count them, and so
miss entries. Java 1.2.0 creates such groups: its clean writes the deletes of an expression index into ``column_stats``
or ``bloom_filters`` (``ExpressionIndexer``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.arrays import from_numpy, from_texts, join_batches, join_chunks, to_booleans
from hoodie_py.formats.indexes import definitions as names
from hoodie_py.formats.indexes.definitions import ALL_PARTITIONS, NO_PARTITION
from hoodie_py.formats.indexes.keys import (
    find_file_groups,
    find_secondary_groups,
    parse_group_id,
    read_file_ids,
)
from hoodie_py.formats.indexes.record_schema import BLOOM_COLUMN, FILES_COLUMN, RECORD_INDEX_COLUMN
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.reader.memory.budget import MemoryBudget
from hoodie_py.reader.memory.grouped import GroupedRows, keep_last
from hoodie_py.reader.read_info import ReadOptions
from hoodie_py.table.indexes.soundness import make_lost_groups, may_have_no_groups
from hoodie_py.table.indexes.view import MetadataView
from hoodie_py.writer.indexes.group_counts import find_group_prefix
from hoodie_py.writer.indexes.index import GroupPlan
from hoodie_py.writer.indexes.range_checks import (
    check_column_statistics,
    check_expression_index,
    check_partition_statistics,
)
from hoodie_py.writer.indexes.registry import find_portion_maker
from hoodie_py.writer.indexes.table_source import IndexSource
from hoodie_py.writer.indexes.verify_report import OnEntries, PartReport

Note = Callable[[str, bytes, bytes | None, bytes | None], None]
"""Takes the problem ("missing", "extra", "wrong"), the key, the expected value, the stored value."""

_NOTED_AT_ONCE = 100
_KEY, _IS_THERE = "key", "is_there"


@dataclass(frozen=True, slots=True)
class Counts:
    """The number of right keys, and of keys with each problem."""

    right: int
    missing: int
    extra: int
    wrong: int


class Comparison:
    """Compares the values that should be there with the values that are there, in bounded memory, as a context manager.

    Add all values that should be there first. If several values have one key, the last one counts.
    """

    def __init__(self, budget: MemoryBudget) -> None:
        self._rows = GroupedRows[None](budget, order=[_KEY])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._rows.close()

    def add(self, keys: pa.Array, values: pa.Array, *, is_there: bool) -> None:
        """Add keys and values, which are texts or bytes."""
        columns = [keys.cast(pa.large_binary()), values.cast(pa.large_binary()), pa.repeat(is_there, len(keys))]
        self._rows.add(None, pa.RecordBatch.from_arrays(columns, [_KEY, "value", _IS_THERE]))

    def compare(self, note: Note) -> Counts:
        """Compare the values of each key, once. ``note`` gets the first problems of each batch."""
        right = missing = extra = wrong = 0
        for rows in self._iterate_pairs():
            keys, values = rows.column(_KEY), rows.column("value")
            is_there = to_booleans(rows.column(_IS_THERE))
            same = to_booleans(pc.equal(keys.slice(1), keys.slice(0, len(keys) - 1)))  # as the key of the row before
            first = np.flatnonzero(same)
            unlike = to_booleans(pc.not_equal(values.take(from_numpy(first)), values.take(from_numpy(first + 1))))
            alone = ~(np.append(same, False) | np.append(False, same))
            places = np.flatnonzero(alone & ~is_there), np.flatnonzero(alone & is_there), first[unlike]
            for at in places[0][:_NOTED_AT_ONCE].tolist():
                note("missing", keys[at].as_py(), values[at].as_py(), None)
            for at in places[1][:_NOTED_AT_ONCE].tolist():
                note("extra", keys[at].as_py(), None, values[at].as_py())
            for at in places[2][:_NOTED_AT_ONCE].tolist():
                note("wrong", keys[at].as_py(), values[at].as_py(), values[at + 1].as_py())
            right += len(first) - len(places[2])
            missing, extra, wrong = missing + len(places[0]), extra + len(places[1]), wrong + len(places[2])
        return Counts(right, missing, extra, wrong)

    def _iterate_pairs(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows by key: the value that should be there, then the one that is; both in one batch."""
        waiting: list[pa.RecordBatch] = []
        for batch in keep_last(self._rows.sort(None), [_KEY, _IS_THERE]):
            rows = join_batches([*waiting, batch])
            cut = rows.num_rows if rows.column(_IS_THERE)[-1].as_py() else rows.num_rows - 1
            waiting = [rows.slice(cut)] if cut < rows.num_rows else []
            if cut:
                yield rows.slice(0, cut)
        yield from waiting


class Facts(NamedTuple):
    """The comparable content of entries: a key each, and a value."""

    keys: pa.Array
    values: pa.Array


Describe = Callable[[pa.Table, str | None], Facts]
"""Takes records and, for a partitioned record index, the partition of the table whose file group they are in."""


def check_partition(
    source: IndexSource, partition: str, view: MetadataView, on_entries: OnEntries | None = None
) -> PartReport:
    """Check a partition.

    Raises:
        HoodieError: a file cannot be read.
    """
    groups = view.list_groups(partition)
    if not groups and not may_have_no_groups(view, partition):
        report = PartReport(partition)
        lost = make_lost_groups(view, partition)
        report.note("missing", partition, lost.message if lost.hint is None else f"{lost.message} {lost.hint}")
        return report
    report = _check_entries(source, partition, view, on_entries)
    for group in groups:
        if not group.file_id.startswith(find_group_prefix(partition)):
            text = "the file group is of another index, so look-ups miss entries; drop and build the partition anew"
            report.note("foreign", group.file_id, text)
    return report


def _check_entries(source: IndexSource, partition: str, view: MetadataView, on_entries: OnEntries | None) -> PartReport:
    if partition == names.COLUMN_STATS:
        return check_column_statistics(source, view, on_entries)
    if partition == names.PARTITION_STATS:
        return check_partition_statistics(source, view, on_entries)
    if partition.startswith(names.EXPRESSION_PREFIX):
        return check_expression_index(source, partition, view, on_entries)
    report = PartReport(partition)
    describe = _find_describer(source, partition)
    budget = MemoryBudget.from_options(ReadOptions(options=source.options))
    with Comparison(budget) as comparison:
        plan = _find_groups(partition, view.list_groups(partition))
        for portion in find_portion_maker(partition)(source, plan):
            owners = _split_by_owner(portion.records, portion.groups, plan)
            for owner, rows in owners:
                comparison.add(*describe(rows, owner), is_there=False)
        read = 0
        for number, group in enumerate(view.list_groups(partition)):
            owner = _find_owner(partition, group)
            for batch in view.read_all(partition, groups=[group]):
                rows = pa.Table.from_batches([batch])
                _check_places(report, source, rows, number, plan, owner)
                comparison.add(*describe(rows, owner), is_there=True)
                read += batch.num_rows
                if on_entries is not None:
                    on_entries(partition, read, None)
        astray = report.wrong
        counts = comparison.compare(partial(_note, report))
    report.wrong = astray + counts.missing + counts.extra + counts.wrong  # only the first of them were noted
    if partition == names.BLOOM_FILTERS:  # no reader asks for the filter of a file that is gone
        report.stale, report.wrong = counts.extra, report.wrong - counts.extra
        report.findings = [each for each in report.findings if each.problem != "extra"]
    report.checked = counts.right + counts.missing + counts.extra + counts.wrong
    return report


def _note(report: PartReport, problem: str, key: bytes, wanted: bytes | None, there: bytes | None) -> None:
    place = key.replace(b"\0", b"/").decode(errors="replace")[:300]
    said, should = (None if each is None else each.decode(errors="replace")[:200] for each in (there, wanted))
    if problem == "missing":
        text = f"the metadata table has no entry; it should say {should}" if should else "there is no entry"
    elif problem == "extra":
        text = f"the metadata table says {said}; the table has no such thing" if said else "the table has no such thing"
    else:
        text = f"the metadata table says {said}; it should say {should}"
    report.note(problem, place, text)


# Contents of entries --------------------------------------------------------------------------------------------------


def _describe_files(rows: pa.Table, _owner: str | None, *, empty: pa.Array) -> Facts:
    """Describe each file with its size, and each partition except the ``empty`` ones."""
    files = join_chunks(rows[FILES_COLUMN])
    entry = pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", files.type.item_type)])
    lists = files.cast(pa.list_(entry))
    owners = join_chunks(rows["key"]).cast(pa.string()).take(pc.list_parent_indices(lists))
    file_names, facts = pc.struct_field(lists.flatten(), "key"), pc.struct_field(lists.flatten(), "value")
    there = pc.invert(pc.fill_null(pc.struct_field(facts, "isDeleted"), False))
    sizes = pc.binary_join_element_wise(pc.struct_field(facts, "size").cast(pa.string()), "bytes", " ")
    values = pc.if_else(pc.equal(owners, ALL_PARTITIONS), "a partition", sizes)
    keys = pc.binary_join_element_wise(owners, file_names, "\0")
    counts = pc.and_(there, pc.invert(pc.is_in(keys, empty)))
    return Facts(keys.filter(counts), values.filter(counts))


def _describe_locations(rows: pa.Table, owner: str | None) -> Facts:
    """Describe each record key with its partition and file id."""
    locations = join_chunks(rows[RECORD_INDEX_COLUMN])
    file_ids, numbers = read_file_ids(locations)
    groups = from_texts(file_ids, pa.string()).take(from_numpy(numbers))
    paths = pc.fill_null(pc.struct_field(locations, "partitionName"), "")
    values = pc.binary_join_element_wise(paths, groups, "/")
    keys = join_chunks(rows["key"]).cast(pa.string())
    if owner is not None:
        keys = pc.binary_join_element_wise(owner, keys, "\0")
    return Facts(keys, values)


def _describe_blooms(rows: pa.Table, _owner: str | None) -> Facts:
    """Describe each filter by its type and a hash of its text."""
    blooms = join_chunks(rows[BLOOM_COLUMN])
    texts = (
        hashlib.sha256(each or b"").hexdigest()[:16] for each in pc.struct_field(blooms, "bloomFilter").to_pylist()
    )
    kinds = pc.struct_field(blooms, "type")
    values = pc.binary_join_element_wise(kinds, from_texts(list(texts), pa.string()), " ")
    kept = pc.invert(pc.fill_null(pc.struct_field(blooms, "isDeleted"), False))
    return Facts(join_chunks(rows["key"]).cast(pa.string()).filter(kept), values.filter(kept))


def _describe_keys(rows: pa.Table, _owner: str | None) -> Facts:
    keys = join_chunks(rows["key"]).cast(pa.string())
    return Facts(keys, pa.array([""] * len(keys), pa.string()))


_DESCRIBERS: Mapping[str, Describe] = {
    names.RECORD_INDEX: _describe_locations,
    names.BLOOM_FILTERS: _describe_blooms,
}


def _find_describer(source: IndexSource, partition: str) -> Describe:
    if partition != names.FILES_PARTITION:
        return _DESCRIBERS.get(partition, _describe_keys)
    # A failed write leaves the folder of a new partition without files; readers lose nothing, listed or not.
    empty = [f"{ALL_PARTITIONS}\0{path or NO_PARTITION}" for path, files in source.files.items() if not files]
    return partial(_describe_files, empty=from_texts(empty, pa.string()))


# File groups ---------------------------------------------------------------------------------------------------------


def _find_owner(partition: str, group: FileSlice) -> str | None:
    return parse_group_id(group.file_id)[0] if partition == names.RECORD_INDEX else None


def _find_groups(partition: str, groups: list[FileSlice]) -> GroupPlan:
    """Return the plan of the file groups, as a builder makes it: groups of one partition of the table are adjacent."""
    places: dict[str, tuple[int, int]] = {}
    for number, group in enumerate(groups):
        owner = _find_owner(partition, group)
        if owner is not None:
            first, count = places.get(owner, (number, 0))
            places[owner] = (first, count + 1)
    return GroupPlan(tuple(each.file_id for each in groups), places)


def _split_by_owner(rows: pa.Table, groups: np.ndarray, plan: GroupPlan) -> Iterator[tuple[str | None, pa.Table]]:
    if not plan.by_partition:
        yield None, rows
        return
    for path, (first, count) in plan.by_partition.items():
        at = np.flatnonzero((groups >= first) & (groups < first + count))
        if len(at):
            yield path, rows.take(from_numpy(at))


def _check_places(
    report: PartReport, source: IndexSource, rows: pa.Table, number: int, plan: GroupPlan, owner: str | None
) -> None:
    """Check that a look-up finds each entry in the file group that contains it."""
    keys = join_chunks(rows["key"]).cast(pa.string())
    first, count = (0, len(plan.file_ids)) if owner is None else plan.by_partition[owner]
    if report.name.startswith(names.SECONDARY_PREFIX):
        version = 1 if source.definition is None else source.definition.version or 1
        at = find_secondary_groups(keys, count, version)
    else:
        at = find_file_groups(keys, count)
    astray = np.flatnonzero(first + at != number)
    for place in astray[:10].tolist():
        wanted = plan.file_ids[first + int(at[place])]
        report.note(
            "misplaced", keys[place].as_py(), f"it is in {plan.file_ids[number]}, and look-ups read {wanted}", 0
        )
    report.wrong += len(astray)
