"""The ranges of columns in a base file, from its Parquet footer (Hudi ``ParquetUtils.readColumnStatsFromMetadata``).

The footer may lack the bounds of a column, or have a NaN as one. Java's own statistics are wrong then, and its readers
lose rows by them (``trusted_ranges``): so NaN stays the greatest value here, which is true in Java's order, and
``incomplete`` names columns whose ranges have to be found by reading the file (``record_ranges``). All floats are such
columns, unless parquet-mr wrote the file: other writers leave NaN out of the bounds. ``as_java=True`` gives what Java
1.2.0 writes, for comparing.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Final

from hoodie_py.formats.metadata_table.column_ranges import ColumnRange, FileRanges, make_empty_range, merge_ranges
from hoodie_py.formats.metadata_table.stat_values import RawValue
from hoodie_py.formats.metadata_table.value_kinds import V1, ValueKind, ValueType

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
_SPARK_ITEM, _ITEM = ".array", ".list.element"  # how Spark, and Avro and the index, call the items of a list


def read_footer_ranges(
    metadata: pq.FileMetaData, columns: Collection[str], version: int, *, as_java: bool = False
) -> FileRanges | None:
    """Return the ranges of those of some columns (paths with dots) that the file has, in the order of the file.

    None: a column has a type that statistics of the index's version cannot have. Java then has none of the file.
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
        if not chunks:  # Java has no statistics of a file without rows
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
    """Return the kind of a column's values (``ValueType.fromParquetPrimitiveType``), None if Java knows none."""
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
        least = greatest = _ZEROS.get(chunk.physical_type)  # what Java's empty statistics have
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
    """Return bounds that hold for either zero, as parquet-mr does."""
    if as_java and (math.isnan(least) or math.isnan(greatest)):
        return 0.0, 0.0
    return -0.0 if least == 0 else least, 0.0 if greatest == 0 else greatest


def _lacks_bounds(chunk: pq.ColumnChunkMetaData) -> bool:
    """Whether values that are not null may have no bounds in the footer."""
    statistics = chunk.statistics
    if statistics is None or not statistics.has_null_count:
        return bool(chunk.num_values)
    return not statistics.has_min_max and bool(statistics.null_count < chunk.num_values)


def _name_as_index(path: str) -> str:
    return path.replace(f"{_SPARK_ITEM}.", f"{_ITEM}.").replace(_SPARK_ITEM, _ITEM)


def _name_as_spark(path: str) -> str:
    return path.replace(f"{_ITEM}.", f"{_SPARK_ITEM}.").replace(_ITEM, _SPARK_ITEM)
