"""Keys of the metadata table's secondary indexes, and where they lie (Hudi ``SecondaryIndexKeyUtils``).

    key      escaped secondary value, "$", escaped record key
    escapes  a backslash before "$", backslash and NUL; a null value is a NUL alone

The file group of a key is Java's ``String.hashCode`` modulo the number of groups: in version 1 of an index that of the
whole key, in version 2 that of the part up to the "$", so that all keys of a value lie in one group. Records say
nothing but whether they are deleted.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.arrays import from_numpy
from hoodie_py.arrow.float_texts import print_floats
from hoodie_py.errors import InvalidTableError, UnsupportedFeatureError
from hoodie_py.formats.metadata_table.record_index_keys import Numbers, find_file_groups

SECONDARY_INDEX_TYPE = 7
SECONDARY_INDEX_COLUMN = "SecondaryIndexMetadata"
SECONDARY_TYPE = pa.struct([pa.field("isDeleted", pa.bool_())])
"""Type of the column ``SecondaryIndexMetadata``."""

_NULL = "\0"
_SPECIAL = ("\\", "$", "\0")  # the backslash first, as the others are escaped with it
_PARTS = r"^(?s)(?P<value>(?:[^\\$]|\\.)*)\$(?P<record>.*)$"


def make_secondary_keys(values: pa.Array, record_keys: pa.Array) -> pa.Array:
    """Return the keys of secondary values, which may be null, with their record keys; all are strings."""
    return pc.binary_join_element_wise(escape_secondary_values(values), _escape(record_keys), "$")


def escape_secondary_values(values: pa.Array) -> pa.Array:
    """Return the part of the key in front of the "$" for secondary values."""
    return pc.fill_null(_escape(values), _NULL)


def split_secondary_keys(keys: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return the secondary values, which may be null, and the record keys.

    Raises:
        InvalidTableError: a key has no "$".
    """
    parts = _split(keys)
    values, records = pc.struct_field(parts, "value"), pc.struct_field(parts, "record")
    nulls = pc.equal(values, _NULL)
    return pc.if_else(nulls, pa.scalar(None, pa.string()), _unescape(values)), _unescape(records)


def find_secondary_groups(keys: pa.Array, count: int, version: int) -> Numbers:
    """Return the number of each key's file group among ``count`` ones; ``version`` is the index's.

    Raises:
        InvalidTableError: a key has no "$".
    """
    if count == 1:
        return np.zeros(len(keys), np.int64)
    if version > 1:
        values = pc.struct_field(_split(keys), "value")
        keys = pc.binary_join_element_wise(values, "$", "")
    return find_file_groups(keys, count)


def format_secondary_values(values: pa.Array) -> pa.Array:
    """Return values as the texts that are indexed; null stays null.

    They are those of Java's values in Spark 3: a date is its days since 1970, a timestamp its microseconds, and floats
    have the digits that Java prints up to version 18.

    Raises:
        UnsupportedFeatureError: the type cannot be indexed.
    """
    type_ = values.type
    if pa.types.is_string(type_):
        return values
    if pa.types.is_integer(type_) or pa.types.is_large_string(type_):
        return values.cast(pa.string())
    if pa.types.is_float32(type_) or pa.types.is_float64(type_):
        return print_floats(values)
    if pa.types.is_date32(type_):
        return values.cast(pa.int32()).cast(pa.string())
    if pa.types.is_timestamp(type_):
        return values.cast(pa.timestamp("us", type_.tz)).cast(pa.int64()).cast(pa.string())
    raise UnsupportedFeatureError(f"A secondary index of values of the type {type_}.")


def make_deletion_column(deleted: np.ndarray) -> pa.StructArray:
    """Make the column ``SecondaryIndexMetadata``."""
    return pa.StructArray.from_arrays([from_numpy(deleted)], fields=list(SECONDARY_TYPE))


def _escape(texts: pa.Array) -> pa.Array:
    for each in _SPECIAL:
        texts = pc.replace_substring(texts, each, "\\" + each)
    return texts


def _unescape(texts: pa.Array) -> pa.Array:
    return pc.replace_substring_regex(texts, r"(?s)\\(.)", r"\1")


def _split(keys: pa.Array) -> pa.StructArray:
    parts = pc.extract_regex(keys, _PARTS)
    if parts.null_count != keys.null_count:
        raise InvalidTableError("A key of a secondary index has no '$' between its value and its record key.")
    return parts
