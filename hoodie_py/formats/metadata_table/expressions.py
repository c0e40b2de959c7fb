"""The functions of expression indexes: the kind of their results, and the results that can be computed as Spark does
(Hudi ``HoodieSparkExpressionIndex``).

Many results depend on what a table does not say: the zone of the Spark session, its locale or its mode of parsing. Of
these the kind alone is known, and the index takes any value for possible in files that are written here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.formats.metadata_table.index_definitions import IndexDefinition
from hoodie_py.formats.metadata_table.value_kinds import ValueKind, ValueType

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
_OF_DATES: Final[Mapping[str, Callable[[pa.Array], pa.Array]]] = {
    "year": pc.year,
    "month": pc.month,
    "day": pc.day,
    "dayofyear": pc.day_of_year,
}
_OF_TEXTS: Final[Mapping[str, Callable[[pa.Array], pa.Array]]] = {
    "length": pc.utf8_length,
    "trim": lambda values: pc.utf8_trim(values, characters=" "),
    "ltrim": lambda values: pc.utf8_ltrim(values, characters=" "),
    "rtrim": lambda values: pc.utf8_rtrim(values, characters=" "),
}
_OF_PLAIN_TEXTS: Final[Mapping[str, Callable[[pa.Array], pa.Array]]] = {
    "lower": pc.ascii_lower,
    "upper": pc.ascii_upper,
}
_TRIMMED = "trimString"


def find_result_kind(definition: IndexDefinition, column: ValueKind | None) -> ValueKind | None:
    """Return the kind of an index's values, None if it is not known; ``column`` is the kind of the source column."""
    name = definition.function.lower()
    return column if name == IDENTITY else _RESULTS.get(name)


def apply_function(definition: IndexDefinition, values: pa.Array) -> pa.Array | None:
    """Return the results for values of the source column; None where they cannot be told as Spark would."""
    name = definition.function.lower()
    if name == IDENTITY:
        return values
    if pa.types.is_date32(values.type) and name in _OF_DATES:
        return _OF_DATES[name](values).cast(pa.int32())
    if not pa.types.is_string(values.type):
        return None
    if name in _OF_TEXTS and not definition.options.get(_TRIMMED):
        return _OF_TEXTS[name](values)
    if name in _OF_PLAIN_TEXTS and pc.all(pc.string_is_ascii(values)).as_py() is not False:
        return _OF_PLAIN_TEXTS[name](values)
    return None
