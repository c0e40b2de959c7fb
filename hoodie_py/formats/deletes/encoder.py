"""Encodes the content of DELETE blocks: deleted keys with their typed ordering values, block version 3.

``decoder`` documents the layout. The values must agree with Hudi's HoodieDeleteBlock and DeleteRecord.create:

* Values have the types that Hudi's writers use: points in time are microseconds in a long, decimals have scale 15.
* "No ordering value" is the int 0, which cannot be distinguished from a real 0 (Hudi OrderingValues.getDefault). The
  format also has a null, which is never written: Java Hudi fails on it with a NullPointerException when it merges by
  event time, and Hudi 0.14 in every mode.
* Dates are days in an int, as in Java's rows. The format also has a date type, but Java Hudi fails on it with a
  ClassCastException.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.arrays import from_numpy, is_valid
from hoodie_py.errors import InvalidTableError, UnsupportedFeatureError
from hoodie_py.formats.avro.binary import encode_long
from hoodie_py.formats.avro.encoder import Pieces, encode_branch, join_bytes, join_pieces, repeat_piece
from hoodie_py.formats.avro.schema import AvroType, parse_record
from hoodie_py.formats.deletes.decoder import AVRO_VERSION
from hoodie_py.formats.deletes.ordering_value import DECIMAL_SCALE

_HEADER = struct.Struct(">ii")
_INT_BRANCH = 2
_NO_ORDERING = encode_long(_INT_BRANCH) + b"\0"
_ARRAY_BRANCH = 12
_DECIMAL = json.dumps({"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": DECIMAL_SCALE})
# The branch in the union of ordering values, and the Avro type there, for each Arrow type.
_BRANCHES: dict[pa.DataType, tuple[int, str]] = {
    pa.bool_(): (1, "boolean"),
    pa.int8(): (2, "int"),
    pa.int16(): (2, "int"),
    pa.int32(): (2, "int"),
    pa.int64(): (3, "long"),
    pa.float32(): (4, "float"),
    pa.float64(): (5, "double"),
    pa.binary(): (6, "bytes"),
    pa.string(): (7, "string"),
    pa.date32(): (2, "int"),
}


def encode_delete_content(keys: pa.Array, partition_paths: pa.Array, ordering: Sequence[pa.Array] = ()) -> bytes:
    """Encode the content of a DELETE block.

    Keys and partition paths are strings. ``ordering`` are the columns of the table's ordering fields, with Spark's
    types; several columns become one array value. A delete has no ordering value if there are no columns, or if all are
    null for it.

    Raises:
        InvalidTableError: a key is null, or columns have different lengths.
        UnsupportedFeatureError: Hudi does not order by the type of an ordering column.
    """
    count = len(keys)
    if keys.null_count:
        raise InvalidTableError("A delete needs its record key.")
    if any(len(column) != count for column in (partition_paths, *ordering)):
        raise InvalidTableError("Deleted keys, partitions and ordering values differ in number.")
    text = _parse_type('"string"')
    pieces = [
        *encode_branch(keys, text, 1),
        *encode_branch(partition_paths, text, 1),
        *_encode_ordering(ordering, count),
    ]
    rows = join_bytes(join_pieces(pieces))
    payload = encode_long(count) + rows + b"\0" if count else b"\0"
    return _HEADER.pack(AVRO_VERSION, len(payload)) + payload


def _encode_ordering(columns: Sequence[pa.Array], count: int) -> Pieces:
    if not columns:
        return [repeat_piece(_NO_ORDERING, count)]
    if len(columns) == 1:
        return _encode_value(columns[0])
    head = encode_long(_ARRAY_BRANCH) + encode_long(1) + encode_long(len(columns))
    values = [piece for column in columns for piece in _encode_value(column)]
    arrays = join_pieces([repeat_piece(head, count), *values, repeat_piece(b"\0", count)])
    missing = np.logical_and.reduce([~is_valid(column) for column in columns])
    return [pc.if_else(from_numpy(missing), _make_scalar(_NO_ORDERING), arrays)]


def _encode_value(column: pa.Array) -> Pieces:
    t = column.type
    if pa.types.is_timestamp(t):
        column = column.cast(pa.timestamp("us", t.tz)).cast(pa.int64())
    elif pa.types.is_large_string(t):
        column = column.cast(pa.string())
    if pa.types.is_decimal(t):
        return _encode_branch_or_zero(_rescale_decimal(column), _parse_type(_DECIMAL), 9)
    if column.type not in _BRANCHES:
        raise UnsupportedFeatureError(f"Ordering values of type {t} cannot be written into delete blocks.")
    branch, kind = _BRANCHES[column.type]
    return _encode_branch_or_zero(column, _parse_type(json.dumps(kind)), branch)


def _encode_branch_or_zero(column: pa.Array, node: AvroType, branch: int) -> Pieces:
    """Encode the ordering values of one field; a null becomes the int 0."""
    pieces = encode_branch(column, node, branch, null=_INT_BRANCH)
    if not column.null_count:
        return pieces
    return [*pieces, pc.if_else(from_numpy(is_valid(column)), _make_scalar(b""), _make_scalar(b"\0"))]


def _rescale_decimal(column: pa.Array) -> pa.Array:
    try:
        return column.cast(pa.decimal128(38, DECIMAL_SCALE))
    except pa.ArrowInvalid:
        message = f"A decimal ordering value does not fit into the {DECIMAL_SCALE} places of delete blocks."
        raise UnsupportedFeatureError(message) from None


def _make_scalar(value: bytes) -> pa.Scalar:
    return pa.scalar(value, pa.large_binary())


@cache
def _parse_type(kind: str) -> AvroType:
    return (
        parse_record(f'{{"type": "record", "name": "r", "fields": [{{"name": "v", "type": {kind}}}]}}').fields[0].type
    )
