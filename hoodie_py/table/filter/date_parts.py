"""Compute parts of dates and clock times: ``year`` to ``day``, and ``hour`` to ``second``.

The calendar is the proleptic Gregorian one, over the whole range of both types.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types as pat

from hoodie_py.arrow.arrays import from_numpy, is_valid, to_numbers

_SECOND = 1_000_000
_Numbers = npt.NDArray[np.int64]


def compute_part(name: str, values: pa.Array) -> pa.Array:
    """Return a part of each date, or of each timestamp without time zone, as int32; null stays null."""
    width = pa.int32() if pat.is_date32(values.type) else pa.int64()
    numbers = to_numbers(values.view(width)).astype(np.int64)
    part = ({**DATE_PARTS, **TIME_PARTS})[name](numbers).astype(np.int32)
    return from_numpy(part, ~is_valid(values))


def _count_months(days: _Numbers) -> _Numbers:
    months: _Numbers = days.astype("M8[D]").astype("M8[M]").astype(np.int64)
    return months


def _count_days_of_month(days: _Numbers) -> _Numbers:
    first: _Numbers = _count_months(days).astype("M8[M]").astype("M8[D]").astype(np.int64)
    return days - first + 1


#: Parts of dates, computed from days since 1970.
DATE_PARTS: Mapping[str, Callable[[_Numbers], _Numbers]] = {
    "year": lambda days: _count_months(days) // 12 + 1970,
    "quarter": lambda days: _count_months(days) % 12 // 3 + 1,
    "month": lambda days: _count_months(days) % 12 + 1,
    "day": _count_days_of_month,
    "dayofmonth": _count_days_of_month,
}
#: Parts of clock times, computed from microseconds since 1970.
TIME_PARTS: Mapping[str, Callable[[_Numbers], _Numbers]] = {
    "hour": lambda micros: micros // (3600 * _SECOND) % 24,
    "minute": lambda micros: micros // (60 * _SECOND) % 60,
    "second": lambda micros: micros // _SECOND % 60,
}
