"""The values of an expression index: a function's results in a data file (Hudi
``ExpressionIndexRecordGenerationUtils``).

Results that cannot be computed as Spark does (``formats/indexes/expressions``) are not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from hoodie_py.errors import InvalidTableError
from hoodie_py.files import TableFiles
from hoodie_py.formats.avro.schema import parse_record
from hoodie_py.formats.indexes.bounds import NO_VALUES, ValueKind
from hoodie_py.formats.indexes.definitions import IndexDefinition
from hoodie_py.formats.indexes.expressions import apply_function, find_result_kind
from hoodie_py.formats.indexes.measure import RecordRanges, find_kinds
from hoodie_py.formats.indexes.ranges import ColumnRange, make_widest_range, merge_ranges, simplify_range
from hoodie_py.formats.log.blocks import decode_records
from hoodie_py.formats.log.framing import LogBlock, iterate_blocks
from hoodie_py.reader.base.file_formats import open_by_extension
from hoodie_py.reader.file_slice import BaseFile
from hoodie_py.writer.indexes.table_source import IndexSource

_BATCH_ROWS = 64 * 1024


def find_definition(source: IndexSource) -> IndexDefinition:
    """Return the definition of the source's index. Raises InvalidTableError if it names no column."""
    definition = source.definition
    if definition is None or len(definition.columns) != 1:
        raise InvalidTableError("An expression index needs the definition that names its column.")
    return definition


def find_kind(definition: IndexDefinition, schema: str) -> ValueKind | None:
    """Return the kind of an index's values on a table with a schema (Avro, JSON); None if they can have no ranges."""
    kinds = find_kinds(definition.columns, parse_record(schema))
    kind = find_result_kind(definition, kinds.get(definition.columns[0]))
    if kind is None or make_widest_range("", kind) is None:
        return None
    return kind


def iterate_results(files: TableFiles, path: str, definition: IndexDefinition) -> Iterator[pa.Array | None]:
    """Yield expression results per batch of a data file; None where they cannot be computed.

    Raises:
        CorruptFileError, FileMissingError: the file cannot be read.
        StorageError: the store refused.
    """
    [column] = definition.columns
    for batch in _read_column(files, path, column):
        place = batch.schema.get_field_index(column)
        yield None if place < 0 else apply_function(definition, batch.column(place))


def make_texts(results: pa.Array) -> pa.Array | None:
    """Return results as Java adds them to a bloom filter, without nulls; None for types whose texts are unknown."""
    if not (pa.types.is_string(results.type) or pa.types.is_integer(results.type)):
        return None
    return results.drop_null().cast(pa.string())


def find_exact_range(files: TableFiles, path: str, definition: IndexDefinition, kind: ValueKind) -> ColumnRange | None:
    """Return the range of a file's results, nulls counted as values; None where they cannot be computed."""
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


def merge_file_ranges(ranges: Iterable[ColumnRange], definition: IndexDefinition) -> ColumnRange | None:
    """Return the common range of one or more files; None if their values are of different kinds."""
    every = [simplify_range(each, definition.version or 1) for each in ranges]
    return merge_ranges(every) if len({each.kind for each in every} - {NO_VALUES}) <= 1 else None
