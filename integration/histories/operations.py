"""What happens in a history, as values: what is drawn, done to a table, and replayed on a model."""

from __future__ import annotations

from dataclasses import dataclass

from integration.histories.rules import Row


@dataclass(frozen=True, slots=True)
class Change:
    """A row on its way in, and whether its flag says that it deletes."""

    row: Row
    deletes: bool = False


@dataclass(frozen=True, slots=True)
class Upsert:
    """Rows; of one key there may be several."""

    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Insert:
    """Rows of keys that the table does not have; ``bulk`` for a bulk insert."""

    changes: tuple[Change, ...]
    bulk: bool = False


@dataclass(frozen=True, slots=True)
class Overwrite:
    """Rows in the place of those of their partitions, or of all."""

    changes: tuple[Change, ...]
    table: bool = False


@dataclass(frozen=True, slots=True)
class DeleteKeys:
    """Deletes by bare keys, in whatever partition they are."""

    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DeleteRows:
    """Deletes by rows of (id, part, ts)."""

    rows: tuple[tuple[str, str, int], ...]


@dataclass(frozen=True, slots=True)
class DeleteWhere:
    """Deletes of all rows whose ts is at most this and whose total is even, by a filter."""

    most_ts: int


@dataclass(frozen=True, slots=True)
class DeletePartition:
    """All rows of a partition go."""

    part: str


@dataclass(frozen=True, slots=True)
class Update:
    """The total of rows grows by one: of those whose ts is at least this and whose total is even."""

    least_ts: int


@dataclass(frozen=True, slots=True)
class Merge:
    """Rows whose totals are set where the table has their keys, and which are inserted where not."""

    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Alter:
    """The columns change: "add", "drop" (of the column extra) or "widen" (of total)."""

    what: str


@dataclass(frozen=True, slots=True)
class Plan:
    """A compaction is planned."""

    name: str


@dataclass(frozen=True, slots=True)
class Run:
    """A planned compaction is carried out."""

    name: str


@dataclass(frozen=True, slots=True)
class Unplan:
    """A planned compaction, clustering or log compaction is taken back."""

    name: str


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """A clustering is planned."""

    name: str


@dataclass(frozen=True, slots=True)
class ClusterRun:
    """A planned clustering is carried out."""

    name: str


@dataclass(frozen=True, slots=True)
class FoldPlan:
    """A log compaction is planned."""

    name: str


@dataclass(frozen=True, slots=True)
class FoldRun:
    """A planned log compaction is carried out."""

    name: str


Write = Upsert | Insert | Overwrite | DeleteKeys | DeleteRows | DeleteWhere | DeletePartition | Update | Merge | Alter
Event = Write | Plan | Run | Unplan | ClusterPlan | ClusterRun | FoldPlan | FoldRun
"""What changes a model."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Plan a compaction."""


@dataclass(frozen=True, slots=True)
class RunPlan:
    """Carry out the oldest planned compaction."""


@dataclass(frozen=True, slots=True)
class Compact:
    """Plan a compaction and carry it out."""


@dataclass(frozen=True, slots=True)
class ScheduleClustering:
    """Plan a clustering."""


@dataclass(frozen=True, slots=True)
class RunClustering:
    """Carry out the oldest planned clustering."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """Plan a clustering and carry it out."""


@dataclass(frozen=True, slots=True)
class LogCompact:
    """Plan a log compaction and carry it out."""


@dataclass(frozen=True, slots=True)
class Archive:
    """Move old instants to the archive; so many commits stay."""

    keep: int


@dataclass(frozen=True, slots=True)
class Savepoint:
    """Keep the newest commit; where one is kept, let that go."""


@dataclass(frozen=True, slots=True)
class Restore:
    """Go back to the savepoint."""


@dataclass(frozen=True, slots=True)
class Index:
    """Build an index, or drop it where it is there."""

    name: str


@dataclass(frozen=True, slots=True)
class Clean:
    """Remove old file slices: keep those of so many commits, or so many versions of each file group."""

    retain: int
    by_versions: bool = False


@dataclass(frozen=True, slots=True)
class Rollback:
    """Take back the oldest instant that is pending: a write that failed, or a compaction."""


@dataclass(frozen=True, slots=True)
class During:
    """A write, and what begins and ends while it is at work."""

    write: Upsert | DeleteKeys | DeleteRows | DeleteWhere
    other: Upsert | DeleteKeys | Overwrite | Schedule | RunPlan | Compact


Operation = (
    Write
    | Schedule
    | RunPlan
    | Compact
    | ScheduleClustering
    | RunClustering
    | Cluster
    | LogCompact
    | Archive
    | Savepoint
    | Restore
    | Index
    | Clean
    | Rollback
    | During
)
"""What is done to a table."""
