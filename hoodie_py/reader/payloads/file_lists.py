"""Merges the file lists of the metadata table: maps from file name to size and deletion flag.

The rule for a name in both lists (Hudi ``HoodieMetadataPayload.combineFileSystemMetadata``): if the newer list deletes
it, it is removed, unless the older list deletes it, too; otherwise the greater size counts. A name in one list stays as
it is, even if deleted: a still older list may have it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.arrays import to_booleans, to_numbers
from hoodie_py.errors import CorruptFileError

_SIZE, _IS_DELETED = "size", "isDeleted"


def merge_file_lists(older: pa.Array, newer: pa.Array) -> pa.Array:
    """Merge lists pair by pair; the result has no nulls, as in Hudi.

    Raises:
        CorruptFileError: the maps are not file lists.
    """
    entries = _list_entries([older, newer])
    rows, names, newest = entries
    codes = names.dictionary_encode()
    count = max(len(codes.dictionary), 1)
    group = rows * count + to_numbers(codes.indices)  # one number for each pair of lists and name
    order = np.argsort(group, kind="stable")  # of one name: the older list's entry, then the newer one's
    group = group[order]
    last = np.append(group[1:] != group[:-1], np.True_)[: len(group)]
    is_newer = order >= newest
    # A list should not have a name twice; where it does, its last entry counts.
    last_of_list = last | np.append(is_newer[1:] != is_newer[:-1], np.True_)[: len(group)]
    order, group, is_newer, last = (each[last_of_list] for each in (order, group, is_newer, last))
    paired = np.append(np.False_, group[1:] == group[:-1])[: len(group)]  # a newer entry behind its older one
    values = pa.concat_arrays([_read_items(older), _read_items(newer)])
    sizes, deleted = _read_sizes(values)
    sizes, deleted = sizes[order], deleted[order]
    before = np.flatnonzero(paired) - 1
    # A log file may grow, so the greater size counts, unless the newer entry is a delete.
    best = sizes.copy()
    best[paired] = np.where(deleted[paired], sizes[paired], np.maximum(sizes[paired], sizes[before]))
    keep = last.copy()
    keep[paired] &= ~deleted[paired] | deleted[before]
    return _make_lists(
        older.type, rows[order][keep], names.take(pa.array(order[keep])), best[keep], deleted[keep], len(older)
    )


def _list_entries(lists: list[pa.Array]) -> tuple[npt.NDArray[np.int64], pa.Array, int]:
    """Return the row and the name of each entry of both lists, and the number of entries in the older lists."""
    rows = [np.repeat(np.arange(len(each)), np.diff(_read_offsets(each))) for each in lists]
    names = []
    for each in lists:
        offsets = _read_offsets(each)
        names.append(each.keys[int(offsets[0]) : int(offsets[-1])])
    return np.concatenate(rows), pa.concat_arrays(names), len(rows[0])


def _read_offsets(lists: pa.Array) -> npt.NDArray[np.int64]:
    if lists.null_count and np.diff(np.asarray(lists.offsets))[np.asarray(lists.is_null())].any():
        raise CorruptFileError("A null list of files has entries.")
    return np.asarray(lists.offsets).astype(np.int64)


def _read_items(lists: pa.Array) -> pa.Array:
    offsets = _read_offsets(lists)
    return lists.items[int(offsets[0]) : int(offsets[-1])]


def _read_sizes(values: pa.Array) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    type_ = values.type
    if not pa.types.is_struct(type_) or {_SIZE, _IS_DELETED} - {field.name for field in type_}:
        raise CorruptFileError("A list of files of the metadata table has no sizes.")
    size, deleted = pc.struct_field(values, _SIZE), pc.struct_field(values, _IS_DELETED)
    return to_numbers(size.cast(pa.int64())), to_booleans(deleted)


def _make_lists(
    type_: pa.DataType,
    rows: npt.NDArray[np.int64],
    names: pa.Array,
    sizes: npt.NDArray[Any],
    deleted: npt.NDArray[np.bool_],
    count: int,
) -> pa.Array:
    offsets = np.zeros(count + 1, np.int32)
    np.cumsum(np.bincount(rows, minlength=count), out=offsets[1:])
    made = {_SIZE: pa.array(sizes, pa.int64()), _IS_DELETED: pa.array(deleted)}
    fields = list(type_.item_type)
    arrays = [made.get(field.name, pa.nulls(len(sizes), field.type)) for field in fields]
    arrays = [each.cast(field.type) for each, field in zip(arrays, fields, strict=True)]
    items = pa.StructArray.from_arrays(arrays, fields=fields)
    entries = pa.StructArray.from_arrays([names, items], fields=[type_.key_field, type_.item_field])
    return pa.Array.from_buffers(type_, count, [None, pa.py_buffer(offsets)], children=[entries])
