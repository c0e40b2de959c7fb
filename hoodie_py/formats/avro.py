"""Avro records of log blocks: their schema, and their decoding into Arrow.

The content of an AVRO_DATA or CDC_DATA block is (Hudi HoodieAvroDataBlock; integers are big-endian)

    data block version (1 to 3), int32; record count, int32;
    for each record: its length, int32; its Avro binary form under the schema in the block's header.

Records are decoded by an own decoder and not by fastavro, which crashes on recursive schemas, takes union index -1 for
the last branch and believes item counts of 2^62. Every record must take exactly the bytes that its length says.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from hoodie_py.errors import CorruptFileError, HoodieError, UnsupportedFeatureError
from hoodie_py.formats.avro_bytes import Step, skip
from hoodie_py.formats.avro_columns import ColumnBuilder
from hoodie_py.formats.avro_schema import Record, parse_record
from hoodie_py.formats.avro_types import arrow_schema, default_values
from hoodie_py.formats.avro_values import Column, Slots

DATA_VERSIONS = range(1, 4)

_HEADER = struct.Struct(">ii")
_LENGTH = struct.Struct(">i")
_MAX_CONTENT = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class AvroSchema:
    """A vetted schema of records.

    ``text`` is the JSON, ``arrow`` the columns with the types Spark would give, ``defaults`` the defaults other than
    null of top-level fields (``avro_types.default_values``), ``record`` the tree that drives decoding.
    """

    text: str
    arrow: pa.Schema = field(compare=False)
    defaults: Mapping[str, Any] = field(compare=False, repr=False)
    record: Record = field(compare=False, repr=False)

    @staticmethod
    def parse(text: str) -> AvroSchema:
        """Parse and vet a schema; the same text gives the same object.

        Raises:
            CorruptFileError: no JSON, or not an Avro schema of a record.
            UnsupportedFeatureError: recursive, too deep or too wide, or of a type that no column can have.

        """
        return _parse(text)

    def __reduce__(self) -> tuple[Any, ...]:
        return _parse, (self.text,)


@lru_cache(maxsize=64)
def _parse(text: str) -> AvroSchema:
    record = parse_record(text)
    return AvroSchema(text, arrow_schema(record), MappingProxyType(default_values(record)), record)


def decode_avro_data(
    content: memoryview | bytes,
    schema: AvroSchema,
    columns: Collection[str] | None = None,
) -> pa.RecordBatch:
    """Decode the content of an AVRO_DATA or CDC_DATA block.

    Args:
        content: the block's content.
        schema: the schema of the block's header.
        columns: top-level columns to decode, None for all; names that the schema does not have are ignored. The others
            are stepped over, and checked as far as that needs.

    Returns:
        One row for each record, in their order; columns in the order of the schema.

    Raises:
        CorruptFileError: bytes that are not records of the schema; ``where`` has record and offset in the content.
        UnsupportedFeatureError: an unknown data block version, or records that unfold beyond all measure.

    """
    data = bytes(content)
    count = _record_count(data)
    builder = ColumnBuilder(data)
    fields: list[pa.Field] = []
    wanted: list[Column] = []
    steps: list[Step] = []
    names = None if columns is None else frozenset(columns)
    for place, part in enumerate(schema.record.fields):
        if names is None or part.name in names:
            column = builder.column(part.type)
            fields.append(schema.arrow.field(place))
            wanted.append(column)
            step = column.step
        else:
            step = skip(data, part.type)
        if part.type.min_size:
            steps.append(step)
    _read_records(data, count, steps)
    return _batch(count, fields, wanted)


def _record_count(data: bytes) -> int:
    if len(data) < _HEADER.size:
        raise CorruptFileError(f"A data block of {len(data)} bytes is too short.")
    if len(data) > _MAX_CONTENT:
        raise UnsupportedFeatureError(f"A data block of {len(data)} bytes is too long.")
    version, count = _HEADER.unpack_from(data)
    if version not in DATA_VERSIONS:
        raise UnsupportedFeatureError(f"Data block version {version} is not known.")
    if not 0 <= count <= (len(data) - _HEADER.size) // _LENGTH.size:
        raise CorruptFileError(f"A data block of {len(data)} bytes cannot have {count} records.")
    return int(count)


def _read_records(data: bytes, count: int, steps: Sequence[Step]) -> None:
    """Take every record through the steps, and see that it ends where its length says."""
    pos = _HEADER.size
    size = len(data)
    unpack_length = _LENGTH.unpack_from
    record = -1
    try:
        for record in range(count):  # noqa: B007 - the handlers below name it
            (length,) = unpack_length(data, pos)
            start = pos = pos + 4
            end = pos + length
            if length < 0 or end > size:
                raise CorruptFileError(f"A record of {length} bytes does not fit into its block.", offset=pos)
            for step in steps:
                pos = step(pos, end)
            if pos != end:
                message = f"A record of {length} bytes takes {pos - start} when decoded."
                raise CorruptFileError(message, offset=start)
    except (IndexError, struct.error):
        raise CorruptFileError("The block ends within a record.", record=record, offset=pos) from None
    except OverflowError:
        raise CorruptFileError("A number is too large for its type.", record=record, offset=pos) from None
    except CorruptFileError as error:
        raise error.located(record=record) from None
    if pos != size:
        raise CorruptFileError(f"{size - pos} bytes are left over after the last record.", offset=pos)


def _batch(count: int, fields: list[pa.Field], columns: list[Column]) -> pa.RecordBatch:
    arrays: list[pa.Array] = []
    for arrow, column in zip(fields, columns, strict=True):
        try:
            arrays.append(column.array(Slots(count)))
        except HoodieError as error:
            raise error.located(column=arrow.name) from None
    if not arrays:
        return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), count, [None]))
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))
