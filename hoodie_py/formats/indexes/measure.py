"""Measures the ranges of columns: in a base file by its Parquet footer, and over records batch by batch.

``read_footer_ranges`` reads a footer (Hudi ``ParquetUtils.readColumnStatsFromMetadata``). ``RecordRanges`` collects the
ranges of records (``collectColumnRangeMetadata``), as Java does for each log file that it writes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import call, is_valid, to_numbers
from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.formats.avro.schema import AvroType, Record, Union
from hoodie_py.formats.indexes.bounds import V1, RawValue, ValueKind, ValueType, find_avro_kind
from hoodie_py.formats.indexes.ranges import ColumnRange, FileRanges, make_avro_key, make_empty_range, merge_ranges

if TYPE_CHECKING:
    import pyarrow.parquet as pq


_PLAIN: Final = {
    "BOOLEAN": ValueType.BOOLEAN,
    "INT32": ValueType.INT,
    "INT64": ValueType.LONG,
    "FLOAT": ValueType.FLOAT,
    "DOUBLE": ValueType.DOUBLE,
    "BYTE_ARRAY": ValueType.BYTES,
    "FIXED_LEN_BYTE_ARRAY": ValueType.FIXED,
}
_TIMES: Final = {"milliseconds": ValueType.TIME_MILLIS, "microseconds": ValueType.TIME_MICROS}
_INSTANTS: Final = {
    "milliseconds": ValueType.TIMESTAMP_MILLIS,
    "microseconds": ValueType.TIMESTAMP_MICROS,
    "nanoseconds": ValueType.TIMESTAMP_NANOS,
}
_LOCAL_TIMES: Final = {
    "milliseconds": ValueType.LOCAL_TIMESTAMP_MILLIS,
    "microseconds": ValueType.LOCAL_TIMESTAMP_MICROS,
    "nanoseconds": ValueType.LOCAL_TIMESTAMP_NANOS,
}
_ZEROS: Final[Mapping[str, RawValue]] = {"BOOLEAN": False, "INT32": 0, "INT64": 0, "FLOAT": 0.0, "DOUBLE": 0.0}
_FLOATS = frozenset({"FLOAT", "DOUBLE"})
_PARQUET_MR = "parquet-mr"
_SPARK_ITEM, _ITEM = ".array", ".list.element"  # names of a list's items: Spark's, and Avro's, which the index uses


def read_footer_ranges(
    metadata: pq.FileMetaData, columns: Collection[str], version: int, *, as_java: bool = False
) -> FileRanges | None:
    """Return the ranges of the columns (paths with dots) that the file contains, in the order of the file.

    Returns None if statistics of the index's version cannot have the type of a column; Java then has none for the file.

    A footer may lack the bounds of a column, or have NaN as one. Java's own statistics are wrong then, and its readers
    lose rows (``read_trusted_ranges``). Here NaN stays the greatest value, which is true in Java's order, and
    ``incomplete`` names the columns whose ranges must be measured by reading the file. All floats are such columns
    unless parquet-mr wrote the file: other writers leave NaN out of the bounds. ``as_java=True`` returns what Java
    1.2.0 writes, for comparison.
    """
    wanted = {*columns, *(_name_as_spark(each) for each in columns)}
    places = [at for at in range(metadata.num_columns) if metadata.schema.column(at).path in wanted]
    kinds = {at: _find_kind(metadata.schema.column(at), version) for at in places}
    if None in kinds.values():
        return None
    ranges, incomplete = [], []
    leaves_nan_out = not (metadata.created_by or "").startswith(_PARQUET_MR)
    for at, kind in kinds.items():
        assert kind is not None
        chunks = [metadata.row_group(group).column(at) for group in range(metadata.num_row_groups)]
        if not chunks:  # Java has no statistics for a file without rows
            if not as_java:
                ranges.append(make_empty_range(_name_as_index(metadata.schema.column(at).path)))
            continue
        found = [_read_chunk(chunk, kind, as_java=as_java) for chunk in chunks]
        is_float = chunks[0].physical_type in _FLOATS and leaves_nan_out
        if not as_java and (is_float or any(_lacks_bounds(chunk) for chunk in chunks)):
            incomplete.append(found[0].column)
        ranges.append(merge_ranges(found))
    return FileRanges(tuple(ranges), tuple(incomplete))


def _find_kind(column: pq.ParquetColumnSchema, version: int) -> ValueKind | None:
    """Return the kind of a column's values (``ValueType.fromParquetPrimitiveType``), None if Java has none for it."""
    physical = column.physical_type
    logical = column.logical_type
    plain = _PLAIN.get(physical)
    if plain is None:
        return None
    found: ValueType | None
    match logical.type:
        case "NONE":
            found = plain
        case "STRING":
            found = ValueType.STRING
        case "DECIMAL":
            return ValueKind(ValueType.DECIMAL, column.precision, column.scale)
        case "DATE":
            found = ValueType.DATE
        case "TIME" | "TIMESTAMP":
            found = _find_time(json.loads(logical.to_json())) or (plain if version == V1 else None)
        case _:
            found = plain if version == V1 else None
    if found is None or (found == ValueType.FIXED and version == V1):
        return None
    return ValueKind(found)


def _find_time(annotation: Mapping[str, Any]) -> ValueType | None:
    unit = annotation["timeUnit"]
    if annotation["Type"] == "Time":
        return _TIMES.get(unit)
    return (_INSTANTS if annotation["isAdjustedToUTC"] else _LOCAL_TIMES).get(unit)


def _read_chunk(chunk: pq.ColumnChunkMetaData, kind: ValueKind, *, as_java: bool) -> ColumnRange:
    """Return the range of a column in one row group."""
    statistics = chunk.statistics
    least = greatest = None
    nulls = chunk.num_values
    if statistics is not None and (statistics.has_min_max or statistics.has_null_count):
        nulls = statistics.null_count if statistics.has_null_count else -1
        if statistics.has_min_max:
            least, greatest = (_to_raw(each, kind) for each in (statistics.min_raw, statistics.max_raw))
    if least is None or greatest is None:
        least = greatest = _ZEROS.get(chunk.physical_type)  # the bounds of Java's empty statistics
    elif chunk.physical_type in _FLOATS:
        least, greatest = _order_zeros(float(least), float(greatest), as_java=as_java)
    return ColumnRange(
        _name_as_index(chunk.path_in_schema),
        kind,
        least,
        greatest,
        nulls,
        chunk.num_values,
        chunk.total_compressed_size,
        chunk.total_uncompressed_size,
    )


def _to_raw(value: Any, kind: ValueKind) -> RawValue:
    if kind.type == ValueType.STRING:
        return bytes(value).decode("utf-8", "replace")
    if kind.type == ValueType.DECIMAL and isinstance(value, bytes):
        return int.from_bytes(value, "big", signed=True)
    found: RawValue = value
    return found


def _order_zeros(least: float, greatest: float, *, as_java: bool) -> tuple[float, float]:
    """Return bounds that hold for both zeros, as parquet-mr does."""
    if as_java and (math.isnan(least) or math.isnan(greatest)):
        return 0.0, 0.0
    return -0.0 if least == 0 else least, 0.0 if greatest == 0 else greatest


def _lacks_bounds(chunk: pq.ColumnChunkMetaData) -> bool:
    """Whether the footer may lack the bounds of non-null values."""
    statistics = chunk.statistics
    if statistics is None or not statistics.has_null_count:
        return bool(chunk.num_values)
    return not statistics.has_min_max and bool(statistics.null_count < chunk.num_values)


def _name_as_index(path: str) -> str:
    return path.replace(f"{_SPARK_ITEM}.", f"{_ITEM}.").replace(_SPARK_ITEM, _ITEM)


def _name_as_spark(path: str) -> str:
    return path.replace(f"{_ITEM}.", f"{_SPARK_ITEM}.").replace(_ITEM, _SPARK_ITEM)


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
    """Return the kinds of columns (paths with dots), except columns that the schema lacks or that have no range."""
    found = ((column, find_field(schema, column)) for column in columns)
    kinds = ((column, find_avro_kind(node)) for column, node in found if node is not None)
    return {column: kind for column, kind in kinds if kind is not None}


class RecordRanges:
    """Collects the ranges of columns over batches of records.

    Values compare in Avro's order: texts by their bytes, bytes as signed ones, floats with NaN last and -0.0 before
    0.0. Sizes are 0: only Parquet's can be compared.
    """

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
        """Return an empty collector of the columns that are floats."""
        return RecordRanges({column: kind for column, kind in self._kinds.items() if kind.type in _REALS})

    def finish(self) -> tuple[ColumnRange, ...]:
        """Return the range of each column; empty ranges if there were no records."""
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
    """Return the least and the greatest value in the form of the metadata table."""
    if kind.type in _REALS:
        numbers = to_numbers(values)[is_valid(values)]
        bits = numbers.astype(np.float64).view(np.int64)
        # Turns the bits into integers in the order of the floats, NaN last.
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
    """Return bytes whose unsigned order is the signed order of the given bytes."""
    valid, offsets, data = values.buffers()
    flipped = np.frombuffer(data, np.uint8) ^ _SIGN_BIT if data is not None else np.empty(0, np.uint8)
    buffers = [valid, offsets, pa.py_buffer(flipped)]
    return pa.Array.from_buffers(values.type, len(values), buffers, values.null_count, values.offset)


def _flip_back(value: bytes) -> bytes:
    return bytes(each ^ int(_SIGN_BIT) for each in value)


def _find_uuid_bounds(values: pa.Array) -> tuple[str, str]:
    """Return the least and the greatest UUID in Java's order, which compares both halves as signed numbers."""
    try:
        joined = b"".join(call("utf8_lower", values).cast(pa.binary()).to_pylist())
        octets = np.frombuffer(joined, np.uint8).reshape(len(values), _UUID_LENGTH)
    except ValueError:
        raise UnsupportedFeatureError("Column statistics of UUIDs in another form than Java's.") from None
    digits = np.delete(octets, _UUID_DASHES, axis=1)
    numbers = np.where(digits >= ord("a"), digits - (ord("a") - 10), digits - ord("0")).astype(np.uint8)
    numbers[:, [0, 16]] ^= 8  # flips the sign bit of both halves
    order = np.lexsort(numbers.T[::-1])
    return octets[order[0]].tobytes().decode(), octets[order[-1]].tobytes().decode()


def _unscale(value: Any, scale: int) -> int:
    sign, digits, exponent = value.as_tuple()
    number: int = int("".join(map(str, digits))) * 10 ** (scale + exponent)
    return -number if sign else number
