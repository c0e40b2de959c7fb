"""Keep the metadata table right, or switch it off, when files of the table change (Hudi
``HoodieBackedTableMetadataWriter``).

Java lists files through the metadata table if a table has one. A commit that is missing there is invisible, and its
files are lost at the next compaction. Right before a commit, under the table's lock, the mode decides:

* **auto**: write one delta commit of the same instant to the metadata table, with the new files in its ``files``
  partition. Drop statistics that Java can rebuild and that would be wrong now: the property first, then the folder. Up
  to table version 6 nothing is dropped, as Java there skips its own update while a partition is missing, and its
  readers do not skip files without statistics. A table with anything that cannot be kept right is refused.
* **disable**: remove the metadata table. Java rebuilds it from the file system.
* **refuse**: refuse the table.

The order, metadata table before commit, is Java's. Readers ignore entries of an instant that has not completed, and
to undo an instant includes to undo its entries.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from hoodie_py.errors import (
    ConflictError,
    FileMissingError,
    InvalidTableError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from hoodie_py.files import TableFiles
from hoodie_py.formats.config.table_config import METADATA_PARTITIONS, METADATA_PARTITIONS_INFLIGHT, TableConfig
from hoodie_py.formats.hfile.files_partition import FILES_PARTITION, encode_commit_entries
from hoodie_py.formats.hfile.writer import write_hfile
from hoodie_py.formats.log.framing import BlockType, HeaderKey, LogBlock, encode_block, iterate_blocks
from hoodie_py.formats.names import METADATA_FOLDER, MarkerType
from hoodie_py.formats.timeline.commit_metadata import CommitMetadata
from hoodie_py.formats.timeline.instants import (
    COMMIT,
    COMPACTION,
    COMPLETED,
    DELTA_COMMIT,
    INDEXING,
    INFLIGHT,
    REQUESTED,
)
from hoodie_py.formats.timeline.timeline import Timeline
from hoodie_py.formats.timeline.writers import write_commit_metadata
from hoodie_py.options.write import METADATA_MODE
from hoodie_py.table.bounded import read_bounded
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.timeline.loader import load_config, load_timeline
from hoodie_py.writer.handles.markers import Marker, Markers
from hoodie_py.writer.metadata_table.files_partition import MetadataFiles
from hoodie_py.writer.metadata_table.table_properties import change_properties
from hoodie_py.writer.settings import MetadataMode
from hoodie_py.writer.timeline.folder_tree import remove_tree
from hoodie_py.writer.timeline.session import WriteSession, find_newest_time
from hoodie_py.writer.timeline.timeline_writer import TimelineWriter

METADATA_TABLE = f"{METADATA_FOLDER}/metadata"
_REBUILT = ("column_stats", "partition_stats", "bloom_filters")
_REBUILT_PREFIX = "expr_index_"
_KEPT = ("record_index",)
_KEPT_PREFIX = "secondary_index_"

Sizes = Mapping[str, Mapping[str, int]]
Names = Mapping[str, Sequence[str]]
_INITIAL = "0000000"  # the commits that create partitions of the metadata table have request times that begin so


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
            UnsupportedFeatureError: names the reason.
        """
        config = snapshot.config
        if not config.metadata_partitions and not config.metadata_partitions_inflight:
            return
        problem, hint = _find_problem(snapshot, mode)
        if problem is not None:
            names = ", ".join((*config.metadata_partitions, *config.metadata_partitions_inflight))
            raise UnsupportedFeatureError(
                f"Writing to a table with a metadata table: {problem}.", hint=hint, table=config.name, partitions=names
            )

    @staticmethod
    def check_records(snapshot: Snapshot, mode: MetadataMode, *, new_keys: bool) -> None:
        """Refuse a write that would have to update an index in the metadata table. A compaction never has to.
        ``new_keys``: the write adds or removes keys. Changed rows of known keys keep their record locations.

        Raises:
            UnsupportedFeatureError: names the index.
        """
        if mode == "disable":
            return
        for name in snapshot.config.metadata_partitions:
            if name.startswith(_KEPT_PREFIX) or (new_keys and name in _KEPT):
                raise UnsupportedFeatureError(
                    f"Writing records to a table with the index {name}, which is not kept up here.",
                    hint=f"{METADATA_MODE}=disable switches the metadata table off; Java Hudi rebuilds it.",
                    table=snapshot.config.name,
                )

    def commit(self, instant: str, *, added: Sizes, deleted: Names) -> None:
        """Write what an instant does to the table's files. The instant must complete right after. ``added`` has sizes
        in bytes, by partition path and name; ``deleted`` names, by partition path.

        Raises:
            ConflictError: the metadata table already has a commit of that instant.
            CommitStateUnknownError: the store did not say whether a file was written.
            StorageError: the store refused.
        """
        config = self._snapshot.config
        if not config.metadata_partitions and not config.metadata_partitions_inflight:
            return
        if self._mode == "disable":
            change_properties(self._session.files, {METADATA_PARTITIONS: "", METADATA_PARTITIONS_INFLIGHT: ""})
            remove_tree(self._session.files, METADATA_TABLE)
            return
        if added:  # statistics of removed files do no harm
            self._drop_statistics(config)
        self._write(instant, added, deleted)

    def _drop_statistics(self, config: TableConfig) -> None:
        """Drop partitions that the commit would make wrong and that Java rebuilds."""
        if not config.has_logs_named_by_commit:
            return
        dropped = [name for name in config.metadata_partitions if name in _REBUILT or name.startswith(_REBUILT_PREFIX)]
        if not dropped:
            return
        kept = [name for name in config.metadata_partitions if name not in dropped]
        change_properties(self._session.files, {METADATA_PARTITIONS: ",".join(kept)})
        for name in dropped:
            remove_tree(self._files, name)

    def _write(self, instant: str, added: Sizes, deleted: Names) -> None:
        config = load_config(self._files)
        timeline = load_timeline(self._files, config)
        if timeline.find(instant) is not None:
            raise ConflictError("The metadata table has a commit of this instant already.", instant=instant)
        compaction = timeline.select_pending_compactions().last
        place = MetadataFiles(self._files, config, None if compaction is None else compaction.request_time)
        schema = place.read_schema()
        entries = encode_commit_entries(schema, added, deleted)
        content = write_hfile(entries, schema=schema, created_ms=time.time_ns() // 1_000_000)
        headers = {HeaderKey.INSTANT_TIME: instant, HeaderKey.SCHEMA: schema}
        block = encode_block(BlockType.HFILE_DATA, headers, content)
        name = place.name_next_log(instant)
        metadata = place.make_commit_metadata(name, instant, len(block), len(entries), schema)

        writer = TimelineWriter(self._files, config)
        requested = writer.request(instant, DELTA_COMMIT, b"")
        inflight = writer.begin(requested)
        kind = MarkerType.CREATE if config.has_logs_named_by_commit else MarkerType.APPEND
        markers = Markers(self._files, instant)
        markers.announce(Marker(FILES_PARTITION, name, kind))
        self._own.append(f"{FILES_PARTITION}/{name}")
        self._files.put_if_absent(self._own[0], block, unique=True)
        beyond = max(find_newest_time(timeline), find_newest_time(self._snapshot.timeline.timeline))
        completion_time = self._session.clock.take(beyond)
        done = writer.complete(inflight, completion_time, write_commit_metadata(metadata, config.timeline_layout))
        if config.timeline_layout > 1:  # in layout 1 another run of the instant writes a file of the same name
            self._own.append(writer.locate(done))
        markers.remove_all()

    def forget_own(self) -> None:
        """Remove what ``commit`` wrote, and nothing of another run of the same instant."""
        for path in self._own:
            self._files.delete_with_checksum(path)


def is_recorded_in_metadata(snapshot: Snapshot, instant: str) -> bool:
    """Whether a table's metadata table has a complete commit of an instant."""
    found = _load_metadata_timeline(snapshot).find(instant, DELTA_COMMIT)
    return found is not None and found.is_completed


def is_compacted_in_metadata(snapshot: Snapshot, instant: str) -> bool:
    """Whether a base file of the metadata table may contain the instant's entries, so that they cannot be removed.

    It is that of a later compaction, or the first one, if Java created the metadata table from a listing after the
    instant wrote its files. Timeline layout 1 does not tell when that was, so there the first one counts always.
    """
    timeline = _load_metadata_timeline(snapshot)
    if len(timeline.select_after(instant).select_actions(COMMIT, COMPACTION)):
        return True
    if timeline.find(instant) is not None:
        return False
    layout_1 = snapshot.config.timeline_layout == 1
    first = (each for each in timeline if each.request_time.startswith(_INITIAL))
    return any(layout_1 or (each.completion_time or "") > instant for each in first)


def _load_metadata_timeline(snapshot: Snapshot) -> Timeline:
    """Return the timeline of the metadata table; an empty one if the table has none."""
    if not snapshot.config.metadata_partitions:
        return Timeline()
    place = snapshot.files.sub(METADATA_TABLE)
    try:
        return load_timeline(place, load_config(place))
    except TableNotFoundError:
        return Timeline()


def undo_metadata_commit(files: TableFiles, instant: str, check: Callable[[], object] | None = None) -> None:
    """Remove the entries of a pending instant from the metadata table, if it has any.

    The log files go first, then the files of its commit, the completed one first, then the markers. Call it under the
    table's lock. ``check`` is called between the listing and the deletion; it raises if the run has lost the lock or
    its heartbeat, as another process may have run the instant again then.

    Raises:
        UnsupportedFeatureError: a log file of the metadata table also holds other commits.
    """
    place = files.sub(METADATA_TABLE)
    try:
        config = load_config(place)
    except TableNotFoundError:
        return
    timeline = load_timeline(place, config)
    found = timeline.find(instant, DELTA_COMMIT)
    markers = Markers(place, instant)
    paths = {marker.path for marker in markers.list_announced()}
    writer = TimelineWriter(place, config)
    if found is not None and found.is_completed:
        stats = CommitMetadata.from_bytes(read_bounded(place, writer.locate(found))).iterate_stats()
        paths |= {stat.path for stat in stats if stat.path}
    if found is not None and config.has_logs_named_by_commit:
        paths |= set(MetadataFiles(place, config, None).list_logs_of(instant))
    for path in sorted(paths):
        _check_own_log(place, path, instant)
    if check is not None and (paths or found is not None):
        check()
    for path in sorted(paths):
        place.delete_with_checksum(path)
    if found is not None:
        for state in (COMPLETED, INFLIGHT, REQUESTED):
            if state != COMPLETED or found.is_completed:
                writer.remove(replace(found, state=state))
    markers.remove_all()


def _check_own_log(files: TableFiles, path: str, instant: str) -> None:
    try:
        data = read_bounded(files, path)
    except FileMissingError:
        return
    blocks = [block for block in iterate_blocks(data) if isinstance(block, LogBlock)]
    if any(block.instant_time != instant for block in blocks):
        raise UnsupportedFeatureError(
            "Undoing a commit of the metadata table that shares a log file with others.",
            hint="Let Java Hudi roll the instant back.",
            path=path,
            instant=instant,
        )


def _find_problem(snapshot: Snapshot, mode: MetadataMode) -> tuple[str | None, str | None]:
    config = snapshot.config
    disable = f"{METADATA_MODE}=disable switches it off; Java Hudi rebuilds it."
    if mode == "refuse":
        return "it was asked to refuse that", None
    if mode == "disable":
        if not config.has_logs_named_by_commit:
            return f"switching it off is not safe on table version {config.version}", f"Use {METADATA_MODE}=auto."
        return None, None
    if config.metadata_partitions_inflight:
        return "a part of it is being built", "Let Java Hudi finish that."
    if len(snapshot.timeline.timeline.select_pending().select_actions(INDEXING)):
        return "an index is being built", "Let Java Hudi finish that."
    if FILES_PARTITION not in config.metadata_partitions:
        return f"it has no partition {FILES_PARTITION!r}", disable
    unknown = [name for name in config.metadata_partitions if not _is_known(name)]
    if unknown:
        return f"its partition {unknown[0]!r} is not known", disable
    return _find_missing_parts(snapshot.files.sub(METADATA_TABLE)), disable


def _find_missing_parts(files: TableFiles) -> str | None:
    try:
        config = load_config(files)
        if not len(load_timeline(files, config).select_writes()):
            return "nothing in it is complete"
        MetadataFiles(files, config, None)
    except (TableNotFoundError, FileMissingError, InvalidTableError):
        return "the table's properties name it, and its files are not there"
    return None


def _is_known(name: str) -> bool:
    return name in (FILES_PARTITION, *_REBUILT, *_KEPT) or name.startswith((_REBUILT_PREFIX, _KEPT_PREFIX))
