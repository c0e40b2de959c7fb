"""Build partitions of the metadata table from the table as it is (Hudi
``HoodieBackedTableMetadataWriter.initializeFromFilesystem``, ``HoodieTableConfig.setMetadataPartitionState``).

The table's lock is held all the time, so no commit falls in between. The order of the steps makes a killed build
harmless:

1. ``hoodie.table.metadata.partitions.inflight`` names the partition. Readers do not use it. Writers do not update it.
2. What an earlier build left is removed. The partition's files and its delta commit are written.
3. The definition of the index is written.
4. ``hoodie.table.metadata.partitions`` names the partition, and ``...inflight`` does not.

The next build, this package's or Java's, begins a partition that is only inflight anew. ``rebuild_partitions`` builds
partitions anew after the table's files have changed under the metadata table (Hudi
``HoodieTableMetadataUtil.deleteMetadataTable``, then ``initializeIfNeeded``).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hoodie_py.errors import (
    CommitStateUnknownError,
    FileMissingError,
    HoodieError,
    InvalidQueryError,
    InvalidTableError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from hoodie_py.files import TableFiles
from hoodie_py.formats.avro.data_blocks import AvroSchema
from hoodie_py.formats.config.table_config import METADATA_PARTITIONS, METADATA_PARTITIONS_INFLIGHT, TableConfig
from hoodie_py.formats.indexes import definitions as names
from hoodie_py.formats.indexes.definitions import IndexDefinition
from hoodie_py.formats.indexes.keys import make_group_id
from hoodie_py.formats.indexes.own_instants import creates_partition
from hoodie_py.formats.indexes.record_schema import make_record_schema
from hoodie_py.formats.timeline.instants import DELTA_COMMIT
from hoodie_py.formats.timeline.timeline import Timeline
from hoodie_py.options import indexes as options_of_indexes
from hoodie_py.reader.memory.budget import MemoryBudget
from hoodie_py.reader.memory.grouped import GroupedRows, divide, keep_last
from hoodie_py.reader.read_info import ReadOptions
from hoodie_py.runtime.wording import Sentence, format_count
from hoodie_py.table.indexes.view import read_definitions
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.timeline.loader import load_config, load_timeline
from hoodie_py.writer.handles.markers import Markers, remove_finished
from hoodie_py.writer.index_jobs.requests import check_nothing_pending, check_possible, check_same_table
from hoodie_py.writer.indexes.commit import InitialCommit, choose_instant, create_metadata_table, encode_entries
from hoodie_py.writer.indexes.index import GroupPlan
from hoodie_py.writer.indexes.metadata_table import write_definition
from hoodie_py.writer.indexes.partition_files import PartitionFiles
from hoodie_py.writer.indexes.registry import FIXED, get_index
from hoodie_py.writer.indexes.table_source import IndexSource
from hoodie_py.writer.indexes.undo import METADATA_TABLE
from hoodie_py.writer.lock.lock import HeldLock
from hoodie_py.writer.rollback.recovery import undo_failed_writes
from hoodie_py.writer.timeline.folder_tree import remove_tree
from hoodie_py.writer.timeline.session import WriteSession, find_newest_time
from hoodie_py.writer.timeline.table_properties import change_properties
from hoodie_py.writer.timeline.timeline_writer import TimelineWriter


class PartitionState:
    """The two lists of partitions in the table's properties, as they were when ``config`` was loaded.

    The caller holds the table's lock.
    """

    def __init__(self, files: TableFiles, config: TableConfig) -> None:
        self._files = files
        self._complete = frozenset(config.metadata_partitions)
        self._inflight = frozenset(config.metadata_partitions_inflight)

    def begin(self, partition: str) -> None:
        """Note that a partition is being built."""
        self._write(self._complete, self._inflight | {partition})

    def finish(self, partition: str) -> None:
        """Note that a partition is complete."""
        self._write(self._complete | {partition}, self._inflight - {partition})

    def give_up(self, partition: str) -> None:
        """Note that a partition is not being built."""
        self._write(self._complete, self._inflight - {partition})

    def drop(self, partitions: Collection[str]) -> None:
        """Note that partitions are gone."""
        self._write(self._complete.difference(partitions), self._inflight.difference(partitions))

    def _write(self, complete: AbstractSet[str], inflight: AbstractSet[str]) -> None:
        texts = {
            METADATA_PARTITIONS: ",".join(sorted(complete)),
            METADATA_PARTITIONS_INFLIGHT: ",".join(sorted(inflight)),
        }
        change_properties(self._files, texts)
        self._complete, self._inflight = frozenset(complete), frozenset(inflight)


OnRecords = Callable[[str, int], None]
"""Takes the partition, and its number of records so far."""


@dataclass(frozen=True, slots=True)
class BuiltIndex(Sentence):
    """A partition that was built."""

    name: str
    instant: str  # on the metadata table's timeline
    groups: int
    records: int
    bytes: int
    seconds: float

    def __str__(self) -> str:
        records, groups = format_count(self.records, "record"), format_count(self.groups, "file group")
        return f"Built {self.name} with {records} in {groups}, {self.bytes / 1e6:,.1f} MB, in {self.seconds:.1f} s."


def build_index(
    session: WriteSession,
    look: Snapshot,
    partition: str,
    definition: IndexDefinition | None,
    on_records: OnRecords | None = None,
) -> list[BuiltIndex]:
    """Build a partition, and ``files`` before it if the table has no metadata table; return what was built.

    ``look`` is the table that the definition was made for.

    Raises:
        InvalidQueryError: the index exists, lacks what it needs, or an option is bad.
        UnsupportedFeatureError: the table's version has no such index, or the table cannot be written here.
        ConflictError: another writer holds the lock or is at work.
        InvalidTableError: the metadata table is broken.
        CommitStateUnknownError: the store did not say whether a file was written.
        StorageError: the store refused; readers see nothing of the build.
    """
    get_index(partition)  # an index that cannot be built here is refused before anything is written
    undo_failed_writes(session)
    with session.hold_lock() as holding:
        snapshot = session.look()
        check_nothing_pending(snapshot)
        check_same_table(look, snapshot)
        check_possible(snapshot, partition, definition)
        built: list[BuiltIndex] = []
        if names.FILES_PARTITION not in snapshot.config.metadata_partitions:
            built.append(build_partition(session, snapshot, names.FILES_PARTITION, None, holding, on_records))
            snapshot = session.look()
        if partition != names.FILES_PARTITION:
            built.append(build_partition(session, snapshot, partition, definition, holding, on_records))
        return built


def build_partition(
    session: WriteSession,
    snapshot: Snapshot,
    partition: str,
    definition: IndexDefinition | None,
    holding: HeldLock,
    on_records: OnRecords | None = None,
    *,
    stays_noted: bool = False,
) -> BuiltIndex:
    """Build one partition under the table's lock; ``files`` begins a new metadata table.

    ``stays_noted``: if the build fails, the properties keep naming the partition as one to build. Errors as
    ``build_index``.
    """
    build = _Build(session, snapshot, partition, definition, holding, on_records)
    build.stays_noted = stays_noted
    return build.run()


class _Build:
    """The build of one partition."""

    stays_noted = False

    def __init__(
        self,
        session: WriteSession,
        snapshot: Snapshot,
        partition: str,
        definition: IndexDefinition | None,
        holding: HeldLock,
        on_records: OnRecords | None,
    ) -> None:
        self._session = session
        self._snapshot = snapshot
        self._partition = partition
        self._index = get_index(partition)
        self._definition = definition
        self._holding = holding
        self._on_records = on_records
        self._options = session.settings.options
        self._files: TableFiles = session.files.sub(METADATA_TABLE)
        self._state = PartitionState(session.files, snapshot.config)

    def run(self) -> BuiltIndex:
        """Build the partition."""
        began = time.monotonic()
        config = self._open_metadata_table()
        timeline = remove_leftovers(self._files, config)
        self._holding.ensure_held()
        self._state.begin(self._partition)  # before the files, so that a killed build is known to be unfinished
        with self._undo_on_failure():
            remove_tree(self._files, self._partition)
            instant = choose_instant(self._snapshot.timeline, timeline, config.timeline_layout)
            schema = make_record_schema() if self._is_first else self._read_schema(config)
            commit = InitialCommit(self._files, config, instant, self._partition, schema)
            with self._collect(AvroSchema.parse(schema)) as (records, groups):
                self._holding.ensure_held()
                commit.begin()
                for number, file_id in enumerate(groups.file_ids):
                    commit.create_group(file_id)
                    commit.write_base_file(file_id, number, keep_last(records.sort(number), _ORDER))
                self._holding.ensure_held()
            beyond = max(find_newest_time(timeline), find_newest_time(self._snapshot.timeline))
            commit.complete(self._session.clock.take(beyond))
            if self._definition is not None:  # before the partition counts, as readers need its definition
                write_definition(self._session.files, self._snapshot.config, self._definition)
            self._holding.ensure_held()
        self._state.finish(self._partition)  # not undone: if its answer is lost, the partition may be in use
        seconds = time.monotonic() - began
        return BuiltIndex(self._partition, instant, len(groups.file_ids), commit.records, commit.bytes, seconds)

    @property
    def _is_first(self) -> bool:
        return self._partition == names.FILES_PARTITION

    def _open_metadata_table(self) -> TableConfig:
        """Return the properties of the metadata table; create a new one if ``files`` is to be built."""
        if self._is_first:
            remove_tree(self._session.files, METADATA_TABLE)  # readers do not look there: no partition is complete
            return create_metadata_table(self._files, self._snapshot.config)
        try:
            return load_config(self._files)
        except (TableNotFoundError, FileMissingError) as error:
            raise InvalidTableError(
                "The table's properties name a metadata table, and its files are not there.",
                hint="Drop the index files, then build it.",
            ) from error

    def _read_schema(self, config: TableConfig) -> str:
        """Return the schema of the existing records."""
        found = PartitionFiles(self._files, config, names.FILES_PARTITION).read_schema()
        if found is None:
            raise InvalidTableError(
                "No file of the metadata table has a schema.", path=f"{self._files.uri}/{names.FILES_PARTITION}"
            )
        return found

    @contextmanager
    def _collect(self, schema: AvroSchema) -> Iterator[tuple[GroupedRows[int], GroupPlan]]:
        """Collect the records, sorted. If there are more than the file groups were planned for, collect them again."""
        own = self._session.find_own_merger(self._snapshot.config)
        source = IndexSource(self._snapshot, self._definition, self._options, own)
        budget = MemoryBudget.from_options(ReadOptions(options=self._options))
        plan = self._plan_groups(source, {})
        while True:
            with GroupedRows[int](budget, order=_ORDER) as records:
                done = 0
                for portion in self._index.portions(source, plan):
                    keys, values = encode_entries(portion.records, schema)
                    entries = pa.RecordBatch.from_arrays([keys.cast(pa.large_binary()), values], [*_ORDER, "value"])
                    for number, some in divide(entries, portion.groups):
                        records.add(number, some)
                    done += len(keys)
                    if self._on_records is not None:
                        self._on_records(self._partition, done)
                right = self._plan_groups(source, records.counts, plan)
                if right == plan:
                    yield records, plan
                    return
                plan = right

    def _plan_groups(
        self, source: IndexSource, counts: Mapping[int, int], before: GroupPlan | None = None
    ) -> GroupPlan:
        """Plan the file groups. ``counts``: the number of records in each file group of the plan ``before``."""
        fixed = self._index.count_groups(self._options)
        if fixed is not None:
            return GroupPlan(self._index.make_group_ids(fixed), {})
        if self._definition is None or not self._definition.is_partitioned:
            number = _estimate_groups(sum(counts.values()), self._options, partitioned=False)
            return GroupPlan(self._index.make_group_ids(number), {})
        file_ids: list[str] = []
        places: dict[str, tuple[int, int]] = {}
        for path in sorted({each.partition_path for each in source.slices}):
            first, many = (0, 0) if before is None else before.by_partition[path]
            some = sum(counts.get(number, 0) for number in range(first, first + many))
            number = _estimate_groups(some, self._options, partitioned=True)
            places[path] = (len(file_ids), number)
            file_ids += [make_group_id(each, path) for each in range(number)]
        return GroupPlan(tuple(file_ids), places)

    @contextmanager
    def _undo_on_failure(self) -> Iterator[None]:
        """Remove what a failed build wrote. Whatever cannot be removed, the next build removes.

        If the store did not say whether it wrote a file, nothing is removed: the file may appear later.
        """
        try:
            yield
        except CommitStateUnknownError:
            raise
        except (Exception, KeyboardInterrupt):
            with suppress(HoodieError):
                self._holding.ensure_held()
                remove_leftovers(self._files, load_config(self._files))
                remove_tree(self._files, self._partition)
                if not self.stays_noted:
                    self._state.give_up(self._partition)
            raise


_RECORD_BYTES = 48  # Java's estimate for one record of a record index


def _estimate_groups(records: int, options: Mapping[str, str], *, partitioned: bool) -> int:
    """Return the number of file groups for ``records`` record keys (Hudi
    ``HoodieTableMetadataUtil.estimateFileGroupCount``).

    The number never changes later, as it decides which group contains a key. So the groups should stay below a size
    limit even after the table has grown by a factor. ``partitioned``: the keys are of one partition of the table.

    Raises InvalidQueryError if an option is bad.
    """
    least = (
        options_of_indexes.PARTITIONED_LEAST_GROUPS if partitioned else options_of_indexes.RECORD_LEAST_GROUPS
    ).read(options)
    most = (options_of_indexes.PARTITIONED_MOST_GROUPS if partitioned else options_of_indexes.RECORD_MOST_GROUPS).read(
        options
    )
    if least > most:
        raise InvalidQueryError(f"A record index cannot have at least {least} and at most {most} file groups.")
    if least == most:
        return most
    # In single precision, as in Java: the number must be the same.
    expected = math.ceil(float(np.float32(records) * np.float32(options_of_indexes.RECORD_GROWTH.read(options))))
    wanted = expected // (options_of_indexes.RECORD_GROUP_BYTES.read(options) // _RECORD_BYTES)
    return max(1, min(max(wanted, least), most))


def remove_leftovers(files: TableFiles, config: TableConfig) -> Timeline:
    """Remove the pending commits of killed builds from the metadata table's timeline, and return the timeline.

    Markers are removed, too, also of builds that were killed right after their commit. The commits' files are in
    partitions that no reader uses. The caller holds the table's lock.
    """
    timeline = load_timeline(files, config)
    pending = timeline.select_pending().select_actions(DELTA_COMMIT)
    left = [each for each in pending if creates_partition(each.request_time)]
    for instant in left:
        Markers(files, instant.request_time).remove_all()
        TimelineWriter(files, config).remove_pending(instant)
    remove_finished(files, timeline)
    return load_timeline(files, config) if left else timeline


_ORDER = ("key",)  # HFiles are sorted by the keys' bytes


def check_rebuildable(snapshot: Snapshot) -> None:
    """Refuse a table with a partition of the metadata table that cannot be built here.

    Raises:
        UnsupportedFeatureError: names the partition.
    """
    for name in (*snapshot.config.metadata_partitions, *snapshot.config.metadata_partitions_inflight):
        try:
            get_index(name)
        except UnsupportedFeatureError as error:
            raise UnsupportedFeatureError(
                f"Building the index {name!r} anew: {error.message}", hint="Drop that index first."
            ) from error


def rebuild_partitions(session: WriteSession, partitions: Sequence[str], holding: HeldLock) -> tuple[str, ...]:
    """Build partitions from the table's files, in the order of their dependencies. The caller holds the lock.

    The properties name the partitions as inflight ones until each is complete, so that a killed run forgets none.

    Raises:
        HoodieError: as ``build_index``.
    """
    left = sorted(partitions, key=lambda name: (FIXED.index(name) if name in FIXED else len(FIXED), name))
    for name in left:
        snapshot = session.look()
        definition = read_definitions(session.files, snapshot.config).get(name)
        build_partition(session, snapshot, name, definition, holding, stays_noted=True)
    return tuple(left)
