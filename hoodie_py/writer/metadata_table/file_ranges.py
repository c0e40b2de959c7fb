"""Measures data files that are there: base files by their footers, log files by their records (Hudi
``HoodieTableMetadataUtil.readColumnRangeMetadataFrom``, ``getLogFileColumnRangeMetadata``).

A file's records count as they are stored, also those that a rollback or a later version hides: ranges may be wider than
what a reader sees, never narrower.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

import pyarrow as pa

from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.files import TableFiles
from hoodie_py.formats.avro.schema import parse_record
from hoodie_py.formats.log.blocks import decode_records
from hoodie_py.formats.log.framing import LogBlock, iterate_blocks
from hoodie_py.formats.metadata_table.column_ranges import (
    ColumnRange,
    FileRanges,
    make_avro_key,
    make_empty_range,
    merge_ranges,
)
from hoodie_py.formats.metadata_table.indexed_columns import IndexedColumns
from hoodie_py.formats.metadata_table.parquet_ranges import read_footer_ranges
from hoodie_py.formats.metadata_table.record_ranges import RecordRanges, find_kinds
from hoodie_py.reader.base.base_file import BaseFileReader
from hoodie_py.reader.file_slice import BaseFile
from hoodie_py.runtime.telemetry import carry_span

_PARQUET = ".parquet"
_BATCH_ROWS = 64 * 1024
_AT_ONCE = 16


def measure_files(
    files: TableFiles, paths: Iterable[str], indexed: IndexedColumns, *, as_java: bool = False
) -> Iterator[tuple[str, FileRanges | None]]:
    """Yield each path with the ranges of its file, in order; some files are read at once. Errors: ``measure_file``."""
    measure = carry_span(lambda path: measure_file(files, path, indexed, as_java=as_java))
    with ThreadPoolExecutor(_AT_ONCE, "hoodie-statistics") as pool:
        remaining = iter(paths)
        while some := list(islice(remaining, 4 * _AT_ONCE)):
            yield from zip(some, pool.map(measure, some), strict=True)


def measure_file(files: TableFiles, path: str, indexed: IndexedColumns, *, as_java: bool = False) -> FileRanges | None:
    """Return the ranges of the indexed columns in a base or log file, None where the file's format or types have none.

    ``as_java``: what Java 1.2.0 writes, also where that is wrong (``parquet_ranges``).

    Raises:
        CorruptFileError: the file is damaged.
        FileMissingError: the file is missing.
        StorageError: the store refused.
    """
    name = path.rpartition("/")[2]
    if name.startswith("."):
        return _measure_log(files, path, indexed)
    if not name.endswith(_PARQUET):
        return None
    reader = BaseFileReader(files, BaseFile(path, 0, "", ""))
    if reader.footer is None:
        return None
    found = read_footer_ranges(reader.footer, indexed.names, indexed.version, as_java=as_java)
    if found is None or not found.incomplete:
        return found
    return found.complete(_measure_columns(reader, found))


def complete_ranges(files: TableFiles, path: str, found: FileRanges) -> FileRanges:
    """Return the ranges of a base file with those of incomplete columns read from it. Errors as ``measure_file``."""
    if not found.incomplete:
        return found
    return found.complete(_measure_columns(BaseFileReader(files, BaseFile(path, 0, "", "")), found))


def _measure_columns(reader: BaseFileReader, found: FileRanges) -> Mapping[str, ColumnRange]:
    """Read the incomplete columns."""
    kinds = {each.column: each.kind for each in found.ranges if each.column in found.incomplete}
    collected = RecordRanges(kinds)
    schema = reader.schema
    names = list(dict.fromkeys(column.split(".")[0] for column in kinds))
    wanted = pa.schema([schema.field(name) for name in names if name in schema.names])
    for batch in reader.read_batches(wanted, _BATCH_ROWS):
        collected.add(batch)
    return {each.column: each for each in collected.finish() if each.values}


def _measure_log(files: TableFiles, path: str, indexed: IndexedColumns) -> FileRanges | None:
    ranges: dict[str, list[ColumnRange]] = {}
    for block in iterate_blocks(files.read(path)):
        if not isinstance(block, LogBlock) or not block.is_data:
            continue  # readers leave corrupt blocks out, too
        collected = RecordRanges(find_kinds(indexed.names, parse_record(block.schema_text or "")))
        collected.add(decode_records(block))
        for each in collected.finish():
            ranges.setdefault(each.column, []).append(each)
    if not ranges:
        return FileRanges(tuple(make_empty_range(name) for name in indexed.names))
    try:
        return FileRanges(tuple(merge_ranges(each, key=make_avro_key) for each in ranges.values()))
    except UnsupportedFeatureError:  # the file's blocks have different types
        return None
