"""Delta commits of the metadata table: the commit of one instant's records, and the commit that creates a partition
(Hudi ``HoodieAppendHandle``, ``HoodieHFileDataBlock``,
``HoodieBackedTableMetadataWriter.initializeFilegroupsAndCommit``, ``initializeMetaClient``).

The metadata table is a merge-on-read table in ``.hoodie/metadata`` with the version of the table around it. An instant
writes one new log file to each file group that gets records: an HFILE_DATA block with the records, then a DELETE block
with the keys of deleted records, both with the headers INSTANT_TIME and SCHEMA. A record is the Avro binary form of
HoodieMetadataRecord. Its ``key`` is "", as the HFile stores the key, and all columns that do not concern it are null.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import from_numpy, is_valid, join_chunks, repeat_value
from hoodie_py.errors import InvalidTableError, UnsupportedFeatureError
from hoodie_py.files import TableFiles
from hoodie_py.formats.avro.data_blocks import AvroSchema
from hoodie_py.formats.avro.encoder import encode_values
from hoodie_py.formats.config import table_config as keys
from hoodie_py.formats.config.merge_config import PAYLOAD_STRATEGY_ID, MergeMode
from hoodie_py.formats.config.properties import format_properties
from hoodie_py.formats.config.table_config import PROPERTIES_FILE, TableConfig, compute_table_checksum
from hoodie_py.formats.config.whole_properties import seal_properties
from hoodie_py.formats.deletes.encoder import encode_delete_content
from hoodie_py.formats.hfile.blocks import GZIP
from hoodie_py.formats.hfile.writer import HFileWriter, write_columns
from hoodie_py.formats.indexes.keys import find_file_groups
from hoodie_py.formats.indexes.own_instants import iterate_creation_times
from hoodie_py.formats.log.framing import BlockType, HeaderKey, encode_block
from hoodie_py.formats.names import META_FIELDS, METADATA_FOLDER, MarkerType, make_log_file_name
from hoodie_py.formats.timeline.commit_metadata import SCHEMA_KEY, CommitMetadata, WriteStat
from hoodie_py.formats.timeline.instants import DELTA_COMMIT
from hoodie_py.formats.timeline.timeline import Timeline
from hoodie_py.formats.timeline.writers import write_commit_metadata
from hoodie_py.runtime.parallel import run_in_order
from hoodie_py.writer.create import PLACEHOLDER
from hoodie_py.writer.handles.data_file import OutputFile, ensure_partition
from hoodie_py.writer.handles.markers import Marker, Markers
from hoodie_py.writer.indexes.index import PartitionRecords
from hoodie_py.writer.indexes.partition_files import PartitionFiles
from hoodie_py.writer.timeline.timeline_writer import TimelineWriter

# Left out even if it has a value: a Hudi whose schema lacks it had no statistics of partitions, which alone need it.
_DROPPED: Final = frozenset({"isTightBound"})


def fit_to_schema(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """Return an array of structs with the fields of another struct type, by name; other arrays unchanged.

    The schema comes from the partition's newest file. An older Hudi may have written it, without wrappers of values and
    fields that Hudi 1.2.0 has. They are left out if they have no value.

    Raises:
        UnsupportedFeatureError: a field has a value that the type has no place for.
    """
    if array.type == type_ or not (pa.types.is_struct(array.type) and pa.types.is_struct(type_)):
        return array
    children = dict(zip((field.name for field in array.type), array.flatten(), strict=True))
    for name in children.keys() - {field.name for field in type_} - _DROPPED:
        if children[name].null_count < len(array):
            raise UnsupportedFeatureError(
                "The metadata table was made by a Hudi that had no place for what is to be written.", field=name
            )
    fields = [field for field in type_ if field.name in children]
    arrays = [fit_to_schema(children[field.name], field.type) for field in fields]
    fields = [field.with_type(each.type).with_nullable(True) for field, each in zip(fields, arrays, strict=True)]
    return pa.StructArray.from_arrays(arrays, fields=fields, mask=from_numpy(~is_valid(array)))


_OPERATION = "UPSERT_PREPPED"
_RECORD = "HoodieMetadataRecord"
_KEY = "key"
_OF_FIRST_FILE = "0-0-0"
_AT_ONCE = 8  # log files; each is in memory while it is written

Places = np.ndarray | None
"""Positions of some rows; None for all."""
Job = Callable[[], WriteStat | None]


class DeltaCommit:
    """A delta commit of the metadata table.

    ``own``: paths of the files written so far. ``schema`` is the Avro schema (JSON) of HoodieMetadataRecord in the
    newest file.

    Raises:
        UnsupportedFeatureError: the schema does not describe records of a metadata table.
    """

    def __init__(self, files: TableFiles, config: TableConfig, instant: str, schema: str) -> None:
        self._files = files
        self._config = config
        self._instant = instant
        self._schema = AvroSchema.parse(schema)
        if self._schema.record.name.rpartition(".")[2] != _RECORD or _KEY not in self._schema.arrow.names:
            raise UnsupportedFeatureError(
                f"Records {self._schema.record.name[:100]!r} are not those of a metadata table."
            )
        self._timeline = TimelineWriter(files, config)
        self._stats: dict[str, tuple[WriteStat, ...]] = {}
        self.own: list[str] = []

    def begin(self) -> None:
        """Create the requested and the inflight file.

        Raises:
            ConflictError: the metadata table has an instant of that time.
            CommitStateUnknownError: the store did not say whether a file was written.
        """
        self._inflight = self._timeline.begin(self._timeline.request(self._instant, DELTA_COMMIT, b""))

    def write(self, parts: Sequence[tuple[PartitionRecords, PartitionFiles]]) -> None:
        """Write the log files of all partitions, several at once on a remote store.

        Raises:
            InvalidTableError: records do not fit the schema.
            StorageError: the store refused.
        """
        jobs = [job for records, place in parts for job in self._list_jobs(records, place)]
        for stat in run_in_order(jobs, 1 if self._files.is_local else _AT_ONCE):
            if stat is not None:
                self._stats[stat.partition_path] = (*self._stats.get(stat.partition_path, ()), stat)

    def _list_jobs(self, records: PartitionRecords, place: PartitionFiles) -> Iterator[Job]:
        """Yield the jobs that write the files of one partition."""
        groups = list(place.file_ids if records.groups is None else records.groups)
        for file_id in groups:
            if file_id not in place.file_ids:
                yield partial(self._begin_group, records.partition, file_id)
        deleted = join_chunks(records.deleted_keys) if records.deleted_keys is not None else pa.array([], pa.string())
        for number, some, gone in _split_by_group(records, deleted, len(groups)):
            yield partial(self._write_log, records.records, deleted, place, groups[number], some, gone)

    def _begin_group(self, partition: str, file_id: str) -> None:
        """Write the first file of a new file group: a log file with an empty DELETE block (Hudi
        ``initializeFileGroups``).
        """
        nothing = encode_delete_content(pa.array([], pa.string()), pa.array([], pa.string()))
        content = encode_block(BlockType.DELETE, {HeaderKey.INSTANT_TIME: self._instant}, nothing)
        self._put(partition, make_log_file_name(file_id, self._instant, 1, _OF_FIRST_FILE), content)

    def _write_log(
        self, rows: pa.Table, deleted: pa.Array, place: PartitionFiles, file_id: str, some: Places, gone: Places
    ) -> WriteStat:
        """Write the log file of a file group with the records at ``some`` and the deleted keys at ``gone``."""
        kept = rows if some is None else rows.take(pa.array(some))
        keys = deleted if gone is None else deleted.take(pa.array(gone))
        content = b"".join(self._encode_blocks(kept, keys, place.partition))
        name = place.name_next_log(file_id, self._instant)
        self._put(place.partition, name, content)
        return place.make_stat(file_id, name, self._instant, len(content), kept.num_rows, len(keys))

    def _put(self, partition: str, name: str, content: bytes) -> None:
        kind = MarkerType.CREATE if self._config.has_logs_named_by_commit else MarkerType.APPEND
        path = f"{partition}/{name}"
        Markers(self._files, self._instant).announce(Marker(partition, name, kind))
        self.own.append(path)  # before the file, which may exist even if the store reports a failure
        self._files.put_if_absent(path, content, unique=True)

    def complete(self, completion_time: str) -> None:
        """Create the completed file. Its metadata contains a write statistic for each log file.

        Raises:
            ConflictError: the file exists.
            CommitStateUnknownError: the store did not say whether it was written.
        """
        metadata = CommitMetadata(
            operation_type=_OPERATION,
            extra_metadata={SCHEMA_KEY: drop_meta_columns(self._schema.text)},
            write_stats={partition: stats for partition, stats in self._stats.items() if stats},
        )
        content = write_commit_metadata(metadata, self._config.timeline_layout)
        done = self._timeline.complete(self._inflight, completion_time, content)
        if self._config.timeline_layout > 1:  # in layout 1 another run of the instant writes a file of the same name
            self.own.append(self._timeline.locate(done))
        Markers(self._files, self._instant).remove_all()

    def _encode_blocks(self, rows: pa.Table, deleted: pa.Array, partition: str) -> Iterator[bytes]:
        headers = {HeaderKey.INSTANT_TIME: self._instant, HeaderKey.SCHEMA: self._schema.text}
        if rows.num_rows:
            keys, values = encode_entries(rows, self._schema)
            yield encode_block(BlockType.HFILE_DATA, headers, make_hfile(keys, values, self._schema.text))
        if len(deleted):
            paths = repeat_value(partition, pa.string(), len(deleted))
            yield encode_block(BlockType.DELETE, headers, encode_delete_content(deleted, paths))


def make_hfile(keys: pa.Array, values: pa.Array, schema: str) -> bytes:
    """Encode an HFile as Java does for the metadata table.

    Raises:
        InvalidTableError: a key occurs twice, is empty or too long, or the records do not fit one file.
    """
    try:
        return write_columns(keys, values, schema=schema, created_ms=time.time_ns() // 1_000_000, codec=GZIP)
    except ValueError as error:
        raise InvalidTableError(f"Records of the metadata table cannot be written: {error}") from None


def encode_entries(rows: pa.Table, schema: AvroSchema) -> tuple[pa.Array, pa.Array]:
    """Return the keys of records, and their values as ``large_binary``.

    Raises:
        InvalidTableError: a value does not fit the schema; ``where`` names the column.
        UnsupportedFeatureError: the schema is of an older Hudi, and has no place for a value.
    """
    batch = rows.combine_chunks()
    count = batch.num_rows
    columns = {name: join_chunks(batch.column(name)) for name in batch.schema.names}
    full = [
        repeat_value("", pa.string(), count)
        if field.name == _KEY
        else fit_to_schema(columns[field.name], field.type)
        if field.name in columns
        else pa.nulls(count)
        for field in schema.arrow
    ]
    unknown = set(columns) - set(schema.arrow.names)
    if unknown:
        raise InvalidTableError(
            "The metadata table's records lack a column that is to be written.", column=min(unknown)
        )
    return columns[_KEY], encode_values(pa.RecordBatch.from_arrays(full, names=schema.arrow.names), schema)


def _split_by_group(records: PartitionRecords, deleted: pa.Array, count: int) -> Iterator[tuple[int, Places, Places]]:
    """Yield the number of each file group that gets something, with the positions of its records and deleted keys."""
    rows = records.records.num_rows
    if not rows and not len(deleted):
        return
    if count == 1:
        yield 0, None, None
        return
    places = records.group_of
    if places is None:
        places = find_file_groups(_join_keys(records, deleted), count)
    of_rows, of_deleted = places[:rows], places[rows:]
    for number in np.unique(places).tolist():
        yield number, np.flatnonzero(of_rows == number), np.flatnonzero(of_deleted == number)


def _join_keys(records: PartitionRecords, deleted: pa.Array) -> pa.ChunkedArray:
    return pa.chunked_array([*records.records.column(_KEY).chunks, deleted])


def drop_meta_columns(schema: str) -> str:
    """Return an Avro schema (JSON) of records without the meta columns, as stored in commit metadata."""
    record = json.loads(schema)
    record["fields"] = [each for each in record["fields"] if each.get("name") not in META_FIELDS]
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False)


_INITIAL_OPERATION = "BULK_INSERT_PREPPED"
_TOKEN = "0-0-0"  # noqa: S105 - what Java calls a write token
_TOKEN_BITS = 31


def choose_instant(around: Timeline, metadata: Timeline, layout: int) -> str:
    """Return the instant of the next partition.

    ``around`` is the table's timeline, ``metadata`` the metadata table's.
    """
    last = around.select_completed().last
    times = iterate_creation_times(None if last is None else last.request_time, layout)
    return next(each for each in times if metadata.find(each) is None)


class InitialCommit:
    """Creates one partition of the metadata table.

    Each file group begins with a log file with an empty DELETE block, so that it is known before it has records. A
    group that gets records has a base file beside it. The commit's metadata names the base files only. ``files`` are
    the metadata table's; nothing else writes to the partition.
    """

    def __init__(self, files: TableFiles, config: TableConfig, instant: str, partition: str, schema: str) -> None:
        self._files = files
        self._config = config
        self._instant = instant
        self._partition = partition
        self._schema = schema
        self._timeline = TimelineWriter(files, config)
        self._markers = Markers(files, instant)
        self._stats: list[WriteStat] = []

    @property
    def records(self) -> int:
        """Number of records written so far."""
        return sum(each.num_writes for each in self._stats)

    @property
    def bytes(self) -> int:
        """Bytes of base files written so far."""
        return sum(each.file_size_in_bytes for each in self._stats)

    def begin(self) -> None:
        """Create the requested and the inflight file.

        Raises:
            ConflictError: the metadata table has an instant of that time.
            CommitStateUnknownError: the store did not say whether a file was written.
        """
        self._inflight = self._timeline.begin(self._timeline.request(self._instant, DELTA_COMMIT, b""))
        ensure_partition(self._files, self._partition, self._instant)

    def create_group(self, file_id: str) -> None:
        """Create the log file that begins a file group."""
        name = make_log_file_name(file_id, self._instant, 1, _TOKEN)
        nothing = pa.array([], pa.string())
        content = encode_delete_content(nothing, nothing)
        block = encode_block(BlockType.DELETE, {HeaderKey.INSTANT_TIME: self._instant}, content)
        self._files.put_if_absent(f"{self._partition}/{name}", block, unique=True)

    def write_base_file(self, file_id: str, number: int, rows: Iterable[pa.RecordBatch]) -> None:
        """Write the base file of file group ``number``. Rows have a key and an encoded value, and are in the order of
        the keys' bytes, each key once. Without rows there is no file.
        """
        began = time.monotonic()
        name = f"{file_id}_{number}-0-{secrets.randbits(_TOKEN_BITS)}_{self._instant}.hfile"
        path = f"{self._partition}/{name}"
        with OutputFile(self._files, path) as output:
            writer = HFileWriter(output.sink, schema=self._schema, created_ms=time.time_ns() // 1_000_000)
            for batch in rows:
                writer.add(*batch.columns)
            count = writer.finish()
            if not count:
                return
            self._markers.announce(Marker(self._partition, name, MarkerType.CREATE))
            size = output.publish()
        self._stats.append(
            WriteStat(
                file_id=file_id,
                path=path,
                prev_commit="null",
                num_writes=count,
                num_inserts=count,
                total_write_bytes=size,
                partition_path=self._partition,
                file_size_in_bytes=size,
                runtime_stats={
                    "total_scan_time": 0,
                    "total_create_time": round((time.monotonic() - began) * 1000),
                    "total_upsert_time": 0,
                },
            )
        )

    def complete(self, completion_time: str) -> None:
        """Create the completed file.

        Raises:
            ConflictError: the file exists.
            CommitStateUnknownError: the store did not say whether it was written.
        """
        metadata = CommitMetadata(
            operation_type=_INITIAL_OPERATION,
            extra_metadata={SCHEMA_KEY: drop_meta_columns(self._schema)},
            write_stats={self._partition: tuple(self._stats)} if self._stats else {},
        )
        content = write_commit_metadata(metadata, self._config.timeline_layout)
        self._timeline.complete(self._inflight, completion_time, content)
        self._markers.remove_all()


KEY_GENERATOR = "HOODIE_TABLE_METADATA"


def make_metadata_properties(around: TableConfig) -> dict[str, str]:
    """Return the properties of a table's metadata table, as Java writes them."""
    name = f"{around.name}_metadata"
    own_names = around.has_logs_named_by_commit
    found = {
        keys.NAME: name,
        keys.TYPE: "MERGE_ON_READ",
        keys.VERSION: str(around.version),
        keys.TIMELINE_LAYOUT: str(around.timeline_layout),
        keys.BASE_FILE_FORMAT: "HFILE",
        keys.RECORD_KEY_FIELDS: "key",
        keys.POPULATE_META_FIELDS: "false",
        keys.PAYLOAD_CLASS: keys.METADATA_PAYLOAD,
        keys.MERGE_STRATEGY_ID: PAYLOAD_STRATEGY_ID,
        keys.KEY_GENERATOR_TYPE: KEY_GENERATOR,
        keys.DROP_PARTITION_COLUMNS: "false",
        keys.ARCHIVE_FOLDER: "history" if own_names else "archived",
        keys.TIMELINE_PATH: "timeline",
        keys.HISTORY_PATH: "history",
        keys.CHECKSUM: str(compute_table_checksum(name)),
    }
    if own_names:
        found |= {keys.INITIAL_VERSION: str(around.version), keys.MERGE_MODE: MergeMode.CUSTOM.value}
    return found


def create_metadata_table(files: TableFiles, around: TableConfig) -> TableConfig:
    """Create an empty metadata table and return its properties. ``files`` is its folder.

    Its timeline is empty: each partition comes with a delta commit of its own (``InitialCommit``).

    Raises:
        ConflictError: a metadata table exists.
        CommitStateUnknownError: the store did not say whether it was created.
        StorageError: the store refused.
    """
    stored = make_metadata_properties(around)
    config = TableConfig.from_properties(stored)
    if config.timeline_layout > 1:
        # Object stores have no empty folders, and Java lists this folder before anything is archived.
        files.put(f"{config.find_history_folder()}/{PLACEHOLDER}", b"")
    comment = f"Properties saved on {datetime.now(UTC).isoformat()}"
    content = seal_properties(format_properties(stored, comment=comment))
    files.put_if_absent(f"{METADATA_FOLDER}/{PROPERTIES_FILE}", content, unique=True)
    return config
