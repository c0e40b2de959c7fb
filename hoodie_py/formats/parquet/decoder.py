"""Reads Parquet as Hudi does: with one set of Arrow types for the files of all writers.

Files of one file group come from different writers: lists with two or three levels, decimals as fixed bytes or as
integers, large or dictionary-encoded strings from Arrow writers. ``convert_to_spark_type`` maps an Arrow type to the
type that Spark would use, which is also the type of the same column in ``arrow_types``:

    string, large_string, string_view, dictionary of them   string
    binary, large, view, fixed-size                          binary
    int8, int16, uint8, uint16 / uint32 / uint64             int32 / int64 / decimal128(20, 0)
    float16                                                  float32
    decimal32 .. decimal256 of at most 38 digits             decimal128
    timestamp of any unit, with or without zone              timestamp[us, UTC] or timestamp[us]
    date64                                                   date32
    time32, time64                                           int32, int64 (the integer itself)
    lists of every kind                                      list<element>
    map, struct                                              map<key, value>, struct, of mapped types
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from hoodie_py.arrow.arrays import join_chunks, make_batch_without_columns
from hoodie_py.arrow.fields import is_any_list
from hoodie_py.errors import CorruptFileError, HoodieError, UnsupportedFeatureError
from hoodie_py.formats.avro.arrow_types import find_mistyped_times, retype_times
from hoodie_py.formats.avro.schema import MAX_DECIMAL_PRECISION
from hoodie_py.formats.limits import get_limits, raise_limit_error
from hoodie_py.formats.parquet.parquet_file import ParquetFile

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_ROWS_AT_ONCE = 1 << 16  # maximal number of rows of one part of a block

_FIXED_TARGETS: dict[pa.DataType, pa.DataType] = {
    pa.int8(): pa.int32(),
    pa.int16(): pa.int32(),
    pa.uint8(): pa.int32(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
}
_UNCHANGED = frozenset(
    {pa.null(), pa.bool_(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string(), pa.binary(), pa.date32()}
)


def convert_to_spark_type(t: pa.DataType) -> pa.DataType:
    """Return the Arrow type of the Spark type of a column of this type.

    Raises UnsupportedFeatureError if Spark has no such type (durations, intervals, unions, decimals of over 38 digits).
    """
    if t in _UNCHANGED:
        return t
    if t in _FIXED_TARGETS:
        return _FIXED_TARGETS[t]
    if isinstance(t, pa.BaseExtensionType):
        return convert_to_spark_type(t.storage_type)
    if pa.types.is_dictionary(t) or pa.types.is_run_end_encoded(t):
        return convert_to_spark_type(t.value_type)
    if pa.types.is_fixed_size_binary(t):
        return pa.binary()
    if pa.types.is_timestamp(t):
        return pa.timestamp("us", "UTC" if t.tz is not None else None)
    if pa.types.is_time(t):
        return pa.int32() if pa.types.is_time32(t) else pa.int64()
    if pa.types.is_decimal(t) and t.precision <= MAX_DECIMAL_PRECISION:
        return pa.decimal128(t.precision, t.scale)
    return _convert_nested_type(t)


def _convert_nested_type(t: pa.DataType) -> pa.DataType:
    if is_any_list(t):
        return pa.list_(convert_to_spark_field(t.value_field).with_name("element"))
    if pa.types.is_map(t):
        return pa.map_(convert_to_spark_type(t.key_type), convert_to_spark_field(t.item_field).with_name("value"))
    if pa.types.is_struct(t):
        return pa.struct([convert_to_spark_field(t.field(i)) for i in range(t.num_fields)])
    raise UnsupportedFeatureError(f"Columns of type {t} are not supported.")


def convert_to_spark_field(field: pa.Field) -> pa.Field:
    """Return the field with its Spark type; name and nullability stay, metadata is dropped."""
    return pa.field(field.name, convert_to_spark_type(field.type), nullable=field.nullable)


def convert_to_spark_schema(s: pa.Schema) -> pa.Schema:
    """Return the same columns with their Spark types.

    Raises UnsupportedFeatureError if a column has no Spark type; ``where`` names it.
    """
    fields: list[pa.Field] = []
    for field in s:
        try:
            fields.append(convert_to_spark_field(field))
        except UnsupportedFeatureError as error:
            raise error.locate(column=field.name) from None
    return pa.schema(fields)


def read_file_schema(meta: pq.FileMetaData) -> pa.Schema:
    """Return the columns of a Parquet file with Spark's types.

    Old Spark versions write timestamps as INT96, a point in time. Arrow reads it as a time without zone.
    """
    schema = convert_to_spark_schema(meta.schema.to_arrow_schema())
    for i in range(meta.num_columns):
        leaf = meta.schema.column(i)
        place = schema.get_field_index(leaf.path)
        if leaf.physical_type == "INT96" and place >= 0:
            field = schema.field(place)
            schema = schema.set(place, field.with_type(pa.timestamp("us", "UTC")))
    return schema


def cast_to_spark_type(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Cast to a Spark type; nanoseconds are rounded down to microseconds."""
    source = array.type
    if source.equals(target):
        return array
    if isinstance(source, pa.BaseExtensionType):
        return cast_to_spark_type(array.storage, target)
    if pa.types.is_run_end_encoded(source):
        import pyarrow.compute as pc

        return cast_to_spark_type(pc.run_end_decode(array), target)
    if pa.types.is_dictionary(source):
        return cast_to_spark_type(array.dictionary_decode(), target)
    if pa.types.is_timestamp(source) and source.unit == "ns":
        import pyarrow.compute as pc

        return pc.floor_temporal(array, unit="microsecond").cast(target)
    if pa.types.is_float16(source):
        return array.cast(target, safe=False)
    return array.cast(target)


def find_column_chunk_ranges(
    meta: pq.FileMetaData, row_group: int, columns: Collection[str] | None
) -> list[tuple[int, int]]:
    """Return the byte ranges (start, stop) of a row group's column chunks, ascending; adjacent ones are joined.

    ``columns`` are the top-level columns to read, None for all; other names are ignored.

    Raises CorruptFileError if the footer contains a negative offset or size.
    """
    group = meta.row_group(row_group)
    ranges: list[tuple[int, int]] = []
    for i in range(group.num_columns):
        chunk = group.column(i)
        if columns is not None and not _is_wanted(chunk.path_in_schema, columns):
            continue
        start = chunk.data_page_offset
        dictionary = chunk.dictionary_page_offset if chunk.has_dictionary_page else None
        if dictionary is not None and 0 < dictionary < start:
            start = dictionary
        if start < 0 or chunk.total_compressed_size < 0:
            raise CorruptFileError("A Parquet column chunk has a negative place or size.", column=chunk.path_in_schema)
        ranges.append((start, start + chunk.total_compressed_size))
    return _join_ranges(sorted(ranges))


def _is_wanted(path: str, columns: Collection[str]) -> bool:
    """Say whether a leaf belongs to a wanted column; every prefix of its path is tried, as names may contain dots."""
    parts = path.split(".")
    return any(".".join(parts[:n]) in columns for n in range(1, len(parts) + 1))


def _join_ranges(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, stop in ranges:
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(stop, joined[-1][1]))
        elif stop > start:
            joined.append((start, stop))
    return joined


_FREE_BYTES = 128 << 20  # decoded bytes that are always allowed, whatever the size of the file
_OFFSET_BYTES = 4  # offset of a text or a list, or an index into a dictionary


def check_footer(
    file: ParquetFile | pq.ParquetFile, rows_at_once: int | None = None, compressed: int | None = None
) -> None:
    """Refuse a footer that contradicts itself, or promises more than the limits allow.

    A column of nulls takes no bytes in the file but many in memory, so the file's size does not bound the rows.
    ``rows_at_once`` are decoded together, None for all rows. If ``compressed`` is given, the size of the file in bytes,
    the ratio of decoded to compressed bytes is checked, too.

    Raises CorruptFileError if row counts do not agree, or a limit is exceeded.
    """
    meta = file.metadata
    groups = [meta.row_group(i) for i in range(meta.num_row_groups)]
    counts = [group.num_rows for group in groups]
    if min(counts, default=0) < 0 or sum(counts) != meta.num_rows:
        raise CorruptFileError(f"A Parquet file of {meta.num_rows} rows has {sum(counts)} rows in its row groups.")
    if meta.num_rows > get_limits().file_rows:
        raise_limit_error(CorruptFileError, f"A Parquet file has {meta.num_rows} rows", "file_rows")
    if meta.num_columns > get_limits().columns:
        raise_limit_error(CorruptFileError, f"A Parquet file has {meta.num_columns} columns", "columns")
    rows = meta.num_rows if rows_at_once is None else min(meta.num_rows, rows_at_once)
    # Not ``metadata.schema``: that object and the footer, with its bloom filter, refer to each other, and so stay in
    # memory until Python's garbage collector runs.
    decoded = rows * sum(estimate_width(field.type) for field in file.schema_arrow)
    if rows_at_once is None:
        decoded += sum(max(group.total_byte_size, 0) for group in groups)
    if decoded > get_limits().decoded_bytes:
        raise_limit_error(CorruptFileError, f"A Parquet file has {decoded} bytes when decoded", "decoded_bytes")
    if compressed is not None and decoded > max(_FREE_BYTES, get_limits().decoded_ratio * compressed):
        raise_limit_error(
            CorruptFileError, f"A Parquet file of {compressed} bytes has {decoded} when decoded", "decoded_ratio"
        )


def estimate_width(t: pa.DataType) -> int:
    """Return the least bytes of a row in Arrow memory, null or not; a list counts with one item."""
    if pa.types.is_nested(t):
        own = _OFFSET_BYTES if not pa.types.is_struct(t) else 0
        return own + sum(estimate_width(t.field(i).type) for i in range(t.num_fields))
    try:
        return max(1, int(t.bit_width) // 8)
    except ValueError:  # a type without a fixed width
        return _OFFSET_BYTES


def decode_parquet_data(
    content: memoryview | bytes, columns: Collection[str] | None = None, times: pa.Schema | None = None
) -> pa.RecordBatch:
    """Decode the content of a PARQUET_DATA block, which is a whole Parquet file (Hudi HoodieParquetDataBlock).

    There is one row for each record, in order; columns are in the order of the file, with Spark's types. ``columns``
    are the top-level columns to decode, None for all; names that are not in the file are ignored. ``times`` are the
    table's declared times (``list_declared_times``).

    Raises:
        CorruptFileError: the bytes are not a Parquet file, or a damaged one.
        UnsupportedFeatureError: a column, an encoding or the compression is not supported.
    """
    with _name_damage():
        file = _open(content)
        check_footer(file, compressed=len(content))
        return _read(file, *_choose_columns(file, columns, times))


def decode_parquet_parts(
    content: memoryview | bytes, columns: Collection[str] | None, size: int, times: pa.Schema | None = None
) -> Iterator[pa.RecordBatch]:
    """Decode the content of a PARQUET_DATA block, some rows at a time; at least one batch is yielded.

    About ``size`` bytes of rows are decoded at once, estimated from the footer; a batch has at least one row.

    Raises CorruptFileError, UnsupportedFeatureError, as ``decode_parquet_data``.
    """
    with _name_damage():
        file = _open(content)
        meta = file.metadata
        stored = sum(meta.row_group(i).total_byte_size for i in range(meta.num_row_groups))
        at_once = max(1, min(_ROWS_AT_ONCE, size * meta.num_rows // max(stored, 1)))
        check_footer(file, at_once)
        schema, types = _choose_columns(file, columns, times)
        if not schema.names or not meta.num_rows:
            yield _read(file, schema, types)
            return
        for stored_rows in file.iter_batches(at_once, columns=schema.names, use_threads=True):
            batch = retype_times(stored_rows, types)
            rows = pa.RecordBatch.from_arrays(
                [cast_to_spark_type(batch.column(field.name), field.type) for field in schema], schema=schema
            )
            rows.validate(full=True)
            yield rows


def count_parquet_rows(content: memoryview | bytes) -> int:
    """Return the number of rows in the content of a PARQUET_DATA block. Raises as ``decode_parquet_data``."""
    with _name_damage():
        file = _open(content)
        check_footer(file, 1)
        return int(file.metadata.num_rows)


def _open(content: memoryview | bytes) -> ParquetFile:
    return ParquetFile(pa.BufferReader(pa.py_buffer(content)), int96_unit="us")


def _choose_columns(
    file: ParquetFile, columns: Collection[str] | None, times: pa.Schema | None
) -> tuple[pa.Schema, dict[str, pa.DataType]]:
    """Return the columns to read with Spark's types, and the right types of columns whose type in the file is wrong."""
    schema = read_file_schema(file.metadata)
    types = find_mistyped_times(file.metadata.schema.to_arrow_schema(), times)  # INT96 is nanoseconds here
    for name, type_ in types.items():
        schema = schema.set(schema.get_field_index(name), convert_to_spark_field(schema.field(name).with_type(type_)))
    return pa.schema([field for field in schema if columns is None or field.name in columns]), types


@contextmanager
def _name_damage() -> Iterator[None]:
    """Replace Arrow's exceptions for damaged and unsupported Parquet with this package's errors."""
    try:
        yield
    except HoodieError:
        raise
    except pa.ArrowNotImplementedError as error:
        raise UnsupportedFeatureError(f"A Parquet data block cannot be read: {_find_first_line(error)}.") from None
    except (pa.ArrowException, OSError, ValueError, TypeError, KeyError) as error:
        raise CorruptFileError(f"A Parquet data block is damaged: {_find_first_line(error)}.") from None


def _read(file: ParquetFile, schema: pa.Schema, types: Mapping[str, pa.DataType]) -> pa.RecordBatch:
    if not schema.names:
        return make_batch_without_columns(file.metadata.num_rows)
    table = file.read(schema.names, use_threads=True)
    arrays: list[pa.Array] = []
    for field in schema:
        array = join_chunks(table.column(field.name))
        # ``view`` gives the same numbers another type; a cast would convert them.
        arrays.append(cast_to_spark_type(array.view(types[field.name]) if field.name in types else array, field.type))
    batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
    batch.validate(full=True)
    return batch


def _find_first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200].rstrip(".")
