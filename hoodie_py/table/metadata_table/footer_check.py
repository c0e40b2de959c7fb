"""Check that statistics which left out a base file hold for it: its footer must not say otherwise.

Only for reads with the integrity "strict": it opens every Parquet file that was left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.errors import CorruptFileError, HoodieError
from hoodie_py.files import TableFiles
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.table.filter.bounds import ColumnBounds

_HINT = "Drop the index and build it again, or read without it (hoodie.enable.data.skipping=false)."


def check_footers(
    files: TableFiles, skipped: Iterable[tuple[FileSlice, int]], bounds: Mapping[str, ColumnBounds], index: str
) -> None:
    """Compare the footers of base files with bounds; with each slice comes the number of its bounds.

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
    """Return the columns of all row groups with statistics: least and greatest value, number of nulls."""
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
    """Compare a footer's value with a bound; False where either is missing, or they have no common type."""
    if value is None or not bound.is_valid:
        return False
    try:
        return bool(pc.call_function(comparison, [pa.scalar(value, bound.type), bound]).as_py())
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return False
