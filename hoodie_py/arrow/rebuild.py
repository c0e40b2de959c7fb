"""Rebuild lists and maps around converted values; offsets and validity are shared with the array they come from."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

Convert = Callable[[pa.Array, pa.DataType], pa.Array]


def rebuild_list(array: pa.Array, target: pa.DataType, convert: Convert) -> pa.Array:
    """Return a list array of another type, its values converted to the target's; large and fixed lists become lists."""
    if not pa.types.is_list(array.type):
        array = array.cast(pa.list_(array.type.value_field))
    return _rebuild(array, target, convert(array.values, target.value_type))


def rebuild_map(array: pa.MapArray, target: pa.DataType, convert: Convert, convert_items: Convert) -> pa.Array:
    """Return a map array of another type: keys by ``convert``, items by ``convert_items``."""
    entry = target.field(0).type if target.num_fields == 1 else pa.struct([target.key_field, target.item_field])
    pairs = [convert(array.keys, target.key_type), convert_items(array.items, target.item_type)]
    return _rebuild(array, target, pa.StructArray.from_arrays(pairs, fields=[entry.field(0), entry.field(1)]))


def _rebuild(array: pa.Array, target: pa.DataType, child: pa.Array) -> pa.Array:
    # ``values``, ``keys`` and ``items`` ignore the array's offset, so it stays right for slices.
    return pa.Array.from_buffers(
        target, len(array), array.buffers()[:2], null_count=array.null_count, offset=array.offset, children=[child]
    )
