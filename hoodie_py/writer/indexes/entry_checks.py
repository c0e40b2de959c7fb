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
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.arrays import from_numpy, from_texts, join_chunks, to_booleans
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
from hoodie_py.reader.memory.grouped import SortedRecords
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

_TOLD_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Counts:
    """The number of right keys, and of keys with each problem."""

    right: int
    missing: int
    extra: int
    wrong: int


def compare(expected: SortedRecords, found: SortedRecords, note: Note) -> Counts:
    """Compare expected with stored entries. The first problems of each window are passed to ``note``."""
    right = missing = extra = wrong = 0
    for wanted, there in _pair(expected.iterate(0), found.iterate(0)):
        at = pc.index_in(wanted[0], value_set=there[0])
        known = to_booleans(pc.is_valid(at))
        missing += int((~known).sum())
        _tell(note, "missing", wanted[0], wanted[1], None, np.flatnonzero(~known))
        surplus = ~to_booleans(pc.is_in(there[0], value_set=wanted[0]))
        extra += int(surplus.sum())
        _tell(note, "extra", there[0], None, there[1], np.flatnonzero(surplus))
        places = from_numpy(np.flatnonzero(known))
        keys, values, others = wanted[0].take(places), wanted[1].take(places), there[1].take(at.drop_null())
        unlike = to_booleans(pc.not_equal(values, others))
        wrong += int(unlike.sum())
        right += int((~unlike).sum())
        _tell(note, "wrong", keys, values, others, np.flatnonzero(unlike))
    return Counts(right, missing, extra, wrong)


Rows = tuple[pa.Array, pa.Array]


def _pair(expected: Iterator[Rows], found: Iterator[Rows]) -> Iterator[tuple[Rows, Rows]]:
    """Yield windows of both sides, side by side. Both end at the same greatest key."""
    none = pa.array([], pa.large_binary())
    heads: list[Rows | None] = [next(expected, None), next(found, None)]
    sides = (expected, found)
    while any(head is not None for head in heads):
        bound = min(head[0][-1].as_py() for head in heads if head is not None)
        window: list[Rows] = []
        for number, head in enumerate(heads):
            if head is None:
                window.append((none, none))
                continue
            upto = int(to_booleans(pc.less_equal(head[0], pa.scalar(bound, pa.large_binary()))).sum())
            window.append((head[0].slice(0, upto), head[1].slice(0, upto)))
            rest = (head[0].slice(upto), head[1].slice(upto))
            heads[number] = rest if len(rest[0]) else next(sides[number], None)
        yield window[0], window[1]


def _tell(
    note: Note, problem: str, keys: pa.Array, wanted: pa.Array | None, there: pa.Array | None, places: np.ndarray
) -> None:
    for at in places[:_TOLD_AT_ONCE].tolist():
        note(
            problem,
            keys[at].as_py(),
            None if wanted is None else wanted[at].as_py(),
            None if there is None else there[at].as_py(),
        )


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
    with SortedRecords(budget) as expected, SortedRecords(budget) as found:
        plan = _find_groups(partition, view.list_groups(partition))
        for portion in find_portion_maker(partition)(source, plan):
            owners = _split_by_owner(portion.records, portion.groups, plan)
            for owner, rows in owners:
                _add(expected, describe(rows, owner))
        read = 0
        for number, group in enumerate(view.list_groups(partition)):
            owner = _find_owner(partition, group)
            for batch in view.read_all(partition, groups=[group]):
                rows = pa.Table.from_batches([batch])
                _check_places(report, source, rows, number, plan, owner)
                _add(found, describe(rows, owner))
                read += batch.num_rows
                if on_entries is not None:
                    on_entries(partition, read, None)
        astray = report.wrong
        counts = compare(expected, found, partial(_note, report))
    report.wrong = astray + counts.missing + counts.extra + counts.wrong  # only the first of them were noted
    if partition == names.BLOOM_FILTERS:  # no reader asks for the filter of a file that is gone
        report.stale, report.wrong = counts.extra, report.wrong - counts.extra
        report.findings = [each for each in report.findings if each.problem != "extra"]
    report.checked = counts.right + counts.missing + counts.extra + counts.wrong
    return report


def _add(records: SortedRecords, facts: Facts) -> None:
    if len(facts.keys):
        records.add(np.zeros(len(facts.keys), np.int64), facts.keys, facts.values)


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
