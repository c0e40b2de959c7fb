"""Encode Arrow columns as the content of AVRO_DATA blocks, column by column (Hudi HoodieAvroDataBlock).

    content   version 3 int32, record count int32, then for each record its length int32 and its Avro binary

Every column becomes *pieces*: Arrow arrays of bytes with one value per row. Numbers come from a matrix of bytes;
strings are one piece for the length and one for the text, which stays in Arrow's buffer; lists and maps are the bytes
of their items, which are adjacent already. At the end one Arrow kernel joins the pieces row by row, so there is no loop
over records.

Columns have Spark's types (``arrow_types``). ``data_blocks`` reads these blocks.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.arrays import is_valid, to_numbers
from hoodie_py.errors import InvalidTableError, UnsupportedFeatureError
from hoodie_py.formats.avro.arrow_types import MICROS_PER_MILLI, MILLIS, find_wider_type
from hoodie_py.formats.avro.data_blocks import AvroSchema
from hoodie_py.formats.avro.schema import Array, AvroType, Decimal, Enum, Fixed, Map, Primitive, Record, Union, is_null

DATA_VERSION = 3

_HEADER = struct.Struct(">ii")
_WHOLE = {"int": pa.int32(), "long": pa.int64()}
_FLOATS = {"float": pa.float32(), "double": pa.float64()}

Octets = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]
Pieces = list[pa.Array]


def encode_records(batch: pa.RecordBatch, schema: AvroSchema) -> bytes:
    """Encode the content of an AVRO_DATA block.

    The batch contains the columns of the schema, which is stored in the block's header, in any order; other columns are
    ignored.

    Raises as ``encode_values``.
    """
    values = encode_values(batch, schema)
    sizes = _count_lengths(values)
    prefix = _pack(sizes.astype(">i4").view(np.uint8).reshape(-1, 4), _BARE)
    return _HEADER.pack(DATA_VERSION, batch.num_rows) + join_bytes(join_pieces([prefix, values]))


def encode_values(batch: pa.RecordBatch, schema: AvroSchema) -> pa.Array:
    """Encode each row as the Avro binary form of a record, without its length: a column of ``large_binary``.

    The batch is as for ``encode_records``. Columns of Arrow's type null cost little.

    Raises:
        InvalidTableError: a column is missing or has another type, or a null or value is not allowed by the schema;
            ``where`` names the column.
        UnsupportedFeatureError: the column of a union of several types is not a struct of their members.
    """
    pieces: list[pa.Array | pa.Scalar] = []
    nulls = b""  # the bytes of the columns just before that are null in every row
    for field in schema.record.fields:
        place = batch.schema.get_field_index(field.name)
        if place < 0:
            raise InvalidTableError("The records lack a column of their schema.", column=field.name)
        try:
            column = batch.column(place)
            if pa.types.is_null(column.type) and isinstance(field.type, Union) and field.type.nullable:
                nulls += _encode_null(field.type)
                continue
            if nulls:
                pieces.append(pa.scalar(nulls, pa.large_binary()))
                nulls = b""
            pieces += encode_column(column, field.type)
        except (InvalidTableError, UnsupportedFeatureError) as error:
            raise error.locate(column=field.name) from None
        except (pa.ArrowException, TypeError, ValueError) as error:
            message = f"Values of type {batch.column(place).type} do not fit the schema."
            raise InvalidTableError(message, column=field.name) from error
    if nulls or not pieces:
        pieces.append(repeat_piece(nulls, batch.num_rows))
    return join_pieces(pieces)


def _encode_null(node: Union) -> bytes:
    return bytes([2 * next(i for i, each in enumerate(node.branches) if is_null(each))])


def join_pieces(pieces: Sequence[pa.Array | pa.Scalar]) -> pa.Array:
    """Join pieces row by row; a scalar stands for the same piece in every row."""
    if len(pieces) == 1:
        return pieces[0]
    return pc.binary_join_element_wise(*pieces, pa.scalar(b"", pa.large_binary()))


@dataclass(frozen=True, slots=True)
class _Lead:
    """The byte before each value: the branch of a union, in its encoded form.

    ``valid`` marks the rows with a value; None if all have one. The other rows consist of the byte ``null`` alone.
    """

    value: int | None = None
    null: int = 0
    valid: Mask | None = None


_BARE = _Lead()


def encode_column(array: pa.Array, node: AvroType) -> Pieces:
    """Encode a column as pieces.

    Raises:
        InvalidTableError: a null or value is not allowed by the type.
        UnsupportedFeatureError: the column of a union of several types is not a struct of their members.
        pa.ArrowException, TypeError, ValueError: the values have another type.
    """
    if not isinstance(node, Union):
        if array.null_count and not is_null(node):
            raise InvalidTableError("The schema does not allow a null here.")
        return _encode_values(array, node, _BARE)
    if len(array) and array.null_count == len(array) and node.nullable:
        null = next(i for i, each in enumerate(node.branches) if is_null(each))
        return [repeat_piece(bytes([2 * null]), len(array))]
    branches = [branch for branch in node.branches if not is_null(branch)]
    if len(branches) > 1 and not find_wider_type(node.members):
        return [_encode_members(array, node)]
    wide = [each for each in branches if isinstance(each, Primitive) and each.kind in ("long", "double")]
    branch = (wide or branches)[0]
    if array.null_count and not node.nullable:
        raise InvalidTableError("The schema does not allow a null here.")
    null = next((i for i, each in enumerate(node.branches) if is_null(each)), 0)
    return encode_branch(array, branch, node.branches.index(branch), null)


def encode_branch(array: pa.Array, node: AvroType, branch: int, null: int = 0) -> Pieces:
    """Encode values of a union, given the number of their branch (below 64) and of the null branch.

    Raises as ``encode_column``.
    """
    valid = is_valid(array) if array.null_count else None
    return _encode_values(array, node, _Lead(2 * branch, 2 * null, valid))


def _encode_values(array: pa.Array, node: AvroType, lead: _Lead) -> Pieces:
    match node:
        case Primitive(kind="null"):
            return [repeat_piece(b"", len(array))]
        case Primitive(kind="boolean"):
            return [_pack(_to_numpy(array, pa.uint8())[:, None], lead)]
        case Primitive(kind="int" | "long"):
            return [_encode_varints(_to_integers(array, node), lead)]
        case Primitive(kind="float" | "double" as kind):
            values = _to_numpy(array, _FLOATS[kind])
            return [_pack(values.view(np.uint8).reshape(len(values), values.itemsize), lead)]
        case Primitive():
            return _encode_texts(array, lead)
        case Enum(symbols=symbols):
            return [_encode_varints(_find_symbols(array, symbols), lead)]
        case Decimal():
            return _encode_decimals(array, node, lead)
        case Fixed(size=size):
            data = _to_binary(array if node.vector is None else node.vector.to_bytes(array))
            if not ((_count_lengths(data) == size) | ~_find_present(lead, len(array))).all():
                raise InvalidTableError(f"A value does not have {size} bytes.")
            return [_make_lead(lead, len(array)), data]
        case Array() if pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
            return _encode_lists(array, join_pieces(encode_column(array.flatten(), node.items)), lead)
        case Map() if pa.types.is_map(array.type):
            lists = _as_lists(array)
            entries = lists.flatten()
            pieces = _encode_texts(entries.field(0), _BARE) + encode_column(entries.field(1), node.values)
            return _encode_lists(lists, join_pieces(pieces), lead)
        case Record() if pa.types.is_struct(array.type):
            return _encode_record(array, node, lead)
    raise TypeError(f"{array.type} is no {type(node).__name__}")


# Scalars -------------------------------------------------------------------------------------------------------------


def _to_integers(array: pa.Array, node: Primitive) -> npt.NDArray[np.int64]:
    """Return the integers of a column: ints, longs, dates, times and timestamps."""
    if pa.types.is_timestamp(array.type):
        array = array.cast(pa.timestamp("us", array.type.tz))
    if pa.types.is_date64(array.type):
        array = array.cast(pa.date32())
    values = _to_numpy(array.cast(_WHOLE[node.kind]), pa.int64())
    return values // MICROS_PER_MILLI if node.logical in MILLIS else values


def _find_symbols(array: pa.Array, symbols: tuple[str, ...]) -> npt.NDArray[np.int64]:
    places = pc.index_in(array, pa.array(symbols, array.type))
    if places.null_count != array.null_count:
        raise InvalidTableError("A value is not one of the symbols of its enum.")
    return _to_numpy(places, pa.int64())


def _to_numpy(array: pa.Array, t: pa.DataType) -> npt.NDArray[Any]:
    """Return the values as a contiguous array, with 0 in place of nulls."""
    return to_numbers(array if array.type == t else array.cast(t))


def _encode_varints(values: npt.NDArray[np.int64], lead: _Lead) -> pa.Array:
    """Encode integers: zig-zag, then seven bits per byte, lowest first."""
    rest = ((values << 1) ^ (values >> 63)).view(np.uint64)
    if not len(rest) or int(rest.max()) < 0x80:
        return _pack(rest.astype(np.uint8)[:, None], lead)
    sizes = np.ones(len(values), np.int64)
    columns: list[Octets] = []
    while True:
        low = rest.astype(np.uint8) & 0x7F
        rest = rest >> np.uint64(7)
        more = rest != 0
        columns.append(low | more.astype(np.uint8) << 7)
        if not more.any():
            return _pack(np.stack(columns, axis=1), lead, sizes)
        sizes += more


def _encode_texts(array: pa.Array, lead: _Lead) -> Pieces:
    data = _to_binary(array)
    return [_encode_varints(_count_lengths(data), lead), data]


def _to_binary(array: pa.Array) -> pa.Array:
    """Return strings or bytes as a piece; nulls become empty."""
    if len(array) and not array.null_count and array.type in (pa.string(), pa.binary()):
        _, offsets, texts = array.buffers()
        wide = np.frombuffer(offsets, np.int32, len(array) + 1, 4 * array.offset).astype(np.int64)
        buffers = [None, pa.py_buffer(wide), texts or pa.py_buffer(b"")]
        return pa.Array.from_buffers(pa.large_binary(), len(array), buffers)
    data = array.cast(pa.large_binary())
    return pc.fill_null(data, b"") if data.null_count else data


def _encode_decimals(array: pa.Array, node: Decimal, lead: _Lead) -> Pieces:
    unscaled = array.cast(pa.decimal128(node.precision, node.scale))
    little = np.frombuffer(unscaled.buffers()[1], np.uint8, 16 * len(array), 16 * unscaled.offset)
    big = little.reshape(-1, 16)[:, ::-1]
    sign = np.where(big[:, :1] > 0x7F, 0xFF, 0).astype(np.uint8)
    if node.size is not None:
        wide = np.concatenate([np.repeat(sign, max(node.size - 16, 0), axis=1), big], axis=1)
        return [_pack(wide[:, wide.shape[1] - node.size :], lead)]
    # Leading bytes that only repeat the sign are dropped, as long as the next byte still shows the sign.
    idle = (big[:, :-1] == sign) & ((big[:, 1:] > 0x7F) == (sign > 0))
    sizes = np.where(_find_present(lead, len(array)), 16 - np.logical_and.accumulate(idle, axis=1).sum(axis=1), 0)
    kept = np.arange(16) >= 16 - sizes[:, None]
    return [_encode_varints(sizes, lead), _make_piece(sizes, big[kept])]


# Nested values -------------------------------------------------------------------------------------------------------


def _encode_lists(lists: pa.Array, items: pa.Array, lead: _Lead) -> Pieces:
    """Encode lists whose encoded items are adjacent in ``items``: a count, the items, a 0; empty lists are only a 0."""
    counts = _to_numpy(pc.list_value_length(lists), pa.int64())
    bounds = _view_offsets(items)[np.concatenate([[0], np.cumsum(counts)])]
    buffers = [None, pa.py_buffer(np.ascontiguousarray(bounds)), items.buffers()[2]]
    data = pa.Array.from_buffers(pa.large_binary(), len(lists), buffers)
    ends = (counts > 0).astype(np.int64)
    return [_encode_varints(counts, lead), data, _make_piece(ends, np.zeros(int(ends.sum()), np.uint8))]


def _as_lists(array: pa.MapArray) -> pa.ListArray:
    """Return maps as lists of entries."""
    entries = pa.StructArray.from_arrays(
        [array.keys, array.items], fields=[array.type.key_field, array.type.item_field]
    )
    t = pa.list_(entries.type)
    return pa.Array.from_buffers(t, len(array), array.buffers()[:2], array.null_count, array.offset, [entries])


def _encode_record(array: pa.StructArray, node: Record, lead: _Lead) -> Pieces:
    present = array if lead.valid is None else array.filter(pa.array(lead.valid))
    pieces: Pieces = []
    for field in node.fields:
        place = array.type.get_field_index(field.name)
        if place < 0:
            raise InvalidTableError(f"A record lacks its field {field.name[:100]!r}.")
        pieces += encode_column(present.field(place), field.type)
    if lead.valid is None:
        return [_make_lead(lead, len(array)), *pieces]
    joined = join_pieces([repeat_piece(b"", len(present)), *pieces])
    sizes = np.zeros(len(array), np.int64)
    sizes[lead.valid] = _count_lengths(joined)
    return [_make_lead(lead, len(array)), _make_piece(sizes, np.frombuffer(join_bytes(joined), np.uint8))]


def _encode_members(array: pa.Array, node: Union) -> pa.Array:
    """Encode a union of several types, given as a struct of its members with at most one value in each row.

    Raises:
        InvalidTableError: two members have a value, or none has one and the union does not allow null.
        UnsupportedFeatureError: the column is not such a struct.
    """
    if not pa.types.is_struct(array.type) or array.type.num_fields != len(node.members):
        raise UnsupportedFeatureError("Values of a union of several types are not given member by member.")
    present = is_valid(array)
    taken = np.full(len(array), -1, np.int64)
    encoded: list[pa.Array] = []
    branches = [i for i, each in enumerate(node.branches) if not is_null(each)]
    for i, (branch, member) in enumerate(zip(branches, node.members, strict=True)):
        column = array.field(i)
        mask = present & is_valid(column)
        if (taken[mask] >= 0).any():
            raise InvalidTableError("A value of a union has several members.")
        taken[mask] = i
        values = column.filter(pa.array(mask))
        encoded.append(join_pieces(_encode_values(values, member, _Lead(2 * branch))))
    if (taken < 0).any() and not node.nullable:
        raise InvalidTableError("The schema does not allow a null here.")
    null = next((i for i, each in enumerate(node.branches) if is_null(each)), 0)
    encoded.append(repeat_piece(bytes([2 * null]), int((taken < 0).sum())))
    # The rows of one member are adjacent in ``encoded``; ``order`` holds each row's place there.
    taken[taken < 0] = len(node.members)
    order = np.empty(len(array), np.int64)
    order[np.argsort(taken, kind="stable")] = np.arange(len(array))
    return pa.concat_arrays(encoded).take(pa.array(order))


# Pieces --------------------------------------------------------------------------------------------------------------


def _find_present(lead: _Lead, count: int) -> Mask:
    return np.ones(count, np.bool_) if lead.valid is None else lead.valid


def _make_lead(lead: _Lead, count: int) -> pa.Array:
    """Return a piece of the lead alone, for values whose bytes are in other pieces."""
    return _pack(np.empty((count, 0), np.uint8), lead)


def _pack(values: Octets, lead: _Lead, sizes: npt.NDArray[np.int64] | None = None) -> pa.Array:
    """Return a matrix of bytes, one row per value, as a piece with the lead first; ``sizes`` counts from the left."""
    count, width = values.shape
    if lead.value is not None:
        first = np.full((count, 1), lead.value, np.uint8)
        if lead.valid is not None:
            first[~lead.valid] = lead.null
            sizes = np.where(lead.valid, width if sizes is None else sizes, 0)
        values = np.concatenate([first, values], axis=1)
        width += 1
        sizes = sizes if sizes is None else sizes + 1
    if sizes is None:
        return _make_piece(np.full(count, width, np.int64), values.reshape(-1))
    return _make_piece(sizes, values[np.arange(width) < sizes[:, None]])


def _make_piece(sizes: npt.NDArray[np.int64], data: Octets) -> pa.Array:
    """Return a piece from bytes that are adjacent row by row."""
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.Array.from_buffers(pa.large_binary(), len(sizes), buffers)


def repeat_piece(value: bytes, count: int) -> pa.Array:
    """Return a piece with the same bytes in every row."""
    return pa.repeat(pa.scalar(value, pa.large_binary()), count)


def _view_offsets(piece: pa.Array) -> npt.NDArray[np.int64]:
    buffer = piece.buffers()[1]
    if not len(piece):
        return np.zeros(1, np.int64)
    return np.frombuffer(buffer, np.int64, len(piece) + 1, 8 * piece.offset)


def _count_lengths(piece: pa.Array) -> npt.NDArray[np.int64]:
    offsets = _view_offsets(piece)
    return offsets[1:] - offsets[:-1]


def join_bytes(piece: pa.Array) -> bytes:
    """Return the bytes of all rows, one after the other."""
    offsets = _view_offsets(piece)
    data = piece.buffers()[2]
    return b"" if data is None else data[int(offsets[0]) : int(offsets[-1])].to_pybytes()
