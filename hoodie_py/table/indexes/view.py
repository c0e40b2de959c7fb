"""MetadataView: looks up records of a table's metadata table (Hudi ``HoodieBackedTableMetadata``).

The metadata table is a merge-on-read table of HFiles in ``.hoodie/metadata``. A view belongs to one loaded timeline of
the table around it, which decides which log blocks count (``view/visibility.py``).

* A look-up reads only the blocks of base files that may have the wanted keys. Log files are small, as about every
  tenth commit compacts them; they are read whole, once.
* Corrupt log blocks are errors: their content may change any answer.
* A completed write of the table around it has its own delta commit there, or is not later than the first one, which
  took its files from the folders. Otherwise the metadata table is behind, and nothing in it can be trusted.
* File groups are read in the order of their file ids, whose numbers begin at 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from threading import Lock

import pyarrow as pa

from hoodie_py.arrow.fields import make_nullable
from hoodie_py.errors import FileMissingError, InvalidTableError, TableNotFoundError, locate_errors
from hoodie_py.files import TableFiles
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.indexes.definitions import FILES_PARTITION, RECORD_INDEX, IndexDefinitions, find_definitions_path
from hoodie_py.formats.indexes.own_instants import BEFORE_ALL, find_covered_time
from hoodie_py.formats.names import METADATA_FOLDER
from hoodie_py.formats.timeline.instants import DELTA_COMMIT, Instant
from hoodie_py.formats.timeline.timeline import Timeline
from hoodie_py.reader.file_group import FileGroupReader
from hoodie_py.reader.file_slice import BlockRules, FileSlice
from hoodie_py.reader.payloads.metadata_table import HoodieMetadataPayload
from hoodie_py.reader.read_info import ReadInfo, ReadOptions, WantedKeys
from hoodie_py.runtime.telemetry import carry_span
from hoodie_py.table.bounded import read_bounded
from hoodie_py.table.indexes.counted_files import CountedFiles
from hoodie_py.table.schema.resolver import resolve_schema
from hoodie_py.table.timeline.loader import TableTimeline, load_config
from hoodie_py.table.view.file_groups import FileGroup
from hoodie_py.table.view.file_system_view import FileSystemView
from hoodie_py.table.view.visibility import Visibility


def read_definitions(files: TableFiles, config: TableConfig) -> IndexDefinitions:
    """Return the definitions; none if the table's properties name no file, or the file is missing, as in Java.

    Raises:
        CorruptFileError: the file is truncated or not a file of index definitions.
        InvalidTableError: its path leads out of the table, or definitions contradict each other.
        UnsupportedFeatureError: a definition has a later version.
        StorageError: the store refused.
    """
    path = find_definitions_path(config)
    if path is None:
        return IndexDefinitions()
    with locate_errors(path=path):
        try:
            return IndexDefinitions.from_bytes(read_bounded(files, path, "properties_bytes"))
        except FileMissingError:
            return IndexDefinitions()


METADATA_TABLE = f"{METADATA_FOLDER}/metadata"
KEY = "key"
_IS_DELETED = "isDeleted"
_WITHOUT_FLAG = (FILES_PARTITION, RECORD_INDEX)  # partitions whose records do not say that they are deleted
_AT_ONCE = 16  # file groups of a remote table
_OPTIONS = ReadOptions(integrity="strict")
_MERGER = HoodieMetadataPayload()  # given, so that the user's mergers are not searched

_MANY_PARTITIONS = 256  # more are looked up in one listing, as a hostile table may name any number


class MetadataView:
    """The records of a metadata table as of a snapshot of the table around it; threads may share it.

    ``around``: the timeline of that snapshot.

    Raises:
        CorruptFileError, InvalidTableError: the metadata table is broken or gone.
        UnsupportedFeatureError: a version or format that is not handled.
        StorageError: the store refused.
    """

    def __init__(self, around: TableTimeline) -> None:
        self._around = around
        self._partitions = around.config.metadata_partitions
        self.files = CountedFiles(around.files.sub(METADATA_TABLE))
        try:
            self.config = load_config(self.files)
        except TableNotFoundError as error:
            raise InvalidTableError("The table's metadata table is gone.", path=METADATA_TABLE) from error
        self.timeline = TableTimeline.load(self.files, self.config)
        self._visibility = Visibility(self.timeline, around)
        self._view = FileSystemView(self.files, self.config, self.timeline, visibility=self._visibility)
        self._slices: dict[str, list[FileSlice]] = {}
        self.checked: set[str] = set()  # partitions whose files all exist (``soundness``)
        self._lock = Lock()

    @property
    def partitions(self) -> tuple[str, ...]:
        """The partitions that are complete."""
        return self._partitions

    @property
    def partitions_inflight(self) -> tuple[str, ...]:
        """The partitions that are being built."""
        return self._around.config.metadata_partitions_inflight

    def has(self, partition: str) -> bool:
        """Say whether a partition exists and is complete."""
        return partition in self._partitions

    def accepts(self, instant: str) -> bool:
        """Say whether log blocks of an instant count."""
        return self._rules.accepts(instant)

    @cached_property
    def unlisted(self) -> tuple[str, ...]:
        """Request times of the completed writes of the table that the metadata table does not have, oldest first."""
        own = self.timeline.select_completed().select_actions(DELTA_COMMIT)
        there = {each.request_time for each in own}
        missing = [each for each in self._around.list_completed_writes() if each.request_time not in there]
        first = self._find_first(own) if missing else None
        return tuple(each.request_time for each in missing if first is None or not _is_before(each, first))

    def _find_first(self, own: Timeline) -> Instant | None:
        """Return the oldest active commit that has files of all writes before it.

        Commits that only create another partition, maybe long after the list of files, may have the same early times.
        """
        for each in own:
            is_early = each.request_time.startswith(BEFORE_ALL)
            if not is_early or FILES_PARTITION in self.timeline.read_metadata(each).write_stats:
                return each
        return None

    @property
    def is_local(self) -> bool:
        """Whether the metadata table is on a local disk, where parallel requests gain nothing."""
        return self.files.is_local

    @property
    def calls(self) -> int:
        """Requests to the store so far."""
        return self.files.calls

    @property
    def bytes(self) -> int:
        """Bytes read so far."""
        return self.files.bytes

    @cached_property
    def definitions(self) -> IndexDefinitions:
        """The definitions of the table's indexes.

        Raises:
            CorruptFileError, InvalidTableError: the file of definitions is damaged.
            StorageError: the store refused.
        """
        return read_definitions(self._around.files, self._around.config)

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of every record, including ``key``."""
        return self._info.schema

    def list_groups(self, partition: str) -> list[FileSlice]:
        """Return the file groups of a partition, sorted by file id."""
        with self._lock:
            known = self._slices.get(partition)
        if known is None and self._has_many and partition not in self._folders:
            return []
        if known is None:
            known = sorted(self._view.list_slices(None, [partition]), key=lambda each: each.file_id)
            with self._lock:
                self._slices[partition] = known
        return known

    def find_missing_partition(self) -> str | None:
        """Return a partition without a folder, if the table names very many; None if there is none."""
        return next((each for each in self._partitions if each not in self._folders), None) if self._has_many else None

    @property
    def _has_many(self) -> bool:
        return len(self._partitions) > _MANY_PARTITIONS

    @cached_property
    def _folders(self) -> frozenset[str]:
        """The names in the folder of the metadata table."""
        return frozenset(each.rstrip("/") for each in self.files.list_names(""))

    def count_groups(self, partition: str) -> int:
        """Return the number of file groups of a partition, which may still be being built."""
        return len(self.list_file_groups(partition))

    def list_file_groups(self, partition: str) -> list[FileGroup]:
        """Return all file groups of a partition with all their files, sorted by file id; for writers.

        Raises:
            FileMissingError: the partition is missing.
        """
        return self._view.list_file_groups([partition])

    def read_keys(
        self,
        partition: str,
        keys: Iterable[str],
        columns: Sequence[str] | None = None,
        groups: Iterable[FileSlice] | None = None,
    ) -> pa.Table:
        """Return the records of some keys, in no order, without deleted ones.

        ``columns``: the wanted columns beside the key; None for all. ``groups``: the only file groups (of
        ``list_groups``) that may have the keys, if the caller knows.

        Raises:
            CorruptFileError, FileMissingError: the metadata table is damaged.
            StorageError: the store refused.
        """
        wanted = WantedKeys(tuple(dict.fromkeys(keys)))
        found = self._read_wanted(partition, wanted, columns, groups)
        return found.filter(_is_in(found[KEY], wanted.texts)) if found.num_rows else found

    def read_prefixes(
        self,
        partition: str,
        prefixes: Iterable[str],
        columns: Sequence[str] | None = None,
        groups: Iterable[FileSlice] | None = None,
    ) -> pa.Table:
        """Return the records whose keys begin with one of some texts; arguments and errors as for ``read_keys``."""
        wanted = WantedKeys(tuple(dict.fromkeys(prefixes)), are_prefixes=True)
        found = self._read_wanted(partition, wanted, columns, groups)
        return found.filter(_starts_with(found[KEY], wanted.texts)) if found.num_rows else found

    def read_all(
        self, partition: str, columns: Sequence[str] | None = None, groups: Iterable[FileSlice] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield all records of a partition, group by group; arguments and errors as for ``read_keys``."""
        names = self._choose_columns(columns)
        for group in self.list_groups(partition) if groups is None else groups:
            yield from self._read_group(group, names, None)

    def _read_wanted(
        self,
        partition: str,
        wanted: WantedKeys,
        columns: Sequence[str] | None,
        groups: Iterable[FileSlice] | None,
    ) -> pa.Table:
        names = self._choose_columns(columns)
        schema = make_nullable(self.schema.field(name) for name in names)
        if not wanted.texts:
            return schema.empty_table()
        chosen = self.list_groups(partition) if groups is None else list(groups)

        def read(group: FileSlice) -> list[pa.RecordBatch]:
            return list(self._read_group(group, names, wanted))

        if len(chosen) > 1 and not self.files.is_local:
            from concurrent.futures import ThreadPoolExecutor

            with ThreadPoolExecutor(min(_AT_ONCE, len(chosen)), "hoodie-metadata") as pool:
                parts = list(pool.map(carry_span(read), chosen))
        else:
            parts = [read(group) for group in chosen]
        return pa.Table.from_batches([batch for part in parts for batch in part], schema)

    def _choose_columns(self, columns: Sequence[str] | None) -> list[str]:
        return self.schema.names if columns is None else list(dict.fromkeys((KEY, *columns)))

    def _read_group(
        self, group: FileSlice, names: Sequence[str], wanted: WantedKeys | None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the merged records of a file group: at least those of the wanted keys."""
        flagged = () if group.partition_path in _WITHOUT_FLAG else self._flagged
        read = list(dict.fromkeys((*names, *flagged)))
        reader = FileGroupReader(group, replace(self._info, keys=wanted), read, _MERGER, _OPTIONS)
        for batch in reader.to_batches():
            for name in flagged:
                batch = _drop_deleted(batch, name)
            if batch.num_rows:
                yield batch.select(names)

    @cached_property
    def _flagged(self) -> tuple[str, ...]:
        """The columns whose values have a flag for deleted records."""
        return tuple(each.name for each in self.schema if _has_flag(each.type))

    @cached_property
    def _rules(self) -> BlockRules:
        return self._view.make_block_rules()

    @cached_property
    def _info(self) -> ReadInfo:
        schema = resolve_schema(self.timeline)
        return ReadInfo(
            files=self.files,
            config=replace(self.config, properties={}, create_schema=None),
            schema=schema.arrow,
            defaults=schema.defaults,
            rules=self._rules,
            times=schema.times,
        )


def _is_before(write: Instant, first: Instant) -> bool:
    """Say whether a write completed before the first commit of the metadata table listed the folders."""
    if not first.request_time.startswith(BEFORE_ALL):
        return write.request_time <= find_covered_time(first.request_time)
    done, taken = write.completion_time, first.completion_time
    return done is not None and taken is not None and done < taken


def _is_in(keys: pa.ChunkedArray, texts: Sequence[str]) -> pa.ChunkedArray:
    import pyarrow.compute as pc

    return pc.is_in(keys, pa.array(texts, pa.string()))


def _starts_with(keys: pa.ChunkedArray, prefixes: Sequence[str]) -> pa.ChunkedArray:
    import pyarrow.compute as pc

    found = pc.starts_with(keys, prefixes[0])
    for prefix in prefixes[1:]:
        found = pc.or_(found, pc.starts_with(keys, prefix))
    return found


def _has_flag(type_: pa.DataType) -> bool:
    return bool(pa.types.is_struct(type_) and type_.get_field_index(_IS_DELETED) >= 0)


def _drop_deleted(batch: pa.RecordBatch, name: str) -> pa.RecordBatch:
    """Drop the records that the flag in a column marks as deleted."""
    import pyarrow.compute as pc

    column = batch.column(name)
    if column.null_count == len(column):
        return batch
    flags = pc.fill_null(pc.struct_field(column, _IS_DELETED), False)
    return batch.filter(pc.invert(flags)) if pc.any(flags).as_py() else batch
