"""Ranges of partitions where commits overlap: one began before another and lands after it.

The metadata table merges records in the order of request times, and a tight record takes the place of older ones (Hudi
``HoodieTableMetadataUtil.mergeColumnStatsRecords``). So the record of the commit that landed first would hide that of
the one that began first, and readers would lose its rows. Therefore:

* Beside an older instant that is pending, whose record may still come, a record is not tight: it is merged with those
  before it, whenever they come. One that cannot be merged, as the column's type changed, has the widest range.
* An instant that lands after a later one refuses if the record that is there hides its own and is narrower.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.arrays import to_booleans
from hoodie_py.errors import ConflictError
from hoodie_py.formats.metadata_table.column_ranges import ColumnRange, merge_ranges, read_statistics
from hoodie_py.formats.metadata_table.value_kinds import NO_VALUES
from hoodie_py.formats.metadata_table.widest_ranges import make_widest_range
from hoodie_py.formats.timeline.instants import CLEAN, INDEXING, RESTORE, ROLLBACK, SAVEPOINT
from hoodie_py.writer.metadata_table.update import MetadataCommit

_WITHOUT_DATA = {CLEAN, ROLLBACK, RESTORE, SAVEPOINT, INDEXING}


@dataclass(frozen=True, slots=True)
class StoredRange:
    """A range as the metadata table has it, or is to have it."""

    range: ColumnRange
    is_tight: bool


@dataclass(frozen=True, slots=True)
class Overlap:
    """What overlaps an instant that is about to be complete.

    Attributes:
        has_older: whether older writes, or services that write, are pending.
        later: partition paths that instants have written which began later and are complete.
    """

    has_older: bool
    later: frozenset[str]

    def settle(
        self, path: str, found: Mapping[str, ColumnRange], stored: Mapping[str, StoredRange]
    ) -> dict[str, StoredRange]:
        """Return the records for the ranges of a partition by column; ``stored`` are those that are there.

        Raises:
            ConflictError: a record of a later instant hides a range that is wider.
        """
        if path in self.later:
            for name, each in found.items():
                there = stored.get(name)
                if there is not None and there.is_tight and not _holds(there.range, each):
                    raise ConflictError(
                        "A writer that began later has committed first, and its statistics of the partition would hide "
                        f"those of this write, of column {each.column!r}.",
                        hint="Write again; if it is a plan that is run, roll it back and make another.",
                        partition=path,
                    )
        if not self.has_older:
            return tighten(found)
        settled = {name: _loosen(each, stored.get(name)) for name, each in found.items()}
        return {name: each for name, each in settled.items() if each is not None}


def find_overlap(commit: MetadataCommit) -> Overlap:
    """Look at the timeline for instants that overlap. Call it under the table's lock."""
    timeline = commit.snapshot.timeline
    has_older = any(
        each.request_time < commit.instant and each.action not in _WITHOUT_DATA
        for each in timeline.timeline.select_pending()
    )
    later = [each for each in timeline.list_completed_writes() if each.request_time > commit.instant]
    paths = {stat.partition_path for each in later for stat in timeline.read_metadata(each).iterate_stats()}
    return Overlap(has_older, frozenset(paths))


def tighten(found: Mapping[str, ColumnRange]) -> dict[str, StoredRange]:
    """Return ranges as records that take the place of those before them."""
    return {name: StoredRange(each, True) for name, each in found.items()}


def read_stored_ranges(statistics: pa.Array, version: int) -> list[StoredRange]:
    """Return the ranges that records of partitions have."""
    flags = to_booleans(pc.struct_field(statistics, "isTightBound")).tolist()
    return [StoredRange(*each) for each in zip(read_statistics(statistics, version), flags, strict=True)]


def _loosen(found: ColumnRange, stored: StoredRange | None) -> StoredRange | None:
    """Return a record that is merged with what comes before it; None where there can be none."""
    if stored is None or len({found.kind, stored.range.kind} - {NO_VALUES}) <= 1:
        return StoredRange(found, False)
    widest = make_widest_range(found.column, found.kind)
    return None if widest is None else StoredRange(widest, True)


def _holds(there: ColumnRange, found: ColumnRange) -> bool:
    """Whether a range has room for all values of another."""
    if len({there.kind, found.kind} - {NO_VALUES}) > 1:
        return False
    both = merge_ranges([there, found])
    kept = replace(there, kind=both.kind, nulls=both.nulls, values=both.values, size=both.size)
    has_nulls = there.nulls > 0 or not found.nulls
    return replace(kept, uncompressed=both.uncompressed) == both and has_nulls
