"""Compact the metadata table: merge the log files of each file group into a new base file (Hudi
``HoodieBackedTableMetadataWriter.compactIfNecessary``, ``HoodieCompactor``).

All file groups with log files are compacted together, as the table's archival treats a compaction as a barrier. A base
file is an HFile of the merged records, which contain the file's name in ``_hoodie_file_name``, and "" as ``key``. The
plan is saved first.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow as pa

from hoodie_py.errors import InvalidTableError
from hoodie_py.formats.avro.data_blocks import AvroSchema
from hoodie_py.formats.indexes.definitions import FILES_PARTITION
from hoodie_py.formats.indexes.own_instants import creates_partition
from hoodie_py.formats.names import FILE_NAME_FIELD, MarkerType, make_base_file_name
from hoodie_py.formats.timeline.commit_metadata import NO_COMMIT, SCHEMA_KEY, CommitMetadata, WriteStat
from hoodie_py.formats.timeline.instants import COMPACTION, DELTA_COMMIT, INFLIGHT, REQUESTED, Instant
from hoodie_py.formats.timeline.plans import CompactionOperation, CompactionPlan
from hoodie_py.formats.timeline.writers import write_commit_metadata, write_compaction_plan
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.table.indexes.view import MetadataView
from hoodie_py.writer.handles.markers import Marker, Markers
from hoodie_py.writer.indexes.commit import drop_meta_columns, encode_entries, make_hfile
from hoodie_py.writer.indexes.partition_files import PartitionFiles, list_partition_folders
from hoodie_py.writer.indexes.undo import METADATA_TABLE
from hoodie_py.writer.services.compaction_plan import make_operation
from hoodie_py.writer.timeline.session import PLAN_ID, WriteSession, find_newest_time
from hoodie_py.writer.timeline.timeline_writer import TimelineWriter

_OPERATION = "COMPACT"
_EXPECTED_BYTES = 120 << 20  # Java's guess for the first base file of a file group
_MOST_BYTES = 1 << 30  # for one file group, whose records are in memory while they merge


class MetadataCompaction:
    """A compaction of the metadata table that a view shows. The caller holds the lock of the table around it."""

    def __init__(self, session: WriteSession, view: MetadataView) -> None:
        self._session = session
        self._view = view
        self._files = session.files.sub(METADATA_TABLE)
        self._timeline = TimelineWriter(self._files, view.config)

    def schedule(self, instant: str, ensure_held: Callable[[], None]) -> Instant | None:
        """Save the plan, and return the requested instant. Return None if there is nothing to do, or a file group is
        too large for a compaction in memory.

        Raises:
            ConflictError: another writer has planned one.
            CommitStateUnknownError: the store did not say whether the plan was saved.
        """
        if self._view.timeline.find(instant) is not None:
            return None
        slices = [each for name in list_partition_folders(self._files) for each in self._view.list_groups(name)]
        operations = [make_operation(each, _EXPECTED_BYTES) for each in slices if each.log_files]
        if not operations or any(_count_bytes(each) > _MOST_BYTES for each in slices):
            return None
        plan = CompactionPlan(operations=tuple(operations), extra_metadata={PLAN_ID: secrets.token_hex(16)})
        ensure_held()
        return self._timeline.request(instant, COMPACTION, write_compaction_plan(plan))

    def run(self, pending: Instant, ensure_held: Callable[[], None]) -> None:
        """Write the base files of a planned compaction, and complete it.

        Raises:
            HoodieError: a file is missing or damaged, or the store refused. The compaction stays pending; the next
                writer begins it anew, and readers see nothing of it.
        """
        plan = self._view.timeline.read_compaction_plan(pending)
        operations = [each for each in plan.operations if not self._is_dropped(each, pending)]
        schema = PartitionFiles(self._files, self._view.config, FILES_PARTITION).read_schema()
        if schema is None:
            raise InvalidTableError("No file of the metadata table has a schema.", path=FILES_PARTITION)
        ensure_held()
        inflight = pending if pending.state == INFLIGHT else self._timeline.begin(replace(pending, state=REQUESTED))
        # A run that was cut short begins anew: two base files of one instant in a file group would be ambiguous.
        self._remove_attempt(operations, pending.request_time)
        stats: dict[str, tuple[WriteStat, ...]] = {}
        for operation in operations:
            stat = self._compact(operation, pending.request_time, AvroSchema.parse(schema))
            stats[stat.partition_path] = (*stats.get(stat.partition_path, ()), stat)
        metadata = CommitMetadata(
            operation_type=_OPERATION,
            extra_metadata={SCHEMA_KEY: drop_meta_columns(schema)},
            compacted=True,
            write_stats=stats,
        )
        content = write_commit_metadata(metadata, self._view.config.timeline_layout)
        completion_time = self._session.clock.take(find_newest_time(self._view.timeline))
        ensure_held()
        self._timeline.complete(inflight, completion_time, content)
        Markers(self._files, pending.request_time).remove_all()

    def _is_dropped(self, operation: CompactionOperation, pending: Instant) -> bool:
        """Whether a partition was dropped since the plan, and maybe created again with new files."""
        # The plan itself stays, as up to table version 6 log files of the other partitions are named after it.
        partition = operation.partition_path
        if partition == FILES_PARTITION:
            return False
        if partition not in (*self._view.partitions, *self._view.partitions_inflight):
            return True
        groups = self._view.list_file_groups(partition)
        there = {log.name.name for each in groups for log in each.log_files}
        there |= {base.name for each in groups for base in each.base_files}
        if not there.isdisjoint({operation.data_file, *operation.delta_files}):
            return False
        times = {log.name.instant for each in groups for log in each.log_files if creates_partition(log.name.instant)}
        creations = (self._view.timeline.find(each, DELTA_COMMIT) for each in times)
        return any(
            each is not None and (each.completion_time or each.request_time) > pending.request_time
            for each in creations
        )

    def _remove_attempt(self, operations: Sequence[CompactionOperation], instant: str) -> None:
        """Remove base files that an earlier attempt left."""
        for partition in sorted({each.partition_path for each in operations}):
            place = PartitionFiles(self._files, self._view.config, partition)
            for path in place.list_base_files_of(instant):
                self._files.delete_with_checksum(path)
        Markers(self._files, instant).remove_all()

    def _compact(self, operation: CompactionOperation, instant: str, schema: AvroSchema) -> WriteStat:
        file_slice = self._find_slice(operation)
        batches = list(self._view.read_all(operation.partition_path, groups=[file_slice]))
        rows = pa.Table.from_batches(batches, None if batches else self._view.schema)
        name = make_base_file_name(operation.file_id, f"0-0-{secrets.randbits(31)}", instant, ".hfile")
        if FILE_NAME_FIELD in schema.arrow.names:
            rows = rows.append_column(FILE_NAME_FIELD, pa.repeat(name, rows.num_rows))
        keys, values = encode_entries(rows, schema)
        content = make_hfile(keys, values, schema.text)
        marker = Marker(operation.partition_path, name, MarkerType.CREATE)
        Markers(self._files, instant).announce(marker)
        self._files.put_if_absent(marker.path, content, unique=True)
        base = file_slice.base_file
        return WriteStat(
            file_id=operation.file_id,
            path=marker.path,
            prev_commit=NO_COMMIT if base is None else base.instant,
            num_writes=rows.num_rows,
            num_inserts=rows.num_rows if base is None else 0,
            total_write_bytes=len(content),
            partition_path=operation.partition_path,
            file_size_in_bytes=len(content),
            prev_base_file=None if base is None else base.name,
            total_log_files_compacted=len(file_slice.log_files),
            total_log_size_compacted=sum(log.size for log in file_slice.log_files),
        )

    def _find_slice(self, operation: CompactionOperation) -> FileSlice:
        """Return the slice with the files that the plan names.

        Raises:
            InvalidTableError: a file is missing.
        """
        groups = self._view.list_groups(operation.partition_path)
        found = next((each for each in groups if each.file_id == operation.file_id), None)
        logs = () if found is None else tuple(log for log in found.log_files if log.name.name in operation.delta_files)
        base = None if found is None or found.base_file is None else found.base_file.name
        if found is None or len(logs) != len(operation.delta_files) or base != operation.data_file:
            raise InvalidTableError(
                "A pending compaction of the metadata table names files that are not there.",
                hint="Let Java Hudi finish it, or switch the metadata table off.",
                file_group=operation.file_id,
                partition=operation.partition_path,
            )
        return replace(found, log_files=logs)


def _count_bytes(file_slice: FileSlice) -> int:
    base = 0 if file_slice.base_file is None else file_slice.base_file.size
    return base + sum(log.size for log in file_slice.log_files)
