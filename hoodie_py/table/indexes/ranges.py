"""Indexes of ranges: file slices are left out by the ranges of columns, of an expression, or of whole partitions.

    ColumnStatsFilter     column_stats     columns of each file (Hudi ``ColumnStatsIndexSupport``)
    ExpressionFilter      expr_index_*     values of an expression in each file (``ExpressionIndexSupport``)
    PartitionStatsFilter  partition_stats  columns of each partition (``PartitionStatsIndexSupport``)

These columns may have any value, whatever the statistics say:

* partition columns, as their values come from the path;
* columns whose default is not null, as files without the column have the default;
* all columns of tables whose columns were renamed or retyped by schema-on-read, of bootstrapped files, and of slices
  with log files whose merger may compute new values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.arrays import from_numpy, index_in, is_valid, join_chunks, take, to_numbers
from hoodie_py.errors import CorruptFileError, HoodieError
from hoodie_py.files import TableFiles
from hoodie_py.formats.indexes.definitions import COLUMN_STATS, EXPRESSION_PREFIX, PARTITION_STATS, IndexDefinition
from hoodie_py.formats.indexes.keys import encode_names, encode_partitions, make_partition_keys
from hoodie_py.formats.indexes.own_instants import is_own
from hoodie_py.formats.indexes.record_schema import STATISTICS_COLUMN
from hoodie_py.formats.names import RECORD_KEY_FIELD
from hoodie_py.formats.timeline.instants import DELTA_COMMIT
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.table.filter.bounds import UNKNOWN, ColumnBounds, find_candidates, name_expression
from hoodie_py.table.filter.predicate import Column, InList, Like, Literal, iterate_nodes
from hoodie_py.table.indexes.file_ranges import list_files, read_bounds, read_ranges
from hoodie_py.table.indexes.index import FilterRequest, Mask, SliceFilter
from hoodie_py.table.indexes.view import KEY, MetadataView, read_definitions
from hoodie_py.table.timeline.loader import TableTimeline
from hoodie_py.table.view.partition_values import is_formatted_time

_HINT = "Drop the index and build it again, or read without it (hoodie.enable.data.skipping=false)."


def check_footers(
    files: TableFiles, skipped: Iterable[tuple[FileSlice, int]], bounds: Mapping[str, ColumnBounds], index: str
) -> None:
    """Verify skipped files: the footer of each base file must agree with the bounds that excluded it.

    Each slice comes with the number of its bounds. Only for reads with the integrity "strict", as it opens every
    Parquet file that was left out.

    Raises:
        CorruptFileError: a value in a footer is outside of the bounds, or null where none should be.
        StorageError: the store refused.
    """
    for file_slice, number in skipped:
        base = file_slice.base_file
        if base is None or not base.path.endswith(".parquet"):
            continue
        for name, low, high, nulls in _read_chunks(files, base.path):
            known = bounds.get(name)
            if known is None:
                continue
            outside = _is_below(low, known.low, number) or _is_above(high, known.high, number)
            if outside or (nulls and known.nulls is not None and known.nulls[number] == 0):
                raise CorruptFileError(
                    f"The statistics of the column {name!r} in {index} contradict the file.", hint=_HINT, path=base.path
                )


def _read_chunks(files: TableFiles, path: str) -> Iterable[tuple[str, Any, Any, int | None]]:
    """Return the columns of all row groups that have statistics: least and greatest value, number of nulls."""
    from hoodie_py.formats.parquet.decoder import check_footer
    from hoodie_py.formats.parquet.parquet_file import ParquetFile

    try:
        with files.open_file(path) as source:
            parquet = ParquetFile(source)
            check_footer(parquet, 1)
            groups = [parquet.metadata.row_group(at) for at in range(parquet.metadata.num_row_groups)]
    except HoodieError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise CorruptFileError(f"The file is no Parquet file: {error}", path=path) from error
    for group in groups:
        for at in range(group.num_columns):
            chunk = group.column(at)
            if chunk.is_stats_set:
                found = chunk.statistics
                ends = (found.min, found.max) if found.has_min_max else (None, None)
                yield chunk.path_in_schema, *ends, found.null_count if found.has_null_count else None


def _is_below(value: Any, low: pa.Array | None, number: int) -> bool:
    return low is not None and _holds("less", value, low[number])


def _is_above(value: Any, high: pa.Array | None, number: int) -> bool:
    return high is not None and _holds("greater", value, high[number])


def _holds(comparison: str, value: Any, bound: pa.Scalar) -> bool:
    """Compare a footer's value with a bound; False if either is missing, or they have no common type."""
    if value is None or not bound.is_valid:
        return False
    try:
        return bool(pc.call_function(comparison, [pa.scalar(value, bound.type), bound]).as_py())
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return False


def _judge_trusted(
    request: FilterRequest, slices: Sequence[FileSlice], judge: Callable[[Sequence[FileSlice]], Mask]
) -> Mask | None:
    """Judge the slices whose statistics can be trusted; the others may hold rows. None if there is no such slice."""
    trusted = np.array([may_be_judged(request, each) for each in slices], np.bool_)
    some = [each for each, is_trusted in zip(slices, trusted.tolist(), strict=True) if is_trusted]
    if not some:
        return None
    keep = np.ones(len(slices), np.bool_)
    keep[trusted] = judge(some)
    return keep


@dataclass(frozen=True, slots=True)
class ColumnStatsFilter:
    """Leaves out slices by the ranges of ``columns``, which are given with their types."""

    request: FilterRequest
    columns: Mapping[str, pa.DataType]

    name: ClassVar[str] = COLUMN_STATS

    @property
    def least_slices(self) -> int:
        """The number of slices from which asking the index pays."""
        return self.request.least_slices

    def choose(self, slices: Sequence[FileSlice]) -> Mask | None:
        """Return for each slice whether it may hold rows that pass."""
        return _judge_trusted(self.request, slices, self._judge)

    def _judge(self, slices: Sequence[FileSlice]) -> Mask:
        request, millis = self.request, find_millis(self.request)
        bounds = read_bounds(request.view, COLUMN_STATS, list_files(slices), self.columns, len(slices), millis)
        found = find_candidates(request.predicate, bounds, len(slices))
        if request.strict:
            left_out = ((slices[at], at) for at in np.flatnonzero(~found).tolist())
            check_footers(request.files, left_out, bounds, COLUMN_STATS)
        return found


def make_column_stats_filters(request: FilterRequest) -> list[SliceFilter]:
    """Return the filter of a scan; none if the table has no such index, or no column can be used."""
    if not request.view.has(COLUMN_STATS):
        return []
    columns = find_ranged_columns(request)
    return [ColumnStatsFilter(request, columns)] if columns else []


def find_ranged_columns(request: FilterRequest) -> dict[str, pa.DataType]:
    """Return the filter's columns whose statistics can be used, and the types of their values.

    Names of nested columns have dots.
    """
    if request.columns.mappings is not None:
        return {}
    excluded = {*request.config.partition_fields, *request.columns.defaults}
    excluded |= {name for name in request.columns.data_columns if is_formatted_time(request.config, name)}
    return {
        ".".join(node.path): node.type
        for node in iterate_nodes(request.predicate.root)
        if isinstance(node, Column) and node.path[0] not in excluded and not pa.types.is_nested(node.type)
    }


def find_millis(request: FilterRequest) -> Iterable[str]:
    """Return the columns that the table declares as times in milliseconds."""
    times = request.columns.times
    return () if times is None else [each.name for each in times if getattr(each.type, "unit", None) == "ms"]


def may_be_judged(request: FilterRequest, file_slice: FileSlice) -> bool:
    """Say whether every value of the slice's rows is in one of its files, each with statistics of its own."""
    base = file_slice.base_file
    if base is not None and base.source is not None:
        return False
    return request.merges_values or not file_slice.log_files


IDENTITY: Final = ("", "identity")
_CASES: Final = ("upper", "lower")


@dataclass(frozen=True, slots=True)
class ExpressionFilter:
    """Leaves out slices by an index of ranges, for example of ``upper(name)`` instead of ``name``.

    ``column`` has the type ``type``; ``expression`` is the name of the expression. Statistics of files are joined as
    those of ``column_stats`` are. Java knows many functions. Filters can use ``upper``, ``lower``, and ``identity``,
    which is the column itself. Parts of times, such as ``hour``, depend on the time zone of the session that wrote the
    index.
    """

    request: FilterRequest
    name: str
    column: str
    type: pa.DataType
    expression: str

    @property
    def least_slices(self) -> int:
        """The number of slices from which asking the index pays."""
        return self.request.least_slices

    def choose(self, slices: Sequence[FileSlice]) -> Mask | None:
        """Return for each slice whether it may hold rows that pass."""
        return _judge_trusted(self.request, slices, self._judge)

    def _judge(self, slices: Sequence[FileSlice]) -> Mask:
        request, millis = self.request, find_millis(self.request)
        columns, files = {self.column: self.type}, list_files(slices)
        found = read_bounds(request.view, self.name, files, columns, len(slices), millis, of_expressions=True)
        return find_candidates(request.predicate, {self.expression: found[self.column]}, len(slices))


def make_expression_filters(request: FilterRequest) -> list[SliceFilter]:
    """Return the filters of those expression indexes that can use a scan's filter."""
    return [
        ExpressionFilter(request, each.name, each.columns[0], *found)
        for each in list_expression_indexes(request)
        if each.kind == COLUMN_STATS and (found := find_expression(request, each)) is not None
    ]


def list_expression_indexes(request: FilterRequest) -> list[IndexDefinition]:
    """Return the definitions of the expression indexes that the metadata table has, each of one column."""
    if not any(name.startswith(EXPRESSION_PREFIX) for name in request.view.partitions):
        return []
    definitions = read_definitions(request.files, request.config)
    return [
        each for each in definitions if each.is_expression and request.view.has(each.name) and len(each.columns) == 1
    ]


def find_expression(request: FilterRequest, index: IndexDefinition) -> tuple[pa.DataType, str] | None:
    """Return the type of an index's values, and the name of its expression in the filter; None if it is not in it."""
    column, function = index.columns[0], index.function.lower()
    columns = find_ranged_columns(request)
    if column not in columns:
        return None
    if function in IDENTITY:
        return columns[column], column
    name = f"{function}({column})"
    if function not in _CASES or not pa.types.is_string(columns[column]) or not _has_plain_texts(request):
        return None
    names: Mapping[str | None, pa.DataType] = {
        name_expression(node): node.type
        for node in iterate_nodes(request.predicate.root)
        if name_expression(node) is not None
    }
    return (names[name], name) if name in names else None


def _has_plain_texts(request: FilterRequest) -> bool:
    """Say whether all texts in the filter are ASCII.

    Java and Python may disagree about the case of rare letters; for ASCII texts comparisons are the same in both.
    """
    texts: list[object] = []
    for node in iterate_nodes(request.predicate.root):
        texts += [node.value] if isinstance(node, Literal) else node.values if isinstance(node, InList) else []
        texts += [node.pattern] if isinstance(node, Like) else []
    return all(each.isascii() for each in texts if isinstance(each, str))


@dataclass(frozen=True, slots=True)
class PartitionStatsFilter:
    """Leaves out the slices of whole partitions by the ranges of ``columns``, which are given with their types.

    It saves looking up the statistics of many files. The statistics are of the table's newest state, so neither a scan
    of the past uses them, nor a scan whose snapshot is older than the metadata table.
    """

    request: FilterRequest
    columns: Mapping[str, pa.DataType]

    name: ClassVar[str] = PARTITION_STATS
    least_slices: ClassVar[int] = 64

    def choose(self, slices: Sequence[FileSlice]) -> Mask | None:
        """Return for each slice whether it may hold rows that pass."""
        request = self.request
        paths = list(dict.fromkeys(each.partition_path for each in slices))
        if is_ahead(request.view, request.timeline):
            return None
        candidates = find_candidates(request.predicate, self._read_bounds(paths), len(paths))
        wanted = {path for path, keep in zip(paths, candidates.tolist(), strict=True) if keep}
        return np.array(
            [each.partition_path in wanted or not may_be_judged(request, each) for each in slices], np.bool_
        )

    def _read_bounds(self, paths: Sequence[str]) -> dict[str, ColumnBounds]:
        """Return the bounds of each column in each partition."""
        names = [*dict.fromkeys([*self.columns, RECORD_KEY_FIELD])]
        partitions, parts = encode_partitions(paths), encode_names(names)
        keys = {
            name: make_partition_keys(take(parts, from_numpy(np.full(len(paths), at, np.int64))), partitions)
            for at, name in enumerate(names)
        }
        found = self.request.view.read_keys(
            PARTITION_STATS, [key for each in keys.values() for key in each.to_pylist()], [STATISTICS_COLUMN]
        )
        known, records = join_chunks(found[KEY]), join_chunks(found[STATISTICS_COLUMN])
        statistics = {name: take(records, index_in(keys[name], known)) for name in names}
        rows = _count_values(statistics[RECORD_KEY_FIELD])
        millis = set(find_millis(self.request))
        return {
            name: _make_bounds(statistics[name], type_, rows, millis=name in millis)
            for name, type_ in self.columns.items()
        }


def make_partition_stats_filters(request: FilterRequest) -> list[SliceFilter]:
    """Return the filter of a scan; none if the table has no such index, or it cannot be used for this scan."""
    if not request.is_current or not request.view.has(PARTITION_STATS) or not request.config.populate_meta_fields:
        return []
    columns = find_ranged_columns(request)
    return [PartitionStatsFilter(request, columns)] if columns else []


def is_ahead(view: MetadataView, timeline: TableTimeline) -> bool:
    """Say whether a metadata table may include commits that a loaded timeline lacks, including compacted ones.

    Indexes of the table's newest state cannot be used for such a scan.
    """
    known = {each.request_time for each in timeline.select_completed()}
    oldest = min(known, default="")
    return any(
        each.request_time not in known and each.request_time >= oldest
        for each in view.timeline.select_completed()
        if each.action == DELTA_COMMIT and not is_own(each.request_time)
    )


def _make_bounds(statistics: pa.Array, type_: pa.DataType, rows: np.ndarray, *, millis: bool) -> ColumnBounds:
    """Return the bounds of a column in each partition; unknown if it counts fewer values than there are rows.

    Java makes a partition's range only from files that have statistics of the column. Files without them, as they were
    written before the column was indexed or lack the column, do not count. So a range is used only if it counts as many
    values as there are record keys, of which each file has statistics.
    """
    covered = (_count_values(statistics) == rows) & (rows >= 0)
    ranges = read_ranges(statistics, type_, millis=millis, of_partitions=True)
    at = from_numpy(np.arange(len(statistics)), ~covered)
    all_null = covered & ranges.all_null
    nulls = np.where(covered & ranges.no_nulls, 0, np.where(all_null, 1, UNKNOWN)).astype(np.int64)
    counts = np.where(all_null, nulls, UNKNOWN).astype(np.int64)
    return ColumnBounds(take(ranges.least, at), take(ranges.greatest, at), nulls, counts)


def _count_values(statistics: pa.Array) -> np.ndarray:
    """Return the number of values, including nulls; -1 without statistics."""
    counts = to_numbers(statistics.field("valueCount"), UNKNOWN).astype(np.int64)
    return np.where(is_valid(statistics), counts, UNKNOWN)
