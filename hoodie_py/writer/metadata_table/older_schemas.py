"""Fits records to the schema of a metadata table that an older Hudi made.

The schema is that of the partition's newest file, so it may lack wrappers of values and fields that Hudi 1.2.0 has.
They are left out where they have no value. The flag of tight bounds is left out anyway: Hudi then knew no bounds of
partitions.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from hoodie_py.arrow.arrays import from_numpy, is_valid
from hoodie_py.errors import UnsupportedFeatureError

_DROPPED: Final = frozenset({"isTightBound"})


def fit_to_schema(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """Return an array of structs with the fields of another struct type, by name; other arrays as they are.

    Raises:
        UnsupportedFeatureError: a field has a value that the type has no place for.
    """
    if array.type == type_ or not (pa.types.is_struct(array.type) and pa.types.is_struct(type_)):
        return array
    children = dict(zip((field.name for field in array.type), array.flatten(), strict=True))
    for name in children.keys() - {field.name for field in type_} - _DROPPED:
        if children[name].null_count < len(array):
            raise UnsupportedFeatureError(
                "The metadata table was made by a Hudi that had no place for what is to be written.", field=name
            )
    fields = [field for field in type_ if field.name in children]
    arrays = [fit_to_schema(children[field.name], field.type) for field in fields]
    fields = [field.with_type(each.type).with_nullable(True) for field, each in zip(fields, arrays, strict=True)]
    return pa.StructArray.from_arrays(arrays, fields=fields, mask=from_numpy(~is_valid(array)))
