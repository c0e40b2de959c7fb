"""What the least and greatest values of column statistics stand for (Hudi ``ValueType``, ``ValueMetadata``).

Statistics of version 2 (tables of version 9 on) name the kind of their values: its number, and for decimals precision
and scale. Those of version 1 do not: dates and decimals have wrappers of their own there, and all else is wrapped as
the primitive type that the file stores.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from hoodie_py.formats.avro.schema import AvroType, Decimal, Fixed, Primitive, Union

V1: Final = 1
V2: Final = 2

_PLAIN_BYTES = 16  # of a UUID in a Parquet file


class ValueType(IntEnum):
    """Hudi's kinds of values, by their numbers in ``valueType.typeOrdinal``."""

    V1 = 0
    NULL = 1
    BOOLEAN = 2
    INT = 3
    LONG = 4
    FLOAT = 5
    DOUBLE = 6
    STRING = 7
    BYTES = 8
    FIXED = 9
    DECIMAL = 10
    UUID = 11
    DATE = 12
    TIME_MILLIS = 13
    TIME_MICROS = 14
    TIMESTAMP_MILLIS = 15
    TIMESTAMP_MICROS = 16
    TIMESTAMP_NANOS = 17
    LOCAL_TIMESTAMP_MILLIS = 18
    LOCAL_TIMESTAMP_MICROS = 19
    LOCAL_TIMESTAMP_NANOS = 20


@dataclass(frozen=True, slots=True)
class ValueKind:
    """A kind of values; precision and scale count for decimals only."""

    type: ValueType
    precision: int = 0
    scale: int = 0

    @property
    def info(self) -> str | None:
        """The text of ``valueType.additionalInfo``."""
        return f"{self.precision},{self.scale}" if self.type == ValueType.DECIMAL else None


NO_VALUES: Final = ValueKind(ValueType.NULL)

_OF_AVRO = {
    ("boolean", None): ValueType.BOOLEAN,
    ("int", None): ValueType.INT,
    ("int", "date"): ValueType.DATE,
    ("int", "time-millis"): ValueType.TIME_MILLIS,
    ("long", None): ValueType.LONG,
    ("long", "time-micros"): ValueType.TIME_MICROS,
    ("long", "timestamp-millis"): ValueType.TIMESTAMP_MILLIS,
    ("long", "timestamp-micros"): ValueType.TIMESTAMP_MICROS,
    ("long", "local-timestamp-millis"): ValueType.LOCAL_TIMESTAMP_MILLIS,
    ("long", "local-timestamp-micros"): ValueType.LOCAL_TIMESTAMP_MICROS,
    ("float", None): ValueType.FLOAT,
    ("double", None): ValueType.DOUBLE,
    ("bytes", None): ValueType.BYTES,
    ("string", None): ValueType.STRING,
    ("string", "uuid"): ValueType.UUID,
}


def find_avro_kind(node: AvroType) -> ValueKind | None:
    """Return the kind of a column's values by its Avro type; None for records, lists, maps, enumerations, vectors."""
    match node:
        case Union() if len(node.members) == 1:
            return find_avro_kind(node.members[0])
        case Decimal():
            return ValueKind(ValueType.DECIMAL, node.precision, node.scale)
        case Fixed(vector=None):
            return ValueKind(ValueType.FIXED)
        case Primitive():
            found = _OF_AVRO.get((node.kind, node.logical))
            return None if found is None else ValueKind(found)
    return None
