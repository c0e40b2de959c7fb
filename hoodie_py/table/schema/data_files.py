"""Reads the schema of the newest data files (Hudi ``TableSchemaResolver.getTableSchemaFromLatestDataFile``).

Two facts are only in data files: the operation column, which writers add under an option that no table property
records, and the whole schema, if the commits have none. A base file has its schema in the footer, a log file in the
header of its first data block.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import pyarrow as pa

from hoodie_py.errors import CorruptFileError, FileMissingError, HoodieError, UnsupportedFeatureError, locate_errors
from hoodie_py.files import TableFiles
from hoodie_py.formats.names import (
    METADATA_BOOTSTRAP_INSTANT,
    check_inside,
    parse_base_file_name,
    parse_log_file_name,
)
from hoodie_py.formats.timeline.timeline import Instant
from hoodie_py.reader.file_slice import BaseFile
from hoodie_py.table.timeline.loader import TableTimeline

_KNOWN = (".parquet", ".orc", ".lance")
_MOST_FILES = 8  # that are tried
_FRAME_HEAD = 14  # bytes of a log block up to the end of its length
_FIRST_READ = 1 << 20
_MOST_BLOCK_BYTES = 1 << 28  # a larger first block is not read for its schema


def read_newest_data_schema(
    timeline: TableTimeline, instants: Sequence[Instant], *, tolerant: bool = False
) -> pa.Schema | None:
    """Return the schema, in Spark's types, of a data file that the newest of ``instants`` with rows wrote.

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


def has_written_rows(timeline: TableTimeline, instants: Sequence[Instant]) -> bool:
    """Say whether one of these completed writes names a file with rows."""
    return next(_iterate_written_files(timeline, instants), None) is not None


def read_file_schema(files: TableFiles, path: str) -> pa.Schema | None:
    """Return the schema of one base or log file.

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
    from hoodie_py.formats.avro.data_blocks import AvroSchema
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
