"""The result of a write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hoodie_py.runtime.wording import Sentence, format_count
from hoodie_py.writer.schema_changes import SchemaChange, describe_changes

if TYPE_CHECKING:  # the results of what few writes run
    from hoodie_py.formats.timeline.commit_metadata import WriteStat
    from hoodie_py.metastore.report import SyncResult
    from hoodie_py.writer.archival.archive import ArchiveResult
    from hoodie_py.writer.clustering.report import ClusteringResult
    from hoodie_py.writer.handles.data_file import TaskResult
    from hoodie_py.writer.records import WriteOperation
    from hoodie_py.writer.services.clean import CleanResult
    from hoodie_py.writer.services.compaction_report import CompactionResult


@dataclass(frozen=True, slots=True)
class WriteResult(Sentence):
    """A committed write.

    Attributes:
        operation: the operation.
        instant, completion_time: request and completion time of the commit; None if there was nothing to write, so
            that nothing was committed.
        file_groups: number of file groups that got a new file.
        groups_replaced: number of file groups that are no longer part of the table.
        rows_inserted, rows_updated, rows_deleted: rows that changed in base files, and rows that went to log files, as
            in the commit's metadata (Hudi ``HoodieWriteStat``). A record that loses against the base file's row does
            not count, nor does a delete of a key that the table lacks.
        rows_in_logs: how many of these rows are in log files. Whether they change a row is decided when rows are read,
            by ordering value or merger, and the row of a delete may be gone already.
        bytes_written: bytes of new files.
        seconds: wall-clock time.
        scheduled: request time of the compaction that was planned afterwards.
        compaction: result of an inline compaction.
        clustering: result of an inline clustering.
        clean: result of an inline clean.
        archive: result of an inline archival; None if nothing was due.
        synced: what was changed in the catalogs that the options name.
        schema_changes: what the rows changed in the table's schema; empty for nearly all writes.

    Examples:
        >>> result = trips.upsert(
        ...     [{"id": "a", "city": "sf", "price": 14.0, "ts": 3}, {"id": "d", "city": "sf", "ts": 3}]
        ... )
        >>> result.rows_inserted, result.rows_updated, result.rows_in_logs
        (1, 1, 1)
        >>> print(result)
        Upsert ... wrote 2 file groups in ... s: 1 rows inserted, 1 updated, 0 deleted; ... bytes. 1 of these are ...
    """

    operation: WriteOperation
    instant: str | None = None
    completion_time: str | None = None
    file_groups: int = 0
    groups_replaced: int = 0
    rows_inserted: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0
    rows_in_logs: int = 0
    bytes_written: int = 0
    seconds: float = 0.0
    scheduled: str | None = None
    compaction: CompactionResult | None = None
    clustering: ClusteringResult | None = None
    clean: CleanResult | None = None
    archive: ArchiveResult | None = None
    synced: tuple[SyncResult, ...] = ()
    schema_changes: tuple[SchemaChange, ...] = ()

    @classmethod
    def of(
        cls,
        operation: WriteOperation,
        instant: str,
        completion_time: str,
        results: Sequence[TaskResult],
        *,
        replaced: int,
        seconds: float,
    ) -> WriteResult:
        """Sum up the results of all tasks."""
        return cls(
            operation=operation,
            instant=instant,
            completion_time=completion_time,
            file_groups=len(results),
            groups_replaced=replaced,
            rows_inserted=sum(each.stat.num_inserts for each in results),
            rows_updated=sum(each.stat.num_update_writes for each in results),
            rows_deleted=sum(each.stat.num_deletes for each in results),
            rows_in_logs=sum(_count_in_logs(each.stat) for each in results),
            bytes_written=sum(size for each in results for size in each.sizes.values()),
            seconds=seconds,
        )

    def __str__(self) -> str:
        name = self.operation.value.replace("_", " ").capitalize()
        if self.instant is None:
            return f"{name}: there was nothing to write."
        replaced = f" Replaced: {format_count(self.groups_replaced, 'file group')}." if self.groups_replaced else ""
        logs = f" {self.rows_in_logs:,} of these are in log files, which reading merges." if self.rows_in_logs else ""
        changed = f" The table's schema: {describe_changes(self.schema_changes)}." if self.schema_changes else ""
        return (
            f"{name} {self.instant} wrote {format_count(self.file_groups, 'file group')} in {self.seconds:.1f} s: "
            f"{self.rows_inserted:,} rows inserted, {self.rows_updated:,} updated, {self.rows_deleted:,} deleted; "
            f"{self.bytes_written:,} bytes.{replaced}{logs}{changed}"
        )


def _count_in_logs(stat: WriteStat) -> int:
    return stat.num_inserts + stat.num_update_writes + stat.num_deletes if stat.log_files else 0
