"""The records of a new expression index, portion by portion (Hudi ``ExpressionIndexRecordGenerationUtils``).

As in Java they describe the files that readers see: ranges of base and log files and of each partition, or bloom
filters of base files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

from hoodie_py.errors import InvalidTableError
from hoodie_py.formats.indexes.definitions import BLOOM_FILTERS, IndexDefinition
from hoodie_py.formats.indexes.ranges import ColumnRange, make_widest_range
from hoodie_py.writer.indexes.blooms import make_bloom_records
from hoodie_py.writer.indexes.expressions import (
    FileRange,
    find_kind,
    make_file_bloom,
    make_range_records,
    measure_results,
    merge_file_ranges,
)
from hoodie_py.writer.indexes.index import GroupPlan, Portion
from hoodie_py.writer.indexes.partition_ranges import tighten
from hoodie_py.writer.indexes.table_ranges import place_records
from hoodie_py.writer.indexes.table_source import IndexSource
from hoodie_py.writer.output_schema import load_output_schema

_AT_ONCE = 4  # columns of files that are read side by side
_BLOOMS_AT_ONCE = 32


def make_expressions(source: IndexSource, groups: GroupPlan) -> Iterator[Portion]:
    """Yield the records of an expression index.

    Raises:
        InvalidTableError: the index has no definition, or nothing can be computed by it.
        CorruptFileError, FileMissingError: a file cannot be read.
    """
    definition = find_definition(source)
    with ThreadPoolExecutor(_AT_ONCE, "hoodie-expressions") as pool:
        if definition.kind == BLOOM_FILTERS:
            yield from _make_blooms(source, groups, definition, pool)
            return
        measure = _make_measure(source, definition)
        for path, files in source.visible_files.items():
            found: list[FileRange] = []
            remaining = iter(files)
            while some := list(islice(remaining, 4 * _AT_ONCE)):
                found += (each for each in pool.map(measure, some) if each.has_rows)
            partitions = {path: whole} if (whole := join_files(found, definition)) is not None else {}
            yield place_records(make_range_records(found, tighten(partitions), definition), groups)


def find_definition(source: IndexSource) -> IndexDefinition:
    """Return the definition of the source's index. Raises InvalidTableError if it names no column."""
    definition = source.definition
    if definition is None or len(definition.columns) != 1:
        raise InvalidTableError("An expression index needs the definition that names its column.")
    return definition


def join_files(found: Sequence[FileRange], definition: IndexDefinition) -> ColumnRange | None:
    """Return the common range of the files of a partition; None without files."""
    if not found:
        return None
    ranges = [each.range for each in found]
    return merge_file_ranges(ranges, definition) or make_widest_range(definition.columns[0], ranges[0].kind)


def _make_measure(source: IndexSource, definition: IndexDefinition) -> Callable[[str], FileRange]:
    kind = find_kind(definition, load_output_schema(source.snapshot).avro)
    if kind is None:
        raise InvalidTableError("An expression index has values that have no order.", index=definition.name)
    files = source.snapshot.files

    def measure(path: str) -> FileRange:
        folder, _, name = path.rpartition("/")
        return FileRange(folder, name, measure_results(files, path, source.files[folder][name], definition, kind))

    return measure


def _make_blooms(
    source: IndexSource, groups: GroupPlan, definition: IndexDefinition, pool: ThreadPoolExecutor
) -> Iterator[Portion]:
    last = source.snapshot.timeline.select_completed().last
    instant = "" if last is None else last.request_time
    every = (path.rpartition("/") for files in source.visible_files.values() for path in files)
    bases = ((folder, name) for folder, _, name in every if not name.startswith("."))
    files = source.snapshot.files
    while some := list(islice(bases, _BLOOMS_AT_ONCE)):
        blooms = list(pool.map(lambda place: make_file_bloom(files, place[0], place[1], definition), some))
        yield place_records(make_bloom_records(blooms, instant), groups)
