"""Format timestamps as Java's ``java.sql.Timestamp.toString`` does: ``2020-01-02 03:04:05.678``.

Java Hudi writes timestamps in keys like that when it takes them for values, not numbers: milliseconds, cut towards
1970; no zeros at the end of the fraction but the first; in the zone of the writer's JVM.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.writer.keygen.time_pattern import LAST_MILLI, UTC_MILLIS
from hoodie_py.writer.row_errors import refuse_rows

# 1582-10-15, in milliseconds; for days before it Java uses the Julian calendar.
_FIRST_MILLI = -12_219_292_800_000
_MICROS_IN_MILLI = 1000


def format_java_timestamps(values: pa.ChunkedArray, column: str, zone: str) -> pa.ChunkedArray:
    """Format every timestamp; null stays null. The timestamps have a zone; ``zone`` is that of the texts.

    Raises:
        InvalidQueryError: times before 1582-10-15 or after the year 9999; names the first rows.
    """
    micros = values.cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    millis = pc.divide(micros, _MICROS_IN_MILLI)
    outside = pc.or_(pc.less(millis, _FIRST_MILLI), pc.greater(millis, LAST_MILLI))
    refuse_rows(outside, "Times in keys outside the years 1582 to 9999.", column=column, values=values)
    local = pc.local_timestamp(millis.cast(UTC_MILLIS).cast(pa.timestamp("ms", zone)))
    return pc.replace_substring_regex(local.cast(pa.string()), r"(\.\d+?)0+$", r"\1")
