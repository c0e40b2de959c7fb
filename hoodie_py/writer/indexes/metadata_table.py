"""Keep the metadata table right, or switch it off, when files of the table change (Hudi
``HoodieBackedTableMetadataWriter``).

Java lists files through the metadata table if a table has one. A commit that is missing there is invisible, and its
files are lost at the next compaction. Right before a commit, under the table's lock, the mode decides:

* **auto**: write one delta commit of the same instant to the metadata table, with the records of all its partitions. A
  table with anything that cannot be kept right is refused.
* **disable**: remove the metadata table. Java rebuilds it from the file system.
* **refuse**: refuse the table.

The order, metadata table before commit, is Java's. Readers ignore entries of an instant that has not completed, and
undoing an instant includes undoing its entries (``undo``). The definitions of indexes are in
``.hoodie/.index_defs/index.json`` (Hudi ``HoodieTableMetaClient.buildIndexDefinition``). All writes here need the
table's lock.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from hoodie_py.errors import (
    ConflictError,
    CorruptFileError,
    FileMissingError,
    InvalidTableError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from hoodie_py.files import TableFiles
from hoodie_py.formats.config.table_config import (
    INDEX_DEFINITIONS_PATH,
    METADATA_PARTITIONS,
    METADATA_PARTITIONS_INFLIGHT,
    TableConfig,
)
from hoodie_py.formats.indexes.definitions import (
    FILES_PARTITION,
    INDEX_DEFINITIONS_FILE,
    IndexDefinition,
    IndexDefinitions,
    find_definitions_path,
)
from hoodie_py.formats.timeline.instants import INDEXING, INFLIGHT, Instant
from hoodie_py.options.write import METADATA_MODE
from hoodie_py.table.indexes.soundness import make_lost_groups
from hoodie_py.table.indexes.source import open_metadata_view
from hoodie_py.table.indexes.view import MetadataView, read_definitions
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.timeline.loader import TableTimeline, load_config
from hoodie_py.writer.handles.markers import remove_finished
from hoodie_py.writer.indexes.commit import DeltaCommit
from hoodie_py.writer.indexes.expressions import find_expression_problem
from hoodie_py.writer.indexes.index import Index, MetadataCommit, PartitionRecords
from hoodie_py.writer.indexes.kept_indexes import KeptIndexes, list_kept_partitions, list_planned_partitions
from hoodie_py.writer.indexes.partition_files import PartitionFiles
from hoodie_py.writer.indexes.registry import find_index, prepare_indexes
from hoodie_py.writer.indexes.undo import METADATA_TABLE
from hoodie_py.writer.settings import MetadataMode
from hoodie_py.writer.timeline.folder_tree import remove_tree
from hoodie_py.writer.timeline.session import WriteSession, find_newest_time
from hoodie_py.writer.timeline.table_properties import change_properties


def write_definition(files: TableFiles, config: TableConfig, definition: IndexDefinition) -> None:
    """Add a definition to the file, or replace it there. The table's properties get the file's path.

    Raises:
        CorruptFileError: the file is damaged.
        StorageError: the store refused.
    """
    write_definitions(files, config, read_definitions(files, config).put(definition))


def write_definitions(files: TableFiles, config: TableConfig, definitions: IndexDefinitions) -> None:
    """Write the file, and set its path in the table's properties."""
    path = find_definitions_path(config)
    place = path or INDEX_DEFINITIONS_FILE
    if files.is_local:
        folder, _, name = place.rpartition("/")
        files.delete(f"{folder}/.{name}.crc")  # Hadoop's checksum of the old file, which would not match the new one
    files.put(place, definitions.to_bytes())
    if path is None:
        change_properties(files, {INDEX_DEFINITIONS_PATH: place})


_LOST = "the table's properties name it, and its files are not there"

PendingCompaction = tuple[str, frozenset[str]] | None
"""Request time of the metadata table's pending compaction, and the file ids that it compacts; None without one."""


class MetadataTable:
    """The metadata table of a table, before a commit. Construct it under the lock.

    Raises:
        UnsupportedFeatureError: the metadata table cannot be kept right, or the mode is "refuse".
    """

    def __init__(self, session: WriteSession, snapshot: Snapshot) -> None:
        self._session = session
        self._snapshot = snapshot
        self._mode = session.settings.metadata_mode
        self._files = session.files.sub(METADATA_TABLE)
        self._own: list[str] = []
        self.check(snapshot, self._mode)

    @staticmethod
    def check(snapshot: Snapshot, mode: MetadataMode) -> None:
        """Refuse a table whose metadata table cannot be kept right in a mode.

        Raises:
            UnsupportedFeatureError: explains why.
        """
        names = list_kept_partitions(snapshot)
        if not names:
            return
        problem, hint = _find_problem(snapshot, mode)
        if problem is not None:
            raise UnsupportedFeatureError(
                f"Writing to a table with a metadata table: {problem}.",
                hint=hint,
                table=snapshot.config.name,
                partitions=", ".join(names),
            )

    @staticmethod
    def prepare(commit: MetadataCommit) -> MetadataCommit:
        """Read, before the lock, as much as possible of what the commit's records need; errors as ``Index.prepare``."""
        if commit.session.settings.metadata_mode == "disable":
            return commit
        kept = KeptIndexes.read(commit.snapshot)
        return prepare_indexes(replace(commit, kept=kept), kept.partitions)

    def bring_up_to_date(self, commit: MetadataCommit) -> MetadataCommit:
        """Prepare the commit for the partitions built or changed since ``prepare``; errors as ``Index.prepare``."""
        if self._mode == "disable":
            return commit
        # A partition that was not prepared would get no records of the commit, and its index would lack them for ever:
        # an indexer relies on commits beside it to write their own records.
        kept = KeptIndexes.read(self._snapshot)
        changed = kept.list_changed(commit.kept)
        if not changed:
            return commit
        found = replace(commit, snapshot=commit.snapshot.take_over(self._snapshot), kept=kept)
        return prepare_indexes(found, changed)

    @property
    def is_kept(self) -> bool:
        """Whether the table has indexes, so that commits write to the metadata table."""
        return bool(list_kept_partitions(self._snapshot))

    def commit(self, commit: MetadataCommit, check: Callable[[], object] | None = None) -> None:
        """Write an instant's change to the metadata table, if it ``is_kept``. The instant must complete right after.

        ``check`` is called before the completed file; it raises if the run has lost the lock or its heartbeat. Files
        written by then stay, and are removed when the instant is undone.

        Raises:
            ConflictError: the metadata table already has a commit of that instant.
            CommitStateUnknownError: the store did not say whether a file was written.
            StorageError: the store refused.
        """
        if not self.is_kept:
            return
        if self._mode == "disable":
            # Properties first: a reader must not look for a metadata table that is being removed.
            change_properties(self._session.files, {METADATA_PARTITIONS: "", METADATA_PARTITIONS_INFLIGHT: ""})
            remove_tree(self._session.files, METADATA_TABLE)
            return
        self._write(replace(commit, snapshot=self._snapshot), check)

    def _write(self, commit: MetadataCommit, check: Callable[[], object] | None) -> None:
        view = open_metadata_view(self._snapshot)
        if view is None:
            raise InvalidTableError("The metadata table has no complete partition.", path=self._files.uri)
        timeline = view.timeline
        if timeline.find(commit.instant) is not None:
            raise ConflictError("The metadata table has a commit of this instant already.", instant=commit.instant)
        pending = _find_pending_compaction(view.timeline)
        indexes = self._list_indexes(commit)
        every = [each.records(commit, view) for each in indexes]
        made = [each for each in every if not each.is_empty]
        places = {each.partition: self._open_partition_of(view, each, pending) for each in made}
        delta = DeltaCommit(self._files, view.config, commit.instant, self._read_schema(view, places))
        self._own = delta.own
        remove_finished(self._files, timeline)  # markers that killed writers left
        delta.begin()  # before the files: by a pending instant a rollback finds what a killed process left
        delta.write([(records, places[records.partition]) for records in made])
        for each in indexes:
            definition = each.redefine(commit)
            if definition is not None:
                write_definition(self._session.files, self._snapshot.config, definition)
        beyond = max(find_newest_time(timeline), find_newest_time(self._snapshot.timeline))
        completion_time = self._session.clock.take(beyond)
        if check is not None:
            check()
        delta.complete(completion_time)

    def _open_partition_of(
        self, view: MetadataView, records: PartitionRecords, pending: PendingCompaction
    ) -> PartitionFiles:
        """Open the partition that gets records. It may lack file groups only if its records name them."""
        place = self._open_partition(view, records.partition, pending)
        if records.groups is None and not place.file_ids:
            raise make_lost_groups(view, records.partition)
        return place

    def _open_partition(self, view: MetadataView, name: str, pending: PendingCompaction = None) -> PartitionFiles:
        return PartitionFiles(self._files, view.config, name, view.list_file_groups(name), pending)

    def _read_schema(self, view: MetadataView, places: Mapping[str, PartitionFiles]) -> str:
        """Return the schema of the newest records of ``files``, which nearly every commit writes."""
        schema = (places.get(FILES_PARTITION) or self._open_partition(view, FILES_PARTITION)).read_schema()
        if schema is None:
            raise InvalidTableError("No file of the metadata table has a schema.", path=FILES_PARTITION)
        return schema

    def _list_indexes(self, commit: MetadataCommit) -> list[Index]:
        """Return the indexes that get records, prepared for the commit if they were there then."""
        found = (commit.indexes.get(name) or find_index(name) for name in list_kept_partitions(self._snapshot))
        return [each for each in found if each is not None]

    def forget_own(self) -> None:
        """Remove the files that ``commit`` wrote, but no files of another run of the same instant."""
        for path in self._own:
            self._files.delete_with_checksum(path)


def _find_problem(snapshot: Snapshot, mode: MetadataMode) -> tuple[str | None, str | None]:
    config = snapshot.config
    disable = f"{METADATA_MODE}=disable switches it off; Java Hudi rebuilds it."
    if mode == "refuse":
        return "it was asked to refuse that", None
    if mode == "disable":
        if not config.has_logs_named_by_commit:
            return f"switching it off is not safe on table version {config.version}", f"Use {METADATA_MODE}=auto."
        return None, None
    building = _find_part_without_groups(snapshot)
    if building is not None:
        return building, (
            "Let Java Hudi finish that; where its build ended in an error, drop the index that `hoodie index TABLE` "
            "shows as unfinished."
        )
    if FILES_PARTITION not in config.metadata_partitions:
        return f"it has no partition {FILES_PARTITION!r}", disable
    unknown = [name for name in config.metadata_partitions if find_index(name) is None]
    if unknown:
        return f"its partition {unknown[0]!r} is not known", disable
    return _find_missing_parts(snapshot) or find_expression_problem(snapshot), disable


def _find_part_without_groups(snapshot: Snapshot) -> str | None:
    """Return a description of what is being built and cannot take records yet, or None.

    A part that is being built gets the records of each commit once it has file groups; the indexer adds the records of
    earlier commits (Hudi ``getMetadataPartitionsToUpdate``, ``AbstractIndexingCatchupTask``). Before that, the indexer
    may already list the part as complete, and it waits for the pending writes. A plan to build a part changes nothing:
    the indexer looks at the table's files later.
    """
    indexing = snapshot.timeline.select_pending().select_actions(INDEXING)
    inflight = snapshot.config.metadata_partitions_inflight if len(indexing) else ()
    named = {*inflight, *snapshot.config.metadata_partitions}
    if any(each.state == INFLIGHT and not _builds_only(snapshot, each, named) for each in indexing):
        return "an index is being built"
    files = snapshot.files.sub(METADATA_TABLE)
    for name in inflight:
        try:
            known = name != FILES_PARTITION and find_index(name) is not None
            if known and PartitionFiles(files, load_config(files), name).file_ids:
                continue
        except (TableNotFoundError, FileMissingError, InvalidTableError):
            pass
        return "a part of it is being built"
    return None


def _builds_only(snapshot: Snapshot, indexing: Instant, names: Collection[str]) -> bool:
    """Whether an indexer's plan names only parts in ``names``."""
    try:
        return list_planned_partitions(snapshot, indexing).issubset(names)
    except (CorruptFileError, FileMissingError):
        return False


def _find_missing_parts(snapshot: Snapshot) -> str | None:
    try:
        view = open_metadata_view(snapshot)
        if view is None or not len(view.timeline.select_writes()):
            return "nothing in it is complete"
        if not view.list_file_groups(FILES_PARTITION):
            return _LOST
        if missing := view.find_missing_partition():
            return f"its partition {missing[:100]!r} has no files"
    except (TableNotFoundError, FileMissingError, InvalidTableError):
        return _LOST
    return None


def _find_pending_compaction(timeline: TableTimeline) -> PendingCompaction:
    last = timeline.select_pending_compactions().last
    if last is None:
        return None
    plan = timeline.read_compaction_plan(last)
    return last.request_time, frozenset(each.file_id for each in plan.operations)
