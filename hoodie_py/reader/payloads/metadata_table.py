"""HoodieMetadataPayload: merges the records of the metadata table, each kind by its own rule.

    type   record                                 merge of an older and a newer version
    1, 2   partitions; files of a partition       names, with sizes and deletion flags
    3, 6   statistics of a file or a partition    ranges and counts
    4      bloom filter of a file                 the newer one
    5      location of a record                   the newer one
    7      secondary key                          the newer one, also where it says that the key is deleted

All versions of a key have one type. A delete record (from a DELETE block) deletes; later versions start anew.

The rule for a name in both file lists (Hudi ``HoodieMetadataPayload.combineFileSystemMetadata``): if the newer list
deletes it, it is removed, unless the older list deletes it, too; otherwise the greater size counts. A name in one list
stays as it is, even if deleted: a still older list may have it.

If either side of column statistics is deleted, or the newer one is tight, the newer one counts alone. Otherwise least
and greatest values are taken over both sides, counts and sizes add up, and everything else comes from the newer side
(Hudi ``HoodieTableMetadataUtil.mergeColumnStatsRecords``).

Values are wrapped by type: a struct with one member that is not null. They compare as Java's values do: texts by UTF-16
units, bytes as signed ones, floats with NaN last. The value type, if present, gives the meaning of bytes and texts.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.arrays import from_numpy, to_booleans, to_numbers
from hoodie_py.errors import CorruptFileError, MergeError, UnsupportedFeatureError
from hoodie_py.formats.config.table_config import METADATA_PAYLOAD
from hoodie_py.formats.indexes.record_schema import FILES_COLUMN, STATISTICS_COLUMN
from hoodie_py.formats.parquet.key_range import make_comparable
from hoodie_py.reader.merge.partial_update import choose_values
from hoodie_py.reader.payloads.merger import CombineResult, PayloadMerger, Props
from hoodie_py.reader.payloads.ordering import Record, make_merged_record, make_merged_records, replace_records
from hoodie_py.reader.record.arrow_context import ArrowRecordContext
from hoodie_py.reader.record.batch import BufferedBatch

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
        # The bits compare like Java's Double.compare (-0.0 below 0.0, NaN last) once the bits of negative floats are
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


_TYPE = "type"
_COLUMN_OF_TYPE: Final = {
    1: FILES_COLUMN,
    2: FILES_COLUMN,
    3: STATISTICS_COLUMN,
    4: None,
    5: None,
    6: STATISTICS_COLUMN,
    7: None,
}
_MERGE_OF_COLUMN: Final = {FILES_COLUMN: merge_file_lists, STATISTICS_COLUMN: merge_statistics}


class HoodieMetadataPayload(PayloadMerger):
    """The versions of a record of the metadata table, merged by the record's type."""

    payload_classes = (METADATA_PAYLOAD,)
    columns = (_TYPE,)

    def combine(self, older: Record, newer: Record, context: ArrowRecordContext, props: Props) -> Record | None:
        if self.is_deleted(newer, context, props):
            return None
        if self.is_deleted(older, context, props):
            return newer
        kind = context.get_value(newer, _TYPE)
        _check_types(np.array([context.get_value(older, _TYPE)]), np.array([kind]))
        column = _COLUMN_OF_TYPE[kind]
        if column is None or column not in context.schema.names:
            return newer
        type_ = context.schema.field(column).type
        both = (pa.array([context.get_value(each, column)], type_) for each in (older, newer))
        merged = _MERGE_OF_COLUMN[column](*both)[0].as_py()
        return make_merged_record(newer, {column: merged}, newer.record_key, context)

    def combine_batch(self, older: BufferedBatch, newer: BufferedBatch, props: Props) -> CombineResult:
        absent = self.find_deleted(newer, props)
        at = np.flatnonzero(~absent & ~self.find_deleted(older, props))
        kinds = to_numbers(newer.take(at).column(_TYPE), -1)
        _check_types(to_numbers(older.take(at).column(_TYPE), -1), kinds)
        result = newer
        for column in _MERGE_OF_COLUMN:
            if column in newer.context.schema.names:
                some = at[np.isin(kinds, [kind for kind, merged in _COLUMN_OF_TYPE.items() if merged == column])]
                result = replace_records(result, some, _merge_column(older.take(some), newer.take(some), column))
        return CombineResult(result, absent)


def _merge_column(older: BufferedBatch, newer: BufferedBatch, column: str) -> BufferedBatch:
    if not len(newer):
        return newer
    return make_merged_records(newer, {column: _MERGE_OF_COLUMN[column](older.column(column), newer.column(column))})


def _check_types(older: Any, newer: Any) -> None:
    """Refuse versions of different types, and unknown types."""
    unknown = np.flatnonzero(~np.isin(newer, list(_COLUMN_OF_TYPE)))
    if len(unknown):
        raise UnsupportedFeatureError(f"Records of the metadata table of type {newer[unknown[0]]}.")
    if (older != newer).any():
        raise MergeError("Two versions of a record of the metadata table have different types.")
