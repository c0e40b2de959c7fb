"""Times of ORC files: points in time, stored as the local clock time of the place where the file was written.

Hudi stores UTC times as ORC's TIMESTAMP (``AvroOrcUtils``). Java's readers convert them back by the time zone that each
stripe names. Arrow's reader returns the clock time, in nanoseconds without a zone; where a clock shows an hour twice,
the first is taken.

Java Hudi 1.2.0 writes times before 1970 that are not whole milliseconds with a negative fraction. Its own reader fails
on them. Arrow's reader places them in the last millisecond of a second, so such times in Hudi's files are refused.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import to_numbers
from hoodie_py.errors import UnsupportedFeatureError

_CLOCK = pa.timestamp("ns")
_INSTANT = pa.timestamp("us", "UTC")
_SECOND, _MILLISECOND = 1_000_000, 1_000
_UTC = frozenset({"UTC", "GMT", "Etc/UTC", "Etc/GMT", "Z", "Zulu", "Etc/Zulu"})


def to_instant_type(type_: pa.DataType) -> pa.DataType:
    """Return the type with UTC instants in place of clock times."""
    if type_.equals(_CLOCK):
        return _INSTANT
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(to_instant_type(field.type)) for field in type_])
    if pa.types.is_list(type_):
        return pa.list_(type_.value_field.with_type(to_instant_type(type_.value_type)))
    if pa.types.is_map(type_):
        key, item = type_.key_field, type_.item_field
        return pa.map_(
            key.with_type(to_instant_type(key.type)), item.with_type(to_instant_type(item.type)), type_.keys_sorted
        )
    return type_


def make_instants(zone: str, *, by_hudi: bool = False) -> Callable[[pa.Array], pa.Array]:
    """Return a function that converts a column of a stripe to the type of ``to_instant_type``.

    ``zone``: the stripe's time zone. ``by_hudi``: whether Hudi wrote the file. The function raises pyarrow.ArrowInvalid
    for an unknown zone, and UnsupportedFeatureError for times of Hudi's files whose fraction is lost.
    """

    def convert(array: pa.Array) -> pa.Array:
        target = to_instant_type(array.type)
        return array if target.equals(array.type) else _convert(array, target, zone, by_hudi)

    return convert


def _convert(array: pa.Array, target: pa.DataType, zone: str, by_hudi: bool) -> pa.Array:
    if target.equals(array.type):
        return array
    if pa.types.is_timestamp(target):
        return _to_instants(array, zone, by_hudi)
    if pa.types.is_struct(target):
        children = [_convert(array.field(at), target.field(at).type, zone, by_hudi) for at in range(target.num_fields)]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(children, fields=list(target), mask=mask)
    if pa.types.is_list(target):
        children = [_convert(array.values, target.value_type, zone, by_hudi)]
    else:
        entries = pa.StructArray.from_arrays(
            [
                _convert(array.keys, target.key_type, zone, by_hudi),
                _convert(array.items, target.item_type, zone, by_hudi),
            ],
            fields=[target.key_field, target.item_field],
        )
        children = [entries]
    return pa.Array.from_buffers(
        target, len(array), array.buffers()[:2], null_count=array.null_count, offset=array.offset, children=children
    )


def _to_instants(array: pa.Array, zone: str, by_hudi: bool) -> pa.Array:
    import pyarrow.compute as pc

    micros = pc.floor_temporal(array, unit="microsecond").cast(pa.timestamp("us"))
    if by_hudi:
        _check_fractions(to_numbers(micros.cast(pa.int64())))
    if zone in _UTC:
        return micros.cast(_INSTANT)
    return pc.assume_timezone(micros, zone, ambiguous="earliest", nonexistent="latest").cast(_INSTANT)


def _check_fractions(micros: np.ndarray) -> None:
    if ((micros < 0) & (micros % _SECOND > _SECOND - _MILLISECOND)).any():
        raise UnsupportedFeatureError(
            "Times before 1970 that Hudi wrote to an ORC file: their fractions of a second are lost.",
            hint="Leave the column out.",
        )
