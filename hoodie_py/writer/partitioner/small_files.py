"""Fill small base files of COPY_ON_WRITE tables with new records before making new files (Hudi ``UpsertPartitioner``).

A commit rewrites such a file anyway if one of its records changes. Otherwise every write would add a file to each
partition. MERGE_ON_READ tables rewrite base files only in compactions, so there new records make new files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.arrays import from_numpy, join_chunks, to_booleans, to_numbers
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.table.view.visibility import GroupKey
from hoodie_py.writer.records import TaggedRecords


def fill_small_files(
    tagged: TaggedRecords,
    slices: Iterable[FileSlice],
    *,
    row_bytes: float,
    file_bytes: int,
    small_bytes: int,
    held: Iterable[GroupKey] = (),
) -> TaggedRecords:
    """Tag new records with file groups whose base file is small, the smallest first.

    ``slices`` are those of the records' partitions. ``row_bytes`` and ``file_bytes`` are estimates for a record and a
    base file; files below ``small_bytes`` are filled, 0 for none. File groups in ``held`` must not change.
    """
    room = compute_free_rows(slices, set(held), row_bytes, file_bytes, small_bytes)
    if not room or not tagged.file_ids.null_count:
        return tagged
    records = tagged.records
    assert records.partition_paths is not None
    at = np.flatnonzero(to_booleans(tagged.file_ids.is_null()) & ~records.delete_mask)
    paths = join_chunks(records.partition_paths).dictionary_encode()
    codes = to_numbers(paths.indices)[at]
    at = at[np.argsort(codes, kind="stable")]  # by partition; records keep their order within it
    ids = np.full(len(tagged), -1, np.int64)
    chosen: list[str] = []
    starts = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=len(paths.dictionary)))])
    for code, path in enumerate(paths.dictionary.to_pylist()):
        start, stop = int(starts[code]), int(starts[code + 1])
        for file_id, rows in room.get(path, ()):
            if start == stop:
                break
            ids[at[start : min(start + rows, stop)]] = len(chosen)
            chosen.append(file_id)
            start = min(start + rows, stop)
    filled = pa.array(chosen, pa.string()).take(from_numpy(ids, ids < 0))
    return replace(tagged, file_ids=pc.coalesce(tagged.file_ids, filled))


def compute_free_rows(
    slices: Iterable[FileSlice], held: set[GroupKey], row_bytes: float, file_bytes: int, small_bytes: int
) -> Mapping[str, list[tuple[str, int]]]:
    """Return file ids with the number of rows that each can take, by partition path, the smallest file first."""
    found: dict[str, list[tuple[int, str]]] = {}
    for each in slices:
        base = each.base_file
        if base is not None and base.whole_size < small_bytes and (each.partition_path, each.file_id) not in held:
            found.setdefault(each.partition_path, []).append((base.whole_size, each.file_id))
    room = {
        path: [(file_id, int((file_bytes - size) / row_bytes)) for size, file_id in sorted(files)]
        for path, files in found.items()
    }
    return {path: [each for each in files if each[1] > 0] for path, files in room.items()}
