"""The functions of expression indexes: the kind of their results, and the results that can be computed as in Spark
(Hudi ``ExpressionIndexSparkFunctions``).

Many results depend on facts that a table does not contain: the Spark session's zone, its locale, its parsing mode, or
Java's regular expressions. For these functions only the kind is known: such an index is not built here, and files
written here are entered into an existing one as if they could contain any value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.errors import InvalidQueryError, UnsupportedFeatureError
from hoodie_py.formats.indexes.bounds import ValueKind, ValueType
from hoodie_py.formats.indexes.definitions import EXPRESSION, IndexDefinition

IDENTITY: Final = "identity"

_INT = ValueKind(ValueType.INT)
_STRING = ValueKind(ValueType.STRING)
_DATE = ValueKind(ValueType.DATE)
_TIMESTAMP = ValueKind(ValueType.TIMESTAMP_MICROS)
_LONG = ValueKind(ValueType.LONG)
_DOUBLE = ValueKind(ValueType.DOUBLE)
_RESULTS: Final[Mapping[str, ValueKind]] = {
    **dict.fromkeys(("year", "month", "day", "hour", "minute", "second", "dayofyear", "length"), _INT),
    **dict.fromkeys(("lower", "upper", "trim", "ltrim", "rtrim", "substring", "concat"), _STRING),
    **dict.fromkeys(("date_format", "from_unixtime", "regexp_extract", "regexp_replace"), _STRING),
    **dict.fromkeys(("to_date", "date_add", "date_sub"), _DATE),
    "to_timestamp": _TIMESTAMP,
    "unix_timestamp": _LONG,
    **dict.fromkeys(("sqrt", "exp"), _DOUBLE),
}
_FORMAT, _TRIMMED, _DAYS, _POSITION, _LENGTH = "format", "trimString", "days", "pos", "len"
_NUMBERS: Final = frozenset({_DAYS, _POSITION, _LENGTH, "idx"})


class _Arguments(NamedTuple):
    needed: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


_OF_JAVA: Final[Mapping[str, _Arguments]] = {
    **dict.fromkeys((IDENTITY, "year", "month", "day", "hour", "lower", "upper", "length"), _Arguments()),
    **dict.fromkeys(("trim", "ltrim", "rtrim"), _Arguments((), (_TRIMMED,))),
    **dict.fromkeys(("date_add", "date_sub"), _Arguments((_DAYS,))),
    **dict.fromkeys(("to_timestamp", "to_date", "unix_timestamp", "from_unixtime"), _Arguments((), (_FORMAT,))),
    "date_format": _Arguments((_FORMAT,)),
    "substring": _Arguments((_POSITION, _LENGTH)),
    "split": _Arguments(("pattern",)),
    "regexp_extract": _Arguments(("pattern", "idx")),
    "regexp_replace": _Arguments(("pattern", "replacement")),
}
"""The functions that Java Hudi knows, with their arguments."""

Compute = Callable[[pa.Array], pa.Array | None]
"""Computes the results for values; returns None if they cannot be computed."""

_OF_DATES: Final[Mapping[str, Callable[[pa.Array], pa.Array]]] = {
    "year": pc.year,
    "month": pc.month,
    "day": pc.day,
    "dayofyear": pc.day_of_year,
}
_TRIMS: Final[Mapping[str, Callable[..., pa.Array]]] = {
    "trim": pc.utf8_trim,
    "ltrim": pc.utf8_ltrim,
    "rtrim": pc.utf8_rtrim,
}
_OF_PLAIN_TEXTS: Final[Mapping[str, Callable[[pa.Array], pa.Array]]] = {
    "lower": pc.ascii_lower,
    "upper": pc.ascii_upper,
}


def check_function(function: str, arguments: Mapping[str, str]) -> None:
    """Check that Java Hudi knows a function, and that its arguments are right.

    Raises:
        InvalidQueryError: an argument is missing, is not one of the function's, or is not a number.
        UnsupportedFeatureError: no index can cover the function.
    """
    known = _OF_JAVA.get(function)
    if known is None:
        raise UnsupportedFeatureError(
            f"Expression indexes over the function {function[:40]!r}.", hint=f"Java Hudi knows {', '.join(_OF_JAVA)}."
        )
    if function == "split":
        raise UnsupportedFeatureError("Expression indexes over 'split': lists have no order and no bloom filter.")
    for name in known.needed:
        if name not in arguments:
            raise InvalidQueryError(f"The function {function!r} needs the argument {name!r}.")
    for name, text in arguments.items():
        if name not in (*known.needed, *known.others, EXPRESSION):
            hint = f"It has {', '.join((*known.needed, *known.others)) or 'none'}."
            raise InvalidQueryError(f"{name[:40]!r} is no argument of {function!r}.", hint=hint)
        if name in _NUMBERS and _read_number(text) is None:
            raise InvalidQueryError(f"The argument {name!r} of {function!r} is no whole number: {text[:40]!r}.")


def find_result_kind(definition: IndexDefinition, column: ValueKind | None) -> ValueKind | None:
    """Return the kind of an index's values, None if it is unknown; ``column`` is the kind of the source column."""
    name = definition.function.lower()
    return column if name in ("", IDENTITY) else _RESULTS.get(name)


def find_computation(definition: IndexDefinition, column: pa.DataType) -> Compute | None:
    """Return the function that computes results for a source column's type; None if they depend on Spark."""
    name, arguments = definition.function.lower(), definition.options
    if name in ("", IDENTITY):
        return lambda values: values
    if pa.types.is_date32(column):
        return _find_computation_of_dates(name, arguments)
    if pa.types.is_timestamp(column):
        is_same = name == "to_timestamp" and _FORMAT not in arguments and column.tz is not None
        return (lambda values: values) if is_same else None
    return _find_computation_of_texts(name, arguments) if pa.types.is_string(column) else None


def _find_computation_of_dates(name: str, arguments: Mapping[str, str]) -> Compute | None:
    if name in _OF_DATES:
        return lambda values: _OF_DATES[name](values).cast(pa.int32())
    if name == "to_date" and _FORMAT not in arguments:
        return lambda values: values
    days = _read_number(arguments.get(_DAYS, ""))
    if name not in ("date_add", "date_sub") or days is None:
        return None
    sign = 1 if name == "date_add" else -1
    return lambda values: _add_days(values, sign * days)


def _add_days(values: pa.Array, days: int) -> pa.Array | None:
    moved = pc.add(values.view(pa.int32()).cast(pa.int64()), days)
    try:
        return moved.cast(pa.int32()).view(pa.date32())
    except pa.ArrowInvalid:  # past the last date, where Spark wraps around or fails
        return None


def _find_computation_of_texts(name: str, arguments: Mapping[str, str]) -> Compute | None:
    if name == "length":
        length_of: Compute = pc.utf8_length
        return length_of
    if name in _TRIMS:
        characters = arguments.get(_TRIMMED, " ")
        return (lambda values: _TRIMS[name](values, characters=characters)) if characters else None
    if name in _OF_PLAIN_TEXTS:
        return lambda values: None if not _is_ascii(values) else _OF_PLAIN_TEXTS[name](values)
    position, length = (_read_number(arguments.get(each, "")) for each in (_POSITION, _LENGTH))
    if name != "substring" or position is None or length is None:
        return None
    return lambda values: _cut(values, position, length)


def _is_ascii(values: pa.Array) -> bool:
    return pc.all(pc.string_is_ascii(values)).as_py() is not False


def _cut(values: pa.Array, position: int, length: int) -> pa.Array | None:
    """Cut as SQL does: position 1, and also 0, is the first character, -1 the last one."""
    start = position - 1 if position > 0 else position
    end = start + max(0, length)
    if start < 0 and pc.any(pc.less(pc.utf8_length(values), -start)).as_py():
        return None  # Spark counts from before the beginning of shorter texts
    if start < 0 <= end:
        return pc.utf8_slice_codeunits(values, start)
    return pc.utf8_slice_codeunits(values, start, end)


def _read_number(text: str) -> int | None:
    """Parse a whole number as Java's ``Integer.parseInt``; None for other texts."""
    if re.fullmatch(r"[+-]?[0-9]{1,20}", text) is None:
        return None
    number = int(text)
    return number if -(1 << 31) <= number < 1 << 31 else None


def apply_function(definition: IndexDefinition, values: pa.Array) -> pa.Array | None:
    """Return the results for values of the source column; None if Spark's cannot be computed here."""
    compute = find_computation(definition, values.type)
    return None if compute is None else compute(values)
