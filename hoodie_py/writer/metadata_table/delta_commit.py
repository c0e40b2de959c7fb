"""Write one delta commit of the metadata table: one new log file in each file group that gets records (Hudi
``HoodieAppendHandle``, ``HoodieHFileDataBlock``).

A log file has an HFILE_DATA block with the records, then a DELETE block with the keys of deleted records; both have the
headers INSTANT_TIME and SCHEMA. A record is the Avro binary form of HoodieMetadataRecord. Its ``key`` is "", as the
HFile has the key, and all columns that do not concern it are null.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import join_chunks, repeat_value
from hoodie_py.errors import InvalidTableError, UnsupportedFeatureError
from hoodie_py.files import TableFiles
from hoodie_py.formats.avro.data_blocks import AvroSchema
from hoodie_py.formats.avro.encoder import encode_values
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.deletes.encoder import encode_delete_content
from hoodie_py.formats.hfile.codecs import GZIP
from hoodie_py.formats.hfile.writer import write_columns
from hoodie_py.formats.log.framing import BlockType, HeaderKey, encode_block
from hoodie_py.formats.metadata_table.record_index_keys import find_file_groups
from hoodie_py.formats.names import META_FIELDS, MarkerType, make_log_file_name
from hoodie_py.formats.timeline.commit_metadata import SCHEMA_KEY, CommitMetadata, WriteStat
from hoodie_py.formats.timeline.instants import DELTA_COMMIT
from hoodie_py.formats.timeline.writers import write_commit_metadata
from hoodie_py.writer.handles.markers import Marker, Markers
from hoodie_py.writer.metadata_table.older_schemas import fit_to_schema
from hoodie_py.writer.metadata_table.parallel import run_in_order
from hoodie_py.writer.metadata_table.partition_files import PartitionFiles
from hoodie_py.writer.metadata_table.update import PartitionRecords
from hoodie_py.writer.timeline.timeline_writer import TimelineWriter

_OPERATION = "UPSERT_PREPPED"
_RECORD = "HoodieMetadataRecord"
_KEY = "key"
_OF_FIRST_FILE = "0-0-0"
_AT_ONCE = 8  # log files; each is in memory while it is written

Places = np.ndarray | None
"""Places of some rows; None for all."""
Job = Callable[[], WriteStat | None]


class DeltaCommit:
    """A delta commit of the metadata table. ``own`` are the paths that it has written so far.

    ``schema`` is the Avro schema (JSON) of HoodieMetadataRecord as the newest file has it.

    Raises:
        UnsupportedFeatureError: the schema is not that of a metadata table's records.
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
        """Yield what writes the files of one partition."""
        groups = list(place.file_ids if records.groups is None else records.groups)
        for file_id in groups:
            if file_id not in place.file_ids:
                yield partial(self._begin_group, records.partition, file_id)
        deleted = join_chunks(records.deleted_keys) if records.deleted_keys is not None else pa.array([], pa.string())
        for number, some, gone in _split_by_group(records, deleted, len(groups)):
            yield partial(self._write_log, records.records, deleted, place, groups[number], some, gone)

    def _begin_group(self, partition: str, file_id: str) -> None:
        """Write the first file of a new file group, which has nothing in it (Hudi ``initializeFileGroups``)."""
        nothing = encode_delete_content(pa.array([], pa.string()), pa.array([], pa.string()))
        content = encode_block(BlockType.DELETE, {HeaderKey.INSTANT_TIME: self._instant}, nothing)
        self._put(partition, make_log_file_name(file_id, self._instant, 1, _OF_FIRST_FILE), content)

    def _write_log(
        self, rows: pa.Table, deleted: pa.Array, place: PartitionFiles, file_id: str, some: Places, gone: Places
    ) -> WriteStat:
        """Write the log file of a file group with records and deleted keys at some places."""
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
        self.own.append(path)
        self._files.put_if_absent(path, content, unique=True)

    def complete(self, completion_time: str) -> None:
        """Create the completed file. Its metadata has a write statistic for each log file.

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
        InvalidTableError: a key is there twice, empty or too long, or there is more than fits one file.
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
    """Yield the number of each file group that gets something, with the places of its records and of deleted keys."""
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
    """Return an Avro schema (JSON) of records without the meta columns, as commit metadata has it."""
    record = json.loads(schema)
    record["fields"] = [each for each in record["fields"] if each.get("name") not in META_FIELDS]
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False)
