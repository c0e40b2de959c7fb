"""Avro records of log blocks: their schema, and their decoding into Arrow.

The content of an AVRO_DATA or CDC_DATA block is (Hudi HoodieAvroDataBlock; integers are big-endian)

    data block version (1 to 3), int32; record count, int32;
    for each record: its length, int32; its Avro binary form under the schema in the block's header.

Records are decoded by own decoders and not by fastavro, which crashes on recursive schemas, takes union index -1 for
the last branch and believes item counts of 2^62: column by column (``avro_lanes``) or, where that does not apply,
record by record (``avro_rows``), with the same result. Every record must take exactly the bytes that its length says.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hoodie_py.errors import CorruptFileError, HoodieError, UnsupportedFeatureError
from hoodie_py.formats.avro_schema import Record, parse_record
from hoodie_py.formats.avro_types import read_defaults, to_arrow_schema
from hoodie_py.formats.declared_times import correct_record
from hoodie_py.formats.joint_rows import BlockRows
from hoodie_py.formats.limits import get_limits, raise_limit_error

if TYPE_CHECKING:
    from hoodie_py.formats.avro_cursor import Budget
    from hoodie_py.formats.avro_lanes import Block

DATA_VERSIONS = range(1, 4)

_HEADER = struct.Struct(">ii")
_LENGTH_SIZE = 4
_FEW_RECORDS = 56  # that are quicker decoded record by record


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

    def apply_times(self, times: pa.Schema | None) -> AvroSchema:
        """Return the schema that records are to be decoded by where a table declares its times otherwise.

        Args:
            times: what the table declares (``declared_times``); None for nothing.
        """
        return self if times is None else _apply_times(self, times)

    def __reduce__(self) -> tuple[Any, ...]:
        return _parse, (self.text,)


@lru_cache(maxsize=64)
def _parse(text: str) -> AvroSchema:
    record = parse_record(text)
    return AvroSchema(text, to_arrow_schema(record), MappingProxyType(read_defaults(record)), record)


@lru_cache(maxsize=64)
def _apply_times(schema: AvroSchema, times: pa.Schema) -> AvroSchema:
    record = correct_record(schema.record, times)
    if record is schema.record:
        return schema
    return AvroSchema(schema.text, to_arrow_schema(record), MappingProxyType(read_defaults(record)), record)


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
    names = _select_names(schema, columns)
    block = _parse_block(content)
    joint = _decode_in_lanes([content], [block], schema, names)
    if joint is not None:
        return joint.batch
    from hoodie_py.formats.avro_rows import decode_rows

    return decode_rows(bytes(content), block.start, block.count, schema.record, schema.arrow, names)


def decode_avro_blocks(
    contents: Sequence[memoryview | bytes],
    schema: AvroSchema,
    columns: Collection[str] | None = None,
) -> Iterator[BlockRows]:
    """Decode the contents of blocks that have the same schema: small ones cost much less together than one by one.

    Args:
        contents: the blocks' contents. Each is let go of as soon as it is to be decoded, so that it is freed if the
            caller does not hold it.
        schema: the schema of the blocks' headers.
        columns: as for ``decode_avro_data``.

    Yields:
        The rows of all blocks, in their order.

    Raises:
        CorruptFileError, UnsupportedFeatureError: as ``decode_avro_data`` for the first block that is at fault;
            ``where`` also has its number in ``contents`` as ``content``.

    """
    from hoodie_py.formats.avro_lanes import make_budget

    names = _select_names(schema, columns)
    budget = make_budget(sum(map(len, contents)))
    sizes = _plan_groups(contents)
    waiting = deque(contents)
    del contents
    done = 0
    for size in sizes:
        group = [waiting.popleft() for _ in range(size)]
        joint = _decode_group(group, schema, names, budget)
        if joint is not None:
            yield joint
        else:
            yield from _decode_each(group, schema, names, done)
        del joint  # before the next group is decoded
        done += size


def _plan_groups(contents: Sequence[memoryview | bytes]) -> list[int]:
    from hoodie_py.formats.avro_lanes import plan_groups

    try:
        return plan_groups([_parse_block(content) for content in contents])
    except HoodieError:
        return [1] * len(contents)  # which block it is comes out when it is decoded


def _decode_group(
    contents: list[memoryview | bytes], schema: AvroSchema, names: frozenset[str] | None, budget: Budget
) -> BlockRows | None:
    try:
        blocks = [_parse_block(content) for content in contents]
    except HoodieError:
        return None  # which block it is comes out when each is decoded
    return _decode_in_lanes(contents, blocks, schema, names, budget)


def _decode_each(
    contents: Sequence[memoryview | bytes], schema: AvroSchema, names: frozenset[str] | None, first: int
) -> Iterator[BlockRows]:
    for number, content in enumerate(contents, first):
        try:
            rows = decode_avro_data(content, schema, names)
        except HoodieError as error:
            raise error.locate(content=number) from None
        yield BlockRows(rows, (rows.num_rows,))


def _select_names(schema: AvroSchema, columns: Collection[str] | None) -> frozenset[str] | None:
    return None if columns is None else frozenset(columns).intersection(schema.arrow.names)


def _decode_in_lanes(
    contents: list[memoryview | bytes],
    blocks: list[Block],
    schema: AvroSchema,
    names: frozenset[str] | None,
    budget: Budget | None = None,
) -> BlockRows | None:
    """Decode blocks column by column; None when that does not pay, or does not work.

    Where it is tried a copy takes the place of contents that do not lie in one Arrow buffer already, and the list of
    blocks is empty, so that what they lie in is freed meanwhile.
    """
    if sum(block.count for block in blocks) < _FEW_RECORDS:
        return None
    from hoodie_py.formats.avro_cursor import Misfit
    from hoodie_py.formats.avro_lanes import JoinedBlocks, decode_in_lanes, make_plan

    plan = make_plan(schema.record, names)
    if plan is None:
        return None
    try:
        joined = JoinedBlocks(blocks, budget)
        contents[:] = joined.contents
        blocks.clear()
        return decode_in_lanes(joined, plan)
    except Misfit:
        return None


def _parse_block(content: memoryview | bytes) -> Block:
    """Read the header of a block's content."""
    from hoodie_py.formats.avro_lanes import Block

    if len(content) < _HEADER.size:
        raise CorruptFileError(f"A data block of {len(content)} bytes is too short.")
    version, count = _HEADER.unpack_from(content)
    if version not in DATA_VERSIONS:
        raise UnsupportedFeatureError(f"Data block version {version} is not known.")
    if not 0 <= count <= (len(content) - _HEADER.size) // _LENGTH_SIZE:
        raise CorruptFileError(f"A data block of {len(content)} bytes cannot have {count} records.")
    if count > get_limits().block_records:
        raise_limit_error(UnsupportedFeatureError, f"A data block has {count} records", "block_records")
    return Block(memoryview(content), _HEADER.size, int(count))
