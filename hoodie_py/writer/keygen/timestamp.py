"""Format times as parts of partition paths (Hudi ``TimestampBasedAvroKeyGenerator``, ``HoodieDateTimeParser``).

Numbers, dates (as days) and timestamps (as micro- or milliseconds, like in files) count in the configured unit. Strings
are parsed by the first input format that fits. Null stands for the number 1, or, if texts are read, for the date 1 ms
after the start of 1970. Zones are UTC unless the settings name others.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.fields import is_text
from hoodie_py.errors import InvalidTableError, UnsupportedFeatureError
from hoodie_py.formats.config.table_config import TIMESTAMP_KEYGEN_PREFIXES
from hoodie_py.options import write as keys
from hoodie_py.writer.keygen.time_pattern import LAST_MILLI, UTC_MILLIS, TimePattern
from hoodie_py.writer.row_errors import refuse_rows

_TEXT_TYPES = ("DATE_STRING", "MIXED")
_UNIT_OF_TYPE = {
    "UNIX_TIMESTAMP": "SECONDS",
    "EPOCHMILLISECONDS": "MILLISECONDS",
    "EPOCHMICROSECONDS": "MICROSECONDS",
}
_MILLIS_OF_UNIT = {"DAYS": 86_400_000, "HOURS": 3_600_000, "MINUTES": 60_000, "SECONDS": 1000, "MILLISECONDS": 1}
_UNITS_IN_MILLI = {"MICROSECONDS": 1000, "NANOSECONDS": 1_000_000}
_GMT_OFFSET = re.compile(r"(?:GMT|UTC)?([+-])([0-9]{1,2})(?::?([0-9]{2}))?")
_FIRST_MILLI = -62_135_596_800_000  # of the year 1
_NULL_MILLIS = 1
_PREFIX = TIMESTAMP_KEYGEN_PREFIXES[0]


@dataclass(frozen=True, slots=True)
class PartitionTime:
    """Formats a time column as a partition path segment.

    Attributes:
        unit: unit of numeric input; None if only text is accepted.
        inputs: text formats, tried in order.
        input_zone: zone assumed for text without one.
        output_zone: zone of the formatted times.
        output: format of the segment.
    """

    unit: str | None
    inputs: tuple[TimePattern, ...]
    input_zone: str
    output_zone: str
    output: TimePattern

    @classmethod
    def from_settings(cls, settings: Mapping[str, str]) -> PartitionTime:
        """Make the time format from a table's settings.

        ``settings`` are the settings of the timestamp key generator, without their prefix.

        Raises:
            InvalidTableError: a setting is missing, or has an unknown value.
            UnsupportedFeatureError: a date format or parser is not handled.
        """
        if settings.get(keys.DATE_PARSER, "").rpartition(".")[2] not in ("", "HoodieDateTimeParser"):
            raise UnsupportedFeatureError("A timestamp key generator with a custom date parser.")
        kind, output = settings.get(keys.TIMESTAMP_TYPE, ""), settings.get(keys.OUTPUT_DATE_FORMAT, "")
        if not kind or not output:
            raise InvalidTableError(
                "The table does not say how its key generator spells times.",
                hint=f"Give the options {_PREFIX}{keys.TIMESTAMP_TYPE} and {_PREFIX}{keys.OUTPUT_DATE_FORMAT}, and "
                f"more of {_PREFIX}* where they differ from Hudi's defaults, as the table's other writers have them.",
            )
        unit = settings.get(keys.TIMESTAMP_UNIT, "SECONDS").upper() if kind == "SCALAR" else _UNIT_OF_TYPE.get(kind)
        known = unit is None or unit in _MILLIS_OF_UNIT or unit in _UNITS_IN_MILLI
        if not known or (unit is None and kind not in _TEXT_TYPES):
            raise InvalidTableError("The timestamp key generator has an unknown type or unit.", value=f"{kind} {unit}")
        inputs = _parse_input_patterns(settings) if kind in _TEXT_TYPES else ()
        both = settings.get(keys.BOTH_ZONES)
        return cls(
            unit=unit,
            inputs=inputs,
            input_zone=_parse_zone(both or settings.get(keys.INPUT_ZONE) or "UTC"),
            output_zone=_parse_zone(both or settings.get(keys.OUTPUT_ZONE) or "UTC"),
            output=TimePattern.parse(output),
        )

    def format_texts(self, values: pa.ChunkedArray, column: str) -> pa.ChunkedArray:
        """Return every row's part of the partition path.

        Raises:
            InvalidQueryError: a value fits no format, or is no time; names the first rows.
            UnsupportedFeatureError: the column's type is not handled.
        """
        millis = self._parse_texts(values, column) if is_text(values.type) else self._parse_numbers(values, column)
        outside = pc.or_(pc.less(millis, _FIRST_MILLI), pc.greater(millis, LAST_MILLI))
        refuse_rows(outside, "Times outside the years 1 to 9999.", column=column, values=values)
        return self.output.format(millis.cast(UTC_MILLIS).cast(pa.timestamp("ms", self.output_zone)))

    def _parse_numbers(self, values: pa.ChunkedArray, column: str) -> pa.ChunkedArray:
        if self.unit is None:
            raise UnsupportedFeatureError(
                f"A timestamp key generator that reads texts, over a column of type {values.type}.", column=column
            )
        numbers = pc.fill_null(_to_int64(values, column), _NULL_MILLIS)
        if self.unit in _UNITS_IN_MILLI:
            return pc.divide(numbers, _UNITS_IN_MILLI[self.unit])
        weight = _MILLIS_OF_UNIT[self.unit]
        most = LAST_MILLI // weight
        too_far = pc.or_(pc.greater(numbers, most), pc.less(numbers, -most))
        refuse_rows(too_far, "Times outside the years 1 to 9999.", column=column, values=values)
        return pc.multiply(numbers, weight)

    def _parse_texts(self, values: pa.ChunkedArray, column: str) -> pa.ChunkedArray:
        if not self.inputs:
            raise UnsupportedFeatureError(
                f"A timestamp key generator that reads numbers, over a column of type {values.type}.", column=column
            )
        texts = values.cast(pa.string())
        if texts.null_count:
            first = pa.chunked_array([pa.array([_NULL_MILLIS], pa.timestamp("ms", self.input_zone))])
            texts = pc.fill_null(texts, self.inputs[0].format(first)[0])
        found = self.inputs[0].read(texts, self.input_zone)
        for pattern in self.inputs[1:]:
            found = pc.coalesce(found, pattern.read(texts, self.input_zone))
        formats = ", ".join(each.pattern for each in self.inputs)
        refuse_rows(pc.is_null(found), f"Texts that are no time of the form {formats}.", column=column, values=values)
        return found.cast(pa.int64())


def _parse_input_patterns(settings: Mapping[str, str]) -> tuple[TimePattern, ...]:
    given = settings.get(keys.INPUT_DATE_FORMAT, "")
    delimiter = settings.get(keys.INPUT_DATE_FORMAT_DELIMITER, ",")
    if not given:
        raise InvalidTableError(f"The timestamp key generator reads texts but lacks {keys.INPUT_DATE_FORMAT}.")
    if len(delimiter) != 1 or delimiter in ".^$*+?()[]{}|\\":
        raise UnsupportedFeatureError(f"Input date formats told apart by the pattern {delimiter[:20]!r}.")
    return tuple(TimePattern.parse(each.strip()) for each in given.split(delimiter) if each.strip())


def _parse_zone(name: str) -> str:
    """Translate a zone of Java's TimeZone to its name in Arrow."""
    stripped = name.strip()
    match = _GMT_OFFSET.fullmatch(stripped)
    if match is not None:
        return f"{match[1]}{int(match[2]):02d}:{match[3] or '00'}"
    try:
        ZoneInfo(stripped)
    except (ValueError, OSError, LookupError):
        raise InvalidTableError("The timestamp key generator names an unknown time zone.", value=name[:100]) from None
    return stripped


def _to_int64(values: pa.ChunkedArray, column: str) -> pa.ChunkedArray:
    """Convert values to whole numbers as Java does: towards zero, dates as days, timestamps in the unit of files."""
    type_ = values.type
    if pa.types.is_date32(type_):
        return values.cast(pa.int32()).cast(pa.int64())
    if pa.types.is_timestamp(type_):
        unit = "ms" if type_.unit == "ms" else "us"
        return values.cast(pa.timestamp(unit, type_.tz)).cast(pa.int64())
    if pa.types.is_integer(type_):
        return values.cast(pa.int64())
    if pa.types.is_decimal(type_):  # one more digit: Arrow's trunc may round into a digit before the point
        values = values.cast(pa.decimal256(type_.precision + 1, type_.scale))
    if pa.types.is_floating(type_) or pa.types.is_decimal(type_):
        return pc.trunc(values).cast(pa.int64())
    raise UnsupportedFeatureError(f"Partition paths made of times in a column of type {type_}.", column=column)
