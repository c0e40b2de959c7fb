"""The archived timeline: instants that have left the active one.

Layout 1, in ``.hoodie/archived/`` (or the folder that the table names): ``.commits_.archive.N_1-0-1`` are log-format
files. Their Avro blocks have one HoodieArchivedMetaEntry for each *state* of an instant. Files with a greater N are
newer, and an instant may occur in several files (Hudi ArchivedTimelineV1).

Layout 2, in ``.hoodie/timeline/history/``: ``_version_`` names the current manifest ``manifest_N`` (JSON), which lists
the Parquet files ``{min}_{max}_{level}.parquet``; other files do not count. One row is one completed instant with the
bytes of its completed file and its requested file (Hudi LSMTimeline, ArchivedTimelineV2).

Files of layout 2 are also written here, with the columns, types and compression of Java's (Hudi ``LSMTimelineWriter``,
``HoodieLSMTimelineInstant``, ``HoodieLSMTimelineManifest``).
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hoodie_py.errors import CorruptFileError, UnsupportedFeatureError
from hoodie_py.formats.avro.container import VettedSchema, decode_record, vet_schema
from hoodie_py.formats.limits import get_limits, raise_limit_error
from hoodie_py.formats.log.framing import BlockType, LogBlock, iterate_blocks
from hoodie_py.formats.parquet.decoder import check_footer
from hoodie_py.formats.parquet.parquet_file import ParquetFile
from hoodie_py.formats.timeline import kinds
from hoodie_py.formats.timeline.commit_metadata import CommitMetadata, parse_json
from hoodie_py.formats.timeline.instants import COMMIT, COMPLETED, COMPLETED_ACTION, DELTA_COMMIT, REPLACE_COMMIT
from hoodie_py.formats.timeline.records import Field, Record, nested, take_attributes

if TYPE_CHECKING:
    from hoodie_py.formats.timeline.plans import CleanMetadata


VERSION_FILE = "_version_"
HISTORY_ROW_VERSION = 1

_ARCHIVE_FILE = re.compile(r"\.commits_\.archive\.([0-9]{1,9})(?:_[0-9]+-[0-9]+-[0-9]+)?")
_MANIFEST_FILE = re.compile(r"manifest_([0-9]{1,9})")
_HISTORY_FILE = re.compile(r"([0-9]{1,32})_([0-9]{1,32})_([0-9]{1,9})\.parquet")
_TIME = re.compile(r"[0-9]{1,32}")
_INT = struct.Struct(">i")
_WRITES = frozenset({COMMIT, DELTA_COMMIT, REPLACE_COMMIT})
_METADATA_FIELDS = ("hoodieCommitMetadata", "hoodieReplaceCommitMetadata", "hoodieCleanMetadata")


@dataclass(frozen=True, slots=True)
class ArchivedInstant:
    """A completed instant from the archive.

    ``action`` is the completed state's (a compaction is a ``commit``). In layout 2, ``metadata`` and ``plan`` are
    the bytes of its completed and its requested file. In layout 1, ``record`` is the decoded metadata; that layout has
    no completion times, so the request time takes its place.
    """

    request_time: str
    completion_time: str
    action: str
    metadata: bytes | None = None
    plan: bytes | None = None
    record: Mapping[str, Any] | None = field(default=None, repr=False)

    @property
    def is_write(self) -> bool:
        """Whether the instant wrote rows, or replaced files."""
        return self.action in _WRITES

    @property
    def has_metadata(self) -> bool:
        """Whether the archive kept the metadata."""
        return self.record is not None or self.metadata is not None

    def parse_commit_metadata(self) -> CommitMetadata:
        """Parse the instant's commit metadata; empty metadata when the archive did not keep it.

        Raises CorruptFileError if the archived bytes are not commit metadata.
        """
        if self.record is not None:
            return CommitMetadata.from_record(self.record)
        return CommitMetadata.from_bytes(self.metadata or b"")

    def parse_clean_metadata(self) -> CleanMetadata:
        """Parse the metadata of a clean; empty metadata when the archive did not keep it.

        Raises CorruptFileError if the archived bytes are not clean metadata.
        """
        from hoodie_py.formats.timeline.plans import CLEAN_METADATA

        if self.record is not None:
            return CLEAN_METADATA.read(self.record)
        return CLEAN_METADATA.read_file(self.metadata or b"")


# Layout 1 ------------------------------------------------------------------------------------------------------------

STATE_FIELDS = {name: Field(name, kinds.TEXT) for name in ("commitTime", "actionType", "actionState")}
_STATE = Record("HoodieArchivedMetaEntry", take_attributes, *STATE_FIELDS.values())


def parse_archive_file_name(name: str) -> int | None:
    """Return N of ``.commits_.archive.N_1-0-1``; None for other names."""
    match = _ARCHIVE_FILE.fullmatch(name)
    return int(match[1]) if match else None


def iterate_archive_entries(data: bytes) -> Iterator[Mapping[str, Any]]:
    """Yield the entries of an archive file of layout 1, one for each state of an instant; errors as
    ``parse_archived_log``.
    """
    for block in iterate_blocks(data):
        if isinstance(block, LogBlock):
            yield from _read_block_records(block)


def parse_archived_log(data: bytes) -> list[ArchivedInstant]:
    """Read an archive file of layout 1: its completed instants in the order they were archived.

    Blocks that were not completely written are skipped, as in any log file.

    Raises:
        CorruptFileError: blocks or records that do not belong into an archive.
        UnsupportedFeatureError: blocks other than Avro.
    """
    found = map(_to_archived_instant, iterate_archive_entries(data))
    return [instant for instant in found if instant is not None]


def _read_block_records(block: LogBlock) -> Iterator[Mapping[str, Any]]:
    if block.type is not BlockType.AVRO_DATA:
        raise UnsupportedFeatureError(
            f"Archive blocks of type {block.type.name} are not supported.", offset=block.offset
        )
    schema = _read_entry_schema(block)
    content = block.content
    if len(content) < 8 or _INT.unpack_from(content, 0)[0] < 1:
        raise CorruptFileError("An archive block has an unknown version.", offset=block.offset)
    (count,) = _INT.unpack_from(content, 4)
    at = 8
    for _ in range(count):
        if at + 4 > len(content):
            raise CorruptFileError("An archive block is cut short.", offset=block.offset)
        (length,) = _INT.unpack_from(content, at)
        at += 4
        if length < 0 or length > len(content) - at:
            raise CorruptFileError("An archive block is cut short.", offset=block.offset)
        yield decode_record(bytes(content[at : at + length]), schema)
        at += length
    if count < 0 or at != len(content):
        raise CorruptFileError("An archive block holds other bytes than its records.", offset=block.offset)


def _read_entry_schema(block: LogBlock) -> VettedSchema:
    schema = vet_schema(block.schema_text or "")
    if schema.name != _STATE.name:
        raise CorruptFileError(f"An archive block holds {schema.name[:100]}.", offset=block.offset)
    return schema


def _to_archived_instant(record: Mapping[str, Any]) -> ArchivedInstant | None:
    state = _STATE.read(record)
    if (state["action_state"] or COMPLETED).lower() != COMPLETED:
        return None
    time = _check_time(state["commit_time"])
    action = state["action_type"] or ""
    known = next((record[name] for name in _METADATA_FIELDS if record.get(name) is not None), None)
    return ArchivedInstant(time, time, COMPLETED_ACTION.get(action, action), record=known)


def keep_newest_entries(files: Iterable[Iterable[ArchivedInstant]]) -> dict[tuple[str, str], ArchivedInstant]:
    """Combine archive files, newest first: of each (request time, action) the entry that completed last, and among
    equal ones the newest file's.

    A metadata table has several of one request time: each partition that is built anew begins with the same few.
    """
    found: dict[tuple[str, str], ArchivedInstant] = {}
    for instants in files:
        for instant in instants:
            known = found.get((instant.request_time, instant.action))
            if known is None or known.completion_time < instant.completion_time:
                found[instant.request_time, instant.action] = instant
    return found


# Layout 2 ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HistoryFile:
    """A Parquet file of the history: its range of request times, its merge level and its size in bytes."""

    name: str
    min_time: str
    max_time: str
    level: int
    size: int | None = None


def _make_history_instant(
    request_time: str | None, completion_time: str | None, version: int | None, **others: Any
) -> ArchivedInstant:
    if version != HISTORY_ROW_VERSION:
        raise UnsupportedFeatureError(f"Archived timeline rows of version {version} are not supported.")
    return ArchivedInstant(_check_time(request_time), _check_time(completion_time), **others)


HISTORY_ROW = Record(
    "HoodieLSMTimelineInstant",
    _make_history_instant,
    Field("instantTime", kinds.TEXT, "request_time"),
    Field("completionTime", kinds.TEXT),
    Field("action", kinds.TEXT_OR_EMPTY),
    Field("metadata", kinds.BYTES),
    Field("plan", kinds.BYTES),
    Field("version", kinds.INT, null=False, default=HISTORY_ROW_VERSION, compose=lambda *_: HISTORY_ROW_VERSION),
)


def parse_history_file_name(name: str, size: int | None = None) -> HistoryFile | None:
    """Parse the name of a history file; None for other names."""
    match = _HISTORY_FILE.fullmatch(name)
    return HistoryFile(name, match[1], match[2], int(match[3]), size) if match else None


def parse_manifest_name(name: str) -> int | None:
    """Return N of ``manifest_N``; None for other names, such as those still being written (``.tmp``)."""
    match = _MANIFEST_FILE.fullmatch(name)
    return int(match[1]) if match else None


def parse_history_version(data: bytes) -> int | None:
    """Read ``_version_``: the number of the current manifest. None when unreadable: then the greatest number counts."""
    text = data.strip()
    return int(text) if text.isdigit() and len(text) < 10 else None


def _get_files(files: tuple[HistoryFile, ...]) -> tuple[HistoryFile, ...]:
    return files


def _make_listed_file(name: str, size: int | None) -> HistoryFile:
    file = parse_history_file_name(name, size)
    if file is None:
        raise CorruptFileError("The manifest of the archived timeline names an unknown file.", file=name[:200])
    return file


LISTED_FILE = Record(
    "LSMFileEntry",
    _make_listed_file,
    Field("fileName", kinds.TEXT_OR_EMPTY, "name"),
    Field("fileLen", kinds.LONG, "size"),
)
_MANIFEST = Record("HoodieLSMTimelineManifest", _get_files, Field("files", kinds.array(nested(LISTED_FILE))))


def parse_history_manifest(data: bytes) -> tuple[HistoryFile, ...]:
    """Read a manifest: the history files of the timeline, each once.

    Raises CorruptFileError: not a manifest, or it names files that are not history files.
    """
    found: dict[str, HistoryFile] = {}
    for file in _MANIFEST.read(parse_json(data)):
        found.setdefault(file.name, file)
    return tuple(found.values())


def parse_history_parquet(data: bytes, *, contents: bool = True) -> list[ArchivedInstant]:
    """Read a history file.

    Without ``contents`` only times and actions are read, no metadata and no plan.

    Raises:
        CorruptFileError: not Parquet, missing columns, or values that are not instants.
        UnsupportedFeatureError: a row version other than 1.
    """
    columns = [each.name for each in HISTORY_ROW.fields if contents or each.kind is not kinds.BYTES]
    file = open_history(data, columns)
    try:
        rows = file.read(columns).to_pylist()
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError, MemoryError) as error:
        raise CorruptFileError("A file of the archived timeline is not a Parquet file of instants.") from error
    return [HISTORY_ROW.read(row) for row in rows]


def open_history(data: bytes, columns: Sequence[str]) -> ParquetFile:
    """Open a history file that has some columns; errors as ``parse_history_parquet``."""
    try:
        file = ParquetFile(pa.BufferReader(data))
        _check_history(file, columns)
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError, MemoryError) as error:
        raise CorruptFileError("A file of the archived timeline is not a Parquet file of instants.") from error
    return file


def _check_history(file: ParquetFile, columns: Sequence[str]) -> None:
    rows = file.metadata.num_rows
    if rows > get_limits().history_rows:
        raise_limit_error(CorruptFileError, f"A file of the archived timeline has {rows} rows", "history_rows")
    check_footer(file)
    missing = [column for column in columns if column not in file.schema_arrow.names]
    if missing:
        raise CorruptFileError(f"A file of the archived timeline lacks the column {missing[0]}.")


def _check_time(text: str | None) -> str:
    if text is None or _TIME.fullmatch(text) is None:
        raise CorruptFileError("An archived instant has no valid time.", value=(text or "")[:100])
    return text


_TYPES = {"string": pa.string(), "bytes": pa.binary(), "int": pa.int32()}
HISTORY_SCHEMA = pa.schema(
    [pa.field(each.name, _TYPES[each.kind.avro], nullable=each.null) for each in HISTORY_ROW.fields]
)
_ROWS = 256
_FOOTER = {"writer.model.name": "avro", "parquet.avro.schema": HISTORY_ROW.java_text}


def make_history_file_name(times: Sequence[str], level: int) -> str:
    """Return the name of a history file by the request times of its instants."""
    return f"{min(times)}_{max(times)}_{level}.parquet"


def make_manifest_name(number: int) -> str:
    """Return the name of a manifest; a greater number is newer."""
    return f"manifest_{number}"


def encode_manifest(files: Iterable[HistoryFile]) -> bytes:
    """Encode a manifest."""
    listed = [LISTED_FILE.write(each) for each in files]
    return json.dumps({"files": listed}, indent=2).encode()


def write_history(sink: Any, batches: Iterable[pa.Table]) -> None:
    """Write a history file of rows that ``make_history_rows`` or ``read_history_batches`` gave.

    ``sink`` is a local path or an open file.
    """
    from pyarrow import parquet as pq

    options: dict[str, Any] = {"compression": "gzip", "use_dictionary": False, "store_schema": False}
    with pq.ParquetWriter(sink, HISTORY_SCHEMA, **options) as writer:
        for batch in batches:
            writer.write_table(batch)
        writer.add_key_value_metadata(_FOOTER)


def make_history_rows(instants: Sequence[ArchivedInstant]) -> pa.Table:
    """Return instants as rows of a history file."""
    return pa.Table.from_pylist([HISTORY_ROW.write(each) for each in instants], HISTORY_SCHEMA)


def read_history_batches(data: bytes) -> Iterator[pa.Table]:
    """Yield the rows of a history file, some at a time.

    Raises:
        CorruptFileError: not Parquet, or missing columns.
        UnsupportedFeatureError: a row version other than 1.
    """
    file = open_history(data, HISTORY_SCHEMA.names)
    try:
        for batch in file.iter_batches(_ROWS, columns=HISTORY_SCHEMA.names):
            rows = pa.Table.from_batches([batch]).select(HISTORY_SCHEMA.names).cast(HISTORY_SCHEMA)
            if rows["version"].unique().to_pylist() != [HISTORY_ROW_VERSION]:
                raise UnsupportedFeatureError("Archived timeline rows of another version are not supported.")
            yield rows
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError, MemoryError) as error:
        raise CorruptFileError("A file of the archived timeline is not a Parquet file of instants.") from error
