"""Finds the columns of a full scan, as of an instant.

The rules (Hudi ``TableSchemaResolver``):

* The schema comes from the newest completed write whose metadata has one; else from the table's create schema; else
  from a data file.
* A table without a schema and without commits that wrote rows has no columns (Hudi ``EmptyRelation``).
* Stored schemas may have the meta columns or not. They are removed, and put in front if the table populates them. The
  operation column is the sixth, if data files have it: writers add it under an option that no table property records.
* Partition columns that files leave out (``drop.partition.columns``) come last. They have the create schema's type, or
  string.
* Partition columns that a timestamp key generator formats are strings, as in Spark.
* Fields of structs are nullable, as in Spark, whatever the stored schema says.
* Schema-on-read matches renamed, dropped and re-added columns by id, by the schema with ids that the same write
  recorded (``by_id``). Tables that only store such a schema are distinguished from tables that need it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import pyarrow as pa

from hoodie_py.arrow.fields import relax_structs
from hoodie_py.errors import (
    CorruptFileError,
    FileMissingError,
    HoodieError,
    InvalidTableError,
    UnsupportedFeatureError,
    locate_errors,
)
from hoodie_py.files import TableFiles
from hoodie_py.formats.avro.arrow_types import list_declared_times
from hoodie_py.formats.avro.data_blocks import AvroSchema
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.names import (
    META_FIELDS,
    METADATA_BOOTSTRAP_INSTANT,
    OPERATION_FIELD,
    check_inside,
    parse_base_file_name,
    parse_log_file_name,
)
from hoodie_py.formats.timeline.commit_metadata import CommitMetadata
from hoodie_py.formats.timeline.timeline import Instant
from hoodie_py.reader.file_slice import BaseFile
from hoodie_py.reader.schema_evolution.file_mappings import FileMappings
from hoodie_py.table.timeline.loader import TableTimeline
from hoodie_py.table.view.partition_values import is_formatted_time

_KNOWN = (".parquet", ".orc", ".lance")
_MOST_FILES = 8  # that are tried
_FRAME_HEAD = 14  # bytes of a log block up to the end of its length
_FIRST_READ = 1 << 20
_MOST_BLOCK_BYTES = 1 << 28  # a larger first block is not read for its schema


@dataclass(frozen=True, slots=True)
class TableSchema:
    """Columns of a full scan.

    Attributes:
        arrow: all columns in order, meta columns first, in Spark's types.
        defaults: by column, the value for rows of files without the column, if it is not null.
        text: the stored Avro schema (JSON); None if a data file gave the columns.
        instant: request time of the write with the schema; None for the create schema or a data file.
        times: time columns with their declared types (``list_declared_times``); None without such columns.
        mappings: the columns' names in files of each instant, if columns of older files must be matched by id, as
            they were renamed, re-added or retyped; else None.
        latest_schema: the schema with ids (JSON) of the write that has ``text``; None if it has none.
    """

    arrow: pa.Schema
    defaults: Mapping[str, Any] = field(default_factory=dict)
    text: str | None = None
    instant: str | None = None
    times: pa.Schema | None = None
    mappings: FileMappings | None = None
    latest_schema: str | None = None

    @property
    def data_columns(self) -> tuple[str, ...]:
        """Names of the columns that are not meta columns."""
        return tuple(name for name in self.arrow.names if name not in META_FIELDS and name != OPERATION_FIELD)


def resolve_schema(timeline: TableTimeline, as_of: str | None = None) -> TableSchema:
    """Return the table's schema as of a request time (None: now); before the first write, today's schema.

    Raises:
        InvalidTableError: commits wrote rows, but neither they nor the table properties nor a data file has a schema.
        CorruptFileError: a stored schema, timeline file or data file is damaged.
        UnsupportedFeatureError: a column type that is not handled.
        StorageError: reading failed.
    """
    config = timeline.config
    writes = [each for each in timeline.list_completed_writes() if as_of is None or each.request_time <= as_of]
    instant, metadata = _find_stored_schema(timeline, writes, as_of)
    text = (None if metadata is None else metadata.schema) or config.create_schema
    data = None
    if config.populate_meta_fields or text is None:
        # Even with a stored schema: only a data file shows whether there is an operation column.
        data = _read_newest_data_schema(timeline, writes, tolerant=text is not None)
    if text is not None:
        with locate_errors(instant=instant):
            avro = AvroSchema.parse(text)
        arrow, defaults, times = avro.arrow, avro.defaults, list_declared_times(avro.record)
    else:
        arrow, defaults, times = data, {}, None
    if arrow is None:
        if as_of is not None:
            # Nothing was written before ``as_of``.
            return resolve_schema(timeline)
        if not _has_written_rows(timeline, writes):
            return TableSchema(pa.schema([]))
        raise InvalidTableError(
            "The table's columns are unknown: no commit, no create schema and no data file has them.",
            table=config.name,
        )
    fields = [relax_structs(each) for each in arrow if each.name not in META_FIELDS and each.name != OPERATION_FIELD]
    fields = _add_partition_columns(config, fields)
    if config.populate_meta_fields:
        with_operation = data is not None and OPERATION_FIELD in data.names
        meta = (*META_FIELDS, OPERATION_FIELD) if with_operation else META_FIELDS
        fields = [*(pa.field(name, pa.string()) for name in meta), *fields]
    names = {each.name for each in fields}
    kept = {name: value for name, value in defaults.items() if name in names}
    latest = None if metadata is None else metadata.latest_schema
    mappings = None if latest is None else _load_mappings(timeline, latest, instant)
    return TableSchema(pa.schema(fields), kept, text, instant, times, mappings, latest)


def _find_stored_schema(
    timeline: TableTimeline, writes: Sequence[Instant], as_of: str | None
) -> tuple[str | None, CommitMetadata | None]:
    """Return instant and metadata of the newest write that has a schema."""
    for instant in reversed(writes):
        metadata = timeline.read_metadata(instant)
        if metadata.schema:
            return instant.request_time, metadata
    if not writes and as_of is not None and any(each.is_write for each in timeline):
        for request_time, metadata in timeline.read_archive().iterate_writes_back_from(as_of):
            if metadata.schema:
                return request_time, metadata
    return None, None


def _load_mappings(timeline: TableTimeline, latest: str, instant: str | None) -> FileMappings | None:
    from hoodie_py.formats.avro.columns import parse_internal_schema
    from hoodie_py.table.schema.by_id import make_mappings
    from hoodie_py.table.schema.history import load_schema_history

    with locate_errors(instant=instant):
        return make_mappings(parse_internal_schema(latest), load_schema_history(timeline))


def _add_partition_columns(config: TableConfig, fields: Sequence[pa.Field]) -> list[pa.Field]:
    """Give formatted partition columns the type string, and append partition columns that no file stores."""
    typed = [pa.field(each.name, pa.string()) if is_formatted_time(config, each.name) else each for each in fields]
    if not config.drop_partition_columns:
        return typed
    created = AvroSchema.parse(config.create_schema).arrow if config.create_schema else pa.schema([])
    present = {each.name for each in typed}
    for name in config.partition_fields:
        if name in present or "." in name:
            continue
        index = created.get_field_index(name)
        known = created.field(index).type if index >= 0 and not is_formatted_time(config, name) else pa.string()
        typed.append(pa.field(name, known))
    return typed


def _read_newest_data_schema(
    timeline: TableTimeline, instants: Sequence[Instant], *, tolerant: bool = False
) -> pa.Schema | None:
    """Return the schema, in Spark's types, of a data file that the newest of ``instants`` with rows wrote.

    Agrees with Hudi's ``TableSchemaResolver.getTableSchemaFromLatestDataFile``.

    Missing files (cleaned, replaced) are skipped. None if the first few files have no schema. ``instants``: completed
    writes, oldest first. ``tolerant``: also skip damaged files and types that are not handled, for callers that need no
    rows of the file; a reader of its rows gets the error.

    Raises:
        CorruptFileError: the file is damaged.
        UnsupportedFeatureError: a column type that is not handled.
        StorageError: reading failed.
    """
    for path in islice(_iterate_written_files(timeline, reversed(instants)), _MOST_FILES):
        try:
            schema = read_file_schema(timeline.files, path)
        except FileMissingError:
            continue
        except (CorruptFileError, UnsupportedFeatureError):
            if tolerant:
                continue
            raise
        if schema is not None:
            return schema
    return None


def _has_written_rows(timeline: TableTimeline, instants: Sequence[Instant]) -> bool:
    """Say whether one of these completed writes names a file with rows."""
    return next(_iterate_written_files(timeline, instants), None) is not None


def read_file_schema(files: TableFiles, path: str) -> pa.Schema | None:
    """Return the schema of one base or log file.

    A base file has its schema in the footer, a log file in the header of its first data block.

    None for other files, for log files without a data block, and for base files of a metadata-only bootstrap, which
    have only meta columns.
    """
    name = path.rpartition("/")[2]
    with locate_errors(path=path):
        if name.startswith("."):
            parsed = parse_log_file_name(name)
            return None if parsed is None or parsed.is_cdc else _read_log_schema(files, path)
        base = parse_base_file_name(name)
        if base is None or base.instant == METADATA_BOOTSTRAP_INSTANT or base.extension not in _KNOWN:
            return None
        if base.extension == ".parquet":
            return _read_parquet_schema(files, path)
        from hoodie_py.reader.base.file_formats import open_by_extension

        return open_by_extension(files, BaseFile(path, 0, base.instant, base.file_id)).schema


def _iterate_written_files(timeline: TableTimeline, instants: Iterable[Instant]) -> Iterator[str]:
    for instant in instants:
        for stats in timeline.read_metadata(instant).write_stats.values():
            for stat in stats:
                if stat.path and (stat.num_inserts or stat.num_update_writes or stat.num_writes):
                    yield check_inside(stat.path)


def _read_parquet_schema(files: TableFiles, path: str) -> pa.Schema:
    from hoodie_py.formats.logical_types.vector import mark_columns
    from hoodie_py.formats.parquet.decoder import check_footer, convert_to_spark_schema
    from hoodie_py.formats.parquet.parquet_file import ParquetFile

    try:
        with files.open_file(path) as source:
            parquet = ParquetFile(source)
            check_footer(parquet, 1)
            return mark_columns(convert_to_spark_schema(parquet.schema_arrow), parquet.metadata.metadata)
    except HoodieError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise CorruptFileError(f"The file is no Parquet file: {error}") from error


def _read_log_schema(files: TableFiles, path: str) -> pa.Schema | None:
    from hoodie_py.formats.log.framing import LogBlock, iterate_blocks

    # The first read takes most blocks whole. A longer first block is read again by the length in its frame.
    size = files.stat(path).size
    stop = min(size, _FIRST_READ)
    data = files.read_range(path, 0, stop)
    if stop < size and len(data) >= _FRAME_HEAD:
        wanted = min(size, _FRAME_HEAD + max(0, int.from_bytes(data[6:_FRAME_HEAD], "big", signed=True)))
        if stop < wanted <= _MOST_BLOCK_BYTES:
            data = files.read_range(path, 0, wanted)
    for block in iterate_blocks(data):
        if isinstance(block, LogBlock) and block.is_data and block.schema_text and not block.is_partial:
            return AvroSchema.parse(block.schema_text).arrow
    return None
