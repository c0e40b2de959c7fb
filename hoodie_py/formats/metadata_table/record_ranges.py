"""The ranges of columns over records, collected batch by batch (Hudi ``collectColumnRangeMetadata``).

Java does that for each log file that it writes. Values compare in Avro's order: texts by their bytes, bytes as signed
ones, floats with NaN last and -0.0 before 0.0. Sizes are 0, because only Parquet's can be compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import is_valid, to_numbers
from hoodie_py.arrow.compute import call
from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.formats.avro.schema import AvroType, Record, Union
from hoodie_py.formats.metadata_table.column_ranges import ColumnRange, make_avro_key, make_empty_range, merge_ranges
from hoodie_py.formats.metadata_table.value_kinds import ValueKind, ValueType, find_avro_kind

_UNITS: Final = {
    ValueType.TIMESTAMP_MILLIS: "ms",
    ValueType.LOCAL_TIMESTAMP_MILLIS: "ms",
    ValueType.TIMESTAMP_MICROS: "us",
    ValueType.LOCAL_TIMESTAMP_MICROS: "us",
}
_REALS = frozenset({ValueType.FLOAT, ValueType.DOUBLE})
_BYTES = frozenset({ValueType.BYTES, ValueType.FIXED})
_SIGN_BIT = np.uint8(0x80)
_UUID_LENGTH = 36
_UUID_DASHES = (8, 13, 18, 23)
_MAX_KEY = np.int64(np.iinfo(np.int64).max)


def find_kinds(columns: Iterable[str], schema: Record) -> dict[str, ValueKind]:
    """Return the kinds of columns (paths with dots), without those that the schema lacks or that have no range."""
    found = ((column, find_field(schema, column)) for column in columns)
    kinds = ((column, find_avro_kind(node)) for column, node in found if node is not None)
    return {column: kind for column, kind in kinds if kind is not None}


class RecordRanges:
    """Collects the ranges of columns of some kinds over batches of records."""

    def __init__(self, kinds: Mapping[str, ValueKind]) -> None:
        self._kinds = kinds
        self._ranges: dict[str, ColumnRange] = {}

    def add(self, batch: pa.RecordBatch) -> None:
        """Add records; a column that the batch lacks is not counted."""
        for column, kind in self._kinds.items():
            values = _find_values(batch, column)
            if values is not None and len(values):
                found = _measure(column, values, kind)
                before = self._ranges.get(column)
                both = [found] if before is None else [before, found]
                self._ranges[column] = merge_ranges(both, key=make_avro_key)

    def select_floats(self) -> RecordRanges:
        """Return an empty collector of those of the columns that are floats."""
        return RecordRanges({column: kind for column, kind in self._kinds.items() if kind.type in _REALS})

    def finish(self) -> tuple[ColumnRange, ...]:
        """Return the range of each column, empty ones if there were no records."""
        return tuple(self._ranges.get(column) or make_empty_range(column) for column in self._kinds)


def find_field(schema: Record, column: str) -> AvroType | None:
    """Return the type of a field, or of a field in nested records, by its path; None if there is none."""
    node: AvroType | None = schema
    for name in column.split("."):
        if isinstance(node, Union) and len(node.members) == 1:
            node = node.members[0]
        if not isinstance(node, Record):
            return None
        node = next((field.type for field in node.fields if field.name == name), None)
    return node


def _find_values(batch: pa.RecordBatch, column: str) -> pa.Array | None:
    """Return the values of a column, or of a field in nested structs."""
    names = column.split(".")
    at = batch.schema.get_field_index(names[0])
    if at < 0:
        return None
    values = batch.column(at)
    for name in names[1:]:
        at = values.type.get_field_index(name) if pa.types.is_struct(values.type) else -1
        if at < 0:
            return None
        values = values.flatten()[at]
    return values


def _measure(column: str, values: pa.Array, kind: ValueKind) -> ColumnRange:
    least, greatest = _find_bounds(values, kind) if values.null_count < len(values) else (None, None)
    return ColumnRange(column, kind, least, greatest, values.null_count, len(values))


def _find_bounds(values: pa.Array, kind: ValueKind) -> tuple[Any, Any]:
    """Return the least and the greatest value, as the metadata table has them."""
    if kind.type in _REALS:
        numbers = to_numbers(values)[is_valid(values)]
        bits = numbers.astype(np.float64).view(np.int64)
        keys = np.where(bits < 0, bits ^ _MAX_KEY, bits)
        keys = np.where(np.isnan(numbers), _MAX_KEY, keys)
        return float(numbers[keys.argmin()]), float(numbers[keys.argmax()])
    if kind.type == ValueType.UUID:
        return _find_uuid_bounds(values.drop_null())
    if kind.type in _BYTES:
        bounds = call("min_max", _flip_signs(values.cast(pa.large_binary())))
        return _flip_back(bounds["min"].as_py()), _flip_back(bounds["max"].as_py())
    if kind.type in _UNITS:
        values = values.cast(pa.timestamp(_UNITS[kind.type], values.type.tz)).view(pa.int64())
    elif kind.type == ValueType.DATE:
        values = values.view(pa.int32())
    found = call("min_max", values)
    bounds = found["min"].as_py(), found["max"].as_py()
    if kind.type == ValueType.DECIMAL:
        return _unscale(bounds[0], kind.scale), _unscale(bounds[1], kind.scale)
    return bounds


def _flip_signs(values: pa.Array) -> pa.Array:
    """Return bytes that compare as unsigned ones as the given bytes do as signed ones."""
    valid, offsets, data = values.buffers()
    flipped = np.frombuffer(data, np.uint8) ^ _SIGN_BIT if data is not None else np.empty(0, np.uint8)
    buffers = [valid, offsets, pa.py_buffer(flipped)]
    return pa.Array.from_buffers(values.type, len(values), buffers, values.null_count, values.offset)


def _flip_back(value: bytes) -> bytes:
    return bytes(each ^ int(_SIGN_BIT) for each in value)


def _find_uuid_bounds(values: pa.Array) -> tuple[str, str]:
    """Return the least and the greatest UUID by Java's order: both halves compare as signed numbers."""
    try:
        joined = b"".join(call("utf8_lower", values).cast(pa.binary()).to_pylist())
        octets = np.frombuffer(joined, np.uint8).reshape(len(values), _UUID_LENGTH)
    except ValueError:
        raise UnsupportedFeatureError("Column statistics of UUIDs in another form than Java's.") from None
    digits = np.delete(octets, _UUID_DASHES, axis=1)
    numbers = np.where(digits >= ord("a"), digits - (ord("a") - 10), digits - ord("0")).astype(np.uint8)
    numbers[:, [0, 16]] ^= 8
    order = np.lexsort(numbers.T[::-1])
    return octets[order[0]].tobytes().decode(), octets[order[-1]].tobytes().decode()


def _unscale(value: Any, scale: int) -> int:
    sign, digits, exponent = value.as_tuple()
    number: int = int("".join(map(str, digits))) * 10 ** (scale + exponent)
    return -number if sign else number
