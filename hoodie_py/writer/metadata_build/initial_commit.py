"""The delta commit that creates one partition of the metadata table (Hudi
``HoodieBackedTableMetadataWriter.initializeFilegroupsAndCommit``).

Each file group begins with a log file that has an empty DELETE block, so that it is known before it has records. A
group that gets records has a base file beside it. The metadata of the commit names the base files only.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterable

import pyarrow as pa

from hoodie_py.files import TableFiles
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.deletes.encoder import encode_delete_content
from hoodie_py.formats.hfile.writer import HFileWriter
from hoodie_py.formats.log.framing import BlockType, HeaderKey, encode_block
from hoodie_py.formats.metadata_table.own_instants import iterate_creation_times
from hoodie_py.formats.names import META_FIELDS, MarkerType, make_log_file_name
from hoodie_py.formats.timeline.commit_metadata import SCHEMA_KEY, CommitMetadata, WriteStat
from hoodie_py.formats.timeline.instants import DELTA_COMMIT
from hoodie_py.formats.timeline.timeline import Timeline
from hoodie_py.formats.timeline.writers import write_commit_metadata
from hoodie_py.writer.handles.data_file import OutputFile, ensure_partition
from hoodie_py.writer.handles.markers import Marker, Markers
from hoodie_py.writer.timeline.timeline_writer import TimelineWriter

_OPERATION = "BULK_INSERT_PREPPED"
_TOKEN = "0-0-0"  # noqa: S105 - what Java calls a write token
_TOKEN_BITS = 31


def choose_instant(around: Timeline, metadata: Timeline, layout: int) -> str:
    """Return the instant of the next partition. ``around`` is the table's timeline, ``metadata`` that of the
    metadata table.
    """
    last = around.select_completed().last
    times = iterate_creation_times(None if last is None else last.request_time, layout)
    return next(each for each in times if metadata.find(each) is None)


class InitialCommit:
    """Creates one partition. ``files`` are those of the metadata table; nothing else writes to the partition."""

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

    def write_base_file(self, file_id: str, number: int, rows: Iterable[tuple[pa.Array, pa.Array]]) -> None:
        """Write the base file of file group ``number``: keys and encoded values, in the order of the keys' bytes.
        Without rows there is none.
        """
        began = time.monotonic()
        name = f"{file_id}_{number}-0-{secrets.randbits(_TOKEN_BITS)}_{self._instant}.hfile"
        path = f"{self._partition}/{name}"
        with OutputFile(self._files, path) as output:
            writer = HFileWriter(output.sink, schema=self._schema, created_ms=time.time_ns() // 1_000_000)
            for keys, values in rows:
                writer.add(keys, values)
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
            operation_type=_OPERATION,
            extra_metadata={SCHEMA_KEY: _drop_meta_columns(self._schema)},
            write_stats={self._partition: tuple(self._stats)} if self._stats else {},
        )
        content = write_commit_metadata(metadata, self._config.timeline_layout)
        self._timeline.complete(self._inflight, completion_time, content)
        self._markers.remove_all()


def _drop_meta_columns(schema: str) -> str:
    record = json.loads(schema)
    record["fields"] = [each for each in record["fields"] if each.get("name") not in META_FIELDS]
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False)
