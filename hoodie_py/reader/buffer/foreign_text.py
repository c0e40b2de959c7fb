"""Spills ordering values whose class differs from their column's, as JSON texts.

Only delete blocks have such values, after the ordering field changed its type. A text holds pairs of a type's name and
a value, so that a value comes back with its type.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa

from hoodie_py.reader.record.ordering import ForeignValue
from hoodie_py.reader.record.record import DEFAULT_ORDERING


def encode_foreign(values: np.ndarray | None, length: int) -> pa.Array:
    """Return a text for each ForeignValue of an object array, null for None."""
    if values is None:
        return pa.nulls(length, pa.string())
    return pa.array([None if value is None else json.dumps(_encode(value)) for value in values], pa.string())


def decode_foreign(texts: pa.Array) -> np.ndarray | None:
    """Return the object array that ``encode_foreign`` encoded; None if every text is null."""
    if texts.null_count == len(texts):
        return None
    values = np.full(len(texts), None, dtype=object)
    for i, text in enumerate(texts.to_pylist()):
        values[i] = None if text is None else _decode(json.loads(text))
    return values


_WRITE: Final[Mapping[type, Callable[[Any], Any]]] = {
    bool: bool,
    int: str,
    float: float.hex,
    str: lambda value: value.encode("utf-8", "surrogatepass").hex(),
    bytes: bytes.hex,
    Decimal: str,
    datetime.datetime: datetime.datetime.isoformat,
    datetime.date: datetime.date.isoformat,
    tuple: lambda value: [_encode(item) for item in value],
    ForeignValue: lambda value: [value.kind, _encode(value.value)],
}
_READ: Final[Mapping[str, Callable[[Any], Any]]] = {
    "bool": bool,
    "int": int,
    "float": float.fromhex,
    "str": lambda text: bytes.fromhex(text).decode("utf-8", "surrogatepass"),
    "bytes": bytes.fromhex,
    "Decimal": Decimal,
    "datetime": datetime.datetime.fromisoformat,
    "date": datetime.date.fromisoformat,
    "tuple": lambda items: tuple(_decode(item) for item in items),
    "ForeignValue": lambda pair: ForeignValue(pair[0], _decode(pair[1])),
}


def _encode(value: Any) -> Any:
    if value is None or value is DEFAULT_ORDERING:
        return ["null" if value is None else "default", None]
    kind = next(kind for kind in type(value).__mro__ if kind in _WRITE)  # an IntEnum is an int
    return [kind.__name__, _WRITE[kind](value)]


def _decode(pair: Any) -> Any:
    name, value = pair
    if name in ("null", "default"):
        return None if name == "null" else DEFAULT_ORDERING
    return _READ[name](value)
