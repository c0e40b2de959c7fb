"""Choose the row groups of a base file that may contain rows for a filter.

A row group that is left out has no row that passes. Only for file slices without log files, because log rows change
values. Three tests are made, cheapest first:

1. The statistics of the row groups.
2. For filters on the record key, the bloom filter in the file's footer.
3. If the filter lists a few values of one column, that column's values, which are read alone: statistics of unordered
   keys exclude little, and one column is a small part of a file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hoodie_py.arrow.arrays import from_texts, to_booleans
from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.formats.names import RECORD_KEY_FIELD
from hoodie_py.formats.parquet.bloom import BloomFilter
from hoodie_py.formats.parquet.decoder import find_column_chunk_ranges
from hoodie_py.formats.parquet.key_range import BLOOM_KEY, BLOOM_TYPE_KEY
from hoodie_py.reader.base.file_formats import OpenBaseFile
from hoodie_py.reader.base.mapped_file import MappedBaseFile
from hoodie_py.table.filter.evaluate import evaluate
from hoodie_py.table.filter.predicate import ListedValues, Predicate
from hoodie_py.table.filter.pruning import lies_outside, may_match_statistics

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_MOST_KEYS = 1000  # the most keys that are looked up in a bloom filter
_LEAST_GAIN = 4  # how many times its own bytes reading a column alone must be able to save
_MOST_FOUND = 2  # row groups with wanted rows, after which the others are likely to have some as well


def choose_row_groups(
    base: OpenBaseFile,
    predicate: Predicate,
    schema: pa.Schema,
    columns: Collection[str],
    unstored: Collection[str],
    batch_rows: int,
) -> list[int]:
    """Return the numbers of the row groups to read, ascending.

    ``columns`` will be read; values of ``unstored`` columns may differ from the values in the file.

    Raises:
        CorruptFileError: a bloom filter or a page is damaged.
    """
    stored = predicate.columns & base.columns - set(unstored)
    footer = base.footer
    names = base.stored_names if isinstance(base, MappedBaseFile) else {name: name for name in base.columns}
    usable = {names[name]: name for name in stored - base.retyped}
    parts = [(part, part.listed_values) for part in predicate.conjuncts]
    listed = [values for _, values in parts if values is not None and values.column in stored]
    groups = [
        group
        for group in range(len(base.group_rows) if footer is None else footer.num_row_groups)
        if footer is None or _may_match(predicate, listed, _read_statistics(footer, group, usable))
    ]
    if not groups:
        return []
    wanted = {}
    for part, values in parts:
        if values is None or values.column not in stored:
            continue
        if values.column == RECORD_KEY_FIELD and not _may_be_in_bloom(base.key_facts, values.values):
            return []
        wanted[values.column] = part
    if not wanted or footer is None:
        return groups
    sizes = {name: _count_bytes(footer, groups, [names[name]]) for name in wanted}
    name = min(sizes, key=lambda each: (sizes[each], each))
    held = [names[each] for each in columns if each in names]
    if _count_bytes(footer, groups, held) - sizes[name] < _LEAST_GAIN * sizes[name]:
        return groups
    return list(_iterate_matching_groups(base, groups, wanted[name], pa.schema([schema.field(name)]), batch_rows))


def _may_match(
    predicate: Predicate, listed: Sequence[ListedValues], statistics: Mapping[str, tuple[Any, Any, int | None]]
) -> bool:
    """Say whether a row group may contain rows that pass; lists of values are tested first, as that is cheap."""
    for each in listed:
        known = statistics.get(each.column)
        if known is not None and lies_outside(each, known[0], known[1]):
            return False
    return may_match_statistics(predicate, statistics)


def _may_be_in_bloom(facts: Mapping[bytes, bytes], keys: Sequence[Any]) -> bool:
    """Say whether a file may contain one of the record keys, by the bloom filter in its footer."""
    text, kind = facts.get(BLOOM_KEY.encode()), facts.get(BLOOM_TYPE_KEY.encode())
    if text is None or len(keys) > _MOST_KEYS:
        return True
    try:
        bloom = BloomFilter.from_text(text.decode("latin-1"), None if kind is None else kind.decode("latin-1"))
    except UnsupportedFeatureError:  # an unknown kind of filter excludes nothing
        return True
    return bool(bloom.may_contain(from_texts(keys, pa.string())).any())


def _iterate_matching_groups(
    base: OpenBaseFile, groups: Sequence[int], part: Predicate, schema: pa.Schema, batch_rows: int
) -> Iterator[int]:
    """Yield the row groups with rows that pass, by reading one column; after several hits, yield all others unread."""
    found = 0
    for group in groups:
        if found == _MOST_FOUND or any(
            to_booleans(evaluate(part, batch)).any() for batch in base.read_batches(schema, batch_rows, [group])
        ):
            found = min(found + 1, _MOST_FOUND)
            yield group


def _count_bytes(metadata: pq.FileMetaData, groups: Sequence[int], columns: Collection[str]) -> int:
    """Return the bytes of some columns in some row groups."""
    ranges = (each for group in groups for each in find_column_chunk_ranges(metadata, group, columns))
    return sum(stop - start for start, stop in ranges)


def _read_statistics(
    metadata: pq.FileMetaData, group: int, columns: Mapping[str, str]
) -> dict[str, tuple[Any, Any, int | None]]:
    """Return (min, max, null count) of columns with statistics in a row group; ``columns``: names by stored name."""
    row_group = metadata.row_group(group)
    found: dict[str, tuple[Any, Any, int | None]] = {}
    for i in range(row_group.num_columns):
        chunk = row_group.column(i)
        if chunk.path_in_schema in columns and chunk.is_stats_set and chunk.statistics.has_min_max:
            statistics = chunk.statistics
            found[columns[chunk.path_in_schema]] = (
                statistics.min,
                statistics.max,
                statistics.null_count if statistics.has_null_count else None,
            )
    return found
