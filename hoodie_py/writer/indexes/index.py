"""Index: one partition of the metadata table, and the change of one instant that it follows (Hudi
``HoodieTableMetadataWriter.update``, ``MetadataPartitionType``).

An index turns the change into records. It reads data in ``prepare``, before the table's lock is taken where possible,
so that the lock is held briefly. A build makes records portion by portion, for the file groups of a plan. A check
compares the stored entries with those of a build, unless the index has a rule of its own (Hudi
``HoodieMetadataTableValidator``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie_py.arrow.arrays import from_numpy, join_chunks
from hoodie_py.formats.indexes.definitions import IndexDefinition
from hoodie_py.formats.indexes.keys import find_file_groups
from hoodie_py.formats.timeline.commit_metadata import WriteStat
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.reader.memory.budget import MemoryBudget
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.reader.read_info import ReadOptions
from hoodie_py.table.indexes.view import MetadataView
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.view.visibility import GroupKey
from hoodie_py.writer.handles.data_file import TaskResult
from hoodie_py.writer.indexes.entry_checks import Comparison, Facts, note_difference
from hoodie_py.writer.indexes.kept_indexes import KeptIndexes
from hoodie_py.writer.indexes.table_source import IndexSource
from hoodie_py.writer.indexes.verify_report import OnEntries, PartReport
from hoodie_py.writer.timeline.session import WriteSession

Kind = Literal["write", "compaction", "clustering", "clean", "rollback", "restore"]
Sizes = Mapping[str, Mapping[str, int]]
Names = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class MetadataCommit:
    """What an instant does to the table.

    Attributes:
        session: the session of the call.
        snapshot: the table: in ``prepare`` as the operation found it, with the properties that it began with; later as
            it is under the lock, at the commit.
        instant: request time.
        kind: the kind of operation.
        operation: Hudi's WriteOperationType as in the commit's metadata, such as "UPSERT"; "" if there is none.
        added: sizes in bytes of new files, by partition path and name.
        deleted: names of removed files, by partition path.
        stats: write statistics of the commit, by partition path.
        replaced: file ids of replaced file groups, by partition path.
        compacted: paths of the log files that a compaction merged, by file group.
        results: results of the operation's tasks, of the attempts that count.
        schema: Avro schema (JSON) of the records that the operation wrote, meta columns first; None if it wrote none.
        merger: the table's own merger, if the caller gave it.
        kept: the indexes of the table that ``indexes`` were prepared for.
        indexes: the prepared indexes, by name of the partition.
    """

    session: WriteSession
    snapshot: Snapshot
    instant: str
    kind: Kind
    operation: str = ""
    added: Sizes = field(default_factory=dict)
    deleted: Names = field(default_factory=dict)
    stats: Mapping[str, Sequence[WriteStat]] = field(default_factory=dict)
    replaced: Mapping[str, Sequence[str]] = field(default_factory=dict)
    compacted: Mapping[GroupKey, frozenset[str]] = field(default_factory=dict)
    results: Sequence[TaskResult] = ()
    schema: str | None = None
    merger: Merger | None = None
    kept: KeptIndexes = field(default_factory=KeptIndexes)
    indexes: Mapping[str, Index] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PartitionRecords:
    """The records that one partition of the metadata table gets.

    Attributes:
        partition: its name.
        records: the column ``key`` (string, each key once) and the columns of HoodieMetadataRecord that are not null:
            ``type``, and one or more of ``filesystemMetadata``, ``BloomFilterMetadata``, ``ColumnStatsMetadata``,
            ``recordIndexMetadata``, ``SecondaryIndexMetadata``. Columns that are left out are null.
        deleted_keys: keys (string) whose records are deleted, by a DELETE block; None: no keys. A key may not be in
            ``records`` too.
        group_of: for each record, then for each deleted key, the number of its file group in ``groups``. None if the
            partition has one group, or if Java's hash of the whole key decides.
        groups: the file ids that ``group_of`` numbers; None: the groups of the partition, sorted by file id. Groups
            that the partition lacks are created, even if nothing goes into them.
    """

    partition: str
    records: pa.Table
    deleted_keys: pa.Array | pa.ChunkedArray | None = None
    group_of: npt.NDArray[np.int64] | None = None
    groups: Sequence[str] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether the partition gets no records, deletes or groups."""
        return not self.records.num_rows and not len(self.deleted_keys or ()) and not self.groups


Groups = npt.NDArray[np.int64]


class Portion(NamedTuple):
    """Records (``key`` and columns of HoodieMetadataRecord), and the number of each record's file group."""

    records: pa.Table
    groups: Groups


class GroupPlan(NamedTuple):
    """The file groups of a new partition.

    ``by_partition``, for a partitioned record index: the number of the first group of each partition of the table, and
    how many groups it has.
    """

    file_ids: tuple[str, ...]
    by_partition: Mapping[str, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Index(ABC):
    """One partition of the metadata table: what an instant adds to it, how it is built, and how it is checked.

    Each commit, build and check has objects of its own: ``prepare`` returns an index with what it has read, and
    ``records`` uses that. An index that was not prepared for an instant makes the records of one without new files.

    Attributes:
        partition: its name.
    """

    partition: str

    _prefix: ClassVar[str | None] = None

    extra_is_stale: ClassVar[bool] = False
    """Whether an entry without a counterpart in the table does no harm, as no reader asks for it."""

    @property
    def group_prefix(self) -> str:
        """The beginning of the file ids in the partition (Hudi ``HoodieTableMetadataUtil.getFileIDForFileGroup``)."""
        return self._prefix or f"{self.partition.replace('_', '-')}-"

    def make_group_ids(self, count: int) -> tuple[str, ...]:
        """Return the file ids of the file groups, except for a partitioned record index."""
        return tuple(f"{self.group_prefix}{number:04d}-0" for number in range(count))

    def prepare(self, change: MetadataCommit) -> Index:
        """Read, before the lock, what depends only on the operation's own files and on slices that no other writer
        may change.

        Raises:
            HoodieError: a data file cannot be read, or the index cannot be kept up.
        """
        del change
        return self

    @abstractmethod
    def records(self, change: MetadataCommit, view: MetadataView) -> PartitionRecords:
        """Make the records of an instant, under the lock. ``view`` shows the metadata table before the instant.

        Raises:
            HoodieError: the metadata table or a data file cannot be read, or the instant must not complete.
        """

    @abstractmethod
    def portions(self, source: IndexSource, groups: GroupPlan) -> Iterator[Portion]:
        """Yield the records of a new partition: those that the writers of all commits would have left by now.

        A key that comes again replaces the earlier one.

        Raises:
            HoodieError: a file cannot be read, or the index cannot be built.
        """

    def redefine(self, change: MetadataCommit) -> IndexDefinition | None:
        """Return the definition of the index after the instant; None if it stays. Errors as ``read_definitions``."""
        del change
        return None

    def count_groups(self, options: Mapping[str, str]) -> int | None:
        """Return the number of file groups of a new partition; None if it depends on the number of records.

        Raises InvalidQueryError if an option is bad.
        """
        del options
        return None

    def find_groups(self, source: IndexSource, keys: pa.Array, count: int) -> Groups:
        """Return, for each key, which of ``count`` file groups a look-up reads."""
        del source
        return find_file_groups(keys, count)

    def find_owner(self, group: FileSlice) -> str | None:
        """Return the partition of the table that a file group is for; None if it is for all."""
        del group
        return None

    def describe(self, source: IndexSource, rows: pa.Table, owner: str | None) -> Facts:
        """Return what a check compares: only the parts of an entry that locate rows or files, not when it was written.

        ``owner``: the partition of the table whose file group has the rows (``find_owner``).
        """
        del source, owner
        keys = join_chunks(rows["key"]).cast(pa.string())
        return Facts(keys, pa.array([""] * len(keys), pa.string()))

    def check(self, source: IndexSource, view: MetadataView, on_entries: OnEntries | None = None) -> PartReport:
        """Compare the entries with those of a build, and their file groups with those that look-ups read.

        Expected and stored entries are sorted together on disk, so memory stays bounded.

        Raises:
            HoodieError: a file cannot be read.
        """
        report = PartReport(self.partition)
        budget = MemoryBudget.from_options(ReadOptions(options=source.options))
        with Comparison(budget) as comparison:
            plan = self._read_plan(view.list_groups(self.partition))
            for portion in self.portions(source, plan):
                for owner, rows in _split_by_owner(portion, plan):
                    comparison.add(*self.describe(source, rows, owner), is_there=False)
            read = 0
            for number, group in enumerate(view.list_groups(self.partition)):
                owner = self.find_owner(group)
                for batch in view.read_all(self.partition, groups=[group]):
                    rows = pa.Table.from_batches([batch])
                    self._check_places(report, source, rows, number, plan, owner)
                    comparison.add(*self.describe(source, rows, owner), is_there=True)
                    read += batch.num_rows
                    if on_entries is not None:
                        on_entries(self.partition, read, None)
            astray = report.wrong
            counts = comparison.compare(partial(note_difference, report))
        report.wrong = astray + counts.missing + counts.extra + counts.wrong  # only the first of them were noted
        if self.extra_is_stale:
            report.stale, report.wrong = counts.extra, report.wrong - counts.extra
            report.findings = [each for each in report.findings if each.problem != "extra"]
        report.checked = counts.right + counts.missing + counts.extra + counts.wrong
        return report

    def _read_plan(self, groups: Sequence[FileSlice]) -> GroupPlan:
        """Return the plan of the file groups, as a builder makes it: groups of one partition of the table adjoin."""
        places: dict[str, tuple[int, int]] = {}
        for number, group in enumerate(groups):
            owner = self.find_owner(group)
            if owner is not None:
                first, count = places.get(owner, (number, 0))
                places[owner] = (first, count + 1)
        return GroupPlan(tuple(each.file_id for each in groups), places)

    def _check_places(
        self, report: PartReport, source: IndexSource, rows: pa.Table, number: int, plan: GroupPlan, owner: str | None
    ) -> None:
        """Check that a look-up finds each entry in the file group that contains it."""
        keys = join_chunks(rows["key"]).cast(pa.string())
        first, count = (0, len(plan.file_ids)) if owner is None else plan.by_partition[owner]
        at = self.find_groups(source, keys, count)
        astray = np.flatnonzero(first + at != number)
        for place in astray[:10].tolist():
            wanted = plan.file_ids[first + int(at[place])]
            report.note(
                "misplaced", keys[place].as_py(), f"it is in {plan.file_ids[number]}, and look-ups read {wanted}", 0
            )
        report.wrong += len(astray)


def _split_by_owner(portion: Portion, plan: GroupPlan) -> Iterator[tuple[str | None, pa.Table]]:
    if not plan.by_partition:
        yield None, portion.records
        return
    for path, (first, count) in plan.by_partition.items():
        at = np.flatnonzero((portion.groups >= first) & (portion.groups < first + count))
        if len(at):
            yield path, portion.records.take(from_numpy(at))


def place_records(records: pa.Table, groups: GroupPlan) -> Portion:
    """Put records into the file groups that the hashes of their keys choose."""
    keys = join_chunks(records["key"])
    count = len(groups.file_ids)
    numbers: Groups = find_file_groups(keys, count) if len(keys) else np.empty(0, np.int64)
    return Portion(records, numbers)
