"""The same values in all of Arrow's layouts, for tests of everything that takes rows, values or types from a caller.

``LAYOUTS`` has an array and its plain type by name; all are of as many rows, with nulls. ``NESTED`` has layouts inside
lists, structs and maps.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa

TEXTS = ["a", None, "", "a text that is longer than twelve bytes", "b"]
_BYTES = [each if each is None else each.encode() for each in TEXTS]
_LISTS = [["a", None], None, [], ["a text that is longer than twelve bytes"], ["b", "c"]]
_PAIRS = [["a", None], None, ["b", "c"], ["d", "e"], ["f", "a text that is longer than twelve bytes"]]
_STRUCTS = [{"x": "a", "y": ["b"]}, None, {"x": None, "y": None}, {"x": "", "y": []}, {"x": "c", "y": [None]}]
_MAPS = [[("k", "v")], None, [], [("k", None), ("l", "w")], [("m", "x")]]
_VIEW, _LARGE = pa.string_view(), pa.large_string()


def _make_dictionary(values: pa.Array, index: pa.DataType) -> pa.Array:
    """A dictionary with a null among its values and one among its indices."""
    return pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 2, 0], index), values)


def _make_runs(values: list[Any], type_: pa.DataType) -> pa.Array:
    return pa.RunEndEncodedArray.from_arrays(pa.array([2, 3, 5], pa.int32()), pa.array(values, type_))


LAYOUTS: dict[str, tuple[pa.Array, pa.DataType]] = {
    "string": (pa.array(TEXTS), pa.string()),
    "string_view": (pa.array(TEXTS, _VIEW), pa.string()),
    "large_string": (pa.array(TEXTS, _LARGE), pa.string()),
    "binary_view": (pa.array(_BYTES, pa.binary_view()), pa.binary()),
    "large_binary": (pa.array(_BYTES, pa.large_binary()), pa.binary()),
    "dictionary": (pa.array(TEXTS).dictionary_encode(), pa.string()),
    "dictionary_with_nulls": (_make_dictionary(pa.array(["a", None, "c"]), pa.int8()), pa.string()),
    "dictionary_of_views": (_make_dictionary(pa.array(["a", None, "c"], _VIEW), pa.uint16()), pa.string()),
    "dictionary_of_numbers": (_make_dictionary(pa.array([1, None, 3]), pa.int64()), pa.int64()),
    "runs": (_make_runs(["a", None, "b"], pa.string()), pa.string()),
    "runs_of_views": (_make_runs(["a", None, "b"], _VIEW), pa.string()),
    "runs_of_numbers": (_make_runs([1.5, None, 2.5], pa.float64()), pa.float64()),
    "decimal64": (pa.array([Decimal("1.5"), None, *[Decimal("-2.5")] * 3], pa.decimal64(9, 1)), pa.decimal128(9, 1)),
    "extension": (
        pa.ExtensionArray.from_storage(pa.opaque(_VIEW, "t", "v"), pa.array(TEXTS, _VIEW)), pa.string(),
    ),
    "list_view": (pa.array(_LISTS, pa.list_view(pa.string())), pa.list_(pa.string())),
    "large_list": (pa.array(_LISTS, pa.large_list(pa.string())), pa.list_(pa.string())),
    "large_list_view": (pa.array(_LISTS, pa.large_list_view(pa.string())), pa.list_(pa.string())),
}  # fmt: skip
_PLAIN_STRUCT = pa.struct([("x", pa.string()), ("y", pa.list_(pa.string()))])
NESTED: dict[str, tuple[pa.Array, pa.DataType]] = {
    "list_of_views": (pa.array(_LISTS, pa.list_(_VIEW)), pa.list_(pa.string())),
    "list_view_of_views": (pa.array(_LISTS, pa.list_view(_VIEW)), pa.list_(pa.string())),
    "large_list_of_large": (pa.array(_LISTS, pa.large_list(_LARGE)), pa.list_(pa.string())),
    "fixed_list_of_views": (pa.array(_PAIRS, pa.list_(_VIEW, 2)), pa.list_(pa.string(), 2)),
    "list_of_lists": (
        pa.array([[each] for each in _LISTS], pa.large_list(pa.list_view(_VIEW))), pa.list_(pa.list_(pa.string())),
    ),
    "struct": (pa.array(_STRUCTS, pa.struct([("x", _VIEW), ("y", pa.list_view(_LARGE))])), _PLAIN_STRUCT),
    "list_of_structs": (
        pa.array([[each, None] for each in _STRUCTS], pa.list_view(pa.struct([("x", _VIEW), ("y", pa.list_(_VIEW))]))),
        pa.list_(_PLAIN_STRUCT),
    ),
    "map": (pa.array(_MAPS, pa.map_(_VIEW, _LARGE)), pa.map_(pa.string(), pa.string())),
    "map_of_lists": (
        pa.array([each and [(k, [v]) for k, v in each] for each in _MAPS], pa.map_(_LARGE, pa.list_view(_VIEW))),
        pa.map_(pa.string(), pa.list_(pa.string())),
    ),
}  # fmt: skip
LAYOUTS |= NESTED


def make_rows(keys: list[str], layout: pa.DataType = _VIEW) -> pa.Table:
    """Return rows with a column of each layout, besides keys ``id`` and ordering values ``ts``."""
    columns = {name: array for name, (array, plain) in LAYOUTS.items() if not pa.types.is_fixed_size_list(plain)}
    assert len(keys) == len(TEXTS)
    return pa.table({"id": pa.array(keys).cast(layout), "ts": _NUMBERS_OF_ROWS, **columns})


def make_plain_rows(keys: list[str]) -> pa.Table:
    """Return the same rows in plain layouts."""
    columns = {
        name: pa.array((array.storage if isinstance(array, pa.ExtensionArray) else array).to_pylist(), plain)
        for name, (array, plain) in LAYOUTS.items()
        if not pa.types.is_fixed_size_list(plain)
    }
    return pa.table({"id": keys, "ts": _NUMBERS_OF_ROWS, **columns})


_NUMBERS_OF_ROWS = list(range(len(TEXTS)))
