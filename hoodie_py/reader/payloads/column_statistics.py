"""Merges column statistics of the metadata table, of a file or a partition.

If either side is deleted, or the newer one is tight, the newer one counts alone. Otherwise least and greatest values
are taken over both sides, counts and sizes add up, and everything else comes from the newer side (Hudi
``HoodieTableMetadataUtil.mergeColumnStatsRecords``).

Values are wrapped by type: a struct with one member that is not null. They compare as Java's values do: texts by UTF-16
units, bytes as signed ones, floats with NaN last. The value type, if present, gives the meaning of bytes and texts.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.arrays import from_numpy, to_booleans, to_numbers
from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.formats.parquet.key_range import make_comparable
from hoodie_py.reader.merge.partial_update import choose_values

_SUMS = ("valueCount", "nullCount", "totalSize", "totalUncompressedSize")
_FLAG, _TIGHT, _VALUE_TYPE, _ORDINAL = "isDeleted", "isTightBound", "valueType", "typeOrdinal"
_DECIMAL, _UUID = 10, 11  # ordinals of Hudi's ValueType that change how bytes and texts compare
_UUID_LENGTH = 36


def merge_statistics(older: pa.Array, newer: pa.Array) -> pa.Array:
    """Merge statistics pair by pair.

    Raises:
        UnsupportedFeatureError: both sides have values of different types.
    """
    alone = _read_flag(older, _FLAG) | _read_flag(newer, _FLAG) | _read_flag(newer, _TIGHT)
    alone |= np.asarray(older.is_null()) | np.asarray(newer.is_null())
    at = np.flatnonzero(~alone)
    if not len(at):
        return newer
    old, new = older.take(from_numpy(at)), newer.take(from_numpy(at))
    fields, arrays = list(newer.type), []
    kinds = _read_kinds(new)
    _check_kinds(_read_kinds(old), kinds, old, new)
    for field in fields:
        before, after = pc.struct_field(old, field.name), pc.struct_field(new, field.name)
        if field.name in _SUMS:
            arrays.append(pc.add(before, after))
        elif field.name in ("minValue", "maxValue"):
            arrays.append(_choose(before, after, kinds, least=field.name == "minValue"))
        else:
            arrays.append(after)
    merged = pa.StructArray.from_arrays(arrays, fields=fields)
    index = np.arange(len(newer))
    index[at] = len(newer) + np.arange(len(at))
    return pa.concat_arrays([newer, merged]).take(from_numpy(index))


def _read_flag(statistics: pa.Array, name: str) -> npt.NDArray[np.bool_]:
    if statistics.type.get_field_index(name) < 0:
        return np.zeros(len(statistics), bool)
    return to_booleans(pc.struct_field(statistics, name))


def _read_kinds(statistics: pa.Array) -> npt.NDArray[np.int64]:
    """Return the ordinals of the value types, 0 if there is none."""
    if statistics.type.get_field_index(_VALUE_TYPE) < 0:
        return np.zeros(len(statistics), np.int64)
    return to_numbers(pc.struct_field(statistics, [_VALUE_TYPE, _ORDINAL]), 0).astype(np.int64)


def _check_kinds(before: npt.NDArray[np.int64], after: npt.NDArray[np.int64], old: pa.Array, new: pa.Array) -> None:
    """Refuse statistics of a column whose type changed: Java compares only values of one class."""
    there = [to_booleans(pc.is_valid(pc.struct_field(each, "minValue"))) for each in (old, new)]
    if ((before != after) & there[0] & there[1]).any():
        raise UnsupportedFeatureError("Merging column statistics of different value types.")


def _choose(before: pa.Array, after: pa.Array, kinds: npt.NDArray[np.int64], *, least: bool) -> pa.Array:
    """Return the lesser (``least``) or greater of each pair of wrapped values; a missing value loses."""
    has_old, has_new = to_booleans(before.is_valid()), to_booleans(after.is_valid())
    takes_old = has_old & ~has_new
    decided = ~(has_old & has_new)
    for field in before.type:
        old, new = _unwrap(before, field.name), _unwrap(after, field.name)
        both = to_booleans(old.is_valid()) & to_booleans(new.is_valid()) & ~decided
        if both.any():
            at = np.flatnonzero(both)
            takes_old[at] = _compare(old.take(from_numpy(at)), new.take(from_numpy(at)), kinds[at], field.name, least)
            decided[at] = True
    if not decided.all():
        raise UnsupportedFeatureError("Merging column statistics of different value types.")
    return choose_values(takes_old, before, after)


def _unwrap(wrapped: pa.Array, member: str) -> pa.Array:
    """Return the values of one member; null where the value has another type, or is missing."""
    inner = pc.struct_field(wrapped, member)
    return pc.struct_field(inner, 0) if pa.types.is_struct(inner.type) else inner


def _compare(
    old: pa.Array, new: pa.Array, kinds: npt.NDArray[np.int64], member: str, least: bool
) -> npt.NDArray[np.bool_]:
    """Return for each pair of values whether the older one is less (``least``) or greater."""
    found = np.zeros(len(old), bool)
    for kind in np.unique(kinds).tolist():
        at = from_numpy(np.flatnonzero(kinds == kind))
        both = _to_sortable(pa.concat_arrays([old.take(at), new.take(at)]), kind, member)
        older, newer = both[: len(at)], both[len(at) :]
        found[np.asarray(at)] = to_booleans(pc.less(older, newer) if least else pc.greater(older, newer))
    return found


def _to_sortable(values: pa.Array, kind: int, member: str) -> pa.Array:
    """Convert values so that Arrow compares them as Java compares the originals."""
    type_ = values.type
    if pa.types.is_floating(type_):
        # The bits compare like Java's Double.compare (-0.0 below 0.0, NaN last) once those of negative floats are
        # flipped.
        bits = to_numbers(values.cast(pa.float64())).view(np.int64)
        return from_numpy(np.where(bits < 0, bits ^ np.int64(np.iinfo(np.int64).max), bits))
    if pa.types.is_string(type_):
        return _order_uuids(values) if kind == _UUID else make_comparable(values)
    if pa.types.is_binary(type_):
        return _order_integers(values) if kind == _DECIMAL else _order_signed_bytes(values)
    if pa.types.is_nested(type_):
        raise UnsupportedFeatureError(f"Merging column statistics of the type {member}.")
    return values


def _order_signed_bytes(values: pa.Array) -> pa.Array:
    _, offsets, data = values.buffers()
    # Arrow compares unsigned bytes; flipping the sign bit gives the order of signed bytes.
    flipped = np.frombuffer(data, np.uint8) ^ np.uint8(0x80) if data is not None else np.empty(0, np.uint8)
    return pa.Array.from_buffers(pa.binary(), len(values), [None, offsets, pa.py_buffer(flipped)], 0, values.offset)


def _order_integers(values: pa.Array) -> pa.Array:
    """Convert big-endian two's complements of any length to sortable unsigned bytes of one length."""
    lengths = to_numbers(pc.binary_length(values)).astype(np.int64)
    width = max(int(lengths.max(initial=0)), 1)
    _, offsets, data = values.buffers()
    starts = np.frombuffer(offsets, np.int32)[values.offset : values.offset + len(values)].astype(np.int64)
    octets = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
    places = np.arange(width) - (width - lengths)[:, None]  # of each output byte in its value, negative in front of it
    inside = places >= 0
    table = octets[np.where(inside, starts[:, None] + places, 0)]
    first = octets[np.minimum(starts, len(octets) - 1)]
    signs = np.where((first >= 0x80) & (lengths > 0), np.uint8(0xFF), np.uint8(0))
    table = np.where(inside, table, signs[:, None])
    table[:, 0] ^= 0x80
    return pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(width), len(values), [None, pa.py_buffer(np.ascontiguousarray(table))]
    ).cast(pa.binary())


def _order_uuids(values: pa.Array) -> pa.Array:
    """Convert UUIDs to bytes in Java's order: both halves compare as signed numbers."""
    if (to_numbers(pc.binary_length(values)) != _UUID_LENGTH).any():
        raise UnsupportedFeatureError("Merging column statistics of UUIDs in another form than Java's.")
    plain = pc.utf8_lower(pc.replace_substring(values, "-", ""))
    _, _, data = pa.concat_arrays([plain]).buffers()
    table = np.frombuffer(data, np.uint8)[: 32 * len(values)].reshape(len(values), 32)
    nibbles = np.where(table >= ord("a"), table - ord("a") + 10, table - ord("0")).astype(np.uint8)
    nibbles[:, [0, 16]] ^= 8
    return pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(32), len(values), [None, pa.py_buffer(np.ascontiguousarray(nibbles))]
    ).cast(pa.binary())
