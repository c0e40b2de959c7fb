"""Reads the statistics of files, and joins those of each slice's files (Hudi ``ColumnStatsIndexSupport``).

Every value of a merged row is in some file of its slice. So the joined ranges of the base file and of all log files
bound the column. A file without statistics of a column makes the column unknown. A log file that only deletes adds
nothing. Log blocks that do not count only widen the range.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie_py.arrow.arrays import call, cast, from_numpy, index_in, is_valid, join_chunks, take, to_numbers
from hoodie_py.formats.indexes.keys import encode_file_names, encode_names, encode_partitions, make_column_keys
from hoodie_py.formats.indexes.ranges import FIRST_CERTAIN_DAY, TrustedRanges, count_nulls_too, read_trusted_ranges
from hoodie_py.formats.indexes.record_schema import STATISTICS_COLUMN
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.table.filter.bounds import UNKNOWN, ColumnBounds
from hoodie_py.table.indexes.index import Mask
from hoodie_py.table.indexes.view import KEY, MetadataView

_Numbers = npt.NDArray[np.int64]
_YEAR_10000_MILLIS = 253_402_300_800_000


@dataclass(frozen=True, slots=True)
class SliceFiles:
    """The files of some slices, with the number of each file's slice; ascending."""

    partitions: Sequence[str]
    names: Sequence[str]
    slices: _Numbers


def list_files(slices: Sequence[FileSlice]) -> SliceFiles:
    """Return the base and log files of slices."""
    partitions, names, numbers = [], [], []
    for number, each in enumerate(slices):
        found = [log.path.rpartition("/")[2] for log in each.log_files]
        if each.base_file is not None:
            found.append(each.base_file.name)
        names += found
        partitions += [each.partition_path] * len(found)
        numbers += [number] * len(found)
    return SliceFiles(partitions, names, np.array(numbers, np.int64))


def read_bounds(
    view: MetadataView, index: str, files: SliceFiles, columns: Mapping[str, pa.DataType], count: int,
    millis: Iterable[str] = (), *, of_expressions: bool = False,
) -> dict[str, ColumnBounds]:  # fmt: skip
    """Return the bounds of columns in ``count`` slices, from an index with keys of column, partition and file.

    ``columns``: the columns with their types in results. ``millis``: columns that the table declares as times in
    milliseconds. ``of_expressions``: whether the index is over an expression.
    """
    keys = _make_keys(files, list(columns))
    found = view.read_keys(index, [key for each in keys.values() for key in each.to_pylist()], [STATISTICS_COLUMN])
    known, statistics = join_chunks(found[KEY]), join_chunks(found[STATISTICS_COLUMN])
    if of_expressions:
        statistics = count_nulls_too(statistics)
    bounds = {}
    for name, type_ in columns.items():
        at = index_in(keys[name], known)
        ranges = read_ranges(take(statistics, at), type_, millis=name in set(millis))
        bounds[name] = join_ranges(ranges, files.slices, count)
    return bounds


def _make_keys(files: SliceFiles, columns: Sequence[str]) -> dict[str, pa.Array]:
    folders = list(dict.fromkeys(files.partitions))
    number = {path: at for at, path in enumerate(folders)}
    places = from_numpy(np.array([number[path] for path in files.partitions], np.int64))
    partitions, names = take(encode_partitions(folders), places), encode_file_names(files.names)
    parts = encode_names(columns)
    repeated = np.zeros(len(files.names), np.int64)
    return {
        column: make_column_keys(take(parts, from_numpy(repeated + at)), partitions, names)
        for at, column in enumerate(columns)
    }


def read_ranges(
    statistics: pa.Array, type_: pa.DataType, *, millis: bool = False, of_partitions: bool = False
) -> TrustedRanges:
    """Return what the statistics of one column prove; nulls prove nothing.

    Besides the rules of ``read_trusted_ranges``, for statistics of version 1:

    * A long does not name the unit of a time, and a file may have another unit than the table. It counts as
      microseconds if it would be a time after the year 9999 as milliseconds.
    * Dates before 1582-10-25 may be others (``julian_days``).
    * Log files of decimals and of bytes may seem to have no values.
    """
    found = read_trusted_ranges(statistics, type_, of_partitions=of_partitions, millis=millis)
    unnamed = _find_unnamed_kinds(statistics)
    if not unnamed.any():
        return found
    no_rows = found.no_rows
    if pa.types.is_decimal(type_) or pa.types.is_binary(type_):
        no_rows = no_rows & ~unnamed
    holds = ~unnamed
    if pa.types.is_timestamp(type_):
        holds |= to_numbers(cast(found.least, pa.timestamp("us", type_.tz)).view(pa.int64())) >= _YEAR_10000_MILLIS
    elif pa.types.is_date32(type_):
        holds |= to_numbers(found.least.view(pa.int32())) >= FIRST_CERTAIN_DAY
    else:
        holds |= True
    at = from_numpy(np.arange(len(holds)), ~holds)
    all_null = found.all_null & (no_rows | ~found.no_rows)
    return TrustedRanges(take(found.least, at), take(found.greatest, at), found.no_nulls, all_null, no_rows)


def _find_unnamed_kinds(statistics: pa.Array) -> Mask:
    """Return which statistics exist and do not name the kind of their values: those of version 1."""
    there = is_valid(statistics)
    at = statistics.type.get_field_index("valueType")
    return there if at < 0 else there & ~is_valid(statistics.flatten()[at])


def join_ranges(ranges: TrustedRanges, slices: _Numbers, count: int) -> ColumnBounds:
    """Return the bounds of ``count`` slices from the ranges of their files.

    ``slices`` has each file's slice, ascending.
    """
    says = ~ranges.no_rows
    valued = says & ~ranges.all_null
    no_nulls = _hold_all(ranges.no_nulls, slices, count)
    all_null = _hold_all(ranges.all_null | ranges.no_rows, slices, count)
    has_files = np.bincount(slices, minlength=count) > 0
    nulls = np.where(no_nulls & has_files, 0, np.where(all_null & has_files, 1, UNKNOWN)).astype(np.int64)
    rows = np.where(all_null & has_files, np.where(no_nulls, 0, 1), UNKNOWN).astype(np.int64)
    low = _join_ends(ranges.least, valued, slices, count, least=True)
    high = _join_ends(ranges.greatest, valued, slices, count, least=False)
    return ColumnBounds(low, high, nulls, rows)


def _hold_all(mask: Mask, slices: _Numbers, count: int) -> Mask:
    """Return for each slice whether something holds for all of its files."""
    failing: Mask = np.bincount(slices[~mask], minlength=count) > 0
    return ~failing


def _join_ends(ends: pa.Array, valued: Mask, slices: _Numbers, count: int, *, least: bool) -> pa.Array:
    """Return the least or greatest bound of each slice; null if a file with values has no bound."""
    known = is_valid(ends)
    complete = _hold_all(known | ~valued, slices, count)
    at = np.flatnonzero(valued & known & complete[slices])
    if len(np.unique(slices[at])) < len(at):  # some slice has several files with values
        ordered = to_numbers(call("array_sort_indices", take(ends, from_numpy(at)))).astype(np.int64)
        at = at[ordered[::-1] if least else ordered]
    chosen = np.full(count, -1, np.int64)
    chosen[slices[at]] = at  # NumPy assigns in order, so the last, outermost bound of a slice stays
    return take(ends, from_numpy(np.maximum(chosen, 0), chosen < 0)) if len(ends) else pa.nulls(count, ends.type)
