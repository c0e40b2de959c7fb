"""Dates that Java stores ten days late in statistics of version 1 (Hudi ``HoodieAvroWrapperUtils``).

Java makes a ``java.sql.Date`` of the days since 1970, and days of its year, month and day. That class knows the Julian
calendar up to 1582-10-04, and the Gregorian one from 1582-10-15 on. It takes the days between for Julian ones:
1582-10-05 becomes 1582-10-15, and 1582-10-14 becomes 1582-10-24. Earlier days come back as they were. So a stored day
up to 1582-10-24 does not tell which one was meant. Statistics of version 2 hold the days themselves.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from hoodie_py.formats.metadata_table.column_ranges import ColumnRange
from hoodie_py.formats.metadata_table.stat_values import RawValue
from hoodie_py.formats.metadata_table.value_kinds import V1, ValueType

FIRST_CERTAIN_DAY: Final = -141_417
"""1582-10-25 in days since 1970: what stands in statistics of version 1 from here on is the day that was meant."""

_FIRST, _LAST, _LATE = -141_437, -141_428, 10  # 1582-10-05 and 1582-10-14


def shift_range(data: ColumnRange, version: int) -> ColumnRange | None:
    """Return the range that Java stores for one of the data; None where that is the same.

    Java compares either the days of the data or those that it stores. So its bounds hold for what is returned.
    """
    if version != V1 or data.kind.type is not ValueType.DATE:
        return None
    shifted = replace(data, least=_shift(data.least), greatest=_shift(data.greatest))
    return None if shifted == data else shifted


def _shift(day: RawValue | None) -> RawValue | None:
    return day + _LATE if isinstance(day, int) and _FIRST <= day <= _LAST else day
