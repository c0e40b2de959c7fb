"""The records of the metadata table's partition ``files``: the partitions of the table, and each one's files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from hoodie_py.errors import InvalidTableError
from hoodie_py.files import FileInfo
from hoodie_py.formats.indexes.definitions import ALL_PARTITIONS, FILES_PARTITION, NO_PARTITION
from hoodie_py.formats.indexes.record_schema import FILES_COLUMN
from hoodie_py.formats.names import check_file_name, check_partition

if TYPE_CHECKING:
    from hoodie_py.table.indexes.view import MetadataView


def read_file_lists(
    view: MetadataView, keys: Sequence[str] | None
) -> tuple[list[str] | None, dict[str, list[FileInfo]]]:
    """Read the records of some partitions, or of all (``keys`` None).

    Return the paths of all partitions, or None if their record was not read or is missing, and the files by path.

    Raises:
        CorruptFileError, FileMissingError, InvalidTableError: the metadata table cannot be read.
    """
    known: list[str] | None = None
    found: dict[str, list[FileInfo]] = {}
    if keys is None:
        batches = view.read_all(FILES_PARTITION, [FILES_COLUMN])
    else:
        batches = iter(view.read_keys(FILES_PARTITION, keys, [FILES_COLUMN]).to_batches())
    for batch in batches:
        names = batch.column("key").to_pylist()
        paths = [None if name == ALL_PARTITIONS else _to_path(name) for name in names]
        found.update({path: [] for path in paths if path is not None})
        if None in paths:
            known = known or []
        for row, name, size in _iterate_entries(batch):
            path = paths[row]
            if path is None:
                assert known is not None
                known.append(_to_path(name))
            else:
                check_file_name(name)
                found[path].append(FileInfo(f"{path}/{name}" if path else name, size, is_dir=False))
    return None if known is None else sorted(set(known)), found


def _iterate_entries(batch: pa.RecordBatch) -> Iterator[tuple[int, str, int]]:
    """Yield the row, the name and the size of each entry that is not deleted."""
    import numpy as np
    import pyarrow.compute as pc

    from hoodie_py.arrow.arrays import to_booleans, to_numbers

    lists = batch.column(FILES_COLUMN)
    if lists.null_count:
        raise InvalidTableError("A record of the metadata table has no list of files.")
    offsets = np.asarray(lists.offsets)
    entries = slice(int(offsets[0]), int(offsets[-1]))
    values = lists.items[entries]
    there = ~to_booleans(pc.struct_field(values, "isDeleted"))
    at = np.flatnonzero(there)
    rows = np.repeat(np.arange(len(lists)), np.diff(offsets))[at]
    sizes = to_numbers(pc.struct_field(values, "size"))[at]
    if len(sizes) and int(sizes.min()) < 0:
        raise InvalidTableError("A list of files of the metadata table has a negative size.")
    names = lists.keys[entries].take(pa.array(at))
    return zip(rows.tolist(), names.to_pylist(), sizes.tolist(), strict=True)


def _to_path(key: str) -> str:
    return "" if key == NO_PARTITION else check_partition(key)
