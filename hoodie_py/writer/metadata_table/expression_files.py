"""Measures data files for expression indexes: what a function gives for their values (Hudi
``ExpressionIndexRecordGenerationUtils``).

Results that cannot be told as Spark would (``formats/metadata_table/expressions``) have the widest range, or a filter
that has all keys: readers then open these files, and Java's records are narrower once it rewrites them. As Java does,
null results are not among the number of values, and sizes are those of the file, and twice that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from hoodie_py.errors import InvalidTableError
from hoodie_py.files import TableFiles
from hoodie_py.formats.avro.schema import parse_record
from hoodie_py.formats.log.blocks import decode_records
from hoodie_py.formats.log.framing import LogBlock, iterate_blocks
from hoodie_py.formats.metadata_table.column_ranges import ColumnRange
from hoodie_py.formats.metadata_table.expressions import apply_function, find_result_kind
from hoodie_py.formats.metadata_table.index_definitions import IndexDefinition
from hoodie_py.formats.metadata_table.record_ranges import RecordRanges, find_kinds
from hoodie_py.formats.metadata_table.value_kinds import ValueKind
from hoodie_py.formats.metadata_table.widest_ranges import make_widest_range
from hoodie_py.formats.parquet.bloom import BloomBuilder, BloomFilter, BloomSettings
from hoodie_py.reader.base.file_formats import open_by_extension
from hoodie_py.reader.file_slice import BaseFile

_BATCH_ROWS = 64 * 1024

_WHOLE = BloomFilter(8, 1, [np.full(1, 0xFF, np.uint8)], per_row=None, in_last_row=0)


def find_kind(definition: IndexDefinition, schema: str) -> ValueKind | None:
    """Return the kind of an index's values on a table with a schema (Avro, JSON); None if it can have no ranges."""
    kinds = find_kinds(definition.columns, parse_record(schema))
    kind = find_result_kind(definition, kinds.get(definition.columns[0]))
    if kind is None or make_widest_range("", kind) is None:
        return None
    return kind


def iterate_results(files: TableFiles, path: str, definition: IndexDefinition) -> Iterator[pa.Array | None]:
    """Yield the results for the values in a data file; None for some that cannot be told.

    Raises:
        CorruptFileError, FileMissingError: the file cannot be read.
        StorageError: the store refused.
    """
    [column] = definition.columns
    for batch in _read_column(files, path, column):
        place = batch.schema.get_field_index(column)
        yield None if place < 0 else apply_function(definition, batch.column(place))


def make_bloom(files: TableFiles, path: str, definition: IndexDefinition) -> BloomFilter:
    """Make the filter of a base file. Errors as for ``iterate_results``."""
    builder = BloomBuilder(BloomSettings(dynamic=False, fitted=True))
    for results in iterate_results(files, path, definition):
        texts = None if results is None else make_texts(results)
        if texts is None:
            return _WHOLE
        builder.add(texts)
    return builder.finish()


def make_texts(results: pa.Array) -> pa.Array | None:
    """Return results as Java adds them to a bloom filter, without nulls; None for types whose texts are not known."""
    if not (pa.types.is_string(results.type) or pa.types.is_integer(results.type)):
        return None
    return results.drop_null().cast(pa.string())


def measure_results(
    files: TableFiles, path: str, size: int, definition: IndexDefinition, kind: ValueKind
) -> ColumnRange:
    """Return the range of a data file of ``size`` bytes. Errors as for ``iterate_results``."""
    found = find_exact_range(files, path, definition, kind)
    if found is None:
        found = make_widest_range(definition.columns[0], kind)
    if found is None:
        raise InvalidTableError("An expression index has values that have no order.", index=definition.name)
    # Java merges ranges of one kind only.
    return replace(found, kind=kind, values=found.values - found.nulls, size=size, uncompressed=2 * size)


def find_exact_range(files: TableFiles, path: str, definition: IndexDefinition, kind: ValueKind) -> ColumnRange | None:
    """Return the range of a file's results, nulls among the values; None where they cannot be told."""
    [column] = definition.columns
    collected = RecordRanges({column: kind})
    for results in iterate_results(files, path, definition):
        if results is None:
            return None
        collected.add(pa.RecordBatch.from_arrays([results], names=[column]))
    return collected.finish()[0]


def _read_column(files: TableFiles, path: str, column: str) -> Iterator[pa.RecordBatch]:
    if path.rpartition("/")[2].startswith("."):
        for block in iterate_blocks(files.read(path)):
            if isinstance(block, LogBlock) and block.is_data:
                yield decode_records(block, [column])
        return
    reader = open_by_extension(files, BaseFile(path, 0, "", ""))
    yield from reader.read_batches(pa.schema([f for f in reader.schema if f.name == column]), _BATCH_ROWS)
