"""The union of wrappers that the metadata table of Java 1.2.0 has for bounds, as Arrow reads it."""

from __future__ import annotations

import pyarrow as pa

_WRAPPED = [
    pa.bool_(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.binary(),
    pa.string(),
    pa.int32(),
    pa.decimal128(30, 15),
    pa.int64(),
    pa.int64(),
    pa.int32(),
]
_MEMBERS = [pa.field(f"member{at}", pa.struct([("value", type_)])) for at, type_ in enumerate(_WRAPPED)]
UNION = pa.struct([*_MEMBERS, pa.field("member12", pa.struct([("wrappedValues", pa.list_(pa.struct(_MEMBERS)))]))])
