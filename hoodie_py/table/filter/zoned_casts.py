"""Convert timestamps from and to dates, texts and timestamps without a zone, by the clocks of a time zone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from pyarrow import types as pat

from hoodie_py.arrow.arrays import from_numpy, is_valid, to_numbers
from hoodie_py.table.filter import time_zones
from hoodie_py.table.filter.datetime_text import MICROS_PER_DAY, format_timestamp, split_timestamp
from hoodie_py.table.filter.text_casts import convert_distinct, make_cast_error
from hoodie_py.table.filter.types import TIMESTAMP, TIMESTAMP_NTZ

#: Called for a text that is not a timestamp; raises an error, or returns so that the text becomes null.
Refuse = Callable[[str], None]


def depends_on_zone(source: pa.DataType, target: pa.DataType) -> bool:
    """Say whether a cast's result depends on the session's time zone."""
    if source == target or TIMESTAMP not in (source, target):
        return False
    other = target if source == TIMESTAMP else source
    return bool(pat.is_string(other) or pat.is_date32(other) or other == TIMESTAMP_NTZ)


def cast_by_zone(values: pa.Array, target: pa.DataType, zone: str, refuse: Refuse | None = None) -> pa.Array:
    """Convert an array; ``depends_on_zone`` must hold for the types.

    Raises:
        InvalidQueryError: a text is not a timestamp and ``refuse`` is None, or a time is at the end of the range.
    """
    source = values.type
    if pat.is_string(source):
        return _parse_texts(values, target, zone, refuse)
    known = is_valid(values)
    numbers = to_numbers(values.view(pa.int32() if pat.is_date32(source) else pa.int64())).astype(np.int64)
    if source == TIMESTAMP:
        clock = time_zones.to_clock(numbers, zone)
        if pat.is_string(target):
            return convert_distinct(_make(clock, known, pa.int64()), format_timestamp, target)
        if pat.is_date32(target):
            return _make(clock // MICROS_PER_DAY, known, pa.int32()).view(target)
        return _make(clock, known, target)
    move = time_zones.start_days if pat.is_date32(source) else time_zones.to_instants
    return _make(move(numbers, zone), known, target)


def _make(numbers: np.ndarray, known: np.ndarray, type_: pa.DataType) -> pa.Array:
    return from_numpy(numbers.astype(np.int32) if type_ == pa.int32() else numbers, ~known).view(type_)


def _parse_texts(values: pa.Array, target: pa.DataType, zone: str, refuse: Refuse | None) -> pa.Array:
    coded = values.dictionary_encode()
    found = []
    for text in coded.dictionary.to_pylist():
        parsed = split_timestamp(text)
        if parsed is None:
            if refuse is None:
                raise make_cast_error(text, values.type, target)
            refuse(text)
        found.append(parsed)
    known = np.array([each is not None for each in found], np.bool_)
    named = np.array([each is not None and each.offset is not None for each in found], np.bool_)
    instants = np.array([0 if each is None else each.clock - (each.offset or 0) for each in found], np.int64)
    open_ = known & ~named
    instants[open_] = time_zones.to_instants(instants[open_], zone)
    return _make(instants, known, target).take(coded.indices)
