"""Decode AVRO_DATA and CDC_DATA blocks of log files into Arrow (Hudi HoodieAvroDataBlock).

The content of a block (integers are big-endian):

    data block version (1 to 3), int32; record count, int32;
    for each record: its length, int32; its Avro binary form under the schema in the block's header.

``columnar_decoder`` reads one field of many records at a time; ``faults`` finds the record in what it refuses. fastavro
is not used: it crashes on recursive schemas, takes union index -1 for the last branch and trusts item counts of 2^62.
Every record must take exactly the bytes that its length says. Blocks that are too large to decode at once are decoded
some records at a time.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hoodie_py.errors import CorruptFileError, HoodieError, UnsupportedFeatureError
from hoodie_py.formats.avro.arrow_types import correct_record, read_defaults, to_arrow_schema
from hoodie_py.formats.avro.schema import Record, parse_record
from hoodie_py.formats.limits import get_limits, raise_limit_error

if TYPE_CHECKING:
    from hoodie_py.formats.avro.columnar_cursor import Budget, Places
    from hoodie_py.formats.avro.columnar_decoder import Block

DATA_VERSIONS = range(1, 4)
_HEADER = struct.Struct(">ii")
_LENGTH = struct.Struct(">i")


@dataclass(frozen=True, slots=True)
class AvroSchema:
    """A vetted schema of records: its JSON, and the forms derived from it."""

    text: str
    arrow: pa.Schema = field(compare=False)  # the columns, with the types that Spark would use
    defaults: Mapping[str, Any] = field(compare=False, repr=False)  # from ``arrow_types.read_defaults``
    record: Record = field(compare=False, repr=False)  # the tree of types that the decoders follow

    @staticmethod
    def parse(text: str) -> AvroSchema:
        """Parse and vet a schema; equal texts give the same object.

        Raises as ``schema.parse_record``.
        """
        return _parse(text)

    def apply_times(self, times: pa.Schema | None) -> AvroSchema:
        """Return the schema with the time types that the table declares (``list_declared_times``)."""
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


@dataclass(frozen=True, slots=True)
class BlockRows:
    """The rows of one block, or of several decoded together, block by block, and the number of rows of each block."""

    batch: pa.RecordBatch
    counts: tuple[int, ...]

    def split(self) -> list[pa.RecordBatch]:
        """Return the rows of each block, as slices that keep the whole batch alive."""
        if len(self.counts) == 1:
            return [self.batch]
        firsts = accumulate(self.counts, initial=0)
        return [self.batch.slice(first, count) for first, count in zip(firsts, self.counts, strict=False)]


def decode_avro_data(
    content: memoryview | bytes, schema: AvroSchema, columns: Collection[str] | None = None
) -> pa.RecordBatch:
    """Decode the content of an AVRO_DATA or CDC_DATA block.

    There is one row per record, in order, and the columns are in the order of the schema. ``columns`` are the top-level
    columns to decode, None for all; names that are not in the schema are ignored. The decoder steps over the other
    columns and checks only what it needs for that.

    Raises:
        CorruptFileError: the bytes are not records of the schema; ``where`` has the record, and its offset in the
            content or the column.
        UnsupportedFeatureError: the data block version is unknown, or the records have far more values than bytes.
    """
    from hoodie_py.formats.avro.columnar_cursor import Misfit
    from hoodie_py.formats.avro.columnar_decoder import JoinedBlocks, decode_in_lanes, make_plan

    names = _select_names(schema, columns)
    block = _parse_block(content)
    try:
        return decode_in_lanes(JoinedBlocks([block]), make_plan(schema.record, names))
    except Misfit as misfit:
        from hoodie_py.formats.avro.faults import raise_block_fault

        raise_block_fault(block, schema.record, names, misfit)


def decode_avro_blocks(
    contents: Sequence[memoryview | bytes], schema: AvroSchema, columns: Collection[str] | None = None
) -> Iterator[BlockRows]:
    """Decode blocks of the same schema; decoding small blocks together costs much less than one by one.

    Each block's content is released when its turn comes, unless the caller holds it, so that its memory is free while
    later ones are decoded. ``columns`` as for ``decode_avro_data``. The rows are in the order of the blocks.

    Raises CorruptFileError, UnsupportedFeatureError, as ``decode_avro_data`` for the first bad block; ``where`` also
    has its number in ``contents`` as ``content``.
    """
    from hoodie_py.formats.avro.columnar_decoder import make_budget

    names = _select_names(schema, columns)
    budget = make_budget(sum(map(len, contents)))
    sizes = _plan_groups(contents)
    waiting = deque(contents)
    del contents  # otherwise this frame would hold every block until the last one is decoded
    done = 0
    for size in sizes:
        group = _BlockGroup([waiting.popleft() for _ in range(size)])
        yield from group.decode(schema, names, budget, done)
        done += size


def decode_avro_values(
    content: bytes | memoryview, starts: Places, ends: Places, schema: AvroSchema, columns: Collection[str] | None
) -> pa.RecordBatch:
    """Decode records at known places of some bytes, such as the values of an HFile's block.

    Places are ascending and do not overlap. Rows and ``columns`` are as for ``decode_avro_data``.

    Raises CorruptFileError, UnsupportedFeatureError, as ``decode_avro_data``; ``where`` has the record.
    """
    from hoodie_py.formats.avro.columnar_cursor import Misfit
    from hoodie_py.formats.avro.columnar_decoder import decode_places, make_plan

    names = _select_names(schema, columns)
    try:
        return decode_places(content, starts, ends, make_plan(schema.record, names))
    except Misfit as misfit:
        from hoodie_py.formats.avro.faults import raise_fault

        bounds = zip(starts.tolist(), ends.tolist(), strict=True)
        try:
            raise_fault(content, bounds, schema.record, names, misfit)
        except CorruptFileError as error:
            error.where.pop("offset", None)  # in bytes that the caller has unpacked
            raise


def _plan_groups(contents: Sequence[memoryview | bytes]) -> list[int]:
    from hoodie_py.formats.avro.columnar_decoder import plan_groups

    try:
        return plan_groups([_parse_block(content) for content in contents])
    except HoodieError:
        return [1] * len(contents)  # decoding them one by one shows which block is bad


def _select_names(schema: AvroSchema, columns: Collection[str] | None) -> frozenset[str] | None:
    return None if columns is None else frozenset(columns).intersection(schema.arrow.names)


class _BlockGroup:
    """The only owner of some blocks' contents, unless the caller holds them, too.

    The columnar decoder reads a copy, unless all contents are in one Arrow buffer. The copy then replaces the contents
    here, so that the originals are freed while it is decoded.
    """

    def __init__(self, contents: list[memoryview | bytes]) -> None:
        self._contents: Sequence[memoryview | bytes] = contents

    def decode(
        self, schema: AvroSchema, names: frozenset[str] | None, budget: Budget, first: int
    ) -> Iterator[BlockRows]:
        """Decode the blocks, together if possible; ``first`` is the number of the first one, for errors."""
        from hoodie_py.formats.avro.columnar_cursor import Misfit
        from hoodie_py.formats.avro.columnar_decoder import JoinedBlocks, decode_in_lanes, make_plan

        try:
            joined = JoinedBlocks([_parse_block(content) for content in self._contents], budget)
            self._contents = joined.contents
            rows = BlockRows(decode_in_lanes(joined, make_plan(schema.record, names)), joined.counts)
        except (HoodieError, Misfit):
            rows = None  # decoding them one by one shows which block is bad
        if rows is not None:
            yield rows
            return
        for number, content in enumerate(self._contents, first):
            try:
                batch = decode_avro_data(content, schema, names)
            except HoodieError as error:
                raise error.locate(content=number) from None
            yield BlockRows(batch, (batch.num_rows,))


def _parse_block(content: memoryview | bytes) -> Block:
    """Read the header of a block's content."""
    from hoodie_py.formats.avro.columnar_decoder import Block

    count = count_records(content, versions=DATA_VERSIONS)
    if count > get_limits().block_records:
        raise_limit_error(UnsupportedFeatureError, f"A data block has {count} records", "block_records")
    return Block(memoryview(content), _HEADER.size, count)


def count_records(content: memoryview | bytes, *, versions: range | None = None) -> int:
    """Return the record count in the content of an AVRO_DATA block.

    Raises CorruptFileError if the content is too short for that many records, UnsupportedFeatureError if its version is
    not in ``versions``.
    """
    if len(content) < _HEADER.size:
        raise CorruptFileError(f"A data block of {len(content)} bytes is too short.")
    version, count = _HEADER.unpack_from(content)
    if versions is not None and version not in versions:
        raise UnsupportedFeatureError(f"Data block version {version} is not known.")
    if not 0 <= count <= (len(content) - _HEADER.size) // _LENGTH.size:
        raise CorruptFileError(f"A data block of {len(content)} bytes cannot have {count} records.")
    return int(count)


def decode_avro_parts(
    content: memoryview, schema: AvroSchema, columns: Collection[str] | None, size: int
) -> Iterator[pa.RecordBatch]:
    """Decode the content of an AVRO_DATA block, some records at a time.

    Each batch comes from about ``size`` bytes of records; a larger record comes alone.

    Raises CorruptFileError, UnsupportedFeatureError, as ``decode_avro_data``.
    """
    left = count_records(content)
    version = int(_HEADER.unpack_from(content)[0])
    pos, done = _HEADER.size, 0
    while True:
        stop, count = _step_over_records(content, pos, left, size)
        if count in (0, left):
            # Pass on all bytes: the decoder reports a record that does not fit, or bytes after the last record.
            stop, count = len(content), left
        part = b"".join((_HEADER.pack(version, count), content[pos:stop]))
        try:
            yield decode_avro_data(memoryview(part), schema, columns)
        except CorruptFileError as error:
            for name, shift in (("record", done), ("offset", pos - _HEADER.size)):
                if name in error.where:
                    error.where[name] += shift
            raise
        left, done, pos = left - count, done + count, stop
        if not left:
            return


def _step_over_records(content: memoryview, pos: int, most: int, size: int) -> tuple[int, int]:
    """Step over records of at least ``size`` bytes in all; return the position after them and their number."""
    start, end = pos, len(content)
    length_at = _LENGTH.unpack_from
    count = 0
    while count < most and pos - start < size and pos + _LENGTH.size <= end:
        stop = pos + _LENGTH.size + int(length_at(content, pos)[0])
        if not pos < stop <= end:
            break
        pos = stop
        count += 1
    return pos, count
