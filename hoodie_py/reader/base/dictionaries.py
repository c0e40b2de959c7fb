"""String columns that repeat few values: read as dictionary codes, decoded only for the rows that are returned.

Parquet stores such columns as codes. Decoding every value is most of the cost of reading them, and the log replaces
some of the rows later. Filtering the codes first and decoding the rest takes a third of the time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import from_numpy, repeat_value, take

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_NESTED = (pa.ListArray, pa.StructArray, pa.MapArray)
_LENGTH_BYTES = 4  # Parquet's plain encoding stores a length before each string
_SPARE = 16  # a repeated value is written for a sixteenth more rows than needed


def find_coded_columns(metadata: pq.FileMetaData) -> list[int]:
    """Return the leaf columns to read as codes: strings that take fewer bytes than their lengths alone would.

    Only the first and the last row group are checked. Columns that other row groups store otherwise are read right, but
    more slowly.
    """
    last = metadata.num_row_groups - 1
    if last < 0:
        return []
    found = list(_list_coded(metadata, 0, range(metadata.num_columns)))
    return list(_list_coded(metadata, last, found)) if last else found


def _list_coded(metadata: pq.FileMetaData, group: int, columns: Iterable[int]) -> Iterator[int]:
    chunks = metadata.row_group(group)
    for at in columns:
        chunk = chunks.column(at)  # the type comes from the chunk, not from the schema: see check_footer
        if (
            chunk.has_dictionary_page
            and chunk.total_uncompressed_size < _LENGTH_BYTES * chunk.num_values
            and chunk.physical_type == "BYTE_ARRAY"
        ):
            yield at


def to_plain_type(type_: pa.DataType) -> pa.DataType:
    """Replace dictionary types by the types of their values, at every depth."""
    if pa.types.is_dictionary(type_):
        return type_.value_type
    if pa.types.is_map(type_):
        return pa.map_(_to_plain_field(type_.key_field), _to_plain_field(type_.item_field), type_.keys_sorted)
    if pa.types.is_list(type_):
        return pa.list_(_to_plain_field(type_.value_field))
    if pa.types.is_struct(type_):
        return pa.struct([_to_plain_field(field) for field in type_])
    return type_


def _to_plain_field(field: pa.Field) -> pa.Field:
    return field.with_type(to_plain_type(field.type))


def to_plain_array(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """Decode the dictionaries in an array, at every depth; ``type_`` is its ``to_plain_type``."""
    if isinstance(array, pa.DictionaryArray):
        return take(array.dictionary, array.indices)
    if not isinstance(array, _NESTED) or array.type.equals(type_):
        return array
    if array.offset:
        # Buffers and children of a slice begin before it; a copy begins at 0.
        array = take(array, from_numpy(np.arange(len(array))))
    if pa.types.is_map(type_):
        entry = type_.field(0).type
        pairs = [to_plain_array(array.keys, type_.key_type), to_plain_array(array.items, type_.item_type)]
        children = [pa.StructArray.from_arrays(pairs, fields=list(entry))]
    elif pa.types.is_list(type_):
        children = [to_plain_array(array.values, type_.value_type)]
    else:
        children = [to_plain_array(array.field(at), field.type) for at, field in enumerate(type_)]
    valid = array.buffers()[: 1 if pa.types.is_struct(type_) else 2]
    return pa.Array.from_buffers(type_, len(array), valid, null_count=array.null_count, children=children)


def _add_spare(length: int) -> int:
    """Return slightly more rows than needed: batches differ in length where the log dropped rows."""
    return length + length // _SPARE


class Decoder:
    """Decodes the dictionaries of ``BaseFileReader.read_batches``, and makes columns of one value.

    A value that all rows repeat is written once, for slightly more rows than any batch so far, and then sliced.
    """

    def __init__(self) -> None:
        self._values: dict[tuple[str, str], pa.Array] = {}
        self._constants: dict[str, pa.Array] = {}

    def repeat_value(self, field: pa.Field, value: Any, length: int) -> pa.Array:
        """Return a column of one value, nulls for None. A field must have the same value in every call."""
        written = self._constants.get(field.name)
        if written is None or len(written) < length:
            written = self._constants[field.name] = repeat_value(value, field.type, _add_spare(length))
        return written.slice(0, length)

    def decode(self, field: pa.Field, array: pa.Array) -> pa.Array:
        """Return a column in its own type; repeated values are kept by the field's name."""
        if not isinstance(array, pa.DictionaryArray):
            return to_plain_array(array, field.type) if isinstance(array, _NESTED) else array
        if len(array.dictionary) != 1 or array.null_count or array.dictionary.null_count:
            return take(array.dictionary, array.indices)
        value = array.dictionary[0]
        written = self._values.get((field.name, value.as_py()))
        if written is None or len(written) < len(array):
            self._values = {key: kept for key, kept in self._values.items() if key[0] != field.name}
            written = self._values[field.name, value.as_py()] = pa.repeat(value, _add_spare(len(array)))
        return written.slice(0, len(array))
