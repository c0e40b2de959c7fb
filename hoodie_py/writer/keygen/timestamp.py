"""Format times as parts of partition paths (Hudi ``TimestampBasedAvroKeyGenerator``, ``HoodieDateTimeParser``).

Numbers, dates (as days) and timestamps (as micro- or milliseconds, like in files) count in the configured unit. Strings
are parsed by the first input format that fits. Null stands for the number 1, or, if texts are read, for the date 1 ms
after the start of 1970. Zones are UTC unless the settings name others. All functions work on whole columns.
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

_TOKEN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+")
_FIELDS = {"y": "year", "Y": "year", "M": "month", "d": "day", "H": "hour", "m": "minute", "s": "second"}
_NUMERIC_MONTH = 2  # more letters mean a name
_MILLIS_DIGITS = 3
_MILLIS = pa.timestamp("ms")
UTC_MILLIS = pa.timestamp("ms", "UTC")
LAST_MILLI = 253_402_300_799_999
"""Last millisecond of the year 9999."""
_MINUTE, _HOUR = 60_000, 3_600_000


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


@dataclass(frozen=True, slots=True)
class _Part:
    """A literal text, or a field of a date with its minimum number of digits."""

    text: str = ""
    field: str = ""
    digits: int = 0


@dataclass(frozen=True, slots=True)
class TimePattern:
    """A parsed Joda date-time pattern, which parses and formats times.

    Handled are the letters that occur in partition paths, ``y Y M d H m s S Z``, quoted text, and all other characters.
    Other letters are refused.
    """

    pattern: str
    parts: tuple[_Part, ...]

    @classmethod
    def parse(cls, pattern: str) -> TimePattern:
        """Parse a pattern.

        Raises:
            UnsupportedFeatureError: a letter is not handled.
        """
        parts: list[_Part] = []
        at = 0
        while at < len(pattern):
            match = _TOKEN.match(pattern, at)
            if match is None:
                raise _make_error(pattern, pattern[at])
            parts.append(_parse_part(pattern, match))
            at = match.end()
        return cls(pattern, tuple(parts))

    def format(self, times: pa.ChunkedArray) -> pa.ChunkedArray:
        """Format times as texts. Timestamps with a zone are formatted in it."""
        return pa.chunked_array([self._format_chunk(chunk) for chunk in times.chunks], pa.string())

    def _format_chunk(self, times: pa.Array) -> pa.Array:
        if not self.parts:
            return pa.repeat(pa.scalar(""), len(times))
        return pc.binary_join_element_wise(*(self._format_field(part, times) for part in self.parts), "")

    def _format_field(self, part: _Part, times: pa.Array) -> pa.Array | pa.Scalar:
        if not part.field:
            return pa.scalar(part.text)
        if part.field == "offset":
            return _format_offsets(times, ":" if part.digits > 1 else "")
        if part.field == "fraction":
            digits = pc.utf8_lpad(pc.millisecond(times).cast(pa.string()), _MILLIS_DIGITS, "0")
            return pc.utf8_slice_codeunits(pc.utf8_rpad(digits, max(part.digits, _MILLIS_DIGITS), "0"), 0, part.digits)
        numbers = pc.call_function(part.field, [times])
        if part.field == "year" and part.digits == 2:
            return pc.utf8_slice_codeunits(pc.utf8_lpad(numbers.cast(pa.string()), 4, "0"), -2)
        return pc.utf8_lpad(numbers.cast(pa.string()), part.digits, "0")

    def read(self, texts: pa.ChunkedArray, zone: str) -> pa.ChunkedArray:
        """Parse texts as timestamp[ms, UTC]; null where a text does not fit the pattern.

        ``zone``: the zone assumed for texts without one.

        Raises:
            UnsupportedFeatureError: the pattern has a letter that can only be formatted.
        """
        pattern = "^" + "".join(self._make_group(at, part) for at, part in enumerate(self.parts)) + "$"
        found = [self._parse_chunk(chunk, pattern, zone) for chunk in texts.chunks]
        return pa.chunked_array(found, UTC_MILLIS)

    def _make_group(self, at: int, part: _Part) -> str:
        if not part.field:
            return re.escape(part.text)
        if part.field == "offset":
            return f"(?P<offset{at}>Z|[+-][0-9]{{2}}:?[0-9]{{2}})"
        if part.field == "year" and part.digits == 2:
            raise _make_error(self.pattern, "yy")
        most = {"year": 4, "fraction": part.digits}.get(part.field, 2)
        least = most if part.field == "fraction" else 1
        return f"(?P<{part.field}{at}>[0-9]{{{least},{most}}})"

    def _parse_chunk(self, texts: pa.Array, pattern: str, zone: str) -> pa.Array:
        groups = pc.extract_regex(texts, pattern)
        fields = {part.field: f"{part.field}{at}" for at, part in enumerate(self.parts) if part.field}

        def number(field: str, default: int) -> pa.Array:
            if field not in fields:
                return pc.if_else(groups.is_valid(), pa.scalar(default, pa.int64()), None)
            return pc.struct_field(groups, fields[field]).cast(pa.int64())

        year, month, day = number("year", 1970), number("month", 1), number("day", 1)
        pieces = [pc.utf8_lpad(year.cast(pa.string()), 4, "0")]
        pieces += [pc.utf8_lpad(each.cast(pa.string()), 2, "0") for each in (month, day)]
        dates = _parse_dates(pc.binary_join_element_wise(*pieces, "-"))
        clock = [(number("hour", 0), 24, _HOUR), (number("minute", 0), 60, _MINUTE), (number("second", 0), 60, 1000)]
        millis = pc.multiply(dates.cast(pa.int64()), 86_400_000)
        for values, most, weight in clock:
            fits = pc.if_else(pc.less(values, most), values, None)
            millis = pc.add(millis, pc.multiply(fits, weight))
        millis = pc.add(millis, self._parse_fraction(groups, fields))
        if "offset" in fields:
            return pc.subtract(millis, _parse_offsets(pc.struct_field(groups, fields["offset"]))).cast(UTC_MILLIS)
        local = millis.cast(_MILLIS)
        if zone == "UTC":
            return local.cast(UTC_MILLIS)
        known = pc.assume_timezone(local, zone, ambiguous="earliest", nonexistent="latest")
        return known.cast(UTC_MILLIS)

    def _parse_fraction(self, groups: pa.Array, fields: dict[str, str]) -> pa.Array:
        if "fraction" not in fields:
            return pc.if_else(groups.is_valid(), pa.scalar(0, pa.int64()), None)
        digits = pc.utf8_rpad(pc.struct_field(groups, fields["fraction"]), _MILLIS_DIGITS, "0")
        return pc.utf8_slice_codeunits(digits, 0, _MILLIS_DIGITS).cast(pa.int64())


def _parse_part(pattern: str, match: re.Match[str]) -> _Part:
    quoted, letter = match[1], match[2]
    if quoted is not None:
        return _Part(text=quoted.replace("''", "'") or "'")
    if letter is None:
        return _Part(text=match[0])
    count = len(match[0])
    if letter == "S":
        return _Part(field="fraction", digits=count)
    if letter == "Z" and count <= 2:
        return _Part(field="offset", digits=count)
    if letter not in _FIELDS or (letter == "M" and count > _NUMERIC_MONTH):
        raise _make_error(pattern, match[0])
    return _Part(field=_FIELDS[letter], digits=count)


def _parse_dates(texts: pa.Array) -> pa.Array:
    """Parse ISO dates to days; null for days that do not exist."""
    times = pc.strptime(texts, format="%Y-%m-%d", unit="s", error_is_null=True)
    same = pc.equal(pc.strftime(times, format="%Y-%m-%d"), texts)  # strptime accepts February 31
    return pc.if_else(same, times, None).cast(pa.date32()).cast(pa.int32())


def _format_offsets(times: pa.Array, separator: str) -> pa.Array:
    """Format the offset of times' zone from UTC, as +0530 or +05:30."""
    local = pc.local_timestamp(times) if times.type.tz else times
    ahead = pc.subtract(local.cast(pa.int64()), times.cast(pa.int64()))
    minutes = pc.divide(pc.abs(ahead), _MINUTE)
    hours = pc.divide(minutes, 60)
    rest = pc.subtract(minutes, pc.multiply(hours, 60))
    digits = [pc.utf8_lpad(each.cast(pa.string()), 2, "0") for each in (hours, rest)]
    sign = pc.if_else(pc.less(ahead, 0), "-", "+")
    return pc.binary_join_element_wise(sign, digits[0], pa.scalar(separator), digits[1], "")


def _parse_offsets(texts: pa.Array) -> pa.Array:
    """Parse offsets such as +05:30 to milliseconds ahead of UTC."""
    plain = pc.if_else(pc.equal(texts, "Z"), "+0000", pc.replace_substring(texts, ":", ""))
    hours = pc.utf8_slice_codeunits(plain, 1, 3).cast(pa.int64())
    minutes = pc.utf8_slice_codeunits(plain, 3, 5).cast(pa.int64())
    size = pc.add(pc.multiply(hours, _HOUR), pc.multiply(minutes, _MINUTE))
    return pc.if_else(pc.starts_with(plain, "-"), pc.negate(size), size)


def _make_error(pattern: str, letters: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(f"The letters {letters!r} of the date format {pattern[:100]!r}.")
