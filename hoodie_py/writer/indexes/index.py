"""The change one instant makes, and the metadata records derived from it (Hudi ``HoodieTableMetadataWriter.update``).

Each partition of the metadata table has a maker (``registry``), which turns the change into records. Makers read data
in ``prepare``, before the table's lock is taken where possible, so that the lock is held briefly. A build makes records
portion by portion, for the file groups of a plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie_py.formats.timeline.commit_metadata import WriteStat
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.view.visibility import GroupKey
from hoodie_py.writer.handles.data_file import TaskResult
from hoodie_py.writer.indexes.kept_indexes import KeptIndexes
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
        kept: the indexes that ``prepared`` is for.
        prepared: the result of each maker's ``prepare``, by name of the partition.
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
    prepared: Mapping[str, object] = field(default_factory=dict)


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
